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
	arguments := func(s string) string { return fmt.Sprintf(`{"function":{"arguments":%q}}`, s) }
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
		"a piece without an index":             {[]string{piece(0, "a", "f", `{`), `{"function":{"arguments":"}"}}`}, `a:f:{}`},
		"no piece with an index":               {[]string{`{"id":"a","function":{"name":"f","arguments":""}}`, `{"function":{"arguments":"{"}}`, `{"index":null,"function":{"arguments":"}"}}`}, `a:f:{}`},
		"two calls in pieces without an index": {[]string{`{"id":"a","function":{"name":"f","arguments":""}}`, arguments(`{`), arguments(`}`), `{"id":"b","function":{"name":"f","arguments":"["}}`, arguments(`]`)}, `a:f:{} b:f:[]`},
		"a piece that may be of either call":   {[]string{`{"id":"a","function":{"name":"f","arguments":""}}`, `{"id":"b","function":{"name":"g","arguments":""}}`, arguments(`{}`)}, ``},
		"a piece of one of two with indexes":   {[]string{piece(0, "a", "f", `{`), piece(1, "b", "g", `{`), arguments(`}`)}, ``},
		"a piece before any call":              {[]string{arguments(`{}`)}, ``},
		"no indexes, the name after the id":    {[]string{`{"id":"a"}`, `{"function":{"name":"f","arguments":"{}"}}`}, `a:f:{}`},
		"no indexes, the id after the name":    {[]string{`{"function":{"name":"f"}}`, `{"id":"a","function":{"arguments":"{}"}}`}, `a:f:{}`},
		"no indexes, pieces by their ids":      {[]string{`{"id":"a","function":{"name":"f"}}`, `{"id":"b","function":{"name":"g"}}`, `{"id":"a","function":{"arguments":"{}"}}`, `{"id":"b","function":{"arguments":"[]"}}`}, `a:f:{} b:g:[]`},
		"no indexes and no ids":                {[]string{`{"function":{"name":"f","arguments":"{}"}}`, `{"function":{"name":"f","arguments":"[]"}}`}, `:f:{} :f:[]`},
		"an id alone without an index":         {[]string{piece(0, "a", "f", `{`), `{"id":"a","function":{"arguments":"}"}}`}, `a:f:{}`},
		"one id twice without an index":        {[]string{`{"id":"a","function":{"name":"f"}}`, `{"id":"a","function":{"name":"f"}}`}, ``},
		"a gap":                                {[]string{piece(1, "a", "f", `{`), piece(3, "b", "g", `[`), more(1, `}`), more(3, `]`)}, `a:f:{} b:g:[]`},
		"a gap before a call without an id":    {[]string{piece(1, "", "f", `{}`), piece(3, "", "g", `{}`)}, `:f:{} :g:{}`},
		"a gap before a piece of a call":       {[]string{piece(0, "a", "f", `{`), more(2, `}`)}, ``},
		"back":                                 {[]string{piece(1, "a", "f", `{}`), piece(0, "b", "g", `{}`)}, ``},
		"one id at two indexes":                {[]string{piece(0, "a", "f", `{}`), piece(1, "a", "g", `{}`)}, ``},
		"back to an id that was left":          {[]string{piece(0, "a", "f", `{`), piece(0, "b", "f", `{`), piece(0, "a", "", `}`)}, ``},
		"an id that comes late":                {[]string{piece(0, "", "f", `{`), piece(0, "a", "", `}`), piece(0, "a", "f", ``)}, `a:f:{}`},
		"an id that comes late, of two calls":  {[]string{piece(0, "", "f", ``), piece(1, "", "g", ``), piece(1, "b", "", `[]`), piece(0, "a", "", `{}`)}, `a:f:{} b:g:[]`},
		"one id that comes late twice":         {[]string{piece(0, "", "f", ``), piece(1, "", "g", ``), piece(0, "a", "", `{}`), piece(1, "a", "", `{}`)}, ``},
		"a call with an id after one without":  {[]string{piece(0, "", "f", ``), piece(0, "b", "f", `{}`)}, ``},
		"two calls without ids at one index":   {[]string{piece(0, "", "f", ``), piece(0, "", "f", `{}`)}, ``},
		"a name that changes":                  {[]string{piece(0, "a", "f", `{`), piece(0, "", "g", `}`)}, ``},
		"a name in two pieces":                 {[]string{piece(0, "a", "get_", `{`), piece(0, "a", "get_weather", `}`)}, ``},
		"a name that comes late":               {[]string{piece(0, "a", "", `{`), piece(0, "", "f", `}`), piece(0, "a", "f", ``)}, `a:f:{}`},
		"a name and an id that come late":      {[]string{`{"index":0,"function":{"arguments":"{"}}`, piece(0, "a", "f", `}`)}, `a:f:{}`},
		"a name that comes late, then another": {[]string{piece(0, "a", "", `{`), piece(0, "", "f", `}`), piece(0, "", "g", ``)}, ``},
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

// TestEndings holds which streams are whole, and by which finish_reason: those that say by [DONE] that
// they have ended, and those that merely end.
func TestEndings(t *testing.T) {
	delta := func(index int, content, finish string) string {
		return fmt.Sprintf(`{"choices":[{"index":%d,"delta":{"content":%q},"finish_reason":%s}]}`, index, content, finish)
	}
	call := `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}}]}`
	const open, stop, length, calls = "null", `"stop"`, `"length"`, `"tool_calls"`
	for why, c := range map[string]struct {
		chunks        []string
		whole, atDone bool
		reason        string
	}{
		"nothing":                               {nil, false, false, ""},
		"no choice":                             {[]string{`{"choices":[]}`}, false, false, ""},
		"no end":                                {[]string{delta(0, "a", open)}, false, true, ""},
		"an empty end":                          {[]string{delta(0, "a", `""`)}, false, true, ""},
		"no end of a call":                      {[]string{call}, false, false, ""},
		"no end of a legacy call":               {[]string{`{"choices":[{"index":0,"delta":{"function_call":{"name":"f"}}}]}`}, false, false, ""},
		"an end":                                {[]string{delta(0, "a", open), delta(0, "", stop)}, true, true, "stop"},
		"an end with words":                     {[]string{delta(0, "a", stop)}, true, true, "stop"},
		"an end and the usage":                  {[]string{delta(0, "a", stop), `{"choices":[],"usage":{}}`}, true, true, "stop"},
		"an end said twice":                     {[]string{delta(0, "a", stop), delta(0, "", stop)}, true, true, "stop"},
		"an end and an empty delta":             {[]string{delta(0, "a", stop), delta(0, "", open)}, true, true, "stop"},
		"two reasons":                           {[]string{delta(0, "a", stop), delta(0, "", length)}, false, false, ""},
		"calls, and a stop":                     {[]string{call, delta(0, "", calls), delta(0, "", stop)}, true, true, "tool_calls"},
		"a stop, and calls":                     {[]string{call, delta(0, "", stop), delta(0, "", calls)}, true, true, "stop"},
		"calls, a cut":                          {[]string{call, delta(0, "", calls), delta(0, "", length)}, false, false, ""},
		"calls, and words with a stop":          {[]string{call, delta(0, "", calls), delta(0, "b", stop)}, false, false, ""},
		"words after the end":                   {[]string{delta(0, "a", stop), delta(0, "b", open)}, false, false, ""},
		"a call after the end":                  {[]string{delta(0, "a", stop), call}, false, false, ""},
		"words after the end, and the end":      {[]string{delta(0, "a", stop), delta(0, "b", open), delta(0, "", stop)}, true, true, "stop"},
		"words after the end, and another end":  {[]string{delta(0, "a", stop), delta(0, "b", open), delta(0, "", length)}, false, false, ""},
		"two choices, one end":                  {[]string{delta(0, "a", open), delta(1, "b", stop)}, false, true, ""},
		"two choices, two ends":                 {[]string{delta(0, "a", length), delta(1, "b", stop)}, true, true, "length"},
		"the second choice alone":               {[]string{delta(1, "b", stop)}, false, false, ""},
		"a third choice without the second one": {[]string{delta(0, "b", stop), delta(2, "b", stop)}, false, false, ""},
	} {
		var finishes FinishTracker
		merely := true
		for _, chunk := range c.chunks {
			read, err := new(Reader).ReadChunk([]byte(chunk))
			if err != nil {
				t.Fatal(err)
			}
			for i := range read.Choices {
				merely = merely && finishes.Observe(&read.Choices[i]) == nil
			}
		}
		out, err := assembleChunks(t, c.chunks...)
		if (err == nil) != c.atDone {
			t.Errorf("%s, and [DONE]: found %v", why, err)
		}
		if merely = merely && err == nil && finishes.Incomplete() == nil; merely != c.whole {
			t.Errorf("%s: whole is %t", why, merely)
		}
		if err == nil && out.Choices[0].FinishReason != c.reason {
			t.Errorf("%s: found the finish_reason %q", why, out.Choices[0].FinishReason)
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
