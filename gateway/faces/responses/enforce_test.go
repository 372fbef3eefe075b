package responses_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

// bothWays posts a request whole and as a stream.
func (h *fixture) bothWays(t *testing.T, more []string, check func(how string, r response, code int)) {
	t.Helper()
	for how, body := range map[string]string{"whole": asks(more...), "streamed": asksStream(more...)} {
		w := h.post(body)
		check(how, reads(t, w), w.Code)
	}
}

func TestText(t *testing.T) {
	h := open(t, plan{}, says(reasoning, message("Hello, you.")))
	h.bothWays(t, nil, func(how string, r response, code int) {
		if code != 200 || r.Status != "completed" || r.text() != "Hello, you." || len(r.Output) != 2 || r.Output[0].Type != "reasoning" || r.ID != "resp_1" || r.Model != "model-1" || r.Temperature != 1 {
			t.Errorf("%s: %d %+v", how, code, r)
		}
		if r.Usage["total_tokens"] != 7.0 {
			t.Errorf("%s: usage %v", how, r.Usage)
		}
	})
}

// TestOtherKind: a call of a tool in a type that is not the tool's is refused by both.
func TestOtherKind(t *testing.T) {
	call := `{"type":"custom_tool_call","call_id":"c1","name":"web_search","input":"go"}`
	h := open(t, plan{rules: noRepairs}, says(call))
	h.bothWays(t, []string{tools("web_search")}, func(how string, r response, code int) {
		if code != 422 || r.Error == nil || r.Error.Code != "unknown_tool" || !strings.Contains(r.Error.Message, `no tool "web_search as a custom_tool_call"`) {
			t.Errorf("%s: %d %+v", how, code, r.Error)
		}
	})
}

// TestHeaders: the provider's id of the request is passed on.
func TestHeaders(t *testing.T) {
	h := open(t, plan{}, says(message("Hi.")))
	for _, body := range []string{asks(), asksStream()} {
		if w := h.post(body); w.Header().Get("X-Request-Id") != "req_1" {
			t.Errorf("%v", w.Header())
		}
	}
}

// TestEcho: the members that the gateway changes on their way to the model are the application's
// own in the answer (RS-30).
func TestEcho(t *testing.T) {
	h := open(t, plan{}, says(message("Hi.")))
	more := []string{`"instructions":"be brief"`, tools("web_search"), `"tool_choice":"auto"`}
	h.bothWays(t, more, func(how string, r response, _ int) {
		if string(r.Instructions) != `"be brief"` || !strings.Contains(string(r.Tools), `"parameters":{"type":"object"}`) || string(r.ToolChoice) != `"auto"` {
			t.Errorf("%s: %s %s %s", how, r.Instructions, r.Tools, r.ToolChoice)
		}
	})
	asked := h.model.asked(t, 0)
	if string(asked["model"]) != `"model-1"` || !strings.Contains(string(asked["tools"]), `"query"`) {
		t.Errorf("the model got %s", asked["tools"])
	}
	h.bothWays(t, nil, func(how string, r response, _ int) {
		if string(r.Instructions) != "null" || string(r.Tools) != "[]" || string(r.ToolChoice) != `"auto"` {
			t.Errorf("%s: %s %s %s", how, r.Instructions, r.Tools, r.ToolChoice)
		}
	})
}

func TestCall(t *testing.T) {
	call := function("call_1", "web_search", `{"query":"go"}`)
	h := open(t, plan{}, says(reasoning, message("I look."), call, reasoning2))
	h.bothWays(t, []string{tools("web_search")}, func(how string, r response, code int) {
		if code != 200 || r.Status != "completed" || r.calls() != `function_call call_1 web_search{"query":"go"}` || r.text() != "I look." || len(r.Output) != 4 {
			t.Errorf("%s: %d %+v", how, code, r)
		}
	})
	if lines := strings.Join(h.settled(t), "\n"); strings.Count(lines, "handed_over") != 2 {
		t.Error(lines)
	}
}

const reasoning2 = `{"id":"rs_2","type":"reasoning","summary":[{"type":"summary_text","text":"well"}]}`

// TestFailedStream: a refusal after text was sent ends the response as failed (RS-50).
func TestFailedStream(t *testing.T) {
	h := open(t, plan{}, says(reasoning, message("I look."), function("call_1", "nothing", `{"a":"SECRET"}`)))
	w := h.post(asksStream(tools("web_search")))
	r := reads(t, w)
	if w.Code != 200 || r.Status != "failed" || r.Error == nil || r.Error.Code != "unknown_tool" || r.text() != "I look." || len(r.Output) != 2 || strings.Contains(w.Body.String(), "SECRET") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if r.kinds[len(r.kinds)-1] != "response.failed" || h.model.times() != 1 {
		t.Errorf("%v, asked %d times", r.kinds, h.model.times())
	}
}

// TestRepair: a refused call goes back with everything that was received, and one result for
// each call (RS-90).
func TestRepair(t *testing.T) {
	for how, body := range map[string]string{"whole": asks(tools("web_search")), "streamed": asksStream(tools("web_search"))} {
		h := open(t, plan{}, says(reasoning, function("call_1", "web_search", `{}`), function("call_2", "web_search", `{"query":"a"}`)), says(message("Sorry.")))
		w := h.post(body)
		if r := reads(t, w); r.Status != "completed" || r.text() != "Sorry." || r.calls() != "" || r.Usage["total_tokens"] != 14.0 {
			t.Errorf("%s: %d %s", how, w.Code, w.Body)
		}
		var input []map[string]any
		if err := json.Unmarshal(h.model.asked(t, 1)["input"], &input); err != nil || len(input) != 6 {
			t.Fatalf("%s: %v %s", how, err, h.model.asked(t, 1)["input"])
		}
		kinds := ""
		for _, i := range input {
			kind, _ := i["type"].(string)
			kinds += kind + " "
		}
		if kinds != " reasoning function_call function_call function_call_output function_call_output " {
			t.Errorf("%s: %s", how, kinds)
		}
		if input[1]["encrypted_content"] != "gAAA" || input[4]["call_id"] != "call_1" || !strings.Contains(input[4]["output"].(string), "missing_argument") || input[5]["call_id"] != "call_2" {
			t.Errorf("%s: %v", how, input)
		}
	}
}

// TestRepairWithoutCalls: calls that no history may hold stay out of it, with the reasoning that
// belongs to them and may not stand there without them (RS-91).
func TestRepairWithoutCalls(t *testing.T) {
	for how, body := range map[string]string{"whole": asks(tools("web_search")), "streamed": asksStream(tools("web_search"))} {
		h := open(t, plan{}, says(reasoning, function("call_1", "web search", `{"query":"a"}`), reasoning2), says(message("Sorry.")))
		if r := reads(t, h.post(body)); r.Status != "completed" || r.text() != "Sorry." || r.calls() != "" {
			t.Errorf("%s: %+v", how, r)
		}
		var input []struct{ Type, Role, Content any }
		if err := json.Unmarshal(h.model.asked(t, 1)["input"], &input); err != nil || len(input) != 2 {
			t.Fatalf("%s: %v %s", how, err, h.model.asked(t, 1)["input"])
		}
		if text, _ := input[1].Content.(string); input[1].Role != "user" || !strings.Contains(text, "unknown_tool") {
			t.Errorf("%s: %v", how, input)
		}
	}
}

// TestKinds: what is not a function is judged as the tool of its name, passed on as it came,
// and repaired by an output of its own type (RS-12, RS-90).
func TestKinds(t *testing.T) {
	config := withTools(t, `
  - {name: shell, description: x, run: {type: client}, input_schema: {type: object, required: [commands], properties: {commands: {type: array, items: {type: string, pattern: "^ls"}}, timeout_ms: {}}}}
  - {name: local_shell, description: x, run: {type: client}, input_schema: {type: object, required: [type, command], properties: {type: {const: exec}, command: {type: array, items: {type: string, pattern: "^ls"}}, env: {type: object, additionalProperties: {type: string}}}}}
  - {name: apply_patch, description: x, run: {type: client}, input_schema: {type: object, required: [type, path], properties: {type: {enum: [create_file, update_file, delete_file]}, path: {type: string, pattern: "^ls"}, diff: {type: string}}}}
  - {name: computer, description: x, run: {type: client}, input_schema: {type: object, properties: {type: {type: string, pattern: "^ls"}, actions: {type: array, items: {type: string, pattern: "^ls"}}}}}
  - {name: sql, description: x, run: {type: client}, input_schema: {type: object, required: [input], properties: {input: {type: string, pattern: "^ls"}}}}
`)
	const offered = `"tools":[{"type":"shell","environment":{"type":"local"}},{"type":"local_shell"},{"type":"apply_patch"},{"type":"computer"},{"type":"custom","name":"sql","format":{"type":"text"}}]`
	for name, c := range map[string]struct{ call, output, state string }{
		"shell":       {`{"id":"i","type":"shell_call","status":"completed","call_id":"call_1","action":{"commands":["%"],"timeout_ms":null},"environment":{"type":"local"}}`, "shell_call_output", `"exit_code":1`},
		"local shell": {`{"id":"i","type":"local_shell_call","status":"completed","call_id":"call_1","action":{"type":"exec","command":["%"],"env":{}}}`, "local_shell_call_output", ""},
		"patch":       {`{"id":"i","type":"apply_patch_call","status":"completed","call_id":"call_1","operation":{"type":"create_file","path":"%","diff":"+x"}}`, "apply_patch_call_output", `"status":"failed"`},
		"custom":      {`{"id":"i","type":"custom_tool_call","status":"completed","call_id":"call_1","name":"sql","input":"%"}`, "custom_tool_call_output", ""},
		"computer":    {`{"id":"i","type":"computer_call","status":"completed","call_id":"call_1","action":{"type":"%"}}`, "", ""},
		"computer, 2": {`{"id":"i","type":"computer_call","status":"completed","call_id":"call_1","actions":["%"]}`, "", ""},
	} {
		good, bad := strings.Replace(c.call, "%", "ls -a", 1), strings.Replace(c.call, "%", "rm -r", 1)
		for how, body := range map[string]string{"whole": asks(offered), "streamed": asksStream(offered)} {
			h := open(t, plan{config: config}, says(good))
			w := h.post(body)
			if r := reads(t, w); w.Code != 200 || len(r.Output) != 1 || r.Output[0].CallID != "call_1" || !strings.Contains(w.Body.String(), "ls -a") {
				t.Errorf("%s, %s: %d %s", name, how, w.Code, w.Body)
			}
			h = open(t, plan{config: config}, says(bad), says(message("ok")))
			w = h.post(body)
			r := reads(t, w)
			if c.output == "" {
				if w.Code != http.StatusUnprocessableEntity || r.Error.Code != "invalid_value" || h.model.times() != 1 {
					t.Errorf("%s, %s: %d %s", name, how, w.Code, w.Body)
				}
				continue
			}
			input := string(h.model.asked(t, 1)["input"])
			if r.text() != "ok" || !strings.Contains(input, `"type":"`+c.output+`","call_id":"call_1"`) || !strings.Contains(input, c.state) || !strings.Contains(input, `invalid_value`) || !strings.Contains(input, "rm -r") {
				t.Errorf("%s, %s: %d %s after %s", name, how, w.Code, w.Body, input)
			}
		}
	}
}

// TestProviderFailure: the provider's own words reach the application, in a stream and before it.
func TestProviderFailure(t *testing.T) {
	const failed = `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"rate_limit_exceeded","message":"Wait a bit."}}}`
	list := events("completed", message("Half a text"))
	h := open(t, plan{}, sends(append(list[:4:4], failed)...), sends(list[0], failed))
	w := h.post(asksStream())
	if r := reads(t, w); r.Status != "failed" || r.Error.Code != "rate_limit_exceeded" || r.Error.Message != "Wait a bit." {
		t.Errorf("%s", w.Body)
	}
	w = h.post(asksStream())
	if r := reads(t, w); w.Code != http.StatusBadGateway || r.Error.Code != "rate_limit_exceeded" || r.Error.Message != "Wait a bit." {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	h = open(t, plan{}, sends(list[0], strings.Replace(failed, `"rate_limit_exceeded"`, "429", 1)))
	if w = h.post(asksStream()); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "Wait a bit.") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	// But for words with the operator's key.
	for _, words := range []string{`"code":"x","message":"no such key: own\u002dkey"`, `"code":"own-key","message":"no such key"`} {
		h = open(t, plan{definition: func(d *upstream.Definition) { d.Credential = tool.Bearer("env:own-key") }},
			sends(append(list[:4:4], `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{`+words+`}}}`)...),
			sends(append(list[:4:4], `{"type":"error",`+words+`}`)...))
		for range 2 {
			w := h.post(asksStream())
			if r := reads(t, w); r.Status != "failed" || r.Error.Code != "upstream_unavailable" || strings.Contains(w.Body.String(), "own-key") || strings.Contains(w.Body.String(), "no such key") {
				t.Errorf("%s", w.Body)
			}
		}
	}
}

// TestProviderStatus: an error of the provider is passed on byte for byte (RS-80).
func TestProviderStatus(t *testing.T) {
	const body = `{"detail": "no such thing"}`
	h := open(t, plan{}, func(w http.ResponseWriter, _ bool) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("X-Request-Id", "req_1")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(body))
	})
	for _, request := range []string{asks(), asksStream()} {
		if w := h.post(request); w.Code != 400 || w.Body.String() != body || w.Header().Get("X-Request-Id") != "req_1" || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
		}
	}
}

// TestMaxBody: the bound of an answer is that of the upstream's entry, whole and streamed.
func TestMaxBody(t *testing.T) {
	for bound, fits := range map[int]bool{30 << 10: false, 60 << 10: true} {
		h := open(t, plan{definition: func(d *upstream.Definition) { d.MaxBody = bound }}, says(message(strings.Repeat("All is well. ", 3<<10))))
		for how, body := range map[string]string{"whole": asks(), "streamed": asksStream()} {
			if r := reads(t, h.post(body)); (r.Error == nil) != fits {
				t.Errorf("%d bytes, %s: found %v", bound, how, r.Error)
			}
		}
	}
}
