package parser_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/parser"
)

// TestParseStructured: the bounds and the encoding, and what is a call, by how calls come; whole, and cut off.
func TestParseStructured(t *testing.T) {
	const prose, json = "prose", "json"
	for _, c := range []struct {
		in                string
		native, text, cut string // cut: of a native answer
		offset            int
	}{
		{` {"a":1} `, json, json, json, 0},
		{`[1,"{",{"tool":{}}]`, json, "multiple_calls", json, 0},
		{`[{"name":"a","arguments":{}}]`, json, "multiple_calls", json, 0},
		{`-1.5e3`, json, json, json, 0},
		{`"<tool_call>"`, json, json, json, 0},
		{`{"a":{"tool":{"name":"b","arguments":{}}},"tool":"c"}`, json, "unexpected_field", json, 0},
		{`{"a":1,"tool":{"name":"b","arguments":{}}}`, "mixed_output", "unexpected_field", "mixed_output", 7},
		{`{"tool":{"name":"b","arguments":{}}}`, "mixed_output", "tool_call", "mixed_output", 1},
		{`{"tool":{"name":"b","arguments":{}}`, "mixed_output", "malformed_json", "mixed_output", 1},
		{`{"tool":{"name":"b","arguments":{}}}{}`, "mixed_output", "multiple_calls", "mixed_output", 1},
		{`{"function_call":[]}`, "mixed_output", json, "mixed_output", 1},
		{`{"tool_calls":"none"}`, json, json, json, 0},
		{`{"\u0074ool_calls":[]}`, "mixed_output", json, "mixed_output", 1},
		{`{"a":1`, "malformed_json", "malformed_json", prose, 6},
		{`{"a":1,`, "malformed_json", "malformed_json", prose, 7},
		{`{"a":1,}`, "malformed_json", "malformed_json", "malformed_json", 7},
		{`{"a":1} and`, "mixed_output", "mixed_output", "mixed_output", 8},
		{`{"a":1}{"a":2}`, "mixed_output", "mixed_output", "mixed_output", 7},
		{`{"a":1,"a":2`, "duplicate_key", "duplicate_key", "duplicate_key", 7},
		{`I cannot`, "malformed_json", "malformed_json", prose, 0},
		{`no`, "malformed_json", "malformed_json", prose, 1},
		{`So: <tool_call>`, "malformed_json", "malformed_json", "foreign_call_syntax", 0},
		{"{\"a\":\"\xff\"}", "invalid_utf8", "invalid_utf8", "invalid_utf8", 6},
		{"{\"a\":\"\xc3", "invalid_utf8", "invalid_utf8", "invalid_utf8", 7},
		{"\xff", "invalid_utf8", "invalid_utf8", "invalid_utf8", 0},
		{`[[[[[[[[[]]]]]]]]]`, "too_deep", "too_deep", "too_deep", 8},
		{`[1e999`, "invalid_number", "invalid_number", "invalid_number", 1},
		{``, "empty_output", "empty_output", "empty_output", 0},
		{" \n", "empty_output", "empty_output", "empty_output", 2},
		{`"` + strings.Repeat("a", 80) + `"`, "output_too_large", "output_too_large", "output_too_large", 64},
		{`"` + strings.Repeat("a", 80), "output_too_large", "output_too_large", "output_too_large", 64},
		{strings.Repeat(" ", 80), "output_too_large", "output_too_large", "output_too_large", 64},
	} {
		o := parser.Options{MaxBytes: 64, MaxDepth: 8}
		judge := func(truncated bool) string {
			r := parser.ParseStructured([]byte(c.in), truncated, truncated, o)
			kind, offset := verdict(r)
			switch {
			case kind == "text" && r.JSON == nil:
				return prose
			case kind == "text":
				if string(r.JSON) != strings.Trim(c.in, " \n") || string(r.Text) != c.in || c.in[r.JSONOffset:r.JSONOffset+len(r.JSON)] != string(r.JSON) {
					t.Errorf("%q: found %+v", c.in, r)
				}
				return json
			case kind == c.native && o.TextOnly && o.NativeText == "" && !truncated && offset != c.offset:
				t.Errorf("%q: found a fault at %d, want %d", c.in, offset, c.offset)
			}
			return kind
		}
		if found := judge(false); found != c.text {
			t.Errorf("%q, calls as text: found %s, want %s", c.in, found, c.text)
		}
		o.TextOnly = true
		if found := judge(false); found != c.native {
			t.Errorf("%q: found %s, want %s", c.in, found, c.native)
		}
		if found := judge(true); found != c.cut {
			t.Errorf("%q, cut off: found %s, want %s", c.in, found, c.cut)
		}
		o.NativeText = parser.AllowAny
		if found := judge(false); found != c.native && (c.native != "mixed_output" || found != json && found != "malformed_json" && found != "mixed_output") {
			t.Errorf("%q, with any text: found %s", c.in, found)
		}
	}
}

// FuzzParseStructured: what passes whole is one JSON value for another reader too, and every beginning of it passes where
// the answer was cut off.
func FuzzParseStructured(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}],"c":"\u00e9\ud83d\ude00"}`, ` [true,-0.5e-3] `, `"x"`, `{"tool":{}}`, "{\"a\":1}\n{}", `{"a":1,"a":2}`} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, textOnly bool) {
		o := parser.Options{MaxBytes: 256, MaxDepth: 8, TextOnly: textOnly}
		r := parser.ParseStructured(in, false, false, o)
		if r.JSON == nil {
			if r.Kind == parser.Text {
				t.Fatalf("%q is text, and no JSON", in)
			}
			return
		}
		if r.Kind != parser.Text || r.Refusal != nil || !json.Valid(r.JSON) || !bytes.Equal(bytes.Trim(in, " \t\r\n"), r.JSON) {
			t.Fatalf("%q: found %+v", in, r)
		}
		for n := r.JSONOffset + 1; n < r.JSONOffset+len(r.JSON); n++ {
			cut := parser.ParseStructured(in[:n], true, true, o)
			if code := cut.Refusal; code != nil && code.Code != "invalid_utf8" { // within a character
				t.Fatalf("%q, cut off: %v", in[:n], code)
			}
		}
	})
}
