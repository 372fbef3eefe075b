package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// sent posts to any path, as a client of the Messages API.
func sent(t *testing.T, url string, q map[string]any) (int, string) {
	t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("anthropic-version", "2023-06-01")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(got)
}

// eventsOf are the data of a stream, each under the name that its type says.
func eventsOf(t *testing.T, stream string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for part := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, data, ok := strings.Cut(part, "\ndata: ")
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil || !ok || name != fmt.Sprint("event: ", e["type"]) {
			t.Fatalf("found the event %q: %v", part, err)
		}
		all = append(all, e)
	}
	return all
}

// decoded is a JSON object.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// messageOf assembles what a stream of the Messages API says, as its clients do.
func messageOf(t *testing.T, stream string) map[string]any {
	t.Helper()
	var m map[string]any
	var content []any
	input := ""
	for _, e := range eventsOf(t, stream) {
		var b map[string]any
		if len(content) > 0 {
			b = content[len(content)-1].(map[string]any)
		}
		switch e["type"] {
		case "message_start":
			m = e["message"].(map[string]any)
		case "content_block_start":
			if e["index"] != float64(len(content)) {
				t.Fatalf("the index of %v is not %d", e, len(content))
			}
			content, input = append(content, e["content_block"]), ""
		case "content_block_delta":
			for member, piece := range e["delta"].(map[string]any) {
				switch member {
				case "type":
				case "partial_json":
					input += piece.(string)
				default:
					b[member] = b[member].(string) + piece.(string)
				}
			}
		case "content_block_stop":
			if input != "" {
				b["input"] = decoded(t, input)
			}
		case "message_delta":
			m["stop_reason"] = e["delta"].(map[string]any)["stop_reason"]
			m["usage"] = e["usage"]
		}
	}
	m["content"] = content
	return m
}

// response is the last state that a stream of the Responses API tells; its items are
// those that were done before.
func response(t *testing.T, stream string) map[string]any {
	t.Helper()
	var done []any
	all := eventsOf(t, stream)
	pieces := map[any]string{}
	for n, e := range all {
		if e["sequence_number"] != float64(n) {
			t.Fatalf("the number of %v is not %d", e, n)
		}
		if piece, ok := e["delta"].(string); ok {
			pieces[e["output_index"]] += piece
		}
		if e["type"] == "response.output_item.done" {
			item := e["item"].(map[string]any)
			done = append(done, item)
			whole := fmt.Sprint(item["arguments"], item["input"])
			if p := pieces[e["output_index"]]; p != "" && item["content"] == nil && whole != p+"<nil>" && whole != "<nil>"+p {
				t.Errorf("the pieces %q are not %s", p, whole)
			}
		}
	}
	last := all[len(all)-1]
	body, ok := last["response"].(map[string]any)
	if !ok || last["type"] != "response.completed" || fmt.Sprint(body["output"]) != fmt.Sprint(done) {
		t.Fatalf("the stream ends in %v after %v", last, done)
	}
	return body
}

// said is the text, and each call as name and arguments, of an answer of either API.
func said(answer map[string]any) string {
	var all []string
	content, _ := answer["content"].([]any)
	output, _ := answer["output"].([]any)
	for _, part := range append(content, output...) {
		p := part.(map[string]any)
		switch p["type"] {
		case "text":
			all = append(all, p["text"].(string))
		case "message":
			all = append(all, p["content"].([]any)[0].(map[string]any)["text"].(string))
		case "tool_use":
			all = append(all, fmt.Sprint(p["name"], p["input"]))
		case "function_call":
			var arguments map[string]any
			_ = json.Unmarshal([]byte(p["arguments"].(string)), &arguments)
			all = append(all, fmt.Sprint(p["name"], arguments))
		default:
			all = append(all, fmt.Sprint(p["type"]))
		}
	}
	return strings.Join(all, " | ")
}

// talk goes through a scenario in one API: each text in turn is the result of all calls
// of the answer before. It says what the last answer is.
func talk(t *testing.T, url, api, scenario string, stream bool, results ...string) string {
	t.Helper()
	messages := []any{map[string]any{"role": "user", "content": "Please."}}
	for n := 0; ; n++ {
		q := map[string]any{"model": scenario, "stream": stream, "tools": []any{map[string]any{"name": "x"}}}
		if api == "messages" {
			q["messages"], q["max_tokens"] = messages, 100
		} else {
			q["input"] = messages
		}
		status, got := sent(t, url+"/v1/"+api, q)
		if status != http.StatusOK {
			return fmt.Sprint(status, " ", got)
		}
		var answer map[string]any
		switch {
		case !stream:
			answer = decoded(t, got)
		case api == "messages":
			answer = messageOf(t, got)
		default:
			answer = response(t, got)
		}
		if n == len(results) {
			return said(answer)
		}
		var outputs []any
		if api == "messages" {
			messages = append(messages, map[string]any{"role": "assistant", "content": answer["content"]})
			for _, b := range answer["content"].([]any) {
				if b := b.(map[string]any); b["type"] == "tool_use" {
					outputs = append(outputs, map[string]any{"type": "tool_result", "tool_use_id": b["id"], "content": results[n]})
				}
			}
			messages = append(messages, map[string]any{"role": "user", "content": outputs})
			continue
		}
		for _, i := range answer["output"].([]any) {
			messages = append(messages, i)
			if i := i.(map[string]any); i["call_id"] != nil {
				outputs = append(outputs, map[string]any{"type": i["type"].(string) + "_output", "call_id": i["call_id"], "output": results[n]})
			}
		}
		messages = append(messages, outputs...)
	}
}

// TestScenariosInEveryAPI plays scenarios whole and streamed, and wants the same.
func TestScenariosInEveryAPI(t *testing.T) {
	url := newModel(t)
	const value = `{"tool_result":{"tool":"math.evaluate","output":{"value":2.5}}}`
	const refused = `{"tool_result":{"tool":null,"output":{"error":{"code":"wrong_type"}}}}`
	const evaluate = "math_evaluatemap[expression:"
	for _, c := range []struct {
		scenario            string
		results             []string
		messages, responses string // the other is the same if empty
	}{
		{"text", nil, "No tool is needed to say that the sea rises and falls twice a day.", ""},
		{"call", nil, evaluate + "2*(3+4)]", ""},
		{"bytes", []string{value}, "The value is 2.5 — exactly.", ""},
		{"prose", nil, "Let me work that out. | " + evaluate + "1+1]", ""},
		{"parallel", nil, evaluate + "2+3] | web_searchmap[num_results:1 query:tides]", ""},
		{"parallel", []string{value}, "The value is 2.5.", ""},
		{"parallel", []string{refused}, evaluate + "2+3]", ""},
		{"repair", nil, "web_searchmap[num_results:1 query:tides]", ""},
		{"near-name", []string{refused}, evaluate + "6*7]", ""},
		{"near-name", []string{refused, value}, "The value is 2.5.", ""},
		{"stubborn", []string{refused, refused}, evaluate + "1+1 round:true]", ""},
		{"thinking", nil, "thinking | " + evaluate + "10/4]", "reasoning | " + evaluate + "10/4]"},
		{"thinking", []string{value}, "The value is 2.5 — exactly.", ""},
		{"hosted", nil, "server_tool_use | web_search_tool_result | The sea rises and falls twice a day.", "web_search_call | The sea rises and falls twice a day."},
		{"shell", nil, "bashmap[command:ls notes] | Let me see.", "shell_call | apply_patch_call | custom_tool_call | Let me see."},
		{"shell", []string{"done"}, "All was done.", ""},
	} {
		for _, stream := range []bool{false, true} {
			if got := talk(t, url, "messages", c.scenario, stream, c.results...); got != c.messages {
				t.Errorf("%s of messages, streamed %t: %s, want %s", c.scenario, stream, got, c.messages)
			}
			want := c.responses
			if want == "" {
				want = c.messages
			}
			if got := talk(t, url, "responses", c.scenario, stream, c.results...); got != want {
				t.Errorf("%s of responses, streamed %t: %s, want %s", c.scenario, stream, got, want)
			}
		}
	}
}

// TestErrorsInEveryAPI wants a scripted error before an answer, and within a stream.
func TestErrorsInEveryAPI(t *testing.T) {
	url := newModel(t)
	for api, shapes := range map[string][]string{
		"messages":         {`{"type":"error","error":{"type":"overloaded_error"`, `event: error` + "\n" + `data: {"type":"error","error":{"type":"overloaded_error"`},
		"responses":        {`{"error":{"message":"the scenario has an error here","type":"server_error"`, `event: error` + "\n" + `data: {`},
		"chat/completions": {`{"error":{"message":"the scenario has an error here","type":"server_error"`, `data: {"error":{"message":`},
	} {
		q := map[string]any{"model": "busy", "max_tokens": 1, "stream": true, "input": "q", "messages": []any{map[string]any{"role": "user", "content": "q"}}}
		if status, got := sent(t, url+"/v1/"+api, q); status != 529 || !strings.HasPrefix(got, shapes[0]) {
			t.Errorf("%s: %d %s", api, status, got)
		}
		q["model"] = "rejected"
		if status, got := sent(t, url+"/v1/"+api, q); status != http.StatusBadRequest || !strings.Contains(got, `"request_id":"req_rejected"`) {
			t.Errorf("%s: %d %s", api, status, got)
		}
		q["model"] = "broken"
		status, got := sent(t, url+"/v1/"+api, q)
		events := strings.Split(strings.TrimSuffix(got, "\n\n"), "\n\n")
		if last := events[len(events)-1]; status != http.StatusOK || len(events) < 3 || !strings.HasPrefix(last, shapes[1]) || strings.Contains(got, "before it ends") {
			t.Errorf("%s, streamed: %d %s", api, status, got)
		}
		q["stream"] = false
		if status, got := sent(t, url+"/v1/"+api, q); status != http.StatusInternalServerError || !strings.Contains(got, `"error":{`) {
			t.Errorf("%s, whole: %d %s", api, status, got)
		}
	}
}

// TestConversationsThatAreRefused are those that the providers refuse too.
func TestConversationsThatAreRefused(t *testing.T) {
	url := newModel(t)
	for request, want := range map[string]string{
		`messages {"messages":[{"role":"user","content":"q"}],"max_tokens":1}`:                                                                                                                                                "model: Field required",
		`messages {"model":"call","messages":[{"role":"user","content":"q"}]}`:                                                                                                                                                "max_tokens: Field required",
		`messages {"model":"call","messages":[],"max_tokens":1}`:                                                                                                                                                              "at least one message",
		`messages {"model":"call","messages":[{"role":"tool","content":"q"}],"max_tokens":1}`:                                                                                                                                 "another role",
		`messages {"model":"call","messages":[{"role":"user","content":7}],"max_tokens":1}`:                                                                                                                                   "another form",
		`messages {"model":"call","messages":[{"role":"user","content":[{"type":"tool_use","id":"a"}]}],"max_tokens":1}`:                                                                                                      "none may stand",
		`messages {"model":"call","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}],"max_tokens":1}`:                                                                                          "unexpected `tool_use_id`",
		`messages {"model":"call","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]}],"max_tokens":1}`:                                                                                                 "messages.0: `tool_use` ids were found",
		`messages {"model":"call","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"system","content":"s"}],"max_tokens":1}`:                                                                 "messages.0: `tool_use` ids were found",
		`messages {"model":"call","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}],"max_tokens":1}`: "none may stand",
		`messages {"model":"call","messages":[{"role":"user","content":"q"}],"max_tokens":1,"thread":{"type":"create"}}`:                                                                                                      `"error_code":"thread_unsupported_request","unsupported":[]`,
		`responses {"input":"q"}`:                                                     "Missing required parameter",
		`responses {"model":"call"}`:                                                  "found no input",
		`responses {"model":"call","input":[]}`:                                       "found no input",
		`responses {"model":"call","input":[{"role":"x","content":"q"}]}`:             "another role",
		`responses {"model":"call","input":[{"content":"q"}]}`:                        "found no item",
		`responses {"model":"call","input":[{"type":"function_call","call_id":"a"}]}`: "No tool output found",
		`responses {"model":"call","input":[{"type":"function_call_output"}]}`:        "No tool call found",
		`responses {"model":"call","input":[{"type":"shell_call","call_id":"a"},{"type":"function_call_output","call_id":"a","output":"x"}]}`: "No tool call found",
	} {
		api, body, _ := strings.Cut(request, " ")
		status, got := sent(t, url+"/v1/"+api, decoded(t, body))
		if status != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s, want 400 with %q", request, status, got, want)
		}
	}
	r, err := http.Post(url+"/v1/messages", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if got, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusBadRequest || !strings.Contains(string(got), "anthropic-version: header is required") {
		t.Errorf("without a version: %d %s", r.StatusCode, got)
	}
}

// TestCountsAndModels are the other requests of the two APIs.
func TestCountsAndModels(t *testing.T) {
	url := newModel(t)
	q := map[string]any{"model": "text", "messages": []any{}, "input": "q"}
	if status, got := sent(t, url+"/v1/messages/count_tokens", q); status != http.StatusOK || got != `{"input_tokens":11}` {
		t.Errorf("%d %s", status, got)
	}
	if status, got := sent(t, url+"/v1/responses/input_tokens", q); status != http.StatusOK || decoded(t, got)["object"] != "response.input_tokens" {
		t.Errorf("%d %s", status, got)
	}
	r, err := http.NewRequest(http.MethodGet, url+"/v1/models?limit=1000", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(versionHeader, "2026-10-21")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if page := decoded(t, string(got)); err != nil || page["has_more"] != false || page["first_id"] != "agent" {
		t.Errorf("%v: %s", err, got)
	}
	// A request without tools, as one for the title of a conversation, gets no call.
	if status, got := sent(t, url+"/v1/messages", map[string]any{"model": "call", "max_tokens": 1, "messages": []any{map[string]any{"role": "user", "content": "q"}}}); status != http.StatusOK || said(decoded(t, got)) != "There is no tool to call." {
		t.Errorf("%d %s", status, got)
	}
}
