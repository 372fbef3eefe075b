package responses_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/facetest"
	"github.com/callgate/callgate/upstream"
)

// withTools is a configuration of some tools, which the one agent may use.
func withTools(t testing.TB, list string) *configs.Config {
	t.Helper()
	return facetest.Config(t, map[string]string{"tools.yaml": "tools:" + list})
}

// TestOrchestrate: calls run here, and the turns are one response.
func TestOrchestrate(t *testing.T) {
	script := []answer{says(reasoning, message("I look."), function("call_1", "web_search", `{"query":"go"}`)), says(message("Found it all."))}
	for how, body := range map[string]string{"whole": asks(), "streamed": asksStream()} {
		h := open(t, plan{rules: orchestrate}, script...)
		w := h.post(body)
		r := reads(t, w)
		if w.Code != 200 || r.Status != "completed" || r.calls() != "" || r.Usage["total_tokens"] != 14.0 || !strings.HasSuffix(r.text(), "Found it all.") {
			t.Fatalf("%s: %d %s", how, w.Code, w.Body)
		}
		if how == "streamed" && (r.text() != "I look.Found it all." || len(r.Output) != 3) {
			t.Errorf("%s", w.Body)
		}
		asked := h.model.asked(t, 1)
		if !strings.Contains(string(h.model.asked(t, 0)["tools"]), `"name":"web_search"`) || !strings.Contains(string(asked["input"]), `"type":"function_call_output","call_id":"call_1","output":"{\"tool_result\":{\"tool\":\"web.search\"`) {
			t.Errorf("%s: %s", how, asked["input"])
		}
		if lines := strings.Join(h.settled(t), "\n"); !strings.Contains(lines, "result") {
			t.Error(lines)
		}
	}
}

// TestBlankArguments: a call of a tool without parameters may have no arguments, or blank ones.
func TestBlankArguments(t *testing.T) {
	config := withTools(t, `
  - {name: time.now, description: x, run: {type: client}, input_schema: {type: object}}
`)
	for _, arguments := range []string{"", " \n", "{}"} {
		for how, body := range map[string]string{"whole": asks(tools("time_now")), "streamed": asksStream(tools("time_now"))} {
			h := open(t, plan{config: config}, says(function("call_1", "time_now", arguments)))
			w := h.post(body)
			if r := reads(t, w); w.Code != 200 || r.calls() != "function_call call_1 time_now{}" {
				t.Errorf("%q, %s: %d %s", arguments, how, w.Code, w.Body)
			}
		}
	}
}

// TestSameIDs: items of later turns have ids of their own in the stream (RS-61).
func TestSameIDs(t *testing.T) {
	h := open(t, plan{rules: orchestrate}, says(reasoning, function("call_1", "web_search", `{"query":"a"}`)), says(reasoning, message("a")))
	if r := reads(t, h.post(asksStream())); r.Status != "completed" || len(r.Output) != 3 {
		t.Errorf("%+v", r)
	}
}

// TestApprovals: the provider's MCP calls are judged by the policy, and answered (RS-37).
func TestApprovals(t *testing.T) {
	config := withTools(t, `
  - {name: docs.read, description: x, run: {type: client}, input_schema: {type: object, required: [path], properties: {path: {type: string}}}}
`)
	request := func(id, arguments string) string {
		return `{"id":"` + id + `","type":"mcp_approval_request","server_label":"docs","name":"read","arguments":` + quoted(arguments) + `}`
	}
	allowed := func(r *upstream.Rules) { r.Responses.MCPServers = []string{"docs"} }
	const mcp = `"tools":[{"type":"mcp","server_label":"docs","server_url":"https://docs.example.com","require_approval":"never"}]`
	for how, body := range map[string]string{"whole": asks(mcp), "streamed": asksStream(mcp)} {
		h := open(t, plan{config: config, rules: allowed}, says(request("mcpr_1", `{"path":"a"}`), request("mcpr_2", `{"path":7}`)), says(message("Read.")))
		w := h.post(body)
		if r := reads(t, w); r.Status != "completed" || r.text() != "Read." || len(r.Output) != 1 {
			t.Errorf("%s: %d %s", how, w.Code, w.Body)
		}
		if first := string(h.model.asked(t, 0)["tools"]); !strings.Contains(first, `"require_approval":"always"`) {
			t.Errorf("the model got %s", first)
		}
		var input []struct {
			Type, Reason string
			ID           string `json:"approval_request_id"`
			Approve      bool
		}
		if err := json.Unmarshal(h.model.asked(t, 1)["input"], &input); err != nil || len(input) != 5 {
			t.Fatalf("%v %s", err, h.model.asked(t, 1)["input"])
		}
		if yes, no := input[3], input[4]; !yes.Approve || yes.ID != "mcpr_1" || no.Approve || no.ID != "mcpr_2" || !strings.Contains(no.Reason, "wrong_type") {
			t.Errorf("%s: %+v %+v", how, yes, no)
		}
	}
	h := open(t, plan{config: config, rules: allowed}, says(request("mcpr_1", `{"path":"a"}`)))
	if r := reads(t, h.post(asks(mcp))); r.Error == nil || r.Error.Code != "bound_reached" || h.model.times() != 17 {
		t.Errorf("%+v, asked %d times", r, h.model.times())
	}
}

// TestKeepAlive: while a call is held back, comments are sent (RS-64), and the text before it is
// there already.
func TestKeepAlive(t *testing.T) {
	commented := make(chan struct{})
	h := open(t, plan{beat: time.Millisecond}, func(w http.ResponseWriter, _ bool) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range events("completed", message("I look."), function("call_1", "web_search", `{"query":"a"}`)) {
			fmt.Fprintf(w, "data: %s\n\n", event)
			w.(http.Flusher).Flush()
			if strings.Contains(event, "function_call_arguments.done") {
				select {
				case <-commented:
				case <-time.After(30 * time.Second):
				}
			}
		}
	})
	once := sync.OnceFunc(func() { close(commented) })
	w := &facetest.Recorder{ResponseRecorder: httptest.NewRecorder(), Seen: func(body string) {
		if _, behind, shown := strings.Cut(body, "I l"); shown && strings.Contains(behind, "\n: ") {
			once()
		}
	}}
	request := httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(asksStream(tools("web_search"))))
	request.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, request)
	r := reads(t, w.ResponseRecorder)
	text, comment, call := strings.Index(w.Body.String(), "I l"), strings.LastIndex(w.Body.String(), "\n: "), strings.Index(w.Body.String(), "call_1")
	if r.comments == 0 || text < 0 || text > comment || comment > call {
		t.Errorf("%d comments in %s", r.comments, w.Body)
	}
}

// TestStored: responses that the provider keeps are not read here: they were never judged
// (RS-71). Neither is there a WebSocket (RS-73).
func TestStored(t *testing.T) {
	h := open(t, plan{rules: permissive}, says(message("ok")))
	for _, request := range []string{
		"GET /v1/responses/resp_1", "DELETE /v1/responses/resp_1", "POST /v1/responses/resp_1/cancel", "GET /v1/responses/resp_1/input_items", "POST /v1/responses/compact",
	} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != http.StatusNotFound || h.model.times() != 0 {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
	socket := httptest.NewRequest(http.MethodGet, "/v1/responses", nil)
	socket.Header.Set("Connection", "Upgrade")
	socket.Header.Set("Upgrade", "websocket")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, socket); w.Code < 400 || h.model.times() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
