package parser_test

import (
	"encoding/json"
	"testing"

	"github.com/callgate/callgate/parser"
)

func TestSpan(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":{"b":[1,{"c":"}"}]}}`:                                    `[1,{"c":"}"}]`,
		" {\n\"x\" : \"{\\\"a\\\":1}\" , \"a\":{\"b\" :\t\"]\\\"\" }}": `"]\""`,
		`{"\u0061":{"\u0062":1}}`:                                      `1`,
		`{"a":{"b":1,"b":2},"a":{"b":3}}`:                              `1`,
		`{"a":{"b":nonsense]]}}`:                                       `nonsense`,
		`{"a":{"b":{"x":1,"x":2}, "c":3}}`:                             `{"x":1,"x":2}`,
		`{"a":{"b":"never ends`:                                        `"never ends`,
		`{"a":{"b":{"never":[`:                                         `{"never":[`,
		// It is behind the object that is asked for, or there is none.
		`{"a":{"c":1},"b":2}`:  ``,
		`{"a":{},"x":{"b":1}}`: ``,
		`{"b":1}`:              ``,
		`{"A":{"b":1}}`:        ``,
		`{"a":["b",1]}`:        ``,
		`[{"a":{"b":1}}]`:      ``,
		`{"a":{"b":}}`:         ``,
		`{"a" {"b":1}}`:        ``,
		`{"a":{"x":1 "b":1}}`:  ``,
		`{a:{"b":1}}`:          ``,
		`{"a":{"b"`:            ``,
		`{"`:                   ``,
		`x`:                    ``,
		``:                     ``,
	} {
		if from, to := parser.Span([]byte(text), "a", "b"); text[from:to] != want {
			t.Errorf("%s: found %q; expected %q", text, text[from:to], want)
		}
	}
}

// FuzzSpan: within strict JSON the bytes are those of the value, and without them what
// is around is as strict.
func FuzzSpan(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":[1,{"c":"}"}]}}`, `{"x":1,"a":{"\u0062":"\\\""}}`, `{"a":{"b":1,"b":2}}`, `{"a":1}`, `{"a":{"b":"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		from, to := parser.Span(b, "a", "b")
		if from < 0 || from > to || to > len(b) {
			t.Fatalf("%q: from %d to %d", b, from, to)
		}
		value, err := parser.ReadValue(b, 100)
		if err != nil {
			return
		}
		object, _ := value.(map[string]any)
		inner, _ := object["a"].(map[string]any)
		_, has := inner["b"]
		if has != (from < to) {
			t.Fatalf("%q: from %d to %d", b, from, to)
		}
		if has && !json.Valid(b[from:to]) {
			t.Fatalf("%q: found %q", b, b[from:to])
		}
		rest := append(append(append([]byte(nil), b[:from]...), "{}"...), b[to:]...)
		if _, err := parser.ReadValue(rest, 100); has && err != nil {
			t.Fatalf("%q: around it stands %q: %v", b, rest, err)
		}
	})
}
