package parser_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/parser"
)

type output struct {
	ID, Raw, Finish, Shape string
}

func TestRealOutputs(t *testing.T) {
	marks := readMarks(t)
	const corpus = "real_outputs"
	for file, want := range map[string]int{
		"react_injecagent_train.jsonl": corpora.Count(corpus, 2545, 31), "autogpt_json_protocol.jsonl": corpora.Count(corpus, 412, 20),
	} {
		all := corpora.Lines[output](t, corpora.Path(t, corpus, file))
		if len(all) != want {
			t.Errorf("%s: %d outputs, want %d", file, len(all), want)
		}
		verdicts := map[string]int{}
		objects := 0
		for _, o := range all {
			got, _ := verdict(parser.Parse([]byte(o.Raw), false, parser.Options{}))
			if got == "tool_call" {
				t.Errorf("%s: a call", o.ID)
			}
			verdicts[got]++
			asked, _ := verdict(parser.ParseStructured([]byte(o.Raw), false, false, parser.Options{TextOnly: true}))
			whole := json.Valid([]byte(o.Raw)) && got != "duplicate_key"
			if called := asked == "mixed_output"; whole && !called && asked != "text" || !whole && asked == "text" { // it may have the form of a call
				t.Errorf("%s: where JSON is asked for, it is %s", o.ID, asked)
			}
			if o.Shape == "json_object_only" {
				objects++
				if json.Valid([]byte(o.Raw)) && got != "not_a_tool_call" && got != "duplicate_key" {
					t.Errorf("%s: a whole object is %s", o.ID, got)
				}
			}
			sameAtEveryCut(t, []byte(o.Raw), parser.Truncates(o.Finish), parser.Options{})
			agrees(t, []byte(o.Raw), marks)
		}
		if want := corpora.Count(corpus, 347, 9); strings.HasPrefix(file, "autogpt") && verdicts["not_a_tool_call"] != want {
			t.Errorf("%d whole objects are no tool call, want %d (%d by shape)", verdicts["not_a_tool_call"], want, objects)
		}
		t.Logf("%s: %v", file, verdicts)
	}
}

func TestParserFixtures(t *testing.T) {
	marks := readMarks(t)
	type fixture struct {
		Case, Raw string
		Chunks    []string
	}
	all := corpora.Lines[fixture](t, corpora.Path(t, "parser_fixtures", "ollama_parser_inputs.jsonl"))
	if want := corpora.Count("parser_fixtures", 502, 38); len(all) != want {
		t.Errorf("%d fixtures, want %d", len(all), want)
	}
	verdicts := map[string]int{}
	for _, f := range all {
		got, _ := verdict(parser.Parse([]byte(f.Raw), false, parser.Options{}))
		if got == "tool_call" {
			t.Errorf("%s: %q is a call", f.Case, f.Raw)
		}
		verdicts[got]++
		sameAtEveryCut(t, []byte(f.Raw), false, parser.Options{})
		agrees(t, []byte(f.Raw), marks)
		s := parser.NewStream(parser.Options{})
		for _, c := range f.Chunks {
			s.Write([]byte(c))
		}
		joined := strings.Join(f.Chunks, "")
		want, _ := verdict(parser.Parse([]byte(joined), false, parser.Options{}))
		if got, _ := verdict(s.Close(false)); got != want {
			t.Errorf("%s: in its chunks %s, whole %s", f.Case, got, want)
		}
	}
	t.Log(verdicts)
}

func TestMalformedLLMJSON(t *testing.T) {
	type broken struct {
		ID         int
		Raw        string
		StrictJSON string `json:"strict_json"`
	}
	all := corpora.Lines[broken](t, corpora.Path(t, "malformed_llm_json", "malformed_llm_json.jsonl"))
	if want := corpora.Count("malformed_llm_json", 276, 83); len(all) != want {
		t.Errorf("%d strings, want %d", len(all), want)
	}
	agree := 0
	for _, b := range all {
		in := []byte(`{"tool":{"name":"a","arguments":{"v":` + b.Raw + `}}}`)
		got, _ := verdict(parser.Parse(in, false, parser.Options{}))
		asked, _ := verdict(parser.ParseStructured([]byte(b.Raw), false, false, parser.Options{TextOnly: true}))
		if (asked == "text") != (b.StrictJSON == "valid") {
			t.Errorf("%d: where JSON is asked for, %q is %s; want %s", b.ID, b.Raw, asked, b.StrictJSON)
		}
		ok := false
		switch b.StrictJSON {
		case "valid":
			ok = got == "tool_call"
		case "duplicate_key":
			ok = got == "duplicate_key"
		case "invalid", "nan_or_infinity":
			ok = got != "tool_call" && got != "text"
		default:
			t.Fatalf("%d: unknown answer %s", b.ID, b.StrictJSON)
		}
		if !ok {
			t.Errorf("%d: %q is %s, want %s", b.ID, b.Raw, got, b.StrictJSON)
			continue
		}
		agree++
	}
	t.Logf("%d of %d agree", agree, len(all))
}

// implementationDefined is our answer to each file of the JSON test suite that
// RFC 8259 leaves open, as the value of an argument.
var implementationDefined = map[string]string{
	"i_number_double_huge_neg_exp.json":                   "invalid_number", // 123.456e-789
	"i_number_huge_exp.json":                              "invalid_number",
	"i_number_neg_int_huge_exp.json":                      "invalid_number",
	"i_number_pos_double_huge_exp.json":                   "invalid_number",
	"i_number_real_neg_overflow.json":                     "invalid_number",
	"i_number_real_pos_overflow.json":                     "invalid_number",
	"i_number_real_underflow.json":                        "invalid_number",
	"i_number_too_big_neg_int.json":                       "tool_call", // kept digit by digit
	"i_number_too_big_pos_int.json":                       "tool_call",
	"i_number_very_big_negative_int.json":                 "tool_call",
	"i_object_key_lone_2nd_surrogate.json":                "malformed_json",
	"i_string_1st_surrogate_but_2nd_missing.json":         "malformed_json",
	"i_string_1st_valid_surrogate_2nd_invalid.json":       "malformed_json",
	"i_string_UTF-16LE_with_BOM.json":                     "invalid_utf8",
	"i_string_UTF-8_invalid_sequence.json":                "invalid_utf8",
	"i_string_UTF8_surrogate_U+D800.json":                 "invalid_utf8",
	"i_string_incomplete_surrogate_and_escape_valid.json": "malformed_json",
	"i_string_incomplete_surrogate_pair.json":             "malformed_json",
	"i_string_incomplete_surrogates_escape_valid.json":    "malformed_json",
	"i_string_invalid_lonely_surrogate.json":              "malformed_json",
	"i_string_invalid_surrogate.json":                     "malformed_json",
	"i_string_invalid_utf-8.json":                         "invalid_utf8",
	"i_string_inverted_surrogates_U+1D11E.json":           "malformed_json",
	"i_string_iso_latin_1.json":                           "invalid_utf8",
	"i_string_lone_second_surrogate.json":                 "malformed_json",
	"i_string_lone_utf8_continuation_byte.json":           "invalid_utf8",
	"i_string_not_in_unicode_range.json":                  "invalid_utf8",
	"i_string_overlong_sequence_2_bytes.json":             "invalid_utf8",
	"i_string_overlong_sequence_6_bytes.json":             "invalid_utf8",
	"i_string_overlong_sequence_6_bytes_null.json":        "invalid_utf8",
	"i_string_truncated-utf-8.json":                       "invalid_utf8",
	"i_string_utf16BE_no_BOM.json":                        "malformed_json", // the NUL comes first
	"i_string_utf16LE_no_BOM.json":                        "malformed_json",
	"i_structure_500_nested_arrays.json":                  "too_deep",
	"i_structure_UTF-8_BOM_empty_object.json":             "malformed_json",
}

func TestJSONSuite(t *testing.T) {
	count := map[string]int{}
	for _, d := range corpora.Documents(t) {
		in := append(append([]byte(`{"tool":{"name":"a","arguments":{"v":`), d.Raw...), `}}}`...)
		got, _ := verdict(parser.Parse(in, false, parser.Options{}))
		kind := d.Name[:2]
		count[kind]++
		switch {
		case d.Want != "":
			if got != d.Want {
				t.Errorf("%s: %s, want %s", d.Name, got, d.Want)
			}
		case kind == "n_":
			if got == "tool_call" || got == "text" {
				t.Errorf("%s: %s", d.Name, got)
			}
		case kind == "y_":
			want := "tool_call"
			if strings.HasPrefix(d.Name, "y_object_duplicated_key") {
				want = "duplicate_key"
			}
			if got != want {
				t.Errorf("%s: %s, want %s", d.Name, got, want)
			}
		case kind == "i_":
			if want := implementationDefined[d.Name+".json"]; got != want {
				t.Errorf("%s: %s, want %q", d.Name, got, want)
			}
		}
		sameAtEveryCut(t, in, false, parser.Options{})
	}
	for kind, want := range map[string]int{
		"y_": corpora.Count("json_suite", 95, 47), "n_": corpora.Count("json_suite", 188, 90), "i_": corpora.Count("json_suite", 35, 35),
	} {
		if count[kind] != want {
			t.Errorf("%d documents %s, want %d", count[kind], kind, want)
		}
	}
	if len(implementationDefined) != 35 {
		t.Errorf("%d answers", len(implementationDefined))
	}
}

func TestInjectionsAsArguments(t *testing.T) {
	type injection struct {
		ToolResponse string `json:"tool_response"`
		Instruction  string `json:"attacker_instruction"`
	}
	for _, in := range corpora.Lines[injection](t, corpora.Path(t, "injections", "injecagent.jsonl")) {
		for _, text := range []string{in.ToolResponse, in.Instruction} {
			quoted, _ := json.Marshal(text)
			r := parser.Parse([]byte(`{"tool":{"name":"a","arguments":{"v":`+string(quoted)+`}}}`), false, parser.Options{})
			if r.Kind != parser.Call || parser.DecodeObject(r.Arguments)["v"] != text {
				t.Fatalf("%q: %+v", text, r)
			}
		}
	}
}
