package chat

import (
	"fmt"
	"strings"
	"testing"
)

// assemble puts together chunks that are given by the pieces of tool_calls of
// choice 0, and ends them.
func assemble(t *testing.T, pieces ...string) (*Completion, error) {
	t.Helper()
	var chunks []string
	for _, p := range pieces {
		chunks = append(chunks, `{"choices":[{"index":0,"delta":{"tool_calls":[`+p+`]}}]}`)
	}
	return assembleChunks(t, append(chunks, `{"choices":[{"index":0,"finish_reason":"tool_calls"}]}`)...)
}

func assembleChunks(t *testing.T, chunks ...string) (*Completion, error) {
	t.Helper()
	var (
		a Assembly
		r Reader
	)
	for _, s := range chunks {
		chunk, err := r.ReadChunk([]byte(s))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if err := a.Add(chunk); err != nil {
			return nil, err
		}
	}
	if err := a.Incomplete(); err != nil {
		return nil, err
	}
	return a.Assembled()
}

func piece(index int, id, name, arguments string) string {
	return fmt.Sprintf(`{"index":%d,"id":%q,"function":{"name":%q,"arguments":%q}}`, index, id, name, arguments)
}

func TestCallsOfPieces(t *testing.T) {
	more := func(index int, arguments string) string {
		return fmt.Sprintf(`{"index":%d,"function":{"arguments":%q}}`, index, arguments)
	}
	for why, c := range map[string]struct {
		pieces []string
		want   string // calls as id:name:arguments; empty is refused
	}{
		"one":                                  {[]string{piece(0, "a", "f", `{"x`), more(0, `":1}`)}, `a:f:{"x":1}`},
		"two at once":                          {[]string{piece(0, "a", "f", `{}`) + "," + piece(1, "b", "g", `[]`)}, `a:f:{} b:g:[]`},
		"two by turns":                         {[]string{piece(0, "a", "f", ``), piece(1, "b", "g", ``), more(0, "{"), more(1, "["), more(0, "}"), more(1, "]")}, `a:f:{} b:g:[]`},
		"from 1":                               {[]string{piece(1, "a", "f", `{}`), piece(2, "b", "g", `{}`)}, `a:f:{} b:g:{}`},
		"another id at one index":              {[]string{piece(0, "a", "f", `{`), piece(0, "b", "f", `[`), more(0, `]`)}, `a:f:{ b:f:[]`},
		"another id, then another index":       {[]string{piece(0, "a", "f", ``), piece(0, "b", "f", ``), piece(1, "c", "g", ``)}, `a:f: b:f: c:g:`},
		"the id and the name again":            {[]string{piece(0, "a", "f", `{`), piece(0, "a", "f", `}`)}, `a:f:{}`},
		"an empty id and an empty name after":  {[]string{piece(0, "a", "f", `{`), piece(0, "", "", `}`)}, `a:f:{}`},
		"without an id":                        {[]string{piece(0, "", "f", `{`), more(0, `}`)}, `:f:{}`},
		"without a name":                       {[]string{piece(0, "a", "", `{`), more(0, `}`)}, `a::{}`},
		"without arguments":                    {[]string{`{"index":0,"id":"a","function":{"name":"f"}}`}, `a:f:`},
		"without an index":                     {[]string{`{"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"id":"b","function":{"name":"g","arguments":"[]"}}`}, `a:f:{} b:g:[]`},
		"without an index, after one with":     {[]string{piece(0, "a", "f", `{}`), `{"id":"b","function":{"name":"g","arguments":"[]"}}`}, `a:f:{} b:g:[]`},
		"a piece without an index":             {[]string{piece(0, "a", "f", `{`), `{"function":{"arguments":"}"}}`}, ``},
		"an id alone without an index":         {[]string{piece(0, "a", "f", `{`), `{"id":"a","function":{"arguments":"}"}}`}, ``},
		"one id twice without an index":        {[]string{`{"id":"a","function":{"name":"f"}}`, `{"id":"a","function":{"name":"f"}}`}, ``},
		"a gap":                                {[]string{piece(0, "a", "f", `{}`), piece(2, "b", "g", `{}`)}, ``},
		"back":                                 {[]string{piece(1, "a", "f", `{}`), piece(0, "b", "g", `{}`)}, ``},
		"one id at two indexes":                {[]string{piece(0, "a", "f", `{}`), piece(1, "a", "g", `{}`)}, ``},
		"back to an id that was left":          {[]string{piece(0, "a", "f", `{`), piece(0, "b", "f", `{`), piece(0, "a", "", `}`)}, ``},
		"an id that comes late":                {[]string{piece(0, "", "f", `{`), piece(0, "a", "", `}`)}, ``},
		"a name that changes":                  {[]string{piece(0, "a", "f", `{`), piece(0, "", "g", `}`)}, ``},
		"a name in two pieces":                 {[]string{piece(0, "a", "get_", `{`), piece(0, "a", "get_weather", `}`)}, ``},
		"a name that comes late":               {[]string{piece(0, "a", "", `{`), piece(0, "", "f", `}`)}, ``},
		"a type that changes":                  {[]string{`{"index":0,"id":"a","type":"function","function":{"name":"f"}}`, `{"index":0,"type":"custom"}`}, ``},
		"a type that comes late":               {[]string{`{"index":0,"id":"a","function":{"name":"f"}}`, `{"index":0,"type":"custom"}`}, ``},
		"a type that is said to be a function": {[]string{`{"index":0,"id":"a","type":"function","function":{"name":"f"}}`, `{"index":0,"type":"function"}`}, `a:f:`},
	} {
		completion, err := assemble(t, c.pieces...)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: expected an error", why)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", why, err)
			continue
		}
		var found []string
		for i, call := range completion.Choices[0].Message.ToolCalls {
			if call.Index != i {
				t.Errorf("%s: call %d has the index %d", why, i, call.Index)
			}
			found = append(found, call.ID+":"+call.Name+":"+string(call.Arguments))
		}
		if got := strings.Join(found, " "); got != c.want {
			t.Errorf("%s: found %s, expected %s", why, got, c.want)
		}
	}
}

func TestTooManyCalls(t *testing.T) {
	var pieces []string
	for i := range maxToolCalls {
		pieces = append(pieces, piece(0, fmt.Sprint(i), "f", ""))
	}
	if _, err := assemble(t, pieces...); err != nil {
		t.Error(err)
	}
	if _, err := assemble(t, append(pieces, piece(0, "x", "f", ""))...); err == nil {
		t.Error("expected an error")
	}
}

func TestEndings(t *testing.T) {
	delta := func(index int, content, finish string) string {
		return fmt.Sprintf(`{"choices":[{"index":%d,"delta":{"content":%q},"finish_reason":%s}]}`, index, content, finish)
	}
	const open, stop, length = "null", `"stop"`, `"length"`
	for why, c := range map[string]struct {
		chunks []string
		whole  bool
	}{
		"nothing":                               {nil, false},
		"no choice":                             {[]string{`{"choices":[]}`}, false},
		"no end":                                {[]string{delta(0, "a", open)}, false},
		"an empty end":                          {[]string{delta(0, "a", `""`)}, false},
		"an end":                                {[]string{delta(0, "a", open), delta(0, "", stop)}, true},
		"an end with words":                     {[]string{delta(0, "a", stop)}, true},
		"an end and the usage":                  {[]string{delta(0, "a", stop), `{"choices":[],"usage":{}}`}, true},
		"an end said twice":                     {[]string{delta(0, "a", stop), delta(0, "", stop)}, true},
		"an end and an empty delta":             {[]string{delta(0, "a", stop), delta(0, "", open)}, true},
		"two reasons":                           {[]string{delta(0, "a", stop), delta(0, "", length)}, false},
		"words after the end":                   {[]string{delta(0, "a", stop), delta(0, "b", open)}, false},
		"words after the end, and the end":      {[]string{delta(0, "a", stop), delta(0, "b", open), delta(0, "", stop)}, true},
		"words after the end, and another end":  {[]string{delta(0, "a", stop), delta(0, "b", open), delta(0, "", length)}, false},
		"two choices, one end":                  {[]string{delta(0, "a", open), delta(1, "b", stop)}, false},
		"two choices, two ends":                 {[]string{delta(0, "a", length), delta(1, "b", stop)}, true},
		"the second choice alone":               {[]string{delta(1, "b", stop)}, false},
		"a third choice without the second one": {[]string{delta(0, "b", stop), delta(2, "b", stop)}, false},
	} {
		if _, err := assembleChunks(t, c.chunks...); (err == nil) != c.whole {
			t.Errorf("%s: found %v", why, err)
		}
	}
}

// TestDeltaMerge joins what pieces bring beside what is understood.
func TestDeltaMerge(t *testing.T) {
	for why, c := range map[string]struct {
		values           []string
		ofDelta, ofOther string
	}{
		"strings":               {[]string{`"a\""`, `""`, `"\u00e4"`}, `"a\"\u00e4"`, `"\u00e4"`},
		"null takes nothing":    {[]string{`null`, `"a"`, `null`}, `"a"`, `"a"`},
		"null alone":            {[]string{`null`, `null`}, `null`, `null`},
		"arrays":                {[]string{`[ ]`, `[1]`, `[]`, `[2, [3]]`}, `[ 1,2, [3]]`, `[ 1,2, [3]]`},
		"empty arrays":          {[]string{`[]`, `[ ]`}, `[]`, `[]`},
		"objects":               {[]string{`{"id":"x","data":"a"}`, `{"data":"b","n":1}`, `{"n":2}`}, `{"id":"x","data":"ab","n":2}`, `{"id":"x","data":"b","n":2}`},
		"objects of objects":    {[]string{`{"a":{"b":["c"]}}`, `{"a":{"b":["d"]}}`}, `{"a":{"b":["c","d"]}}`, `{"a":{"b":["c","d"]}}`},
		"numbers and words":     {[]string{`1`, `2`, `true`, `false`}, `false`, `false`},
		"another type":          {[]string{`"a"`, `[1]`, `{"a":1}`, `"b"`, `"c"`}, `"bc"`, `"c"`},
		"an object, then a key": {[]string{`{}`, `{"a":"x"}`, `{"a":"y"}`}, `{"a":"xy"}`, `{"a":"y"}`},
	} {
		var chunks []string
		for _, v := range c.values {
			chunks = append(chunks, `{"x":`+v+`,"choices":[{"index":0,"x":`+v+`,"delta":{"x":`+v+`}}]}`)
		}
		out, err := assembleChunks(t, append(chunks, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)...)
		if err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		choice := out.Choices[0]
		if found := string(choice.Message.Extra.Lookup("x")); found != c.ofDelta {
			t.Errorf("%s, of a delta: found %s, expected %s", why, found, c.ofDelta)
		}
		for _, found := range [][]byte{out.Extra.Lookup("x"), choice.Extra.Lookup("x")} {
			if string(found) != c.ofOther {
				t.Errorf("%s: found %s, expected %s", why, found, c.ofOther)
			}
		}
	}
	deepest := strings.Repeat(`{"a":`, 60) + `"x"` + strings.Repeat("}", 60)
	out, err := assembleChunks(t, `{"choices":[{"index":0,"delta":{"x":`+deepest+`}}]}`, `{"choices":[{"index":0,"delta":{"x":`+deepest+`},"finish_reason":"stop"}]}`)
	if err != nil || string(out.Choices[0].Message.Extra.Lookup("x")) != deepest {
		t.Errorf("found %+v, %v", out, err)
	}
}

func TestMessageOfPieces(t *testing.T) {
	out, err := assembleChunks(t,
		`{"id":"","model":"","created":0,"choices":[]}`,
		`{"id":"c","model":"m","created":5,"choices":[{"index":1,"delta":{"role":"assistant","content":null}}]}`,
		`{"id":"d","model":"n","created":6,"choices":[{"index":0,"delta":{"content":"a"}},{"index":0,"delta":{"content":"b","refusal":"r"},"finish_reason":"stop"}]}`,
		`{"choices":[{"index":1,"delta":{"function_call":{"name":"f"}},"finish_reason":"function_call","logprobs":{"content":[1]}}],"usage":{"total_tokens":1}}`,
		`{"choices":[],"usage":{"total_tokens":3}}`)
	if err != nil {
		t.Fatal(err)
	}
	if out.ID != "c" || out.Model != "m" || out.Created != 5 || out.Usage.TotalTokens != 3 || len(out.Choices) != 2 {
		t.Errorf("found %+v", out)
	}
	first, second := out.Choices[0], out.Choices[1]
	if first.Index != 0 || *first.Message.Content != "ab" || *first.Message.Refusal != "r" || first.FinishReason != "stop" || first.Message.FunctionCall {
		t.Errorf("found %+v", first)
	}
	if second.Index != 1 || second.Message.Content != nil || second.Message.Refusal != nil || !second.Message.FunctionCall || string(second.Extra.Lookup("logprobs")) != `{"content":[1]}` {
		t.Errorf("found %+v", second)
	}
}
