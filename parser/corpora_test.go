package parser_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/corpora"
	"github.com/callgate/callgate/parser"
)

type output struct {
	ID, Raw, Finish, Shape string
}

func TestRealOutputs(t *testing.T) {
	marks := readMarks(t)
	for file, want := range map[string]int{"react_injecagent_train.jsonl": 2545, "autogpt_json_protocol.jsonl": 412} {
		all := corpora.Lines[output](t, corpora.Path(t, "real_outputs", file))
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
			if o.Shape == "json_object_only" {
				objects++
				if json.Valid([]byte(o.Raw)) && got != "not_a_tool_call" && got != "duplicate_key" {
					t.Errorf("%s: a whole object is %s", o.ID, got)
				}
			}
			sameAtEveryCut(t, []byte(o.Raw), parser.Truncates(o.Finish), parser.Options{})
			agrees(t, []byte(o.Raw), marks)
		}
		if strings.HasPrefix(file, "autogpt") && verdicts["not_a_tool_call"] != 347 {
			t.Errorf("%d whole objects are no tool call, want 347 (%d by shape)", verdicts["not_a_tool_call"], objects)
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
	if len(all) != 502 {
		t.Errorf("%d fixtures, want 502", len(all))
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
	if len(all) != 276 {
		t.Errorf("%d strings, want 276", len(all))
	}
	agree := 0
	for _, b := range all {
		in := []byte(`{"tool":{"name":"a","arguments":{"v":` + b.Raw + `}}}`)
		got, _ := verdict(parser.Parse(in, false, parser.Options{}))
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
	dir := corpora.Path(t, "json_suite", "test_parsing")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		in := append(append([]byte(`{"tool":{"name":"a","arguments":{"v":`), raw...), `}}}`...)
		got, _ := verdict(parser.Parse(in, false, parser.Options{}))
		count[f.Name()[:2]]++
		switch f.Name()[:2] {
		case "n_":
			if got == "tool_call" || got == "text" {
				t.Errorf("%s: %s", f.Name(), got)
			}
		case "y_":
			want := "tool_call"
			if strings.HasPrefix(f.Name(), "y_object_duplicated_key") {
				want = "duplicate_key"
			}
			if got != want {
				t.Errorf("%s: %s, want %s", f.Name(), got, want)
			}
		case "i_":
			if want := implementationDefined[f.Name()]; got != want {
				t.Errorf("%s: %s, want %q", f.Name(), got, want)
			}
		}
		sameAtEveryCut(t, in, false, parser.Options{})
	}
	if count["y_"] != 95 || count["n_"] != 188 || count["i_"] != 35 || len(implementationDefined) != 35 {
		t.Errorf("files: %v", count)
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
