package chat_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestHistory: earlier calls and their results, as each protocol has them.
func TestHistory(t *testing.T) {
	const past = `{"model":"m","messages":[
		{"role":"system","content":"Be brief."},
		{"role":"user","content":[{"type":"text","text":"hi"}]},
		{"role":"assistant","content":"Let me see.","tool_calls":[
			{"id":"a","type":"function","function":{"name":"web_search","arguments":"{\"query\": \"x\"}"}},
			{"id":"b","type":"function","function":{"name":"of_old","arguments":""}}],"function_call":{"name":"","arguments":""}},
		{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"two\u200b "},{"type":"text","text":"parts"}]},
		{"role":"tool","tool_call_id":"a","name":"web_search","content":"{\"error\":\"none\"}"},
		{"role":"assistant","content":"So."},
		{"role":"user","content":"and?"}],"tools":[{"type":"function","function":{"name":"time_now"}}]}`
	sent := func(h *fixture, past string) []string {
		t.Helper()
		if w := h.post(past); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		var body struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(h.model.body(t, 0), &body); err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, m := range body.Messages {
			list = append(list, string(m))
		}
		return list
	}
	native := sent(open(t, inTurn(says(content("hi"), "stop")), plan{}), past)
	for i, want := range map[int]string{
		0: `{"role":"system","content":"Be brief."}`,
		3: `{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"two\\u200b "},{"type":"text","text":"parts"}]}`,
		4: `{"role":"tool","tool_call_id":"a","name":"web_search","content":"{\"error\":\"none\"}"}`,
	} {
		if native[i] != want {
			t.Errorf("natively, message %d is %s", i, native[i])
		}
	}
	if len(native) != 7 || strings.Contains(native[2], "function_call") || !strings.Contains(native[2], `"arguments":"{\"query\": \"x\"}"`) {
		t.Errorf("natively: %q", native)
	}
	text := sent(open(t, inTurn(says(content("hi"), "stop")), plan{rules: textProtocol}), past)
	null := strings.Replace(past, `"arguments":""`, `"arguments":"null"`, 1)
	if got := sent(open(t, inTurn(says(content("hi"), "stop")), plan{rules: textProtocol}), null); !slices.Equal(got, text) {
		t.Errorf("arguments of null: %q", got)
	}
	if !strings.HasPrefix(text[0], `{"role":"system","content":"You can use tools.`) || !strings.HasSuffix(text[0], `\nBe brief."}`) || !strings.Contains(text[0], `\n{\"name\":\"time.now\",`) || strings.Contains(text[0], "web.search") {
		t.Errorf("in text, the first message is %s", text[0])
	}
	for i, want := range []string{
		`{"role":"user","content":[{"type":"text","text":"hi"}]}`,
		`{"role":"assistant","content":"Let me see."}`,
		`{"role":"assistant","content":"{\"tool\":{\"name\":\"web.search\",\"arguments\":{\"query\": \"x\"}}}"}`,
		`{"role":"user","content":"{\"tool_result\":{\"tool\":\"web.search\",\"output\":{\"value\":{\"error\":\"none\"}}}}"}`,
		`{"role":"assistant","content":"{\"tool\":{\"name\":\"of_old\",\"arguments\":{}}}"}`,
		`{"role":"user","content":"{\"tool_result\":{\"tool\":\"of_old\",\"output\":{\"value\":\"two\\u200b parts\"}}}"}`,
		`{"role":"assistant","content":"So."}`,
		`{"role":"user","content":"and?"}`,
	} {
		if text[i+1] != want {
			t.Errorf("in text, message %d is %s", i+1, text[i+1])
		}
	}
}

// TestPrompt: the text protocol tells the model of the tools that the agent may
// use, always alike, and of nothing where there are none.
func TestPrompt(t *testing.T) {
	prompt := func(more string, messages string) (string, map[string]json.RawMessage) {
		t.Helper()
		h := open(t, inTurn(says(content(`{"tool":{"name":"time.now","arguments":{}}}`), "stop")), plan{rules: all(textProtocol, noRepairs)})
		if w := h.post(`{"model":"m","messages":[` + messages + `],` + more + `}`); w.Code != 200 && w.Code != 422 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		var body map[string]json.RawMessage
		if err := json.Unmarshal(h.model.body(t, 0), &body); err != nil {
			t.Fatal(err)
		}
		var list []struct{ Content json.RawMessage }
		if err := json.Unmarshal(body["messages"], &list); err != nil {
			t.Fatal(err)
		}
		return string(list[0].Content), body
	}
	const user = `{"role":"user","content":"hi"}`
	first, body := prompt(tools("web_search", "time_now", "files_delete")+`,"tool_choice":"auto","parallel_tool_calls":true`, user)
	second, _ := prompt(tools("time_now", "files_delete", "web_search"), user)
	if first != second || !strings.Contains(first, `\"name\":\"web.search\"`) || !strings.Contains(first, `\"additionalProperties\":false`) || strings.Contains(first, "files.delete") || strings.Index(first, `\"time.now\"`) > strings.Index(first, `\"web.search\"`) {
		t.Errorf("the prompt is %s, or %s", first, second)
	}
	if body["tools"] != nil || body["tool_choice"] != nil || body["parallel_tool_calls"] != nil {
		t.Errorf("the model is sent %v", body)
	}
	for more, want := range map[string]string{
		`"tool_choice":"required"`: "Now you must call a tool.",
		`"tool_choice":{"type":"function","function":{"name":"time_now"}}`:                                                                          "Now you must call time.now.",
		`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"time_now"}}]}}`:       "call only time.now.",
		`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"web_search"}}]}}`: "Now you must call web.search.",
	} {
		if got, _ := prompt(tools("time_now", "web_search")+","+more, user); !strings.Contains(got, want) {
			t.Errorf("%s: the prompt is %s", more, got)
		}
	}
	for _, more := range []string{`"seed":1`, tools("files_delete"), tools("time_now") + `,"tool_choice":"none"`} {
		if got, _ := prompt(more, user); got != `"hi"` {
			t.Errorf("%s: there is a prompt: %s", more, got)
		}
	}
	if got, _ := prompt(tools("time_now"), `{"role":"developer","content":[{"type":"text","text":"Be brief."}]}`); !strings.HasPrefix(got, `[{"type":"text","text":"You can use tools.`) || !strings.HasSuffix(got, `,{"type":"text","text":"Be brief."}]`) {
		t.Errorf("before parts: %s", got)
	}
}

// TestOwnResults: the result of a tool that the application ran is for a native model what the
// application wrote, but for invisible characters; a model that reads calls as text gets it wrapped.
func TestOwnResults(t *testing.T) {
	const call = `{"id":"a","function":{"name":"web_search","arguments":null}}`
	for result, want := range map[string]string{
		`"plain  \u00e9 \"x\" \/ \r\n"`:                                           `"plain  \u00e9 \"x\" \/ \r\n"`,
		`"{\"tool_result\":{\"tool\":\"x\",\"output\":{}}}"`:                      `"{\"tool_result\":{\"tool\":\"x\",\"output\":{}}}"`,
		`"a\u202eb\u001b[1m\udb40\udc41"`:                                         `"a\\u202eb\\u001b[1m\\udb40\\udc41"`,
		"\"a\u200bb\"":                                                            `"a\\u200bb"`,
		"\"👩\u200d💻 می\u200cخواهم ❤\ufe0f\"":                                      "\"👩\u200d💻 می\u200cخواهم ❤\ufe0f\"",
		`[ {"type":"text", "text":"é"} ]`:                                         `[ {"type":"text", "text":"é"} ]`,
		`[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]`: `[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]`,
		"null": `""`,
	} {
		body := `{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"a","content":` + result + `}]}`
		h := open(t, inTurn(says(content("hi"), "stop")), plan{})
		if w := h.post(body); w.Code != 200 || !strings.Contains(string(h.model.body(t, 0)), `{"role":"tool","tool_call_id":"a","content":`+want+`}`) {
			t.Errorf("%s: %d, the model is sent %s", result, w.Code, h.model.body(t, 0))
		}
		h = open(t, inTurn(says(content("hi"), "stop")), plan{rules: textProtocol})
		w := h.post(body)
		if strings.Contains(result, "image_url") {
			if w.Code != 400 || !strings.Contains(w.Body.String(), "messages.1.content") || !strings.Contains(w.Body.String(), "protocol: text") {
				t.Errorf("%s in text: %d %s", result, w.Code, w.Body)
			}
		} else if w.Code != 200 || !strings.Contains(string(h.model.body(t, 0)), `"content":"{\"tool_result\":{\"tool\":\"web.search\",`) {
			t.Errorf("%s in text: %d, the model is sent %s", result, w.Code, h.model.body(t, 0))
		}
	}
}
