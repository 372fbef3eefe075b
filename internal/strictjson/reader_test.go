package strictjson_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/strictjson"
)

// walk reads a value by the methods of a reader, and notes what it meets and where.
func walk(r *strictjson.Reader, note func(string)) error {
	switch r.Kind() {
	case '{':
		return r.Object(func(name []byte) error {
			note(fmt.Sprintf("%d:%s", r.Start(), name))
			return walk(r, note)
		})
	case '[':
		return r.Array(func() error { return walk(r, note) })
	}
	raw, err := r.Value()
	note(fmt.Sprintf("%d-%d=%s", r.Start(), r.Offset(), raw))
	return err
}

func TestReader(t *testing.T) {
	const text = ` {"a\u0062" : [1.50, {"x":[]}, "\n"], "":null } `
	r := strictjson.NewReader([]byte(text))
	for range 2 {
		var met []string
		err := walk(r, func(s string) { met = append(met, s) })
		if want := []string{"2:ab", "15-19=1.50", "22:x", `31-35="\n"`, "38:", "41-45=null"}; err != nil || r.End() != nil || !slices.Equal(met, want) {
			t.Errorf("%q, %v; expected %q", met, err, want)
		}
		r.ResetChecked([]byte(text)) // the memory is used again
	}
	if err := r.End(); err == nil {
		t.Error("a value stands where the end is expected")
	}
	stop := errors.New("stop")
	r.Reset([]byte(text))
	if err := r.Object(func([]byte) error { return stop }); err != stop {
		t.Errorf("the error of a callback is %v", err)
	}
	r.Reset([]byte(`"\u00e4" 7`))
	if s, err := r.Text(); err != nil || string(s) != "ä" {
		t.Errorf("%q, %v", s, err)
	}
	r.Reset([]byte(`7`))
	if s, err := r.Text(); err == nil {
		t.Errorf("a number says %q", s)
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]strictjson.Error{
		``:                         {Reason: strictjson.Ended},
		`{"a":[1,`:                 {Reason: strictjson.Ended, Offset: 8, Pointer: "/a"},
		`{"a":{"b":1,"b":2}}`:      {Reason: strictjson.Duplicate, Offset: 12, Pointer: "/a/b"},
		`{"a~/":1,"\u0061~/":2}`:   {Reason: strictjson.Duplicate, Offset: 9, Pointer: "/a~0~1"},
		`[1,2,]`:                   {Reason: strictjson.Character, Offset: 4, Detail: "invalid character ',' at start of value"},
		`{1:2}`:                    {Offset: 1},
		`{"a" 1}`:                  {Reason: strictjson.Character, Offset: 5, Pointer: "/a", Detail: "invalid character '1' after object name (expecting ':')"},
		`["\q"]`:                   {Reason: strictjson.Escape, Offset: 2, Pointer: "/0"},
		`["\ud800"]`:               {Reason: strictjson.Surrogate, Offset: 2, Pointer: "/0"},
		"[\"a\xff\"]":              {Reason: strictjson.UTF8, Offset: 3, Pointer: "/0"},
		`[] []`:                    {Offset: 4},
		strings.Repeat("[", 10001): {Offset: 10000},
	} {
		r := strictjson.NewReader([]byte(text))
		err := walk(r, func(string) {})
		if err == nil {
			err = r.End()
		}
		var got *strictjson.Error
		if !errors.As(err, &got) {
			t.Errorf("%.40q: %v", text, err)
			continue
		}
		if len(text) > 1000 {
			got.Pointer = ""
		}
		if *got != want {
			t.Errorf("%.40q: %+v; expected %+v", text, *got, want)
		}
		kind := strictjson.ErrSyntax
		if want.Reason == strictjson.Duplicate {
			kind = strictjson.ErrDuplicate
		}
		if !errors.Is(err, kind) || err.Error() != kind.Error() {
			t.Errorf("%.40q is %v", text, err)
		}
	}
}

func TestEveryString(t *testing.T) {
	const text = `{"a":["b",{"\u0063":null}],"d":1}`
	var met []string
	all := strictjson.EveryString([]byte(text), func(s []byte) bool { met = append(met, string(s)); return true })
	if !all || strings.Join(met, "") != "abcd" {
		t.Errorf("%v %q", all, met)
	}
	for _, s := range []string{"a", "b", "c", "d"} {
		if strictjson.EveryString([]byte(text), func(text []byte) bool { return string(text) != s }) {
			t.Errorf("%q is passed over", s)
		}
	}
	if strictjson.EveryString([]byte(`["a"`), func([]byte) bool { return true }) {
		t.Error("a value that is cut has the property")
	}
}

func TestQuote(t *testing.T) {
	for _, s := range []string{"", "a", `\"`, "ä\u2028\n\x00", "\U0001f600"} {
		literal := strictjson.AppendQuote([]byte("x"), s)[1:]
		if text, err := strictjson.Unquote(literal); err != nil || string(text) != s || !strictjson.Valid(literal) {
			t.Errorf("%q became %s and %q, %v", s, literal, text, err)
		}
	}
	for _, literal := range []string{"", `"`, `a`, `"\q"`, `7`} {
		if text, err := strictjson.Unquote([]byte(literal)); err == nil {
			t.Errorf("%s says %q", literal, text)
		}
	}
}

// FuzzReader: a reader takes what Check takes, and meets the same literals after a Reset.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"\u0041"}]}`, `{"a":1,"a":2}`, `"\ud800"`, "\xff", `[[[[[`, `{"a":1}x`, `[1 2]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if strictjson.Deeper(data, 500) {
			t.Skip("deep")
		}
		read := func(r *strictjson.Reader) (notes []string, err error) {
			if err = walk(r, func(s string) { notes = append(notes, s) }); err == nil {
				err = r.End()
			}
			return notes, err
		}
		r := strictjson.NewReader(bytes.Clone(data))
		notes, err := read(r)
		if want := strictjson.Check(data, 500); (err == nil) != (want == nil) || (err == nil) != strictjson.Valid(data) || err != nil && err.Error() != want.Error() {
			t.Errorf("%q: %v part by part, %v as a whole", data, err, want)
		}
		if err != nil {
			return
		}
		r.ResetChecked(data)
		if second, err := read(r); err != nil || !slices.Equal(second, notes) {
			t.Errorf("%q: %q, then %q, %v", data, notes, second, err)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	data := []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + strings.Repeat("some text ", 100) + `"}],"structuredContent":{"a":[1,2,3],"b":{"c":true}}}}`)
	r := strictjson.NewReader(data)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var value func() error
	value = func() error {
		switch r.Kind() {
		case '{':
			return r.Object(func([]byte) error { return value() })
		case '[':
			return r.Array(value)
		}
		_, err := r.Value()
		return err
	}
	for b.Loop() {
		r.Reset(data)
		if err := value(); err != nil {
			b.Fatal(err)
		}
	}
}
