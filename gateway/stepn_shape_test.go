package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/tool"
)

// said is what the kernel of the vectors says of a completion: the verdict, or the
// stage, the code and the path of the first violation. Whole or by the byte, that is
// the same.
func said(t testing.TB, k *calls.Executor, completion string) string {
	t.Helper()
	whole := messageText(k.Kernel.Check(context.Background(), gateway.Request{Inputs: []gateway.Input{{Completion: []byte(completion)}}}))
	s, err := k.Kernel.Stream(context.Background(), gateway.Request{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(completion) {
		s.Write([]byte{completion[i]})
	}
	d := s.Close(context.Background(), false)
	defer d.Release()
	if cut := messageText(d.Reports[0]); cut != whole {
		t.Errorf("%.80q: whole %s, by the byte %s", completion, whole, cut)
	}
	return whole
}

func messageText(r gateway.Report) string {
	if r.Refusal == nil {
		return string(r.Verdict)
	}
	path := ""
	if len(r.Refusal.Violations) > 0 {
		path = r.Refusal.Violations[0].Path
	}
	return strings.TrimSpace(string(r.Refusal.Stage) + " " + string(r.Refusal.Code) + " " + path)
}

// says holds completions against what is said of them.
func says(t *testing.T, cases map[string]string) {
	t.Helper()
	k := unlimited(t)
	for completion, want := range cases {
		if got := said(t, k, completion); got != want {
			t.Errorf("%.100q: %s, want %s", completion, got, want)
		}
	}
}

const (
	passes    = "tool_call"
	mixed     = "parse mixed_output"
	malformed = "parse malformed_json"
)

// asking is a search for a JSON string, and embedding one of a JSON number.
func asking(s string) string {
	return `{"tool":{"name":"web.search","arguments":{"query":` + s + `}}}`
}

func embedding(n string) string {
	return `{"tool":{"name":"data.vector_search","arguments":{"embedding":[` + n + `],"top_k":1}}}`
}

func TestSN01OneObject(t *testing.T) {
	says(t, map[string]string{
		search: passes, `{"tool":{"arguments":{"query":"x"},"name":"web.search"}}`: passes,
		`{"tool":{"name":"time.now","arguments":{}}}`: passes, `{}`: "parse not_a_tool_call", `[` + search + `]`: "parse multiple_calls",
	})
}

func TestSN02NothingBefore(t *testing.T) {
	says(t, map[string]string{"Sure: " + search: mixed, "." + search: mixed, "<think>hm</think>" + search: mixed, "\n" + search: passes})
}

func TestSN03NothingAfter(t *testing.T) {
	says(t, map[string]string{search + " Done.": mixed, search + ".": mixed, search + "}": mixed, search + "\n": passes})
}

func TestSN04NothingBeside(t *testing.T) {
	says(t, map[string]string{
		`{"id":1,` + search[1:]: "parse unexpected_field /id", `{"":1,` + search[1:]: "parse unexpected_field /", `{"agent":"Analyst",` + search[1:]: passes,
	})
}

func TestSN05NothingInside(t *testing.T) {
	says(t, map[string]string{
		strings.Replace(search, `"name"`, `"id":1,"name"`, 1):            "parse unexpected_field /tool/id",
		strings.Replace(search, `"name"`, `"agent":"Analyst","name"`, 1): "parse unexpected_field /tool/agent",
	})
}

func TestSN06NothingMissing(t *testing.T) {
	says(t, map[string]string{
		`{"agent":"Analyst"}`:                "parse not_a_tool_call",
		`{"tool":{"arguments":{}}}`:          "parse missing_field /tool/name",
		`{"tool":{"name":"time.now"}}`:       "parse missing_field /tool/arguments",
		`{"tool":{}}`:                        "parse missing_field /tool/arguments",
		`{"name":"time.now","arguments":{}}`: "parse not_a_tool_call",
	})
}

func TestSN07NothingIsRepaired(t *testing.T) {
	cases := map[string]string{
		`{'tool':{}}`: malformed, `{tool:{}}`: malformed, `{"tool":{"name":"time.now","arguments":{},}}`: malformed, `{"tool":{"name":"time.now","arguments":{}}`: malformed,
		strings.Replace(search, "{", "{/**/", 1): malformed, strings.Replace(search, ":", "=", 1): malformed, asking("None"): malformed, asking("'x'"): malformed,
		asking("\"a\nb\""): malformed,
	}
	for _, number := range []string{"NaN", "Infinity", "-Infinity", "+1", "01", "1.", ".5", "1e", "0x1", "1_000"} {
		cases[embedding(number)] = malformed
	}
	for _, escape := range []string{`\v`, `\a`, `\e`, `\0`, `\x41`, `\'`, `\U0041`, `\u12`, `\u{41}`, `\`} {
		cases[asking(`"`+escape+`"`)] = malformed
	}
	for _, escape := range []string{`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u000b`, `\ud83d\ude00`} {
		cases[asking(`"`+escape+`"`)] = passes
	}
	says(t, cases)
}

// TestSN08OuterWhitespace is that of JSON and no other: space, tab, line feed and
// carriage return.
func TestSN08OuterWhitespace(t *testing.T) {
	cases := map[string]string{" \t\r\n" + search + "\n\r\t ": passes}
	for _, other := range []string{"\f", "\v", "\u0085", "\u00a0", "\u200b", "\u2028", "\u2060", "\u3000", "\ufeff", "\x00", "\x1c"} {
		cases[other+search] = mixed
		cases[search+other] = mixed
		cases[strings.Replace(search, ":", ":"+other, 1)] = malformed
	}
	says(t, cases)
}

func TestSN09NoFence(t *testing.T) {
	says(t, map[string]string{"```json\n" + search + "\n```": mixed, "```\n" + search + "\n```": mixed, "~~~\n" + search + "\n~~~": mixed, "`" + search + "`": mixed})
}

func TestSN10OneCall(t *testing.T) {
	const many = "parse multiple_calls"
	says(t, map[string]string{search + search: many, search + "\n" + search: many, search + "[1]": many, "[" + search + "," + search + "]": many, search + "," + search: mixed})
}

func TestSN11NoDuplicates(t *testing.T) {
	const twice = "parse duplicate_key"
	says(t, map[string]string{
		`{"tool":{"name":"time.now","name":"time.now","arguments":{}}}`:                  twice,
		`{"tool":{"name":"time.now","n\u0061me":"x","arguments":{}}}`:                    twice,
		search[:len(search)-1] + `,"tool":{}}`:                                           twice,
		strings.Replace(search, `"query"`, `"query":"y","query"`, 1):                     twice,
		strings.Replace(search, `"x"`, `[{"a":[{"b":1,"b":1}]}]`, 1):                     twice,
		`{"agent":"Analyst","tool":{"name":"time.now","arguments":{}},"agent":"Intern"}`: twice,
	})
}

func TestSN12CaseOfNames(t *testing.T) {
	says(t, map[string]string{
		`{"Tool":{"name":"time.now","arguments":{}}}`:                     "parse not_a_tool_call",
		`{"tool":{"Name":"time.now","arguments":{}}}`:                     "parse unexpected_field /tool/Name",
		`{"tool":{"name":"time.now","ARGUMENTS":{}}}`:                     "parse unexpected_field /tool/ARGUMENTS",
		`{"tool":{"name":"time.now","arguments":{}},"AGENT":"Analyst"}`:   "parse unexpected_field /AGENT",
		`{"tool":{"name":"web.search","arguments":{"Query":"x"}}}`:        "schema unexpected_argument /tool/arguments/Query",
		`{"tool":{"name":"time.now","arguments":{}},"agent":"Analyst"}`:   passes,
		`{"tool":{"n\u0061me":"time.now","arguments":{}},"agen\u0074":1}`: "parse wrong_type /agent",
	})
}

func TestSN13Unicode(t *testing.T) {
	says(t, map[string]string{
		asking("\"\xff\""): "parse invalid_utf8", asking("\"\xed\xa0\x80\""): "parse invalid_utf8", asking("\"\xc0\xaf\""): "parse invalid_utf8", "It is \xff.": "parse invalid_utf8",
		asking(`"\ud800"`): malformed, asking(`"\udc00"`): malformed, asking(`"\ud800\u0041"`): malformed, asking(`"\ud83d\ude00"`): passes, asking("\"\uffff\""): passes,
	})
}

func TestSN14ArgumentsAreAnObject(t *testing.T) {
	cases := map[string]string{`{"tool":{"name":"time.now","arguments":{}}}`: passes}
	for _, value := range []string{"null", "[]", `"{}"`, `""`, "1", "true"} {
		cases[`{"tool":{"name":"time.now","arguments":`+value+`}}`] = "parse wrong_type /tool/arguments"
	}
	says(t, cases)
}

func TestSN15NamesAreStrings(t *testing.T) {
	cases := map[string]string{`{"tool":{"name":"","arguments":{}}}`: "schema unknown_tool /tool/name"}
	for _, value := range []string{"null", "1", "true", "{}", `["time.now"]`} {
		cases[`{"tool":{"name":`+value+`,"arguments":{}}}`] = "parse wrong_type /tool/name"
	}
	says(t, cases)
}

// TestSN16Bounds: those of the configuration of the vectors, and of numbers. Input over
// them is refused before anything is looked up, so an unknown tool does not show.
func TestSN16Bounds(t *testing.T) {
	deep := func(n int) string { return asking(strings.Repeat("[", n-3) + strings.Repeat("]", n-3)) }
	padded := func(n int) string { return search + strings.Repeat(" ", n-len(search)) }
	const long = "parse invalid_number"
	unknown := strings.NewReplacer("data.vector_search", "no.such")
	says(t, map[string]string{
		deep(16): "schema wrong_type /tool/arguments/query", deep(17): "parse too_deep",
		padded(65536): passes, padded(65537): "parse output_too_large", strings.Repeat("a", 65536): "text", strings.Repeat("a", 65537): "parse output_too_large",
		embedding("0." + strings.Repeat("1", 254)): passes, embedding("0." + strings.Repeat("1", 255)): long,
		embedding("-0." + strings.Repeat("1", 253)): passes, embedding("-0." + strings.Repeat("1", 254)): long,
		embedding(strings.Repeat("9", 257)): long, embedding(strings.Repeat("9", 300)): long, embedding("1" + strings.Repeat("0", 60000)): long,
		embedding("0e400"): passes, embedding("0e401"): long, embedding("0E-400"): passes, embedding("0E-401"): long, embedding("1e0000000401"): long,
		unknown.Replace(embedding("0." + strings.Repeat("1", 255))): long, unknown.Replace(embedding("1")): "schema unknown_tool /tool/name",
	})
}

// TestSN17Numbers reach the tool as they were written.
func TestSN17Numbers(t *testing.T) {
	for _, number := range []string{"9007199254740993", "1.0", "1E2", "-0", "0.1000000000000000055511151231257827", "123456789012345678901234567890"} {
		var got string
		e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
			got = string(task.Arguments)
			return tool.Result{Body: []byte("{}"), JSON: true}, nil
		}}
		k := open(t, e, &journal{})
		o := k.Execute(context.Background(), k.Kernel.Judge(context.Background(), completion(embedding(number))))[0]
		if want := `{"embedding":[` + number + `],"top_k":1}`; o.Refusal != nil || got != want {
			t.Errorf("%s: the tool was given %s (%v)", number, got, o.Refusal)
		}
	}
}
