package chat_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
)

// required is a fixture where every call states its agent.
func required(s *gateway.Config, _ *calls.Deps) { s.AgentRequired = true }

const (
	withAgent    = `{"agent":"Analyst","tool":{"name":"time.now","arguments":{}}}`
	withoutAgent = `{"tool":{"name":"time.now","arguments":{}}}`
)

// TestSN35TextProtocol: a model of the text protocol is told to state the agent, sees
// its earlier calls with it, and may correct a call that lacks it.
func TestSN35TextProtocol(t *testing.T) {
	h := open(t, inTurn(says(content(withoutAgent), "stop"), says(content(withAgent), "stop"), says(content("It is noon."), "stop")),
		plan{state: required, rules: all(orchestrate, textProtocol)})
	w := h.post(`{"model":"m","messages":[
		{"role":"user","content":"hi"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"web_search","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"none"}]}`)
	if got := reads(t, w); w.Code != 200 || got.text() != "It is noon." {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	first := string(h.model.body(t, 0))
	for _, message := range []string{
		`{\"agent\":\"Analyst\",\"tool\":{\"name\":\"NAME\",`, `You act for the agent \"Analyst\".`,
		`"content":"{\"agent\":\"Analyst\",\"tool\":{\"name\":\"web.search\",\"arguments\":{}}}"`,
	} {
		if !strings.Contains(first, message) {
			t.Errorf("the model is not told %s: %s", message, first)
		}
	}
	if strings.Contains(first, `{\"tool\":{\"name\"`) {
		t.Errorf("the model is shown a call without an agent: %s", first)
	}
	if second := string(h.model.body(t, 1)); !strings.Contains(second, `\"code\":\"agent_required\"`) {
		t.Errorf("the refusal was not given back: %s", second)
	}
	if h.model.times() != 3 {
		t.Errorf("the model was asked %d times", h.model.times())
	}

	plain := open(t, inTurn(says(content("hi"), "stop")), plan{rules: all(orchestrate, textProtocol)})
	if w := plain.post(asks("")); w.Code != 200 || strings.Contains(string(plain.model.body(t, 0)), `agent\"`) {
		t.Errorf("where it is optional the model is told of agents: %s", plain.model.body(t, 0))
	}
}

// TestSN35NativeProtocol: a native call cannot state an agent, so the request does.
// Where it does not, no other answer of the model could pass.
func TestSN35NativeProtocol(t *testing.T) {
	for agent, want := range map[string]string{"": "agent_required", "Analyst": ""} {
		h := open(t, inTurn(says(toolCalls("c1", "time_now", "{}"), "stop"), says(content("It is noon."), "stop")), plan{state: required, rules: orchestrate})
		var headers []string
		if agent != "" {
			headers = []string{"Callgate-Agent", agent}
		}
		got := reads(t, h.post(asks(""), headers...))
		requests := 2
		if want != "" {
			requests = 1
		}
		if got.Error.Code != want || h.model.times() != requests {
			t.Errorf("for the agent %q: %q, and the model was asked %d times", agent, got.Error.Code, h.model.times())
		}
	}
}

// TestSN37EveryTurnIsJudged: behind a result as in front of it, a model that comments on
// its call, repairs its JSON or sends two is refused, and no tool is run for it.
func TestSN37EveryTurnIsJudged(t *testing.T) {
	call := `{"tool":{"name":"time.now","arguments":{}}}`
	for output, code := range map[string]string{
		"Now the time again: " + call: "mixed_output", call + " That is all.": "mixed_output", call[:len(call)-1]: "malformed_json", call + call: "multiple_calls",
	} {
		h := open(t, inTurn(says(content(call), "stop"), says(content(output), "stop")), plan{rules: all(orchestrate, textProtocol, noRepairs)})
		got := reads(t, h.post(asks("")))
		if got.Error.Code != code {
			t.Errorf("%q: %q, want %s", output, got.Error.Code, code)
		}
		if results := strings.Count(strings.Join(h.settled(t), ", "), "outcome call tool_call result"); results != 1 {
			t.Errorf("%q: %d calls were run", output, results)
		}
	}
}

// TestSN38AfterAResult the model may call again, as often as it needs, and then answers
// in text.
func TestSN38AfterAResult(t *testing.T) {
	call := says(content(`{"tool":{"name":"time.now","arguments":{}}}`), "stop")
	for calls := 1; calls <= 3; calls++ {
		script := []func(http.ResponseWriter, *http.Request){call, call, call}[:calls]
		h := open(t, inTurn(append(script, says(content("It is noon."), "stop"))...), plan{rules: all(orchestrate, textProtocol)})
		w := h.post(asks(""))
		if got := reads(t, w); w.Code != 200 || got.text() != "It is noon." {
			t.Errorf("after %d calls: %d %s", calls, w.Code, w.Body)
		}
		if results := strings.Count(string(h.model.body(t, calls)), `\"tool_result\":{\"tool\":\"time.now\"`); results != calls {
			t.Errorf("after %d calls the model reads %d results", calls, results)
		}
	}
}
