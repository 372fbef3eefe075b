package chat

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// good is a completion with the content "hi".
const good = `{"id":"c1","object":"chat.completion","created":7,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`

// TestStrict holds what is refused of an answer that is JSON to some readers.
func TestStrict(t *testing.T) {
	const choice = `{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}`
	answer := func(choices string) string { return `{"id":"c","choices":[` + choices + `]}` }
	message := func(m string) string { return answer(`{"index":0,"message":` + m + `,"finish_reason":"stop"}`) }
	call := func(c string) string { return message(`{"tool_calls":[` + c + `]}`) }
	for _, in := range []string{answer(choice), message(`{}`), message(`{"tool_calls":null,"function_call":null,"content":null,"refusal":null,"role":null}`), call(``), call(`{}`), call(`{"function":null,"index":null}`),
		` ` + answer(choice) + "\r\n\t", answer(`{"index":1,"message":{}},` + choice), `{"choices":[` + choice + `],"usage":null,"created":1.5,"id":null,"error":null}`,
		strings.Replace(answer(choice), `"finish_reason":"stop"`, `"finish_reason":null`, 1),
		// Members that decide nothing may be of any type.
		answer(strings.Replace(choice, "0", "null", 1)), answer(strings.Replace(choice, `"index":0,`, "", 1)), message(`{"role":[]}`),
		`{"choices":[` + choice + `],"usage":5}`, `{"choices":[` + choice + `],"usage":{"total_tokens":-1}}`, `{"choices":[` + choice + `],"usage":{"total_tokens":"1"}}`, `{"choices":[` + choice + `],"usage":{"total_tokens":99999999999999999999}}`,
		`{"choices":[` + choice + `],"created":"now"}`, `{"choices":[` + choice + `],"created":-1}`, `{"choices":[` + choice + `],"created":1e99}`, `{"choices":[` + choice + `],"id":5}`, `{"choices":[` + choice + `],"id":"a b"}`, `{"choices":[` + choice + `],"model":{}}`, `{"choices":[` + choice + `],"object":1}`,
		strings.Replace(answer(choice), "stop", "content-filter", 1), strings.Replace(answer(choice), "stop", "function_call_filter: MALFORMED_FUNCTION_CALL", 1),
		message(`{"content":[]}`), message(`{"content":[{"type":"text","text":"hi"}]}`), call(`{"function":{"arguments":{}}}`)} {
		if _, err := new(Reader).ReadCompletion([]byte(in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
	for _, in := range []string{
		``, ` `, `null`, `[]`, `"x"`, `{`, `{}`, `{"choices":[]}`, `{"choices":null}`, `{"choices":{}}`, `{"choices":[null]}`, answer(`{}`),
		answer(choice) + `{}`, answer(choice) + `x`, answer(choice)[:40], "\ufeff" + answer(choice), "[" + answer(choice) + "]",
		answer(choice + "," + choice), answer(strings.Replace(choice, "0", "1", 1)), answer(strings.Replace(choice, "0", "-1", 1)), answer(strings.Replace(choice, "0", "128", 1)),
		answer(strings.Replace(choice, "0", "0.0", 1)), answer(strings.Replace(choice, `"index":0,`, "", 1) + "," + strings.Replace(choice, "0", "1", 1)),
		answer(`{"index":0,"finish_reason":"stop"}`), answer(`{"index":0,"message":null,"finish_reason":"stop"}`), answer(`{"index":0,"delta":{},"finish_reason":"stop"}`),
		`{"id":"a","id":"b","choices":[` + choice + `]}`, `{"choices":[],"choices":[` + choice + `]}`, `{"choices":[` + choice + `],"c\u0068oices":[]}`,
		message(`{"content":"a","content":"b"}`), message(`{"content":"a","c\u006fntent":"b"}`), message(`{"x":{"a":1,"a":2}}`),
		message(`{"content":"\ud800"}`), message(`{"content":"` + "\xff" + `"}`), message(`{"content":"` + "\x01" + `"}`), message(`{"content":'a'}`), message(`{"content":"a",}`),
		message(`{"x":"\ud800"}`), message(`{"\ud800":1}`), message(`{"x":` + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + `}`),
		message(`{"content":5}`), message(`{"content":["a"]}`), message(`{"content":[null]}`), message(`{"content":{"type":"text","text":"a"}}`), message(`{"content":[{"text":"a"}]}`), message(`{"content":[{"type":"text","text":["a"]}]}`),
		message(`{"content":[{"type":"text"}]}`), message(`{"content":[{"type":"tool_use","name":"f","input":{}}]}`), message(`{"content":[{"type":"text","text":"a","text":"b"}]}`), message(`{"content":[{"type":"thinking","thinking":5}]}`), message(`{"refusal":{}}`), message(`{"tool_calls":{}}`), message(`{"tool_calls":[1]}`), message(`[]`),
		call(`{"id":5}`), call(`{"type":5}`), call(`{"function":"f"}`), call(`{"function":{"name":5}}`), call(`{"function":{"arguments":[]}}`), call(`{"function":{"arguments":5}}`), call(`{"function":{"arguments":{"a":1,"a":2}}}`), call(`{"function":{"arguments":"{}","arguments":"[]"}}`),
		call(`{"function":{"name":"f","parameters":{"a":1}}}`), call(`{"function":{"name":"f","input":{"a":1},"arguments":""}}`), call(`{"function":{"name":"f","Arguments":"{\"a\":1}"}}`), call(`{"function":{"name":"f"},"arguments":"{\"a\":1}"}`), call(`{"function":{"name":"f","arguments":null,"args":{"a":1}}}`),
		call(`{"index":1.5}`), call(`{"index":-1}`), call(`{"index":1024}`), call(`{"index":"0"}`), call(strings.Repeat(`{},`, maxToolCalls) + `{}`),
		answer(`{"index":0,"message":{},"finish_reason":5}`), answer(`{"index":0,"message":{},"finish_reason":"error"}`), answer(`{"index":0,"message":{},"error":{"code":1}}`),
		`{"choices":[` + choice + `],"error":{"message":"x"}}`, `{"error":"x"}`, `{"object":"error","choices":[` + choice + `]}`, `{"message":"x"}`, `{"choices":[` + choice + `],x:1}`, `{"choices":[` + choice + `],"x":01}`, `{"choices":[` + choice + `],"x":NaN}`,
	} {
		_, err := new(Reader).ReadCompletion([]byte(in))
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
	choice := func(message string) string { return `{"index":0,"message":` + message + `}` }
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
		`{"error":false,"choices":[` + choice(`{"content":"hi"}`) + `]}`:                                                                                        `0 "hi" []`,
		`{"choices":[` + choice(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}","parameters":{"type":"object"}}}]}`) + `]}`:                   `0 null [] a:f:{}`,
		`{"choices":[` + choice(`{"tool_calls":[{"id":"a","function":{"name":"f","parameters":{}},"input":null}]}`) + `]}`:                                      `0 null [] a:f:`,
		`{"choices":[` + choice(`{"content":"hi","function_call":[]}`) + `]}`:                                                                                   `0 "hi" [] legacy`,
		`{"choices":[` + choice(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"b": "\u00e4", "a":1}}}]}`) + `]}`:                                `0 null [] a:f:{"b": "\u00e4", "a":1}`,
		`{"choices":[` + choice(`{"content":"hi"}`) + `],"usage":{"prompt_tokens":12.0,"completion_tokens":3e0,"total_tokens":null}}`:                           `0 "hi" [] usage 12 3 0`,
		`{"choices":[` + choice(`{"content":"hi"}`) + `],"usage":{"prompt_tokens":12.5}}`:                                                                       `0 "hi" []`,
		`{"choices":[` + choice(`{"content":"hi"}`) + `],"usage":{"prompt_tokens":-1}}`:                                                                         `0 "hi" []`,
	} {
		c, err := new(Reader).ReadCompletion([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if found := described(c); found != want {
			t.Errorf("%s: found %s, expected %s", in, found, want)
		}
		var (
			a Assembly
			r Reader
		)
		chunk, err := r.ReadChunk([]byte(strings.NewReplacer(`"message"`, `"delta"`, `"index":0,`, `"finish_reason":"stop","index":0,`, `{"message"`, `{"finish_reason":"stop","delta"`).Replace(in)))
		if err == nil {
			err = a.Add(chunk)
		}
		if err != nil {
			t.Errorf("%s, as a chunk: %v", in, err)
			continue
		}
		if c, err = a.Assembled(); err != nil || described(c) != want {
			t.Errorf("%s, as a chunk: found %s, %v; expected %s", in, described(c), err, want)
		}
	}
}

// described is the first choice of a completion in short.
func described(c *Completion) string {
	choice := c.Choices[0]
	text, beside := "null", []string{}
	if choice.Message.Content != nil {
		text = fmt.Sprintf("%q", *choice.Message.Content)
	}
	for _, x := range choice.Message.Extra {
		beside = append(beside, fmt.Sprintf("%s=%s", x.Name, x.Value))
	}
	out := fmt.Sprintf("%d %s %v", choice.Index, text, beside)
	if choice.Message.Refusal != nil {
		out += " refusal"
	}
	if choice.Message.FunctionCall {
		out += " legacy"
	}
	for _, call := range choice.Message.ToolCalls {
		out += fmt.Sprintf(" %s:%s:%s", call.ID, call.Name, call.Arguments)
	}
	if u := c.Usage; u != nil {
		out += fmt.Sprintf(" usage %d %d %d", u.PromptTokens, u.CompletionTokens, u.TotalTokens)
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
		if _, err := (&Reader{Choices: c.choices}).ReadChunk([]byte(c.in)); (err == nil) != c.fine {
			t.Errorf("%s, %d choices: %v", c.in, c.choices, err)
		}
	}
}

func TestReaderIsReused(t *testing.T) {
	var r Reader
	for _, in := range []string{good, `{"choices":[{"index":0`, good, `{"x":1}x`, good} {
		c, err := r.ReadCompletion([]byte(in))
		if (err == nil) != (in == good) || err == nil && *c.Choices[0].Message.Content != "hi" {
			t.Fatalf("%s: %+v, %v", in, c, err)
		}
	}
}

// TestWhatIsKept reads all that an answer may hold.
func TestWhatIsKept(t *testing.T) {
	in := []byte(`{"id":"c\u0031","object":"chat.completion","created":17.9,"model":"m","service_tier":"x","choices":[
		{"index":0,"logprobs":{"content":[1, 2]},"finish_reason":"tool_calls","message":{"role":"assistant","content":"p\u00e4\n","refusal":"no","reasoning_content":"hm","function_call":{"name":"old"},
		"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\u00e4\"}","x":1},"extra_content":{"g":{"s":"1"}}},{"id":"b","type":"custom","custom":{"name":"n","input":"i"}}]}}],
		"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"more":{"a":0.1}},"system_fingerprint":null}`)
	c, err := new(Reader).ReadCompletion(in)
	if err != nil {
		t.Fatal(err)
	}
	clear(in) // nothing that was read may stand in it
	if c.ID != "c1" || c.Model != "m" || c.Created != 17 || string(c.Extra.Lookup("service_tier")) != `"x"` || string(c.Extra.Lookup("system_fingerprint")) != "null" || len(c.Extra) != 2 || c.Extra.Lookup("id") != nil {
		t.Errorf("found %+v", c)
	}
	u := c.Usage
	if u.PromptTokens != 1 || u.CompletionTokens != 2 || u.TotalTokens != 3 || string(u.Raw) != `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"more":{"a":0.1}}` {
		t.Errorf("found the usage %+v, %s", u, u.Raw)
	}
	choice := c.Choices[0]
	m := choice.Message
	if choice.FinishReason != "tool_calls" || string(choice.Extra.Lookup("logprobs")) != `{"content":[1, 2]}` || *m.Content != "pä\n" || *m.Refusal != "no" || !m.FunctionCall || string(m.Extra.Lookup("reasoning_content")) != `"hm"` || len(m.Extra) != 1 {
		t.Errorf("found %+v", choice)
	}
	f, custom := m.ToolCalls[0], m.ToolCalls[1]
	if f.ID != "a" || f.Type != "function" || f.Name != "f" || string(f.Arguments) != `{"a":"\u00e4"}` || string(f.Extra.Lookup("extra_content")) != `{"g":{"s":"1"}}` || f.Index != 0 {
		t.Errorf("found the call %+v", f)
	}
	if custom.ID != "b" || custom.Type != "custom" || custom.Name != "" || len(custom.Arguments) != 0 || custom.Extra.Lookup("custom") == nil || custom.Index != 1 {
		t.Errorf("found the call %+v", custom)
	}
}

func TestFailures(t *testing.T) {
	for in, want := range map[string]Failure{
		`{"error":{"message":"m","type":"t","param":"p","code":"c"}}`:   {"t", "c", "p", "m"},
		`{"error":{"message":"m","type":null,"param":null,"code":429}}`: {"", "429", "", "m"},
		`{"error":"m"}`:                         {Message: "m"},
		`{"message":"m","type":"t","code":"c"}`: {"t", "c", "", "m"},
		`{"error":{"message":{"a":1}}}`:         {},
		`{"a":1}`:                               {},
		`[]`:                                    {},
		`{"error":["m"]}`:                       {Message: "m"},
		`[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]`:                 {Code: "400", Message: "m"},
		`{"detail":[{"type":"missing","loc":["body","messages",0],"msg":"Field required"}]}`: {"missing", "", "", "Field required (at body.messages.0)"},
		`{"detail":"m"}`: {Message: "m"},
		`{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`: {"BadRequestError", "400", "", "m"},
		`{"type":"error","error":{"type":"t","message":"m"}}`:                               {Type: "t", Message: "m"},
		`{"error":"Bad Request","message":"m","statusCode":400}`:                            {Message: "m"},
		`{"error":"invalid_client","error_description":"m"}`:                                {Message: "m"},
		`{"success":false,"errors":[{"code":7009,"message":"m"}],"messages":[]}`:            {Code: "7009", Message: "m"},
		`{"title":"One or more faults.","errors":{"b":["x"],"a":["y","z"]}}`:                {Message: "a: y"},
		`{"error":{"message":"m","code":400,"metadata":{"raw":"why","provider_name":"X"}}}`: {Code: "400", Message: "m: why"},
		`{"error":{"message":"m","metadata":{"raw":{"a":1}}}}`:                              {Message: `m: {"a":1}`},
		`{"error":{"message":"m","code":"content_filter","innererror":{"code":"Policy"}}}`:  {Code: "content_filter", Message: "m (Policy)"},
		`{"error":true,"reason":"m"}`:                                                       {Message: "m"},
		`{"error":{"message":"m"}`:                                                          {},
		`{"error":{"message":"m"}} x`:                                                       {},
		`{"error":{"message":"a","message":"b"}}`:                                           {},
		`<html>`: {},
		``:       {},
		`{"error":{"message":"` + strings.Repeat("ä", maxErrorMessage) + `"}}`: {Message: strings.Repeat("ä", maxErrorMessage/2)},
		`{"error":{"code":"` + strings.Repeat("x", 100) + `"}}`:                {Code: strings.Repeat("x", maxErrorWord)},
	} {
		if got := ReadFailure([]byte(in)); got != want {
			t.Errorf("%.80s: found %.80q", in, got)
		}
	}
}

// FuzzAnswer holds that nothing that is read is not strict JSON, and that what
// is kept is.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}],"x":[1]},"finish_reason":null}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		chunk, err := new(Reader).ReadChunk(b)
		if err != nil {
			var reported *ProviderError
			if !errors.As(err, &reported) && strings.Contains(err.Error(), "jsontext") {
				t.Error(err)
			}
			return
		}
		var second Reader
		if err := second.document(b, func([]byte) error { return second.skip() }); err != nil {
			t.Errorf("it was read, and is not strict: %v", err)
		}
		var a Assembly
		for range 2 {
			if a.Add(chunk) != nil {
				return
			}
		}
		if a.Incomplete() != nil {
			return
		}
		c, err := a.Assembled()
		if err != nil {
			return
		}
		for _, x := range append([]Extra{c.Extra}, extras(c)...) {
			if err := second.document(x.object(), func([]byte) error { return second.skip() }); err != nil {
				t.Errorf("%s: %v", x.object(), err)
			}
		}
	})
}

func extras(c *Completion) (all []Extra) {
	for _, choice := range c.Choices {
		all = append(all, choice.Extra, choice.Message.Extra)
		for _, call := range choice.Message.ToolCalls {
			all = append(all, call.Extra)
		}
	}
	return all
}

func TestExtraAsObject(t *testing.T) {
	if !bytes.Equal(Extra{{"a\"", []byte("1")}, {"b", []byte("[]")}}.object(), []byte(`{"a\"":1,"b":[]}`)) {
		t.Error("an object is written otherwise")
	}
}

// TestManyMembers: a document may not have more unknown members than are sensible;
// within one that is kept they are its own affair.
func TestManyMembers(t *testing.T) {
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"a%d":0,`, i)
		}
		return b.String()
	}
	var r Reader
	for document, fine := range map[string]bool{
		`{` + members(maxExtraMembers) + `"choices":[]}`:                                                                         true,
		`{` + members(maxExtraMembers+1) + `"choices":[]}`:                                                                       false,
		`{"x":{` + members(maxExtraMembers+1) + `"z":0},"choices":[]}`:                                                           true,
		`{"choices":[{` + members(maxExtraMembers/2+1) + `"index":0,"delta":{` + members(maxExtraMembers/2+1) + `"role":"x"}}]}`: false,
	} {
		for range 2 {
			if _, err := r.ReadChunk([]byte(document)); (err == nil) != fine {
				t.Errorf("%.40s…, %d bytes: %v", document, len(document), err)
			}
		}
	}
	if got := len(membersOf([]byte(`{` + members(maxExtraMembers+1) + `"z":0}`))); got != maxExtraMembers+2 {
		t.Errorf("an object that was kept has %d members", got)
	}
}
