package acp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/upstream"
)

// TestACP40ToolCallIsReported: a prompt with a call goes from the editor to the model and the tool and
// back, and the call is reported before it runs (ACP-04, 20, 29, 40, 41, 44, 52, 55).
func TestACP40ToolCallIsReported(t *testing.T) {
	h := open(t, plan{}, asks("Let me look.", "time_now", `{}`), says("It is noon."))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	if stop := h.Prompt(s, "What time is it?"); stop != "end_turn" {
		t.Fatalf("stopped by %q", stop)
	}
	calls := h.Calls(s)
	if len(calls) != 1 || strings.Join(calls[0].Statuses, " ") != "pending in_progress completed" || calls[0].Name != "time.now" {
		t.Fatalf("found the calls %+v", calls)
	}
	if got := h.Text(s); got != "Let me look.It is noon." {
		t.Errorf("found the text %q", got)
	}
	if second := h.asked(t, 1); !strings.Contains(second, `"role":"tool"`) || !strings.Contains(second, "tool_result") {
		t.Errorf("the model was asked %s", second)
	}
}

// chunks answers with the chunks of a stream, and the reason of its end.
func chunks(finish string, deltas ...string) http.HandlerFunc {
	all := make([]string, len(deltas))
	for i, d := range deltas {
		all[i] = `{"choices":[{"index":0,"delta":` + d + `}]}`
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		const head = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m",`
		for _, c := range all {
			_, _ = io.WriteString(w, head+c[1:]+"\n\n")
		}
		_, _ = io.WriteString(w, head+`"choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}]}`+"\n\ndata: [DONE]\n\n")
	}
}

// chunk is a message of the agent in an update.
type chunk struct {
	Update struct {
		SessionUpdate, MessageID, Title string
		Content                         struct{ Type, Text string }
	}
}

func updates(t *testing.T, h *fixture, kind string) (all []chunk) {
	t.Helper()
	for _, m := range h.Got("session/update") {
		var c chunk
		if json.Unmarshal(m.Params, &c) == nil && c.Update.SessionUpdate == kind {
			all = append(all, c)
		}
	}
	return all
}

// TestTextIsStreamed: text comes in pieces of one message, reasoning as a thought, and each turn of the
// model is a message of its own. The session gets the prompt's first line as its title.
func TestTextIsStreamed(t *testing.T) {
	h := open(t, plan{}, chunks("tool_calls", `{"role":"assistant","reasoning_content":"Hm."}`, `{"content":"One "}`, `{"content":"two."}`,
		`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"time_now","arguments":"{}"}}]}`), chunks("stop", `{"content":"Three."}`))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	h.Prompt(s, "  Count\nnow.")
	messages, thoughts := updates(t, h, "agent_message_chunk"), updates(t, h, "agent_thought_chunk")
	if len(messages) != 3 || messages[0].Update.MessageID != messages[1].Update.MessageID || messages[1].Update.MessageID == messages[2].Update.MessageID || messages[2].Update.MessageID == "" {
		t.Errorf("found %+v", messages)
	}
	if len(thoughts) != 1 || thoughts[0].Update.Content.Text != "Hm." || thoughts[0].Update.MessageID == messages[0].Update.MessageID {
		t.Errorf("found %+v", thoughts)
	}
	if titles := updates(t, h, "session_info_update"); len(titles) != 1 || titles[0].Update.Title != "Count" {
		t.Errorf("found %+v", titles)
	}
	h.Prompt(s, "Again.")
	if titles := updates(t, h, "session_info_update"); len(titles) != 1 {
		t.Errorf("found %+v", titles)
	}
}

// TestACP56Refusals: a refused call is shown as failed with its reason, also where the model corrects it
// and some text of its turn was shown; a prompt that the model does not correct ends as refused, with a
// message, and the model does not remember it.
func TestACP56Refusals(t *testing.T) {
	h := open(t, plan{config: project(t, "0s")},
		asks("Let me.", "acp_fs_read", `{"path":"/w/a","limits":1}`), asks("", "no_such_tool", `{}`), asks("", "acp_fs_read", `{"path":"/w/a"}`), says("Four."),
		asks("Sure.", "acp_fs_read", `{"path":"/w/secret"}`), asks("Sure.", "acp_fs_read", `{"path":"/w/secret"}`), asks("Sure.", "acp_fs_read", `{"path":"/w/secret"}`), says("Hello."))
	h.Initialize(nil)
	h.Put("/w/a", "four")
	s := h.Session("/w")
	if stop := h.Prompt(s, "Read."); stop != "end_turn" {
		t.Errorf("stopped by %q", stop)
	}
	calls := h.Calls(s)
	for i, want := range []string{"unexpected_argument", "unknown_tool", "four"} {
		if i >= len(calls) || !strings.Contains(string(calls[i].Content), want) || (calls[i].Status() == "failed") != (i < 2) {
			t.Fatalf("found %+v", calls)
		}
	}
	if stop := h.Prompt(s, "Read the secret."); stop != "refusal" {
		t.Errorf("stopped by %q", stop)
	}
	if messages := updates(t, h, "agent_message_chunk"); !strings.Contains(messages[len(messages)-1].Update.Content.Text, "permission_denied") {
		t.Errorf("found %+v", messages)
	}
	h.Prompt(s, "Hello?")
	if asked := h.asked(t, 7); strings.Contains(asked, "Read the secret.") || !strings.Contains(asked, "Four.") {
		t.Errorf("the model was asked %s", asked)
	}
}

// TestModelRefuses: what the model says as its own refusal is shown, and it is reminded of it, also behind the empty
// text with which streams begin.
func TestModelRefuses(t *testing.T) {
	h := open(t, plan{}, chunks("stop", `{"role":"assistant","content":""}`, `{"refusal":"I will not."}`), says("Fine."))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	if stop := h.Prompt(s, "Do it."); stop != "end_turn" || h.Text(s) != "I will not." {
		t.Errorf("stopped by %q, found %q", stop, h.Text(s))
	}
	h.Prompt(s, "Why?")
	if asked := h.asked(t, 1); !strings.Contains(asked, "Do it.") || !strings.Contains(asked, "I will not.") {
		t.Errorf("the model was asked %s", asked)
	}
}

// TestUsageUpdate: the editor is told after each turn how full the context of the model is, where its
// size is known and the provider says how much a turn has taken.
func TestUsageUpdate(t *testing.T) {
	counted := func(answer http.HandlerFunc, total int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			recorded := httptest.NewRecorder()
			answer(recorded, r)
			w.Header().Set("Content-Type", "text/event-stream")
			usage := fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":1,"total_tokens":%d}}`, total-1, total)
			_, _ = io.WriteString(w, strings.Replace(recorded.Body.String(), "data: [DONE]", usage+"\n\ndata: [DONE]", 1))
		}
	}
	for _, p := range []struct {
		size uint64
		want string
	}{{1000, "40/1000 90/1000 "}, {0, ""}} {
		h := open(t, plan{tokens: p.size}, counted(asks("", "time_now", `{}`), 40), counted(says("It is noon."), 90))
		h.Initialize(nil)
		h.Prompt(h.Session(h.root(t)), "What time is it?")
		reported := ""
		for _, m := range h.Got("session/update") {
			var n struct {
				Update struct {
					SessionUpdate string
					Used, Size    int
				}
			}
			if err := json.Unmarshal(m.Params, &n); err != nil {
				t.Fatal(err)
			}
			if n.Update.SessionUpdate == "usage_update" {
				reported += fmt.Sprintf("%d/%d ", n.Update.Used, n.Update.Size)
			}
		}
		if reported != p.want {
			t.Errorf("with a context of %d tokens the editor was told %q; expected %q", p.size, reported, p.want)
		}
	}
}

// TestStopReasons: a prompt ends as cut, at a bound of the run, or in an error of the provider, which
// leaves the session usable (ACP-29).
func TestStopReasons(t *testing.T) {
	broken := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"no money"}}`, http.StatusPaymentRequired)
	}
	h := open(t, plan{rules: func(r *upstream.Rules) { r.MaxTurns = 1 }}, chunks("length", `{"content":"One, two, th"}`), broken,
		asks("", "time_now", `{}`), asks("", "time_now", `{}`), says("Fine."))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	if stop := h.Prompt(s, "Count."); stop != "max_tokens" {
		t.Errorf("stopped by %q", stop)
	}
	if _, err := h.Ask("session/prompt", acptest.TextPrompt(s, "Count.")); codeOf(err) != -32603 || !strings.Contains(err.Error(), "upstream_unavailable") {
		t.Errorf("found %v", err)
	}
	if stop := h.Prompt(s, "What time is it?"); stop != "max_turn_requests" {
		t.Errorf("stopped by %q", stop)
	}
	if stop := h.Prompt(s, "Well?"); stop != "end_turn" {
		t.Errorf("stopped by %q", stop)
	}
	if asked := h.asked(t, 4); strings.Count(asked, "Count.") != 1 || !strings.Contains(asked, "One, two, th") || !strings.Contains(asked, `"role":"tool"`) {
		t.Errorf("the model was asked %s", asked)
	}
}

// TestACP23Content: text, links and embedded texts become text for the model; images go along where the
// operator says that it takes them.
func TestACP23Content(t *testing.T) {
	h := open(t, plan{images: true}, says("I see."))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	blocks := `{"sessionId":"` + s + `","prompt":[{"type":"text","text":"Look at"},{"type":"resource_link","uri":"file:///w/a","name":"a"},` +
		`{"type":"resource","resource":{"uri":"file:///w/b","text":"the text of b"}}%s]}`
	for i, image := range []string{"", `,{"type":"image","data":"AAAA","mimeType":"image/png"}`} {
		if _, err := h.Ask("session/prompt", json.RawMessage(fmt.Sprintf(blocks, image))); err != nil {
			t.Fatal(err)
		}
		asked := h.asked(t, i)
		for _, want := range []string{"Look at", "file:///w/a", "the text of b"} {
			if !strings.Contains(asked, want) {
				t.Errorf("the model was asked %s", asked)
			}
		}
		if strings.Contains(asked, `"url":"data:image/png;base64,AAAA"`) != (i == 1) {
			t.Errorf("the model was asked %s", asked)
		}
	}
	for _, image := range []string{`{"type":"image","data":"not base64","mimeType":"image/png"}`, `{"type":"image","data":"AAAA","mimeType":"text/html"}`, `{"type":"image","data":"AAAA","mimeType":"image/x;,"}`} {
		if _, err := h.Ask("session/prompt", json.RawMessage(`{"sessionId":"`+s+`","prompt":[`+image+`]}`)); codeOf(err) != -32602 {
			t.Errorf("%s: %v", image, err)
		}
	}
}

// TestTextProtocol: a model that writes calls as text is prompted, repaired and remembered in the same
// way, and no byte of a call is shown.
func TestTextProtocol(t *testing.T) {
	h := open(t, plan{rules: func(r *upstream.Rules) { r.Protocol = upstream.Text }},
		says(`{"tool":{"name":"time.now","arguments":{"zone":1}}}`), says(`{"tool":{"name":"time.now","arguments":{}}}`), says("It is noon."), says("Still noon."))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	if stop := h.Prompt(s, "What time is it?"); stop != "end_turn" {
		t.Errorf("stopped by %q", stop)
	}
	calls := h.Calls(s)
	if len(calls) != 2 || calls[0].Status() != "failed" || calls[1].Status() != "completed" || h.Text(s) != "It is noon." {
		t.Errorf("found %+v, %q", calls, h.Text(s))
	}
	h.Prompt(s, "And now?")
	if asked := h.asked(t, 3); strings.Count(asked, "You can use tools") != 1 || !strings.Contains(asked, "It is noon.") || strings.Count(asked, `{\"tool_result\"`) < 2 {
		t.Errorf("the model was asked %s", asked)
	}
}
