package rawjson_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
)

// TestObject: what is not changed stays byte for byte, and in its place.
func TestObject(t *testing.T) {
	o, err := rawjson.Read([]byte(" {\"b\" : 1.50 , \"a\":{\"x\" :\t[ ]},\"n\":null} "))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got  rawjson.Object
		want string
	}{
		{o, "{\"b\":1.50,\"a\":{\"x\" :\t[ ]},\"n\":null}"},
		{o.Set("a", rawjson.Quote("é\"")), `{"b":1.50,"a":"é\"","n":null}`},
		{o.Set("c", []byte("2")), "{\"b\":1.50,\"a\":{\"x\" :\t[ ]},\"n\":null,\"c\":2}"},
		{o.With(rawjson.Field("c", []byte("2")), rawjson.Field("b", []byte("3")), rawjson.Field("c", []byte("4"))), "{\"b\":3,\"a\":{\"x\" :\t[ ]},\"n\":null,\"c\":4}"},
		{o.Without("a", "n", "none"), `{"b":1.50}`},
		{append(o.Without("none"), rawjson.Field("z", []byte("1"))).Without("a", "n"), `{"b":1.50,"z":1}`},
	} {
		if got := string(c.got.Bytes()); got != c.want {
			t.Errorf("found %s, want %s", got, c.want)
		}
	}
	if o.Get("n") != nil || o.Get("none") != nil || string(o.Get("b")) != "1.50" {
		t.Errorf("found %s, %s and %s", o.Get("n"), o.Get("none"), o.Get("b"))
	}
	if s, ok := rawjson.String([]byte(`"\u00e9"`)); s != "é" || !ok {
		t.Errorf("found %q", s)
	}
	if _, ok := rawjson.String(o.Get("b")); ok {
		t.Error("a number is a string")
	}
}

// TestReadFaults: a body that two readers could read differently is not taken.
func TestReadFaults(t *testing.T) {
	members := func(n int) string { return `{"a":0` + strings.Repeat(`,"":0`, n-1) + `}` }
	for raw, want := range map[string]string{
		``: "", `[1]`: parser.ErrNoObject.Error(), `{"a":1}{`: "", `{"a":1,"\u0061":2}`: "", "{\"a\":\"\xff\"}": "", `{"a":01}`: "",
		strings.Repeat(`{"a":`, rawjson.MaxDepth+1): "",
		members(rawjson.MaxOpenMembers + 1):         "too many members",
	} {
		o, err := rawjson.Read([]byte(raw))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: found %v and %v", raw, o, err)
		}
		if errors.Is(err, parser.ErrNoObject) != (raw == `[1]`) {
			t.Errorf("%.40q: %v", raw, err)
		}
		if raw != `[1]` && rawjson.Readable([]byte(raw)) {
			t.Errorf("%.40q is valid", raw)
		}
	}
}
