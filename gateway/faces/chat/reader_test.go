package chat

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// TestStrict holds what is refused of an answer that is JSON to some readers.
func TestStrict(t *testing.T) {
	const choice = `{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}`
	answer := func(choices string) string { return `{"id":"c","choices":[` + choices + `]}` }
	message := func(m string) string { return answer(`{"index":0,"message":` + m + `,"finish_reason":"stop"}`) }
	call := func(c string) string { return message(`{"tool_calls":[` + c + `]}`) }
	for _, in := range []string{answer(choice), message(`{}`), message(`{"tool_calls":null,"function_call":null,"content":null,"refusal":null,"role":null}`), call(``), call(`{}`), call(`{"function":null,"index":null}`),
		` ` + answer(choice) + "\r\n\t", answer(`{"index":1,"message":{}},` + choice), `{"choices":[` + choice + `],"usage":null,"created":1.5,"id":null,"error":null}`,
		strings.Replace(answer(choice), `"finish_reason":"stop"`, `"finish_reason":null`, 1),
		message(`{"toolCalls":[],"tool_call":null,"functionCall":{"name":"","arguments":""}}`), `{"tool_calls":[{}],"choices":[` + strings.Replace(choice, `"index"`, `"tool_calls":"","index"`, 1) + `]}`,
		// Members that decide nothing may be of any type.
		answer(strings.Replace(choice, "0", "null", 1)), answer(strings.Replace(choice, `"index":0,`, "", 1)), message(`{"role":[]}`),
		`{"choices":[` + choice + `],"usage":5}`, `{"choices":[` + choice + `],"usage":{"total_tokens":-1}}`, `{"choices":[` + choice + `],"usage":{"total_tokens":"1"}}`, `{"choices":[` + choice + `],"usage":{"total_tokens":99999999999999999999}}`,
		`{"choices":[` + choice + `],"created":"now"}`, `{"choices":[` + choice + `],"created":-1}`, `{"choices":[` + choice + `],"created":1e99}`, `{"choices":[` + choice + `],"id":5}`, `{"choices":[` + choice + `],"id":"a b"}`, `{"choices":[` + choice + `],"model":{}}`, `{"choices":[` + choice + `],"object":1}`,
		strings.Replace(answer(choice), "stop", "content-filter", 1), strings.Replace(answer(choice), "stop", "function_call_filter: MALFORMED_FUNCTION_CALL", 1),
		message(`{"content":[]}`), message(`{"content":[{"type":"text","text":"hi"}]}`), call(`{"function":{"arguments":{}}}`)} {
		if _, err := readWhole(in); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
	for _, in := range []string{
		``, ` `, `null`, `[]`, `"x"`, `{`, `{}`, `{"choices":[]}`, `{"choices":null}`, `{"choices":{}}`, `{"choices":[null]}`, answer(`{}`),
		strings.Replace(call(`{"id":"a","function":{"name":"f","arguments":"{}"}}`), `"stop"`, `null`, 1), strings.Replace(call(`{"id":"a"}`), `"stop"`, `""`, 1),
		answer(choice) + `{}`, answer(choice) + `x`, answer(choice)[:40], "\ufeff" + answer(choice), "[" + answer(choice) + "]",
		answer(choice + "," + choice), answer(strings.Replace(choice, "0", "1", 1)), answer(strings.Replace(choice, "0", "-1", 1)), answer(strings.Replace(choice, "0", "128", 1)),
		answer(strings.Replace(choice, `"index":0,`, "", 1) + "," + strings.Replace(choice, "0", "1", 1)),
		answer(`{"index":0,"finish_reason":"stop"}`), answer(`{"index":0,"message":null,"finish_reason":"stop"}`), answer(`{"index":0,"delta":{},"finish_reason":"stop"}`),
		`{"id":"a","id":"b","choices":[` + choice + `]}`, `{"choices":[],"choices":[` + choice + `]}`, `{"choices":[` + choice + `],"c\u0068oices":[]}`,
		message(`{"content":"a","content":"b"}`), message(`{"content":"a","c\u006fntent":"b"}`), message(`{"x":{"a":1,"a":2}}`),
		message(`{"content":"\ud800"}`), message(`{"content":"` + "\xff" + `"}`), message(`{"content":"` + "\x01" + `"}`), message(`{"content":'a'}`), message(`{"content":"a",}`),
		message(`{"x":"\ud800"}`), message(`{"\ud800":1}`), message(`{"x":` + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + `}`),
		message(`{"content":5}`), message(`{"content":["a"]}`), message(`{"content":[null]}`), message(`{"content":{"type":"text","text":"a"}}`), message(`{"content":[{"text":"a"}]}`), message(`{"content":[{"type":"text","text":["a"]}]}`),
		message(`{"content":[{"type":"text"}]}`), message(`{"content":[{"type":"tool_use","name":"f","input":{}}]}`), message(`{"content":[{"type":"text","text":"a","text":"b"}]}`), message(`{"content":[{"type":"thinking","thinking":5}]}`), message(`{"refusal":{}}`), message(`{"tool_calls":"f"}`), message(`{"tool_calls":[1]}`), message(`[]`),
		call(`{"id":5}`), call(`{"type":5}`), call(`{"function":"f"}`), call(`{"function":{"name":5}}`), call(`{"function":{"arguments":5}}`), call(`{"function":{"arguments":{"a":1,"a":2}}}`), call(`{"function":{"arguments":"{}","arguments":"[]"}}`),
		call(`{"function":{"name":"f","parameters":{"a":1}}}`), call(`{"function":{"name":"f","input":{"a":1},"arguments":""}}`), call(`{"function":{"name":"f","Arguments":"{\"a\":1}"}}`), call(`{"function":{"name":"f"},"arguments":"{\"a\":1}"}`), call(`{"function":{"name":"f","arguments":null,"args":{"a":1}}}`),
		call(`{"function":{"name":"f","arguments":"{}","parameters":{"a":1}}}`), call(`{"function":{"name":"f","arguments":{ }},"x y":["a"]}`), call(`{"function":{"name":"f","arguments":" { } "},"input":"a"}`), call(`{"function":{"name":"f","params":{"a":1}}}`),
		call(`{"id":"a","call_id":"a","name":"g","function":{"name":"f"}}`), call(`{"type":"function","call_id":"c","name":"f","arguments":"{}"}`), call(`{"tool_call_id":"c","function":{"name":"f","arguments":"{}"}}`), call(`{"name":{"f":1}}`), call(`{"function":{"id":{"a":1}}}`),
		message(`{"toolCalls":[{"id":"a"}]}`), message(`{"tool_call":{"id":"a"}}`), message(`{"Tool_Calls":[{"id":"a"}]}`), message(`{"Function_Call":{"name":"f"}}`), message(`{"tool_use":{"name":"f"}}`), message(`{"function":{"arguments":"a"}}`), message(`{"arguments":"a"}`), answer(`{"index":0,"message":{},"function":{"arguments":"a"}}`),
		answer(`{"index":0,"message":{},"tool_calls":[{"id":"a"}]}`), answer(`{"index":0,"message":{},"functionCall":{"name":"f"}}`), answer(`{"index":0,"message":{},"Message":{"content":"a"}}`), answer(`{"index":0,"message":{},"Delta":{"content":"a"}}`), answer(`{"index":0,"message":{},"delta":[{"tool_calls":[{"id":"a"}]}]}`),
		`{"choices":[` + choice + `],"tool_calls":[{"id":"a"}]}`, `{"choices":[` + choice + `],"Choices":[` + choice + `]}`,
		call(`{"index":1.5}`), call(`{"index":-1}`), call(`{"index":1024}`), call(`{"index":1e99}`), call(`{"index":"0.5"}`), call(`{"index":""}`), call(strings.Repeat(`{"id":"a"},`, maxToolCalls) + `{"id":"a"}`),
		answer(`{"index":0,"message":{},"finish_reason":5}`), answer(`{"index":0,"message":{},"finish_reason":"error"}`), answer(`{"index":0,"message":{},"error":{"code":1}}`),
		`{"choices":[` + choice + `],"error":{"message":"x"}}`, `{"error":"x"}`, `{"object":"error","choices":[` + choice + `]}`, `{"message":"x"}`, `{"choices":[` + choice + `],x:1}`, `{"choices":[` + choice + `],"x":01}`, `{"choices":[` + choice + `],"x":NaN}`,
	} {
		_, err := readWhole(in)
		if err == nil {
			t.Errorf("read: %.120s", in)
			continue
		}
		if strings.Contains(err.Error(), "jsontext") || strings.Contains(err.Error(), "hi") {
			t.Errorf("%.120s: the error repeats what stood there, or speaks of the inside: %v", in, err)
		}
	}
}

// TestTolerated holds how deviations are read that have one meaning, whole and as a chunk.
func TestTolerated(t *testing.T) {
	choice := func(message string) string { return `{"index":0,"message":` + message + `,"finish_reason":"stop"}` }
	for in, want := range map[string]string{
		`{"choices":[{"message":{"content":"hi"}}]}`:                                                          `0 "hi" []`,
		`{"choices":[` + choice(`{"content":[{"type":"text","text":"h"},{"text":"i","type":"text"}]}`) + `]}`: `0 "hi" []`,
		`{"choices":[` + choice(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h\""},{"type":"text","text":"m"}],"closed":true},{"type":"text","text":"hi"},{"type":"reference","reference_ids":[1]}]}`) + `]}`: `0 "hi" [reasoning_content="h\"m"]`,
		`{"choices":[` + choice(`{"content":[{"type":"thinking","thinking":"hm"}]}`) + `]}`:                                                                     `0 null [reasoning_content="hm"]`,
		`{"choices":[` + choice(`{"content":[{"type":"thinking","thinking":"hm"}],"reasoning_content":"so"}`) + `]}`:                                            `0 null [reasoning_content="so"]`,
		`{"choices":[` + choice(`{"content":[{"type":"refusal","refusal":"no"}]}`) + `]}`:                                                                       `0 null [] refusal`,
		`{"choices":[` + choice(`{"content":"hi","function_call":{"name":"","arguments":""}}`) + `]}`:                                                           `0 "hi" []`,
		`{"choices":[` + choice(`{"content":"hi","function_call":{"arguments":null,"name":null}}`) + `]}`:                                                       `0 "hi" []`,
		`{"choices":[` + choice(`{"content":"hi","function_call":{}}`) + `]}`:                                                                                   `0 "hi" []`,
		`{"choices":[` + choice(`{"content":"hi","function_call":{"name":"f","arguments":""}}`) + `]}`:                                                          `0 "hi" [] legacy`,
		`{"choices":[` + choice(`{"content":"hi","function_call":{"name":"","arguments":"{}"}}`) + `]}`:                                                         `0 "hi" [] legacy`,
		`{"choices":[` + choice(`{"content":"hi","function_call":{"name":"","arguments":"","x":1}}`) + `]}`:                                                     `0 "hi" [] legacy`,
		`{"choices":[` + choice(`{"content":"hi","function_call":""}`) + `]}`:                                                                                   `0 "hi" []`,
		`{"choices":[` + choice(`{"content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"output_text","text":"hi"}]}`) + `]}`: `0 "hi" [reasoning_content="hm"]`,
		`{"choices":[` + choice(`{"content":"hi"}`) + `],"error":{}}`:                                                                                           `0 "hi" []`,
		`{"error":"","choices":[` + choice(`{"content":"hi"}`) + `]}`:                                                                                           `0 "hi" []`,
		`{"error":{"code":0,"message":null},"choices":[` + choice(`{"content":"hi"}`) + `]}`:                                                                    `0 "hi" []`,
		`{"choices":[` + choice(`{"content":"hi","tool_calls":[{"index":0,"id":"","type":"function","function":{"name":"","arguments":""}},{"index":1,"id":null,"type":null,"function":{"name":null,"arguments":null}},{},null,""]}`) + `]}`: `0 "hi" []`,
		`{"choices":[` + choice(`{"content":"hi","tool_calls":[{"index":0,"status":"completed"}]}`) + `]}`:                                                                                                                                   `0 "hi" [] ::`,
		`{"choices":[` + choice(`{"content":"hi","tool_calls":[{"index":0,"function":null,"arguments":5}]}`) + `]}`:                                                                                                                          `0 "hi" [] ::`,
		`{"choices":[` + choice(`{"tool_calls":[{"id":"a","call_id":"a","name":"f","function":{"name":"f"}}]}`) + `]}`:                                                                                                                       `0 null [] a:f:`,
		`{"choices":[` + choice(`{"content":"hi","tool_calls":""}`) + `]}`:                                                                                                                                                                   `0 "hi" []`,
		`{"choices":[` + choice(`{"content":"hi","tool_calls":{}}`) + `]}`:                                                                                                                                                                   `0 "hi" []`,
		`{"choices":[` + choice(`{"tool_calls":{"id":"a","function":{"name":"f","arguments":"{}"}}}`) + `]}`:                                                                                                                                 `0 null [] a:f:{}`,
		`{"choices":[` + choice(`{"tool_calls":[{"id":"a","type":"custom","custom":{"name":"n"}}]}`) + `]}`:                                                                                                                                  `0 null [] other`,
		`{"choices":[` + choice(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":[]}}]}`) + `]}`:                                                                                                                                 `0 null [] a:f:[]`,
		`{"choices":[` + choice(`{"tool_calls":[{"index":"0","id":"a","function":{"name":"f"}},{"index":1.0,"id":"b","function":{"name":"g"}}]}`) + `]}`:                                                                                     `0 null [] a:f: b:g:`,
		`{"error":false,"choices":[` + choice(`{"content":"hi"}`) + `]}`:                                                                                                                                                                     `0 "hi" []`,
		`{"choices":[` + choice(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"a\":1}","parameters":{"type":"object"}}}]}`) + `]}`:                                                                                         `0 null [] a:f:{"a":1}`,
		`{"choices":[` + choice(`{"tool_calls":[{"id":"a","status":"completed","extra_content":{"x":"y"},"input":{ },"args":" ","parameters":"{}","x":1,"function":{"name":"f","arguments":"{}"}}]}`) + `]}`:                                 `0 null [] a:f:{}`,
		`{"choices":[` + choice(`{"tool_calls":[{"id":"a","function":{"name":"f","parameters":{}},"input":null}]}`) + `]}`:                                                                                                                   `0 null [] a:f:`,
		`{"choices":[` + choice(`{"content":"hi","function_call":[]}`) + `]}`:                                                                                                                                                                `0 "hi" [] legacy`,
		`{"choices":[` + choice(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"b": "\u00e4", "a":1}}}]}`) + `]}`:                                                                                                             `0 null [] a:f:{"b": "\u00e4", "a":1}`,
		`{"choices":[` + choice(`{"content":"hi"}`) + `],"usage":{"prompt_tokens":12.0,"completion_tokens":3e0,"total_tokens":null}}`:                                                                                                        `0 "hi" [] usage 12 3`,
		`{"choices":[` + choice(`{"content":"hi"}`) + `],"usage":{"prompt_tokens":12.5}}`:                                                                                                                                                    `0 "hi" []`,
		`{"choices":[` + choice(`{"content":"hi"}`) + `],"usage":{"prompt_tokens":-1}}`:                                                                                                                                                      `0 "hi" []`,
	} {
		reply, err := readWhole(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if found := inShort(reply); found != want {
			t.Errorf("%s: found %s, expected %s", in, found, want)
		}
		reply, err = readChunks(strings.NewReplacer(`"message"`, `"delta"`, `{"message"`, `{"finish_reason":"stop","delta"`).Replace(in))
		if err != nil || inShort(reply) != want {
			t.Errorf("%s, as a chunk: found %v, %v; expected %s", in, reply, err, want)
		}
	}
}

// inShort is the first answer of a reply in short.
func inShort(r *turns.Reply) string {
	a := r.Answers[0]
	out := fmt.Sprintf("%d null", a.Index)
	if text := partOf(a, rowText); text != nil {
		out = fmt.Sprintf("%d %q", a.Index, text.Text)
	}
	var beside []string
	if thought := partOf(a, rowThought); thought != nil {
		for _, m := range thought.Beside {
			beside = append(beside, m.Name+"="+string(m.Value))
		}
	}
	out += fmt.Sprint(" ", beside)
	if partOf(a, rowRefusal) != nil {
		out += " refusal"
	}
	if partOf(a, rowLegacy) != nil {
		out += " legacy"
	}
	if partOf(a, rowOther) != nil {
		out += " other"
	}
	for _, call := range callsOf(r) {
		out += " " + call
	}
	if spent := r.Usage.Spent; r.Usage.Raw != nil {
		out += fmt.Sprintf(" usage %d %d", spent.Input, spent.Output)
	}
	return out
}

// TestChunksWithoutChoices holds which chunks need no choices, and which choices no index.
func TestChunksWithoutChoices(t *testing.T) {
	const unindexed = `{"choices":[{"delta":{"content":"hi"}}]}`
	for _, c := range []struct {
		in      string
		choices int // that were asked for
		fine    bool
	}{
		{`{}`, 1, true},
		{`{"choices":null}`, 1, true},
		{`{"choices":null,"prompt_filter_results":[]}`, 1, true},
		{`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","usage":{"total_tokens":2},"service_tier":"x"}`, 1, true},
		{`{"usage":null,"x":1}`, 1, true},
		{`{"object":"chat.completion.chunk","x":1}`, 1, true},
		{`{"x":1}`, 1, false},
		{`{"type":"ping"}`, 1, true},
		{`{"type":"heartbeat","time":"now"}`, 1, true},
		{`{"type":"ping","choices":5}`, 1, false},
		{`{"type":"text_delta","delta":"x"}`, 1, false},
		{`{"choices":[],"base_resp":{"status_code":0,"status_msg":"success"}}`, 1, true},
		{`{"choices":[],"usage":{"total_tokens":3},"code":200,"msg":"success"}`, 1, true},
		{`{"choices":[],"usage":{"total_tokens":3},"message":"OK"}`, 1, true},
		{`{"choices":[],"usage":null,"message":"m"}`, 1, false},
		{`{"choices":[],"message":"OK","code":"00000"}`, 1, true},
		{`{"choices":[],"status_msg":"queued"}`, 1, true},
		{`{"choices":[],"status_code":1002,"status_msg":"m"}`, 1, false},
		{`{"choices":[],"title":"A talk","x":"y"}`, 1, true},
		{`{"choices":[],"title":"A talk","message":"m"}`, 1, false},
		{`{"choices":{}}`, 1, false},
		{`{"object":"error","message":"m"}`, 1, false},
		{`{"object":"error","choices":null}`, 1, false},
		{`{"message":"m","code":500}`, 1, false},
		{unindexed, 0, true},
		{unindexed, 1, true},
		{unindexed, 2, false},
		{`{"choices":[{"index":null,"delta":{}}]}`, 2, false},
		{`{"choices":[{"delta":{}},{"delta":{}}]}`, 1, false},
		{`{"choices":[{"index":0,"delta":{}},{"delta":{}}]}`, 1, false},
	} {
		if _, err := (&reader{asked: c.choices}).Event(nil, []byte(c.in)); (err == nil) != c.fine {
			t.Errorf("%s, %d choices: %v", c.in, c.choices, err)
		}
	}
}

// TestWhatIsKept reads all that an answer may hold.
func TestWhatIsKept(t *testing.T) {
	in := []byte(`{"id":"c\u0031","object":"chat.completion","created":17.9,"model":"m","service_tier":"x","choices":[
		{"index":0,"logprobs":{"content":[1, 2]},"finish_reason":"tool_calls","message":{"role":"assistant","content":"p\u00e4\n","refusal":"no","reasoning_content":"hm","function_call":{"name":"old"},
		"annotations":[{"a":
		1}],"audio":{"id":"s","data":"UklGRg==","expires_at":1,"transcript":"said"},
		"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\u00e4\"}","x":1},"extra_content":{"g":{"s":"1"}}},{"id":"b","type":"custom","custom":{"name":"n","input":"i"}}]}}],
		"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"more":{"a":0.1}},"system_fingerprint":null}`)
	r := &reader{}
	if err := r.Whole(in); err != nil {
		t.Fatal(err)
	}
	clear(in) // nothing that was read may stand in it
	if usage := r.reply.Usage; string(usage.Raw) != `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"more":{"a":0.1}}` || usage.Tokens != 3 {
		t.Errorf("found the usage %+v", usage)
	}
	r.reply.Usage = turns.Taken{}
	const want = `c1 m 17 {"service_tier":"x"} {Tokens:0 Raw:[] Spent:{Input:0 CachedInput:0 CacheWrite:0 Output:0}}
0 2 "tool_calls" {"logprobs":{"content":[1, 2]}} reasoning("" true   "" {"reasoning_content":"hm"}) content("pä\n" false   "" {"annotations":[{"a": 		1}]}) refusal("no" false   "" {})` +
		` function_call("" true   "" {}) function("" true a f "{\"a\":\"\\u00e4\"}" {"extra_content":{"g":{"s":"1"}}}) other("" true b  "" {}) audio("said" false   "" {"id":"s","data":"UklGRg==","expires_at":1})`
	if got := described(&r.reply); got != want {
		t.Errorf("found    %s\nexpected %s", got, want)
	}
}

// TestFaults: a stream that is at fault says how, and holds no call.
func TestFaults(t *testing.T) {
	const (
		text    = `{"id":"c1","choices":[{"index":0,"delta":{"content":"hi"}}]}`
		call    = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`
		end     = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
		done    = "[DONE]"
		stated  = "an error stands in the answer"
		said    = `{"choices":[{"index":0,"delta":{},"message":{"content":"hi","tool_calls":[F]},"finish_reason":"stop"}]}`
		differs = "a message that does not say what its deltas say"
	)
	for why, c := range map[string]struct {
		chunks []string
		fault  string
		is     error // that it wraps
	}{
		"closed without an end":         {[]string{call}, "the stream ended with a choice without a finish_reason", turns.ErrIncomplete},
		"[DONE] without an end":         {[]string{call, done}, "[DONE] came with a choice without a finish_reason", turns.ErrIncomplete},
		"[DONE] after more":             {[]string{text, end, text, done}, "[DONE] came with a choice without a finish_reason", turns.ErrIncomplete},
		"[DONE] alone":                  {[]string{done}, "no choice", turns.ErrIncomplete},
		"nothing":                       {nil, "no choice", turns.ErrIncomplete},
		"garbage":                       {[]string{text, "<html>"}, "no strict JSON, after byte 0", nil},
		"a part":                        {[]string{text, text[:40]}, "JSON that ends too early", nil},
		"two documents":                 {[]string{text + text}, "no strict JSON", nil},
		"a name twice":                  {[]string{`{"id":"a","id":"b","choices":[]}`}, "a name that stands twice", nil},
		"invalid UTF-8":                 {[]string{"{\"id\":\"\xff\",\"choices\":[]}"}, "no strict JSON", nil},
		"an error object":               {[]string{text, `{"error":{"message":"SECRET","type":"server_error","code":"x"}}`}, stated, &turns.ProviderError{}},
		"a failure beside no choices":   {[]string{text, `{"choices":null,"usage":{"total_tokens":0},"base_resp":{"status_code":1008,"status_msg":"SECRET"}}`}, stated, &turns.ProviderError{}},
		"a list with an error":          {[]string{text, `[{"error":{"message":"SECRET"}}]`}, stated, &turns.ProviderError{}},
		"an error in place of choices":  {[]string{text, `{"object":"error","message":"SECRET","code":400}`}, stated, &turns.ProviderError{}},
		"an error in a choice":          {[]string{`{"choices":[{"index":0,"error":{"code":502}}]}`}, stated, &turns.ProviderError{}},
		"a failure within the answer":   {[]string{text, `{"choices":[],"usage":{},"code":503,"message":"SECRET"}`, done}, stated, &turns.ProviderError{}},
		"finished by an error":          {[]string{`{"choices":[{"index":0,"finish_reason":"error"}]}`}, stated, &turns.ProviderError{}},
		"finished for two reasons":      {[]string{end, text, strings.Replace(end, "stop", "length", 1)}, "finished for two reasons", nil},
		"a message with another call":   {[]string{call, strings.Replace(said, "F", `{"function":{"name":"g"}}`, 1)}, differs, nil},
		"a message with arguments":      {[]string{strings.Replace(call, "{}", "", 1), strings.Replace(said, "F", `{"function":{"name":"f","arguments":{"a":1}}}`, 1)}, differs, nil},
		"a message with them elsewhere": {[]string{strings.Replace(strings.Replace(said, "F", `{"function":{"name":"f","arguments":"","params":{"a":1}}}`, 1), `"delta":{}`, `"delta":{"content":"hi","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`, 1), done}, differs, nil},
		"a message with more calls":     {[]string{call, strings.Replace(said, "F", `{"function":{"name":"f"}},{"function":{"name":"f"}}`, 1)}, differs, nil},
		"a message with fewer calls":    {[]string{call, strings.Replace(said, "F", ``, 1), end}, differs, nil},
		"a message with a first call":   {[]string{text, strings.Replace(said, "F", `{"function":{"name":"f"}}`, 1), done}, differs, nil},
		"a message with another text":   {[]string{strings.Replace(text, "hi", "ho", 1), strings.Replace(said, "F", ``, 1)}, differs, nil},
		"messages that differ":          {[]string{strings.Replace(said, "F", ``, 1), strings.Replace(said, "F", `{"function":{"name":"f"}}`, 1)}, "messages beside the deltas that differ", nil},
		"a message without an end":      {[]string{strings.Replace(strings.Replace(said, `"stop"`, "null", 1), "F", `{"function":{"name":"f"}}`, 1), done}, "[DONE] came with a choice without a finish_reason", turns.ErrIncomplete},
		"calls that do not fit":         {[]string{`{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}]}`}, "before any call", &turns.Unfit{}},
	} {
		var r reader
		var err error
		for _, chunk := range c.chunks {
			if err == nil {
				_, err = r.Event(nil, []byte(chunk))
			}
		}
		if err == nil {
			err = r.End()
		}
		is := true
		switch kind := c.is.(type) {
		case *turns.ProviderError:
			is = errors.As(err, &kind)
		case *turns.Unfit:
			is = errors.As(err, &kind)
		case error:
			is = errors.Is(err, kind)
		}
		if err == nil || !strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "SECRET") || !is {
			t.Errorf("%s: found %v", why, err)
		}
	}
	var r reader
	if deltas, err := r.Event([]byte("heartbeat"), []byte(text)); err != nil || len(deltas) != 1 {
		t.Errorf("a piece of an answer in an event that is named a sign of life: found %v, %v", deltas, err)
	}
	for _, event := range []string{end, `{"choices":[],"message":"OK"}`} {
		if _, err := r.Event(nil, []byte(event)); err != nil {
			t.Errorf("a notice behind the answer: found %v", err)
		}
	}
	if _, err := r.Event([]byte("ping"), []byte(`{'time': 5}`)); err != nil {
		t.Errorf("a sign of life: found %v", err)
	}
	var stating *turns.ProviderError
	if _, err := r.Event(nil, []byte(`{"error":{"code":0,"message":"m"}}`)); !errors.As(err, &stating) || stating.Failure.Message != "m" {
		t.Errorf("an error with the code 0: found %v", err)
	}
	if _, err := r.Event([]byte("error"), []byte(`{"type":"overloaded","message":"m"}`)); !errors.As(err, &stating) || stating.Failure.Type != "overloaded" || stating.Failure.Message != "m" {
		t.Errorf("an event that is an error: found %v", err)
	}
}

// TestProgress: a stream is whole without a word once each answer that was asked for has finished, and the reader says
// so. The last event is [DONE].
func TestProgress(t *testing.T) {
	r := &reader{asked: 2}
	for _, c := range []struct {
		data string
		at   turns.Progress
	}{
		{`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, turns.Coming},
		{`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, turns.Coming},
		{`{"choices":[{"index":1,"delta":{"content":"b"}}]}`, turns.Coming},
		{`{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`, turns.Settled},
		{`{"choices":[],"usage":{"total_tokens":3}}`, turns.Settled},
		{"[DONE] ", turns.Ended},
	} {
		_, err := r.Event(nil, []byte(c.data))
		if _, _, at := r.State(); err != nil || at != c.at {
			t.Errorf("behind %s: it is at %d, %v", c.data, at, err)
		}
	}
	if err := r.End(); err != nil || len(r.reply.Answers) != 2 {
		t.Errorf("found %s, %v", described(&r.reply), err)
	}
}

// FuzzAnswer holds that nothing that is read is not strict JSON, and that what
// is kept is.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"choices":[{"index":0,"delta":{"content":"hi","reasoning":"hm"},"finish_reason":"stop"}],"usage":{"total_tokens":3}}`))
	f.Add([]byte(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"},"extra_content":{"a":[1]}}],"annotations":[1]},"finish_reason":null}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &reader{}
		for range 2 {
			if _, err := r.Event(nil, bytes.Clone(b)); err != nil {
				if strings.Contains(err.Error(), "jsontext") {
					t.Error(err)
				}
				return
			}
		}
		if err := rawjson.Check(b, rawjson.AnyDepth); err != nil {
			t.Errorf("it was read, and is not strict: %v", err)
		}
		if r.End() != nil {
			return
		}
		for _, o := range kept(&r.reply) {
			if err := rawjson.Check(o.Bytes(), rawjson.AnyDepth); err != nil {
				t.Errorf("%s: %v", o.Bytes(), err)
			}
		}
	})
}

// kept are the members that were kept of a reply.
func kept(r *turns.Reply) (all []rawjson.Object) {
	all = append(all, r.Head)
	for _, a := range r.Answers {
		all = append(all, a.Beside)
		for _, p := range a.Parts {
			all = append(all, p.Beside)
		}
	}
	return all
}

// TestGapOfChoicesKeepsTheOthers: an answer with a gap in its choices is refused, and what came of the others is
// still known, so that text that was sent of them is recorded.
func TestGapOfChoicesKeepsTheOthers(t *testing.T) {
	r := &reader{asked: 2}
	for _, event := range []string{
		`{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":1,"delta":{"content":"hello"},"finish_reason":null}]}`,
		`{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`,
	} {
		if _, err := r.Event(nil, []byte(event)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.End(); err == nil {
		t.Error("a gap passed")
	}
	if answers := r.Reply().Answers; len(answers) != 1 || answers[0].Index != 1 {
		t.Errorf("found %d answers; expected the second", len(answers))
	}
}
