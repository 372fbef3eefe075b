package messages_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/upstream"
)

// forms are the ways in which a reply comes and goes.
var forms = []struct {
	name, place string
	streamed    bool
}{
	{"whole", "", false}, {"in deltas", "deltas", true}, {"in content_block_start", "start", true}, {"in message_start", "message", true},
}

// each runs a test in every form.
func each(t *testing.T, test func(t *testing.T, in func(wholes ...string) script, ask func(more ...string) string)) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			test(t, func(wholes ...string) script { return saysIn(form.place, 7, wholes...) }, func(more ...string) string {
				if form.streamed {
					more = append(more, streamed)
				}
				return asks(more...)
			})
		})
	}
}

// TestAM35Enforce: a call that passes is handed over with all that stands beside it, in order, and
// one that does not is an error; nothing is executed here.
func TestAM35Enforce(t *testing.T) {
	each(t, func(t *testing.T, in func(...string) script, ask func(...string) string) {
		h := open(t, in(message("tool_use", thinkingBlock, textOf("Let me look."), toolUse("toolu_1", "web_search", `{"query":"go"}`))), plan{})
		w := h.create(ask(tools("web_search")))
		got := reads(t, w)
		if w.Code != 200 || !got.done || fmt.Sprint(got.calls()) != `[toolu_1 web_search {"query":"go"}]` || got.text != "Let me look." || got.StopReason != "tool_use" {
			t.Errorf("found %d %s", w.Code, w.Body)
		}
		if len(got.Content) != 3 || got.Content[0].Thinking != "Hm." || got.Content[0].Signature != "c2ln" {
			t.Errorf("the thinking is %+v", got.Content)
		}
		begun := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") // and the head was sent before the verdict
		if w.Header().Get(server.HeaderCallID) == "" && !begun || w.Header().Get(server.HeaderRunID) == "" || w.Header().Get("Request-Id") != "req_upstream" {
			t.Errorf("the headers are %v", w.Header())
		}
		if record := h.settled(t); !strings.Contains(record, "tool_call handed_over") || len(*h.ran) > 0 {
			t.Errorf("the records are %s", record)
		}
	})
}

// TestCallsThatAreOver: calls of a model that declined, and calls that more than calls follow, are not handed over, unless the
// reason says that they are complete.
func TestCallsThatAreOver(t *testing.T) {
	const handOver = `{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}}`
	call, again := toolUse("toolu_1", "web_search", `{"query":"go"}`), toolUse("toolu_2", "web_search", `{"query":"go"}`)
	for name, c := range map[string]struct {
		reason string
		blocks []string
		passes bool
	}{
		"the last of a reply that ends its turn": {"end_turn", []string{textOf("I look."), call, again}, true},
		"text behind it":                         {"end_turn", []string{call, textOf("Done.")}, false},
		"text behind it, and the reason":         {"tool_use", []string{call, textOf("Done.")}, true},
		"of the model before":                    {"tool_use", []string{call, handOver, again}, false},
		"of the model that went on":              {"tool_use", []string{textOf("No."), handOver, again}, true},
	} {
		each(t, func(t *testing.T, in func(...string) script, ask func(...string) string) {
			h := open(t, in(message(c.reason, c.blocks...)), plan{rules: func(r *upstream.Rules) { noRepairs(r); r.Messages.Fallbacks = true }})
			w := h.create(ask(tools("web_search")))
			if got := reads(t, w); (len(got.calls()) > 0) != c.passes || !c.passes && got.Error.Details.Code != "truncated_output" {
				t.Errorf("%s: found %d %s", name, w.Code, w.Body)
			}
		})
	}
}

// TestText: text is passed on, with the reason that the model gave.
func TestText(t *testing.T) {
	each(t, func(t *testing.T, in func(...string) script, ask func(...string) string) {
		for _, reason := range []string{"end_turn", "max_tokens", "stop_sequence", "refusal", "pause_turn"} {
			h := open(t, in(message(reason, textOf("Hello {x} "), textOf(" you"))), plan{})
			if got := reads(t, h.create(ask())); got.text != "Hello {x}  you" || got.StopReason != reason || len(got.Content) != 2 || !got.done {
				t.Errorf("%s: found %+v", reason, got)
			}
		}
		h := open(t, in(message("pause_turn")), plan{})
		if got := reads(t, h.create(ask())); got.StopReason != "pause_turn" || len(got.Content) != 0 || !got.done {
			t.Errorf("a reply of nothing: %+v", got)
		}
	})
}

// TestRefused: what is refused is an error in the API's shape and of the type of its status, with the code.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		blocks []string
		ask    []string
		code   string
		status int
		kind   string
	}{
		"a wrong argument":       {[]string{toolUse("toolu_1", "web_search", `{"query":"go","x":1}`)}, nil, "unexpected_argument", 422, "invalid_request_error"},
		"no permission":          {[]string{toolUse("toolu_1", "files_delete", `{"path":"x"}`)}, []string{tools("files_delete")}, "permission_denied", 403, "permission_error"},
		"a program's call":       {[]string{strings.Replace(toolUse("toolu_1", "web_search", `{"query":"go"}`), "{", `{"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"},`, 1)}, nil, "permission_denied", 403, "permission_error"},
		"a foreign call in text": {[]string{textOf("so: <tool_"), textOf("call>{}")}, nil, "foreign_call_syntax", 422, "invalid_request_error"},
	} {
		each(t, func(t *testing.T, in func(...string) script, ask func(...string) string) {
			reason := "tool_use"
			if !strings.Contains(strings.Join(c.blocks, ""), "tool_use") {
				reason = "end_turn"
			}
			more := c.ask
			if more == nil {
				more = []string{tools("web_search")}
			}
			h := open(t, in(message(reason, c.blocks...)), plan{rules: noRepairs})
			w := h.create(ask(more...))
			got := reads(t, w)
			if got.Error.Details.Code != c.code || got.Error.Type != c.kind {
				t.Errorf("%s: found %d %s", name, w.Code, w.Body)
			}
			begun := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
			if !begun && (w.Code != c.status || w.Header().Get("X-Should-Retry") != "false" || got.RequestID == "") || begun && name != "a foreign call in text" {
				t.Errorf("%s: found %d %v %s", name, w.Code, w.Header(), w.Body)
			}
			shown, _, _ := strings.Cut(w.Body.String(), `{"type":"error"`) // which says what was found
			if strings.Contains(w.Body.String(), "toolu_") || strings.Contains(shown, "<tool_") {
				t.Errorf("%s: the call is in %s", name, w.Body)
			}
		})
	}
}

// TestAM73Repair: a refused turn goes back exactly as it was received, with a result for each of its
// calls, and the next one is the answer.
func TestAM73Repair(t *testing.T) {
	each(t, func(t *testing.T, in func(...string) script, ask func(...string) string) {
		h := open(t, in(message("tool_use", thinkingBlock, toolUse("toolu_1", "web_search", `{"query":"go"}`), toolUse("toolu_2", "web_search", `{"x":1}`)),
			message("tool_use", toolUse("toolu_3", "web_search", `{"query":"go"}`))), plan{})
		w := h.create(ask(tools("web_search")))
		got := reads(t, w)
		if fmt.Sprint(got.calls()) != `[toolu_3 web_search {"query":"go"}]` || !got.done || h.model.times() != 2 || strings.Contains(w.Body.String(), "toolu_2") {
			t.Fatalf("asked %d times, found %s", h.model.times(), w.Body)
		}
		body := h.model.body(t, 1)
		_, added, _ := strings.Cut(body, `{"role":"user","content":"hi"},`)
		for _, want := range []string{`{"role":"assistant","content":[`, `"signature":"c2ln"`, `"toolu_1"`, `"toolu_2"`, `{"type":"tool_result","tool_use_id":"toolu_1"`, "was not run", `{"type":"tool_result","tool_use_id":"toolu_2"`, "missing_argument", `"is_error":true`} {
			if !strings.Contains(added, want) {
				t.Errorf("%s is not in %s", want, added)
			}
		}
		if strings.Count(added, `"type":"tool_result"`) != 2 {
			t.Errorf("found other results in %s", added)
		}
	})
}

// TestCutCall: a call of an answer that was cut off is refused as such, with what the model can do about it.
func TestCutCall(t *testing.T) {
	each(t, func(t *testing.T, in func(...string) script, ask func(...string) string) {
		for reason, want := range map[string]string{"max_tokens": "The answer was cut off before it was complete. Send the whole call again", "pause_turn": "The answer ended with the stop_reason pause_turn"} {
			h := open(t, in(message(reason, toolUse("toolu_1", "web_search", `{"query":"go"}`))), plan{rules: noRepairs})
			if got := reads(t, h.create(ask(tools("web_search")))); got.Error.Details.Code != "truncated_output" || !strings.Contains(got.Error.Message, want) {
				t.Errorf("%s: found %+v", reason, got.Error)
			}
		}
	})
}

// TestAM50InvalidJSON: input that is no JSON is refused, and goes back to the model as the API takes it.
func TestAM50InvalidJSON(t *testing.T) {
	h := open(t, func(turn int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		var b strings.Builder
		stream(&b, "deltas", 100, message("tool_use", toolUse("toolu_1", "web_search", `{"query":"go"}`)))
		if turn == 0 {
			_, _ = fmt.Fprint(w, strings.Replace(b.String(), `{\"query\":\"go\"}`, `{\"query\":`, 1))
			return
		}
		_, _ = fmt.Fprint(w, b.String())
	}, plan{})
	w := h.create(asks(tools("web_search"), streamed))
	if got := reads(t, w); len(got.calls()) != 1 || !strings.Contains(h.model.body(t, 1), `"input":{"INVALID_JSON":"{\"query\":"}`) {
		t.Errorf("found %s after %s", w.Body, h.model.body(t, 1))
	}
}
