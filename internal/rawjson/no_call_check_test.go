package rawjson_test

import (
	"os"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/rawjson"
)

// TestCallFree: each mark of another syntax, and each member of a call, is found in a
// JSON value wherever it stands, as it is and escaped.
func TestCallFree(t *testing.T) {
	marks, err := os.ReadFile("../../parser/foreign-marks.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := []string{`{"tool":{}}`, `{"a":1,"tool_calls":[]}`, `x {"tool_calls": {`, `{ "function_call" :{}}`, `,"function_call":[`}
	for line := range strings.Lines(string(marks)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "# ") {
			found = append(found, line)
		}
	}
	if len(found) < 20 {
		t.Fatalf("there are %d", len(found))
	}
	for _, s := range found {
		quoted := string(rawjson.Quote("so: " + s))
		escaped := strings.NewReplacer("<", `\u003c`, "[", `\u005b`, "`", `\u0060`, "{", `\u007b`, ",", `\u002c`).Replace(quoted)
		for _, value := range []string{quoted, escaped, `[` + quoted + `]`, `{"a":[{"b":` + escaped + `}]}`, `{` + quoted + `:1}`, `{"x":{` + escaped + `:[]}}`} {
			if rawjson.HoldsNoCall([]byte(value)) {
				t.Errorf("%q: nothing is found in %s", s, value)
			}
		}
	}
	for _, value := range []string{
		`null`, `1`, `""`, `" "`, `"plain, [1] <b> {x} ` + "`code`" + `"`, `[{"type":"url_citation","url_citation":{"title":"tool","url":"https://a.b/?x=1,2"}}]`,
		`{"a":"tool","b":["arguments"],"tools":1}`, `{"tool":"a","tool_calls":null,"tool_result":{},"arguments":{}}`,
	} {
		if !rawjson.HoldsNoCall([]byte(value)) {
			t.Errorf("a call is found in %s", value)
		}
	}
}
