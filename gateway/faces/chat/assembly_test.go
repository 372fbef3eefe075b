package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/turns"
)

// assemble puts together chunks that are given by the pieces of tool_calls of
// choice 0, and ends them.
func assemble(pieces ...string) (*turns.Reply, error) {
	var chunks []string
	for _, p := range pieces {
		chunks = append(chunks, `{"choices":[{"index":0,"delta":{"tool_calls":[`+p+`]}}]}`)
	}
	return readChunks(append(chunks, `{"choices":[{"index":0,"finish_reason":"tool_calls"}]}`)...)
}

func callPieceOf(index int, id, name, arguments string) string {
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
		"one":                                  {[]string{callPieceOf(0, "a", "f", `{"x`), more(0, `":1}`)}, `a:f:{"x":1}`},
		"two at once":                          {[]string{callPieceOf(0, "a", "f", `{}`) + "," + callPieceOf(1, "b", "g", `[]`)}, `a:f:{} b:g:[]`},
		"two by turns":                         {[]string{callPieceOf(0, "a", "f", ``), callPieceOf(1, "b", "g", ``), more(0, "{"), more(1, "["), more(0, "}"), more(1, "]")}, `a:f:{} b:g:[]`},
		"from 1":                               {[]string{callPieceOf(1, "a", "f", `{}`), callPieceOf(2, "b", "g", `{}`)}, `a:f:{} b:g:{}`},
		"another id at one index":              {[]string{callPieceOf(0, "a", "f", `{`), callPieceOf(0, "b", "f", `[`), more(0, `]`)}, `a:f:{ b:f:[]`},
		"another id, then another index":       {[]string{callPieceOf(0, "a", "f", ``), callPieceOf(0, "b", "f", ``), callPieceOf(1, "c", "g", ``)}, `a:f: b:f: c:g:`},
		"the id and the name again":            {[]string{callPieceOf(0, "a", "f", `{`), callPieceOf(0, "a", "f", `}`)}, `a:f:{}`},
		"an empty id and an empty name after":  {[]string{callPieceOf(0, "a", "f", `{`), callPieceOf(0, "", "", `}`)}, `a:f:{}`},
		"without an id":                        {[]string{callPieceOf(0, "", "f", `{`), more(0, `}`)}, `:f:{}`},
		"without a name":                       {[]string{callPieceOf(0, "a", "", `{`), more(0, `}`)}, `a::{}`},
		"without arguments":                    {[]string{`{"index":0,"id":"a","function":{"name":"f"}}`}, `a:f:`},
		"without an index":                     {[]string{`{"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"id":"b","function":{"name":"g","arguments":"[]"}}`}, `a:f:{} b:g:[]`},
		"without an index, after one with":     {[]string{callPieceOf(0, "a", "f", `{}`), `{"id":"b","function":{"name":"g","arguments":"[]"}}`}, `a:f:{} b:g:[]`},
		"a piece without an index":             {[]string{callPieceOf(0, "a", "f", `{`), `{"function":{"arguments":"}"}}`}, `a:f:{}`},
		"no piece with an index":               {[]string{`{"id":"a","function":{"name":"f","arguments":""}}`, `{"function":{"arguments":"{"}}`, `{"index":null,"function":{"arguments":"}"}}`}, `a:f:{}`},
		"two calls in pieces without an index": {[]string{`{"id":"a","function":{"name":"f","arguments":""}}`, arguments(`{`), arguments(`}`), `{"id":"b","function":{"name":"f","arguments":"["}}`, arguments(`]`)}, `a:f:{} b:f:[]`},
		"a piece that may be of either call":   {[]string{`{"id":"a","function":{"name":"f","arguments":""}}`, `{"id":"b","function":{"name":"g","arguments":""}}`, arguments(`{}`)}, ``},
		"a piece of one of two with indexes":   {[]string{callPieceOf(0, "a", "f", `{`), callPieceOf(1, "b", "g", `{`), arguments(`}`)}, ``},
		"a call whose name is not read":        {[]string{`{"id":"a","function":{"name":"f","arguments":""}}`, `{"type":"function","name":"g","call_id":"b"}`, arguments(`{}`)}, ``},
		"a piece before any call":              {[]string{arguments(`{}`)}, ``},
		"no indexes, the name after the id":    {[]string{`{"id":"a"}`, `{"function":{"name":"f","arguments":"{}"}}`}, `a:f:{}`},
		"no indexes, the id after the name":    {[]string{`{"function":{"name":"f"}}`, `{"id":"a","function":{"arguments":"{}"}}`}, `a:f:{}`},
		"no indexes, pieces by their ids":      {[]string{`{"id":"a","function":{"name":"f"}}`, `{"id":"b","function":{"name":"g"}}`, `{"id":"a","function":{"arguments":"{}"}}`, `{"id":"b","function":{"arguments":"[]"}}`}, `a:f:{} b:g:[]`},
		"no indexes and no ids":                {[]string{`{"function":{"name":"f","arguments":"{}"}}`, `{"function":{"name":"f","arguments":"[]"}}`}, `:f:{} :f:[]`},
		"an id alone without an index":         {[]string{callPieceOf(0, "a", "f", `{`), `{"id":"a","function":{"arguments":"}"}}`}, `a:f:{}`},
		"one id twice without an index":        {[]string{`{"id":"a","function":{"name":"f"}}`, `{"id":"a","function":{"name":"f"}}`}, ``},
		"a gap":                                {[]string{callPieceOf(1, "a", "f", `{`), callPieceOf(3, "b", "g", `[`), more(1, `}`), more(3, `]`)}, `a:f:{} b:g:[]`},
		"a gap before a call without an id":    {[]string{callPieceOf(1, "", "f", `{}`), callPieceOf(3, "", "g", `{}`)}, `:f:{} :g:{}`},
		"a gap before a piece of a call":       {[]string{callPieceOf(0, "a", "f", `{`), more(2, `}`)}, ``},
		"back":                                 {[]string{callPieceOf(1, "a", "f", `{}`), callPieceOf(0, "b", "g", `{}`)}, ``},
		"one id at two indexes":                {[]string{callPieceOf(0, "a", "f", `{}`), callPieceOf(1, "a", "g", `{}`)}, ``},
		"back to an id that was left":          {[]string{callPieceOf(0, "a", "f", `{`), callPieceOf(0, "b", "f", `{`), callPieceOf(0, "a", "", `}`)}, ``},
		"an id that comes late":                {[]string{callPieceOf(0, "", "f", `{`), callPieceOf(0, "a", "", `}`), callPieceOf(0, "a", "f", ``)}, `a:f:{}`},
		"an id that comes late, of two calls":  {[]string{callPieceOf(0, "", "f", ``), callPieceOf(1, "", "g", ``), callPieceOf(1, "b", "", `[]`), callPieceOf(0, "a", "", `{}`)}, `a:f:{} b:g:[]`},
		"one id that comes late twice":         {[]string{callPieceOf(0, "", "f", ``), callPieceOf(1, "", "g", ``), callPieceOf(0, "a", "", `{}`), callPieceOf(1, "a", "", `{}`)}, ``},
		"a call with an id after one without":  {[]string{callPieceOf(0, "", "f", ``), callPieceOf(0, "b", "f", `{}`)}, ``},
		"two calls without ids at one index":   {[]string{callPieceOf(0, "", "f", ``), callPieceOf(0, "", "f", `{}`)}, ``},
		"a name that changes":                  {[]string{callPieceOf(0, "a", "f", `{`), callPieceOf(0, "", "g", `}`)}, ``},
		"a name in two pieces":                 {[]string{callPieceOf(0, "a", "get_", `{`), callPieceOf(0, "a", "get_weather", `}`)}, ``},
		"a name that comes late":               {[]string{callPieceOf(0, "a", "", `{`), callPieceOf(0, "", "f", `}`), callPieceOf(0, "a", "f", ``)}, `a:f:{}`},
		"a name and an id that come late":      {[]string{`{"index":0,"function":{"arguments":"{"}}`, callPieceOf(0, "a", "f", `}`)}, `a:f:{}`},
		"a name that comes late, then another": {[]string{callPieceOf(0, "a", "", `{`), callPieceOf(0, "", "f", `}`), callPieceOf(0, "", "g", ``)}, ``},
		"a type that changes":                  {[]string{`{"index":0,"id":"a","type":"function","function":{"name":"f"}}`, `{"index":0,"type":"custom"}`}, ``},
		"a type that comes late":               {[]string{`{"index":0,"id":"a","function":{"name":"f"}}`, `{"index":0,"type":"custom"}`}, ``},
		"a type that is said to be a function": {[]string{`{"index":0,"id":"a","type":"function","function":{"name":"f"}}`, `{"index":0,"type":"function"}`}, `a:f:`},
		"a piece in another member":            {[]string{callPieceOf(0, "a", "f", `{"x`), `{"index":0,"function":{"arguments_delta":"y"}}`, more(0, `":1}`)}, ``},
		"a piece beside empty arguments":       {[]string{callPieceOf(0, "a", "f", `{"x`), `{"index":0,"function":{"arguments":"","partial_json":"y"}}`, more(0, `":1}`)}, ``},
		"a piece beside the function":          {[]string{callPieceOf(0, "a", "f", `{"x`), `{"index":0,"arguments":"y"}`, more(0, `":1}`)}, ``},
		"a piece beside one that is said":      {[]string{callPieceOf(0, "a", "f", `{"x`), `{"index":0,"arguments":"y","function":{"arguments":"y"}}`, more(0, `":1}`)}, `a:f:{"xy":1}`},
		"data beside a call that begins":       {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":""},"x":{"y":1}}`, more(0, `{"z":2}`)}, `a:f:{"z":2}`},
		"words beside a piece":                 {[]string{callPieceOf(0, "a", "f", `{`), `{"index":0,"status":"going on","function":{"arguments":""}}`, more(0, `}`)}, `a:f:{}`},
		"an object within arguments":           {[]string{callPieceOf(0, "a", "f", `{"x":`), `{"index":0,"function":{"arguments":{"y":1}}}`, more(0, `}`)}, ``},
		"an object, then pieces":               {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":{}}}`, more(0, `,`)}, ``},
		"an object between nothing":            {[]string{callPieceOf(0, "a", "f", ` `), `{"index":0,"function":{"arguments":{"y":1}}}`, more(0, `  `)}, `a:f: {"y":1}  `},
	} {
		reply, err := assemble(c.pieces...)
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
		if got := strings.Join(callsOf(reply), " "); got != c.want {
			t.Errorf("%s: found %s, expected %s", why, got, c.want)
		}
	}
}

// TestAlike: arguments of very different sizes are not read to be compared.
func TestAlike(t *testing.T) {
	long := []byte(`{"x": "` + strings.Repeat("x", 1000) + `"}`)
	if !turns.SameArguments(long, []byte(strings.Replace(string(long), " ", "\n", 1))) || turns.SameArguments(long, []byte(`{"x":1}`)) {
		t.Error("compared wrongly")
	}
	if n := testing.AllocsPerRun(10, func() { turns.SameArguments(long, []byte(`{"x":1}`)) }); n > 0 {
		t.Errorf("found %v allocations", n)
	}
}

func TestTooManyCalls(t *testing.T) {
	var pieces []string
	for i := range maxToolCalls {
		pieces = append(pieces, callPieceOf(0, fmt.Sprint(i), "f", ""))
	}
	if _, err := assemble(pieces...); err != nil {
		t.Error(err)
	}
	if _, err := assemble(append(pieces, callPieceOf(0, "x", "f", ""))...); err == nil {
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
		"two reasons":                           {[]string{delta(0, "a", stop), delta(0, "", length)}, true, true, "length"},
		"a cut, and a stop":                     {[]string{delta(0, "a", length), delta(0, "", stop)}, true, true, "length"},
		"a filter, and a cut":                   {[]string{delta(0, "a", `"content_filter"`), delta(0, "", length)}, true, true, "content_filter"},
		"a cut, and a filter":                   {[]string{delta(0, "a", length), delta(0, "", `"content_filter"`)}, true, true, "content_filter"},
		"white space after the end":             {[]string{delta(0, "a", stop), delta(0, "\n", open)}, true, true, "stop"},
		"calls, and a function_call":            {[]string{call, delta(0, "", calls), delta(0, "", `"function_call"`)}, true, true, "tool_calls"},
		"calls, and a stop":                     {[]string{call, delta(0, "", calls), delta(0, "", stop)}, true, true, "tool_calls"},
		"a stop, and calls":                     {[]string{call, delta(0, "", stop), delta(0, "", calls)}, true, true, "stop"},
		"calls, a cut":                          {[]string{call, delta(0, "", calls), delta(0, "", length)}, true, true, "length"},
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
		var merely reader // a stream that merely ends
		var err error
		for _, chunk := range c.chunks {
			if err == nil {
				_, err = merely.Event(nil, []byte(chunk))
			}
		}
		if err == nil {
			err = merely.End()
		}
		if (err == nil) != c.whole {
			t.Errorf("%s: found %v", why, err)
		}
		reply, err := readChunks(c.chunks...)
		if (err == nil) != c.atDone {
			t.Errorf("%s, and [DONE]: found %v", why, err)
		}
		if err == nil && reply.Answers[0].Reason != c.reason {
			t.Errorf("%s: found the finish_reason %q", why, reply.Answers[0].Reason)
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
			chunks = append(chunks, `{"citations":`+v+`,"choices":[{"index":0,"content_filter_results":`+v+`,"delta":{"annotations":`+v+`}}]}`)
		}
		reply, err := readChunks(append(chunks, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)...)
		if err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		a := reply.Answers[0]
		if found := lookup(partOf(a, rowText).Beside, "annotations"); found != c.ofDelta {
			t.Errorf("%s, of a delta: found %s, expected %s", why, found, c.ofDelta)
		}
		for _, found := range []string{lookup(reply.Head, "citations"), lookup(a.Beside, "content_filter_results")} {
			if found != c.ofOther {
				t.Errorf("%s: found %s, expected %s", why, found, c.ofOther)
			}
		}
	}
	repeated := `{"citations":["a"],"choices":[{"index":0,"delta":{"content":"x"}}]}`
	reply, err := readChunks(repeated, repeated, `{"citations":["a","b"],"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"choices":[],"citations":["a","b"]}`, `{"choices":[],"citations":["a","bc"]}`)
	if want := `["a","b","a","bc"]`; err != nil || lookup(reply.Head, "citations") != want {
		t.Errorf("repeated: found %v %s, expected %s", err, lookup(reply.Head, "citations"), want)
	}
	deepest := strings.Repeat(`{"a":`, 60) + `"x"` + strings.Repeat("}", 60)
	reply, err = readChunks(`{"choices":[{"index":0,"delta":{"images":`+deepest+`}}]}`, `{"choices":[{"index":0,"delta":{"images":`+deepest+`},"finish_reason":"stop"}]}`)
	if err != nil || lookup(partOf(reply.Answers[0], rowText).Beside, "images") != deepest {
		t.Errorf("found %v", err)
	}
}

func TestMessageOfPieces(t *testing.T) {
	out, err := readChunks(
		`{"id":"","model":"","created":0,"choices":[]}`,
		`{"id":"c","model":"m","created":5,"choices":[{"index":1,"delta":{"role":"assistant","content":null}}]}`,
		`{"id":"d","model":"n","created":6,"choices":[{"index":0,"delta":{"content":"a"}},{"index":0,"delta":{"content":"b","refusal":"r"},"finish_reason":"stop"}]}`,
		`{"choices":[{"index":1,"delta":{"function_call":{"name":"f"}},"finish_reason":"function_call","logprobs":{"content":[1]}}],"usage":{"total_tokens":1}}`,
		`{"choices":[],"usage":{"total_tokens":3}}`)
	if err != nil {
		t.Fatal(err)
	}
	const want = "c m 5 {} {Tokens:3 Raw:[123 34 116 111 116 97 108 95 116 111 107 101 110 115 34 58 51 125] Spent:{Input:0 CachedInput:0 CacheWrite:0 Output:3}}" +
		"\n0 1 \"stop\" {} content(\"ab\" false   \"\" {}) refusal(\"r\" false   \"\" {})" +
		"\n1 2 \"function_call\" {\"logprobs\":{\"content\":[1]}} function_call(\"\" true   \"\" {})"
	if got := described(out); got != want {
		t.Errorf("found    %s\nexpected %s", got, want)
	}
}
