package parser_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// verdict is what a test compares: text, tool_call, or code@offset.
func verdict(r parser.Result) (kind string, offset int) {
	switch r.Kind {
	case parser.Text:
		return "text", 0
	case parser.Call:
		return "tool_call", 0
	}
	return string(r.Refusal.Code), r.Refusal.Violations[0].Offset
}

// cases fix the verdict and, for refusals, the offset. The limits are 64 bytes
// and 4 levels, so that each rule fits into a line.
var cases = []struct {
	name, in, want string
	offset         int
}{
	{"call", `{"tool":{"name":"a","arguments":{}}}`, "tool_call", 0},
	{"call in whitespace", " \r\n\t{\"tool\":{\"name\":\"a\",\"arguments\":{}}}\n", "tool_call", 0},
	{"escaped member names", `{"t\u006fol":{"nam\u0065":"a","arguments":{}}}`, "tool_call", 0},
	{"member names in other cases", `{"tool":{"Name":"a","arguments":{}}}`, "unexpected_field", 9},

	{"empty", "", "empty_output", 0},
	{"blank", " \n", "empty_output", 2},
	{"blank and too long", strings.Repeat(" ", 65), "output_too_large", 64},
	{"as long as allowed", strings.Repeat("a", 64), "text", 0},
	{"one too long", strings.Repeat("a", 65), "output_too_large", 64},
	{"whitespace counts", strings.Repeat("a", 64) + " ", "output_too_large", 64},
	{"fault before the limit", "<tool_use>" + strings.Repeat("a", 64), "foreign_call_syntax", 0},
	{"opens before the limit, colon after it", strings.Repeat("a", 60) + `{"abcdef":`, "mixed_output", 60},
	{"opens at the limit", strings.Repeat("a", 64) + `{"abcdef":`, "output_too_large", 64},
	{"mark across the limit", strings.Repeat("a", 60) + "<tool_call>", "foreign_call_syntax", 60},
	{"number across the limit", `{"a":"` + strings.Repeat("a", 50) + `","b":1e4444444}`, "invalid_number", 62},
	{"surrogate across the limit", `{"a":"` + strings.Repeat("a", 56) + `\ud800aaaaa"}`, "malformed_json", 62},
	{"rune across the limit", strings.Repeat("a", 63) + "é", "output_too_large", 64},
	{"broken rune at the limit", strings.Repeat("a", 63) + "\xc3\xc3", "output_too_large", 64},
	{"object, then blanks beyond the limit", `{"a":1}` + strings.Repeat(" ", 64), "output_too_large", 64},

	{"bad byte", "ab\xff", "invalid_utf8", 2},
	{"byte that cannot continue", "ab\xe2\x28", "invalid_utf8", 3},
	{"overlong", "\xe0\x80\x80", "invalid_utf8", 1},
	{"encoded surrogate", "\xed\xa0\x80", "invalid_utf8", 1},
	{"above the last rune", "\xf4\x90\x80\x80", "invalid_utf8", 1},
	{"unfinished at the end", "ab\xe2\x80", "invalid_utf8", 4},
	{"bad byte in a string", "{\"a\":\"\xff\"}", "invalid_utf8", 6},
	{"bad byte in place of a value", "{\"a\":\xff}", "invalid_utf8", 5},
	{"a good rune in place of a value", "{\"a\":é}", "malformed_json", 5},
	{"unfinished rune in a string", "{\"a\":\"\xe2", "invalid_utf8", 7},
	{"opens where a rune breaks", "\xe2{\"a\":1}", "invalid_utf8", 1},
	{"malformed before the bad byte", "{x\xff", "malformed_json", 1},
	{"candidate broken by a bad byte", "a {\"b\xff\": 1", "invalid_utf8", 5},
	{"noncharacters are characters", "\uffff \U0010ffff", "text", 0},

	{"brace alone", "{", "malformed_json", 1},
	{"empty object", "{}", "not_a_tool_call", 0},
	{"empty object in blanks", "  {} ", "not_a_tool_call", 2},
	{"placeholder", "{x}", "malformed_json", 1},
	{"object, object", `{"a":1} {"b":2}`, "multiple_calls", 8},
	{"object, array", `{"a":1}[`, "multiple_calls", 7},
	{"object, prose", `{"a":1}, then`, "mixed_output", 7},
	{"object, bad byte", "{\"a\":1}\xff", "invalid_utf8", 7},
	{"object, nbsp", "{\"a\":1}\u00a0", "mixed_output", 7},
	{"prose that breaks off the JSON", `{"a" 1}`, "malformed_json", 5},
	{"lone high surrogate", `{"a":"\ud800"}`, "malformed_json", 6},
	{"lone low surrogate", `{"a":"x\udc00"}`, "malformed_json", 7},
	{"two high surrogates", `{"a":"\ud800\ud800"}`, "malformed_json", 6},
	{"pair", `{"a":"\uD83d\uDE00"}`, "not_a_tool_call", 0},
	{"cut in a pair", `{"a":"\ud83d\u`, "malformed_json", 14},
	{"lone before the bad byte", "{\"a\":\"\\ud800\xff", "malformed_json", 6},
	{"raw control character", "{\"a\":\"\x01\"}", "malformed_json", 6},
	{"raw delete is allowed", "{\"a\":\"\x7f\"}", "not_a_tool_call", 0},
	{"bad escape", `{"a":"\x41"}`, "malformed_json", 7},
	{"bad hex", `{"a":"\u12G4"}`, "malformed_json", 10},
	{"leading zero", `{"a":01}`, "malformed_json", 6},
	{"plus", `{"a":+1}`, "malformed_json", 5},
	{"bare fraction", `{"a":1.}`, "malformed_json", 7},
	{"trailing comma", `{"a":1,}`, "malformed_json", 7},
	{"duplicate", `{"a":1,"a":2}`, "duplicate_key", 7},
	{"duplicate by escape", `{"a":1,"\u0061":2}`, "duplicate_key", 7},
	{"duplicate surrogate pair", `{"😀":1,"\ud83d\ude00":2}`, "duplicate_key", 10},
	{"same name in another object", `{"a":{"a":1}}`, "not_a_tool_call", 0},
	{"duplicate, then malformed", `{"a":1,"a" 2}`, "duplicate_key", 7},
	{"duplicate, then the end", `{"a":1,"a"`, "duplicate_key", 7},
	{"exponent", `{"a":1e401}`, "invalid_number", 5},
	{"negative exponent", `{"a":1e-401}`, "invalid_number", 5},
	{"largest exponent", `{"a":[1e400,1e-400,1E+00400]}`, "not_a_tool_call", 0},
	{"exponent of zero counts as written", `{"a":0e401}`, "invalid_number", 5},
	{"exponent before what follows", `{"a":1e401x`, "invalid_number", 5},
	{"depth 4", `{"a":[[[]]]}`, "not_a_tool_call", 0},
	{"depth 5", `{"a":[[[[]]]]}`, "too_deep", 8},
	{"depth by objects", `{"a":{"a":{"a":{"a":{}}}}}`, "too_deep", 20},

	{"array of a call", `[{"tool":1}]`, "multiple_calls", 0},
	{"array of a call by its parts", ` [1,{"name":1,"arguments":2}]`, "mixed_output", 4},
	{"array, object first", ` [ {"a":1},{"name":1,"arguments":2}]`, "multiple_calls", 1},
	{"array of objects", `[{"a":1}]`, "not_a_tool_call", 0},
	{"deeper is no direct element", `[{"a":{"tool":1}}]`, "not_a_tool_call", 0},
	{"array, prose", `[{"a":1}] ok`, "mixed_output", 10},
	{"array, object", `[{"a":1}] {`, "multiple_calls", 10},
	{"array cut", `[{"a":1}`, "malformed_json", 8},
	{"array of a number", "[1]", "text", 0},
	{"array of an empty object", "[{}]", "text", 0},
	{"empty object, then one that opens", `[{}, {"a":1}]`, "mixed_output", 5},
	{"array whose object does not open", `[{"a"`, "text", 0},
	{"array whose string breaks", "[{\"a\nb\":1}]", "text", 0},
	{"bracket and prose", `[note] {x}`, "text", 0},
	{"array whose string is no UTF-8", "[{\"<tool_call>\xff\":1}]", "foreign_call_syntax", 3},
	{"array whose string is cut by a bad byte", "[{\"\\ud800\xff\":1}]", "invalid_utf8", 9},
	{"array whose string has a rune", "[{\"é\":1}]", "not_a_tool_call", 0},

	{"mark", "a<tool_call>", "foreign_call_syntax", 1},
	{"beginning of a mark", "a<tool_cal", "text", 0},
	{"mark after its own beginning", "<tool<tool_call>", "foreign_call_syntax", 5},
	{"four backticks", "````tool_code", "foreign_call_syntax", 1},
	{"wide mark", "x<｜tool▁call▁begin｜>", "foreign_call_syntax", 1},
	{"mark inside a candidate that opens", `a {"<tool_call>": 1`, "mixed_output", 2},
	{"mark inside a candidate that does not", `a {"<tool_call>" 1`, "foreign_call_syntax", 4},
	{"mark in a call is data", `{"tool":{"name":"a","arguments":{"a":"<tool_call>"}}}`, "tool_call", 0},
	{"mark in the first string of an array is data", `[{"<tool_call>": 1}]`, "not_a_tool_call", 0},

	{"opens", `a {"b":1}`, "mixed_output", 2},
	{"opens in blanks", "a { \n\"b\"\t:", "mixed_output", 2},
	{"search starts inside quotes", `a {"b {"c":`, "mixed_output", 6},
	{"end of one string, start of another", `a {"{":`, "mixed_output", 2},
	{"second of two", `a {"b" {"c" : 1`, "mixed_output", 7},
	{"string ends in the next candidate", `a {"b{"c":1`, "mixed_output", 5},
	{"escaped quote", `a {"b\":1}`, "text", 0},
	{"any escape", `a {"\u00e9\n":1}`, "mixed_output", 2},
	{"lone surrogate opens", `a {"\ud800":1}`, "mixed_output", 2},
	{"bad escape ends the candidate", `a {"\x":1}`, "text", 0},
	{"no colon", `a {"b", "c"}`, "text", 0},
	{"invisible first", "\u2060{\"a\":1}", "mixed_output", 3},
	{"vertical tab is no whitespace", "\v{\"a\":1}", "mixed_output", 1},
	{"many braces", strings.Repeat("{", 30) + `"a":`, "malformed_json", 1},
	{"prose and many braces", "a" + strings.Repeat("{", 30) + `"a":`, "mixed_output", 30},
}

var small = parser.Options{MaxBytes: 64, MaxDepth: 4}

func TestVerdicts(t *testing.T) {
	for _, c := range cases {
		kind, offset := verdict(parser.Parse([]byte(c.in), false, small))
		if kind != c.want || offset != c.offset {
			t.Errorf("%s: %q: got %s at %d, want %s at %d", c.name, c.in, kind, offset, c.want, c.offset)
		}
	}
}

func TestTruncated(t *testing.T) {
	for in, want := range map[string]string{
		`{"tool":{"name":"a","arguments":{}}}`:  "truncated_output",
		`{"tool":{"name":"a","argu`:             "truncated_output",
		"{\"tool\":{\"name\":\"a\n\t\r\n ":      "truncated_output",
		"{\"tool\":{\"name\":\"a\n\"":           "malformed_json",
		`{"a":"\ud83d\u`:                        "truncated_output",
		"{\"a\":\"\xe2\x80":                     "truncated_output",
		`[{"tool":1}`:                           "truncated_output",
		`{"a":-`:                                "truncated_output",
		"plain text":                            "text",
		"text that ends in {\"a\"":              "text",
		"cut in a rune \xe2":                    "invalid_utf8",
		"":                                      "empty_output",
		`{"a":1,"a"`:                            "duplicate_key",
		`{"a":1e401`:                            "invalid_number",
		`{"tool":{"name":"a"}}`:                 "missing_field",
		`{"a":1}`:                               "not_a_tool_call",
		`[{"tool":1}]`:                          "multiple_calls",
		`{"tool":{"name":"a","arguments":{}}}.`: "mixed_output",
		`say {"a":`:                             "mixed_output",
		`{"a":"` + strings.Repeat("a", 80):      "output_too_large",
	} {
		if kind, _ := verdict(parser.Parse([]byte(in), true, small)); kind != want {
			t.Errorf("%q: got %s, want %s", in, kind, want)
		}
		sameAtEveryCut(t, []byte(in), true, small)
	}
}

func TestTruncates(t *testing.T) {
	for reason, want := range map[string]bool{
		"length": true, "Length": true, "content_filter": true, "max_tokens": true, "MAX_TOKENS": true, "max_output_tokens": true,
		"": false, "stop": false, "tool_calls": false, "lenght": false, "end_turn": false,
	} {
		if parser.Truncates(reason) != want {
			t.Errorf("%q: expected %t", reason, want)
		}
	}
}

func TestAllowForeign(t *testing.T) {
	o := parser.Options{JSONInText: parser.AllowForeign}
	for in, want := range map[string]string{
		`see {"a": 1}`:                                    "text",
		`see {"a": 1, "tool": 2}`:                         "mixed_output",
		`see {"tool" : 1}`:                                "mixed_output",
		`see {"to\u006fl" : 1}`:                           "mixed_output",
		`see , "arguments":`:                              "mixed_output",
		`see "arguments":`:                                "text",
		`see {"tools": 1}`:                                "text",
		`see {"function_call": 1}`:                        "mixed_output",
		`see {"tool_result": 1}`:                          "mixed_output",
		`see {"x": "tool"}`:                               "text",
		`see <tool_call>`:                                 "foreign_call_syntax",
		`{"a": 1}`:                                        "not_a_tool_call",
		`[{"tool_calls": 1}]`:                             "not_a_tool_call",
		`see {"\u0074\u006f\u006f\u006c": 1}`:             "mixed_output",
		`see {"` + strings.Repeat(`\u0074`, 20) + `": 1}`: "text",
	} {
		if kind, _ := verdict(parser.Parse([]byte(in), false, o)); kind != want {
			t.Errorf("%q: got %s, want %s", in, kind, want)
		}
		sameAtEveryCut(t, []byte(in), false, o)
	}
	if _, offset := verdict(parser.Parse([]byte(`see {"a": 1, "tool": 2}`), false, o)); offset != 11 {
		t.Errorf("a comma opens at %d, want 11", offset)
	}
}

// proseCases are texts beside native calls.
var proseCases = []struct {
	in, want string
	offset   int
}{
	{"I will look.", "text", 0},
	{`{"a":1}`, "text", 0},
	{` {"a":1} and {"b":2}`, "text", 0},
	{`{}`, "text", 0},
	{`{x}`, "text", 0},
	{`{`, "text", 0},
	{`{"a":1`, "text", 0},
	{`{"a":1,"a":2}`, "text", 0},
	{`{"a":01}`, "text", 0},
	{`[{"a":1}]`, "text", 0},
	{`[{"name":"x"}]`, "text", 0},
	{strings.Repeat("[", 60), "text", 0},
	{"```json\n{\"a\": 1}\n```", "text", 0},
	{`{"x": "tool"}`, "text", 0},
	{`{"tools": 1}`, "text", 0},
	{`{"tool":{"name":"a","arguments":{}}}`, "mixed_output", 0},
	{` {"tool":{`, "mixed_output", 1},
	{`[{"tool" : ` + "\n\t" + `{}}]`, "mixed_output", 1},
	{`{"a":1,"tool":{"name":2}}`, "mixed_output", 6},
	{`see {"to\u006fl" : {`, "mixed_output", 4},
	{`see {"\u0074\u006f\u006f\u006c": {`, "mixed_output", 4},
	{`{"tool_calls":[`, "mixed_output", 0},
	{`{"tool_calls":{}}`, "mixed_output", 0},
	{`{"function_call":{"name":"a"}}`, "mixed_output", 0},
	{`{"function_call": [1]}`, "mixed_output", 0},
	{"```json\n{\"content\":null,\"tool_calls\": [{}]}\n```", "mixed_output", 23},
	{`{"tool":"hammer"} {"tool":{}}`, "mixed_output", 18},
	{`{"tool":,"tool":{}}`, "mixed_output", 8},
	{`{"tool" {"tool":{}}`, "mixed_output", 8},
	{`{"tool":1}`, "text", 0},
	{`{"tool":[{"name":"a"}]}`, "text", 0},
	{`{"tool":"{"}`, "text", 0},
	{`{"tool":null}`, "text", 0},
	{`{"tool": `, "text", 0},
	{`{"tool"`, "text", 0},
	{`{"tool_calls":null,"function_call":"auto"}`, "text", 0},
	{`{"tool_call":{"name":"a","arguments":{}}}`, "text", 0},
	{`{"name":"a","arguments":{"b":1}}`, "text", 0},
	{`[{"name":1,"arguments":2}]`, "text", 0},
	{`{"tool_result":{"tool":"web.search","output":{"results":[]}}}`, "text", 0},
	{`{"tool":` + strings.Repeat(" ", 5), "text", 0},
	{"{\"tool\":\xff{", "invalid_utf8", 8},
	{`{"tool": <tool_call>`, "foreign_call_syntax", 9},
	{"{\"a\":1} <tool_call>", "foreign_call_syntax", 8},
	{`{"a":"<tool_call>"}`, "foreign_call_syntax", 6},
	{"{\"a\":\"\xff\"}", "invalid_utf8", 6},
	{"", "empty_output", 0},
	{" \n", "empty_output", 2},
	{strings.Repeat("{", 65), "output_too_large", 64},
	{strings.Repeat(" ", 65), "output_too_large", 64},
}

// TestProse: beside native calls no body is an attempt, and JSON within it is
// judged alike whatever the operator chose for text that may be a call.
func TestProse(t *testing.T) {
	for _, o := range []parser.Options{{JSONInText: parser.Reject}, {JSONInText: parser.AllowForeign, NativeText: parser.RefuseCalls}} {
		o.MaxBytes, o.MaxDepth, o.TextOnly = small.MaxBytes, small.MaxDepth, true
		for _, c := range proseCases {
			for _, truncated := range []bool{false, true} {
				kind, offset := verdict(parser.Parse([]byte(c.in), truncated, o))
				if kind != c.want || offset != c.offset {
					t.Errorf("%q: got %s at %d, want %s at %d", c.in, kind, offset, c.want, c.offset)
				}
				sameAtEveryCut(t, []byte(c.in), truncated, o)
			}
		}
		for _, c := range cases {
			sameAtEveryCut(t, []byte(c.in), false, o)
		}
	}
}

// TestNativeText: the other two ways to judge text beside native calls.
func TestNativeText(t *testing.T) {
	for _, c := range []struct {
		in, reject string
		offset     int
		any        string
	}{
		{"I will look.", "text", 0, "text"},
		{`{x} {} [1]`, "text", 0, "text"},
		{`{"a":1}`, "mixed_output", 0, "text"},
		{`see {"a" : 1}`, "mixed_output", 4, "text"},
		{`see , "tool": {`, "text", 0, "text"},
		{`{"tool":{"name":"a","arguments":{}}}`, "mixed_output", 0, "text"},
		{`{"tool_calls":[{}]}`, "mixed_output", 0, "text"},
		{`{} <tool_call>`, "foreign_call_syntax", 3, "foreign_call_syntax"},
		{"\xff", "invalid_utf8", 0, "invalid_utf8"},
		{" ", "empty_output", 1, "empty_output"},
		{strings.Repeat("{", 65), "output_too_large", 64, "output_too_large"},
	} {
		o := parser.Options{MaxBytes: 64, TextOnly: true, NativeText: parser.RefuseObjects, JSONInText: parser.AllowForeign}
		if kind, offset := verdict(parser.Parse([]byte(c.in), false, o)); kind != c.reject || offset != c.offset {
			t.Errorf("reject %q: got %s at %d, want %s at %d", c.in, kind, offset, c.reject, c.offset)
		}
		sameAtEveryCut(t, []byte(c.in), false, o)
		o.NativeText, o.JSONInText = parser.AllowAny, parser.Reject
		if kind, _ := verdict(parser.Parse([]byte(c.in), false, o)); kind != c.any {
			t.Errorf("any %q: got %s, want %s", c.in, kind, c.any)
		}
		sameAtEveryCut(t, []byte(c.in), false, o)
	}
}

// TestProseReleasesAtOnce: nothing is held back since it might become a call.
func TestProseReleasesAtOnce(t *testing.T) {
	for in, want := range map[string]string{
		"  ": "", "{": "", "{x": "{x", `{"b`: `{"b`, `{"a`: `{"a`, `{"to`: "", `{"b": [1`: `{"b": [1`, "[": "", "[ ": "[ ", " [1": " [1", "[{": "[", `[{"n`: `[{"n`,
		`[{"b":1}] x`: `[{"b":1}] x`, "a<tool_cal": "a", "a\xe2\x80": "a", `{"tool": 1} x`: `{"tool": 1} x`, `a {"tool": `: "a ", `a {"tool": {} x`: "a ", `a {"tool_calls"`: "a ",
	} {
		for _, pieces := range [][]string{{in}, byteByByte(in)} {
			s := parser.NewStream(parser.Options{TextOnly: true})
			got := ""
			for _, p := range pieces {
				got += string(s.Write([]byte(p)))
			}
			if got != want {
				t.Errorf("%q in %d pieces: released %q, want %q", in, len(pieces), got, want)
			}
		}
	}
}

// TestProseMessages: a model whose calls come natively is not told to write them
// as text.
func TestProseMessages(t *testing.T) {
	for _, in := range []string{"", `{"tool":{}}`, "<tool_call>"} {
		text := parser.Parse([]byte(in), false, parser.Options{TextOnly: true}).Refusal.Message
		question := parser.Parse([]byte(in), false, parser.Options{}).Refusal.Message
		if text == question || strings.Contains(text, `"arguments"`) {
			t.Errorf("%q: %s", in, text)
		}
	}
}

func TestEnvelope(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string // code path offset
	}{
		{`{"tool":"x"}`, []string{"wrong_type /tool 8"}},
		{`{"tool":{}}`, []string{"missing_field /tool/arguments 8", "missing_field /tool/name 8"}},
		{`{"tool":{"name":1,"arguments":"{}"},"agent":[],"a~/":0}`, []string{
			"wrong_type /agent 44", "unexpected_field /a~0~1 47", "wrong_type /tool/arguments 30", "wrong_type /tool/name 16",
		}},
		{`{"tool":{"name":"a","arguments":{},"x":1,"name ":2}}`, []string{
			"unexpected_field /tool/name  41", "unexpected_field /tool/x 35",
		}},
		{`{"tool":null,"agent":"A"}`, []string{"wrong_type /tool 8"}},
	} {
		r := parser.Parse([]byte(c.in), false, parser.Options{})
		if r.Kind != parser.Refused {
			t.Errorf("%s: not refused", c.in)
			continue
		}
		var got []string
		for _, v := range r.Refusal.Violations {
			got = append(got, string(v.Code)+" "+v.Path+" "+itoa(v.Offset))
			if v.Message == "" {
				t.Errorf("%s: no message at %s", c.in, v.Path)
			}
		}
		if strings.Join(got, "; ") != strings.Join(c.want, "; ") {
			t.Errorf("%s:\ngot  %q\nwant %q", c.in, got, c.want)
		}
		if r.Refusal.Code != r.Refusal.Violations[0].Code || r.Refusal.Stage != refusal.Parse {
			t.Errorf("%s: code %s at %s", c.in, r.Refusal.Code, r.Refusal.Stage)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

func TestCallIsTheModelsBytes(t *testing.T) {
	in := []byte(" {\"agent\":\"An\\u0061lyst\",\"tool\":{\"arguments\": { \"b\" : 1.50 , \"a\":\"\\u00e9\" } ,\"name\":\"web\\u002esearch\"}}")
	r := parser.Parse(in, false, parser.Options{})
	if r.Kind != parser.Call || r.Name != "web.search" || !r.Claimed || r.Claim != "Analyst" {
		t.Fatalf("got %+v", r)
	}
	if want := `{ "b" : 1.50 , "a":"\u00e9" }`; string(r.Arguments) != want || &r.Arguments[0] != &in[r.ArgumentsOffset] {
		t.Errorf("arguments %q at %d, want the bytes %q of the completion", r.Arguments, r.ArgumentsOffset, want)
	}
}

func TestManyMembers(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"tool":{"name":"a","arguments":{`)
	for i := range 1000 {
		b.WriteString(`"k` + itoa(i) + `":{"a":1},`)
	}
	for name, want := range map[string]string{`"k999 "`: "tool_call", `"k999"`: "duplicate_key", `"\u006b0"`: "duplicate_key", `"k1"`: "duplicate_key"} {
		if kind, _ := verdict(parser.Parse([]byte(b.String()+name+":1}}}"), false, parser.Options{})); kind != want {
			t.Errorf("%s: got %s, want %s", name, kind, want)
		}
	}
}

// sameAtEveryCut streams a completion in pieces of one byte, in random pieces
// and whole, and fails where the verdict differs from Parse's, or where a byte
// from the fault on was released.
func sameAtEveryCut(t *testing.T, in []byte, truncated bool, o parser.Options) {
	t.Helper()
	want := parser.Parse(in, truncated, o)
	random := rand.New(rand.NewPCG(1, uint64(len(in))))
	for round := range 4 {
		s := parser.NewStream(o)
		var released []byte
		for rest := in; len(rest) > 0; {
			n := 1
			switch round {
			case 1:
				n = len(rest)
			case 2, 3:
				n = 1 + random.IntN(min(len(rest), 8*round))
			}
			released = append(released, s.Write(rest[:n])...)
			rest = rest[n:]
		}
		got := s.Close(truncated)
		wantKind, wantOffset := verdict(want)
		if kind, offset := verdict(got); kind != wantKind || offset != wantOffset {
			t.Fatalf("%q, round %d: streamed %s at %d, whole %s at %d", in, round, kind, offset, wantKind, wantOffset)
		}
		switch got.Kind {
		case parser.Refused:
			if got.Refusal.Message != want.Refusal.Message {
				t.Fatalf("%q: streamed %q, whole %q", in, got.Refusal.Message, want.Refusal.Message)
			}
			if !bytes.HasPrefix(in, released) || len(released) > wantOffset {
				t.Fatalf("%q, round %d: released %q, which is not before the fault at %d", in, round, released, wantOffset)
			}
		case parser.Call:
			if len(released) > 0 || !bytes.Equal(got.Arguments, want.Arguments) || got.Name != want.Name || got.ArgumentsOffset != want.ArgumentsOffset || got.Claim != want.Claim {
				t.Fatalf("%q, round %d: released %q, call %+v", in, round, released, got)
			}
		case parser.Text:
			if string(released)+string(got.Text) != string(in) || !bytes.Equal(want.Text, in) {
				t.Fatalf("%q, round %d: text came out as %q", in, round, string(released)+string(got.Text))
			}
		}
	}
}

func TestEveryCut(t *testing.T) {
	for _, c := range cases {
		sameAtEveryCut(t, []byte(c.in), false, small)
		sameAtEveryCut(t, []byte(c.in), true, small)
		sameAtEveryCut(t, []byte(c.in), false, parser.Options{JSONInText: parser.AllowForeign})
	}
}

// TestReleasesAtOnce fixes what is held back, and that nothing else is.
func TestReleasesAtOnce(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"  ", ""},
		{"  a", "  a"},
		{"a ", "a "},
		{"{", ""},
		{`{"tool":1}`, ""},
		{" [", ""},
		{" [ {", ""},
		{" [1", " [1"},
		{`[{"a"`, ""},
		{`[{"a",`, `[{"a",`},
		{"a{", "a"},
		{"a{x", "a{x"},
		{`a{"b" `, "a"},
		{`a{"b"}`, `a{"b"}`},
		{`a{"b" {"c`, `a{"b" `},
		{"a<tool_cal", "a"},
		{"a<tool_calf", "a<tool_calf"},
		{"a<<", "a<"},
		{"a`````", "a``"},
		{"a\xe2\x80", "a"},
		{"a\xe2\x80\x93", "a\xe2\x80\x93"},
		{"a<｜tool", "a"},
		{"a<｜tool\xe2\x96", "a"},
		{"a[TOOL_CALL", "a"},
		{"Sure, I will. {\"tool\":1}", "Sure, I will. "},
		{"Hello <tool_call> x", "Hello "},
		{"x{\"b <tool_use>\n", "x{\"b "},
		{"see [\xff", "see ["},
		{"see <tool_\xff", "see <tool_"},
	} {
		for _, pieces := range [][]string{{c.in}, strings.SplitAfter(c.in, ""), byteByByte(c.in)} {
			s := parser.NewStream(parser.Options{})
			got := ""
			for _, p := range pieces {
				got += string(s.Write([]byte(p)))
			}
			if got != c.want {
				t.Errorf("%q in %d pieces: released %q, want %q", c.in, len(pieces), got, c.want)
			}
		}
	}
}

// TestNoHalfCharacter: a limit within a character releases nothing of it.
func TestNoHalfCharacter(t *testing.T) {
	in := strings.Repeat("a", 62) + "漢" + "b"
	for _, pieces := range [][]string{{in}, byteByByte(in)} {
		s := parser.NewStream(small)
		got := ""
		for _, p := range pieces {
			got += string(s.Write([]byte(p)))
		}
		if got != in[:62] {
			t.Errorf("in %d pieces: released %q", len(pieces), got)
		}
	}
}

// TestForeignHoldsLittle: where other JSON is allowed, only what may still be a
// name of the call language is held.
func TestForeignHoldsLittle(t *testing.T) {
	for in, want := range map[string]string{
		`x, "hello`: `x, "hello`, `x, "to`: `x`, `x, "tool" y`: `x, "tool" y`, `x {"b`: `x {"b`, `x {"a`: "x ", `x {"ar`: "x ", `x {"\u0061`: "x ",
	} {
		s := parser.NewStream(parser.Options{JSONInText: parser.AllowForeign})
		if got := string(s.Write([]byte(in))); got != want {
			t.Errorf("%q: released %q, want %q", in, got, want)
		}
	}
}

// TestLowestViolations: of many faults of the envelope the lowest are listed.
func TestLowestViolations(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"tool":{"name":"a","arguments":{}},"agent":1`)
	for i := range 150 {
		b.WriteString(`,"z` + itoa(i) + `":1`)
	}
	b.WriteString(`,"a":1}`)
	r := parser.Parse([]byte(b.String()), false, parser.Options{})
	if r.Refusal == nil || len(r.Refusal.Violations) != 100 || r.Refusal.Code != refusal.UnexpectedField || r.Refusal.Violations[0].Path != "/a" || r.Refusal.Violations[1].Path != "/agent" {
		t.Errorf("got %+v", r.Refusal)
	}
}

func byteByByte(s string) []string {
	var all []string
	for i := range len(s) {
		all = append(all, s[i:i+1])
	}
	return all
}

func TestVectors(t *testing.T) {
	o := parser.Options{MaxBytes: 65536, MaxDepth: 16}
	seen := 0
	for _, v := range corpora.Vectors(t) {
		in := v.Bytes(t)
		truncated := parser.Truncates(v.FinishReason)
		r := parser.Parse(in, truncated, o)
		got, _ := verdict(r)
		switch {
		case v.Expect.Verdict == "text":
			if got != "text" {
				t.Errorf("%s: got %s, want text", v.ID, got)
			}
		case v.Expect.Stage == "parse":
			if got != v.Expect.Code {
				t.Errorf("%s: got %s, want %s", v.ID, got, v.Expect.Code)
			} else if v.Expect.Path != nil && r.Refusal.Violations[0].Path != *v.Expect.Path {
				t.Errorf("%s: path %s, want %s", v.ID, r.Refusal.Violations[0].Path, *v.Expect.Path)
			}
		case v.Expect.Stage == "identity" && r.Object: // the agent is judged before the envelope
		case got != "tool_call": // the stages after this one judge the rest
			t.Errorf("%s: got %s, want a call", v.ID, got)
		}
		seen++
		sameAtEveryCut(t, in, truncated, o)
		sameAtEveryCut(t, in, truncated, parser.Options{MaxBytes: 65536, MaxDepth: 16, TextOnly: true})
	}
	t.Logf("%d vectors", seen)
}

// TestMarksDoNotNest holds the search to its assumption: no mark begins within
// another, so that the lowest beginning of a mark is the one that decides.
func TestMarksDoNotNest(t *testing.T) {
	marks := readMarks(t)
	if len(marks) < 20 {
		t.Fatalf("%d marks", len(marks))
	}
	for _, a := range marks {
		if !strings.ContainsAny(a[:1], "<[`") || strings.ContainsAny(a, "{,") {
			t.Errorf("%q starts where the search does not look, or holds what opens an object", a)
		}
		for _, b := range marks {
			if i := strings.Index(a[1:], b); i >= 0 {
				t.Errorf("%q stands within %q", b, a)
			}
		}
		sameAtEveryCut(t, []byte("x "+a+" y"), false, parser.Options{})
		if kind, offset := verdict(parser.Parse([]byte("x "+a), false, parser.Options{})); kind != "foreign_call_syntax" || offset != 2 {
			t.Errorf("%q: %s at %d", a, kind, offset)
		}
	}
}

func foreignMarks(t testing.TB) string {
	t.Helper()
	list, err := os.ReadFile("foreign-marks.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(list)
}
