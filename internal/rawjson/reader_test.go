package rawjson_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/rawjson"
)

// walk reads a value by the methods of a reader, and notes what it meets and where.
func walk(r *rawjson.Reader, note func(string)) error {
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
	r := rawjson.NewReader([]byte(text))
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
	for text, want := range map[string]rawjson.Error{
		``:                         {Reason: rawjson.Ended},
		`{"a":[1,`:                 {Reason: rawjson.Ended, Offset: 8, Pointer: "/a"},
		`{"a":{"b":1,"b":2}}`:      {Reason: rawjson.Duplicate, Offset: 12, Pointer: "/a/b"},
		`{"a~/":1,"\u0061~/":2}`:   {Reason: rawjson.Duplicate, Offset: 9, Pointer: "/a~0~1"},
		`[1,2,]`:                   {Offset: 4},
		`{1:2}`:                    {Offset: 1},
		`{"a" 1}`:                  {Offset: 5, Pointer: "/a"},
		`["\q"]`:                   {Offset: 2, Pointer: "/0"},
		`["\ud800"]`:               {Reason: rawjson.Surrogate, Offset: 2, Pointer: "/0"},
		"[\"a\xff\"]":              {Offset: 3, Pointer: "/0"},
		`[] []`:                    {Offset: 4},
		strings.Repeat("[", 10001): {Offset: 10000},
	} {
		r := rawjson.NewReader([]byte(text))
		err := walk(r, func(string) {})
		if err == nil {
			err = r.End()
		}
		var got *rawjson.Error
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
		kind := rawjson.ErrSyntax
		if want.Reason == rawjson.Duplicate {
			kind = rawjson.ErrDuplicate
		}
		says := fmt.Sprintf("%v, after byte %d", kind, want.Offset)
		if want.Reason == rawjson.Ended {
			says = "JSON that ends too early"
		}
		if !errors.Is(err, kind) || err.Error() != says {
			t.Errorf("%.40q is %v", text, err)
		}
	}
}

func TestEveryString(t *testing.T) {
	const text = `{"a":["b",{"\u0063":null}],"d":1}`
	var met []string
	all := rawjson.EveryString([]byte(text), func(s []byte) bool { met = append(met, string(s)); return true })
	if !all || strings.Join(met, "") != "abcd" {
		t.Errorf("%v %q", all, met)
	}
	for _, s := range []string{"a", "b", "c", "d"} {
		if rawjson.EveryString([]byte(text), func(text []byte) bool { return string(text) != s }) {
			t.Errorf("%q is passed over", s)
		}
	}
	if rawjson.EveryString([]byte(`["a"`), func([]byte) bool { return true }) {
		t.Error("a value that is cut has the property")
	}
}

func TestQuote(t *testing.T) {
	for _, s := range []string{"", "a", `\"`, "ä\u2028\n\x00", "\U0001f600"} {
		literal := rawjson.AppendQuote([]byte("x"), s)[1:]
		if text, err := rawjson.Unquote(literal); err != nil || string(text) != s || !rawjson.Valid(literal) {
			t.Errorf("%q became %s and %q, %v", s, literal, text, err)
		}
	}
	for _, literal := range []string{"", `"`, `a`, `"\q"`, `7`} {
		if text, err := rawjson.Unquote([]byte(literal)); err == nil {
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
		if rawjson.Deeper(data, 500) {
			t.Skip("deep")
		}
		read := func(r *rawjson.Reader) (notes []string, err error) {
			if err = walk(r, func(s string) { notes = append(notes, s) }); err == nil {
				err = r.End()
			}
			return notes, err
		}
		r := rawjson.NewReader(bytes.Clone(data))
		notes, err := read(r)
		if want := rawjson.Check(data, 500); (err == nil) != (want == nil) || (err == nil) != rawjson.Valid(data) || err != nil && err.Error() != want.Error() {
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
	r := rawjson.NewReader(data)
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
