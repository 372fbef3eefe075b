package acp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/tool"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// await waits for an event.
func await(t *testing.T, event <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
}

// stopOf is the answer to a prompt.
func stopOf(t *testing.T, h *fixture, id int) string {
	t.Helper()
	raw, err := h.End(id)
	var r struct{ StopReason string }
	if err != nil || json.Unmarshal(raw, &r) != nil {
		t.Fatalf("the prompt was answered %s, %v", raw, err)
	}
	return r.StopReason
}

// silent is a model that says nothing until its caller leaves.
func silent(asked chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(": quiet\n\n"))
		w.(http.Flusher).Flush()
		asked <- struct{}{}
		<-r.Context().Done()
	}
}

// TestACP61CancelWhileTheModelThinks: session/cancel stops the model, and the prompt is answered as
// cancelled (ACP-60). So is $/cancel_request (ACP-64).
func TestACP61CancelWhileTheModelThinks(t *testing.T) {
	for _, method := range []string{"session/cancel", "$/cancel_request", "session/close", "session/delete"} {
		t.Run(method, func(t *testing.T) {
			asked := make(chan struct{}, 1)
			h := open(t, plan{loose: true}, silent(asked))
			h.Initialize(nil)
			s := h.Session(h.root(t))
			id := h.Begin("session/prompt", acptest.TextPrompt(s, "Think."))
			await(t, asked, "a request to the model")
			switch method {
			case "session/cancel":
				h.Cancel(s)
			case "$/cancel_request":
				h.Notify(method, map[string]int{"requestId": id})
			default:
				closing := h.Begin(method, map[string]string{"sessionId": s})
				if _, err := h.End(closing); err != nil {
					t.Error(err)
				}
			}
			if stop := stopOf(t, h, id); stop != "cancelled" {
				t.Errorf("stopped by %q", stop)
			}
		})
	}
}

// TestACP61CancelWhileAToolRuns: a call that was dispatched is completed, shown and recorded once, and
// the prompt is answered behind that (ACP-62).
func TestACP61CancelWhileAToolRuns(t *testing.T) {
	runs, release := make(chan struct{}, 1), make(chan struct{})
	h := open(t, plan{engine: func(context.Context, tool.Call) (tool.Result, error) {
		runs <- struct{}{}
		<-release
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}}, asks("", "time_now", `{}`), says("never"))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	id := h.Begin("session/prompt", acptest.TextPrompt(s, "Work."))
	await(t, runs, "the call")
	h.Cancel(s)
	list(t, h, map[string]any{}) // what is answered now was read behind it
	close(release)
	if stop := stopOf(t, h, id); stop != "cancelled" {
		t.Errorf("stopped by %q", stop)
	}
	if calls := h.Calls(s); len(calls) != 1 || calls[0].Status() != "completed" {
		t.Errorf("found %+v", calls)
	}
	if got := h.outcomes(t, "time.now"); len(got) != 1 || got[0] != "result " {
		t.Errorf("the log has the outcomes %q", got)
	}
	if strings.Contains(h.Text(s), "never") {
		t.Error("the model was asked again")
	}
}

// TestACP50CancelWhileTheUserIsAsked: the question ends, the call does not run, and the next prompt
// works (ACP-51).
func TestACP50CancelWhileTheUserIsAsked(t *testing.T) {
	h := open(t, plan{config: project(t, "0s")}, asks("", "pay", `{"card":"1"}`), says("Again."))
	h.Initialize(nil)
	h.Choose(h.Ponder)
	s := h.Session("/w")
	id := h.Begin("session/prompt", acptest.TextPrompt(s, "Pay."))
	if _, ok := h.Await(func(m acptest.Message) bool { return m.Method == "session/request_permission" }); !ok {
		t.Fatal("the user was not asked")
	}
	h.Cancel(s)
	if stop := stopOf(t, h, id); stop != "cancelled" {
		t.Errorf("stopped by %q", stop)
	}
	if calls := h.Calls(s); len(calls) != 1 || calls[0].Status() != "failed" {
		t.Errorf("found %+v", calls)
	}
	if got := h.outcomes(t, "pay"); len(got) > 0 && strings.HasPrefix(got[0], "result") {
		t.Errorf("the log has the outcomes %q", got)
	}
	if stop := h.Prompt(s, "Go on."); stop != "end_turn" {
		t.Errorf("the next prompt stopped by %q", stop)
	}
}

// TestACP60CancelWhileACommandRuns: session/cancel kills the command that runs in the editor, whose call
// is completed and recorded with the output so far, and its terminal is released (ACP-72).
func TestACP60CancelWhileACommandRuns(t *testing.T) {
	h := open(t, plan{config: project(t, "0s")}, asks("", "acp_terminal_create", `{"command":"go","args":["test"]}`), says("never"))
	h.Hang()
	h.Initialize(nil)
	s := h.Session("/w")
	id := h.Begin("session/prompt", acptest.TextPrompt(s, "Test."))
	if _, ok := h.Await(func(m acptest.Message) bool { return m.Method == "terminal/wait_for_exit" }); !ok {
		t.Fatal("the command was not awaited")
	}
	h.Cancel(s)
	if stop := stopOf(t, h, id); stop != "cancelled" {
		t.Errorf("stopped by %q", stop)
	}
	for _, method := range []string{"terminal/kill", "terminal/output", "terminal/release"} {
		if n := len(h.Got(method)); n != 1 {
			t.Errorf("%s was asked %d times", method, n)
		}
	}
	if calls := h.Calls(s); len(calls) != 1 || calls[0].Status() != "failed" || !strings.Contains(string(calls[0].RawOutput), `"cancelled":true`) {
		t.Errorf("found %+v", calls)
	}
	if got := h.outcomes(t, "acp.terminal.create"); len(got) != 1 || got[0] != "result " {
		t.Errorf("the log has the outcomes %q", got)
	}
}

// TestCancelRace: a prompt that is cancelled at any moment ends as cancelled or with its answer, and the
// session continues.
func TestCancelRace(t *testing.T) {
	h := open(t, plan{config: project(t, "0s")}, func(w http.ResponseWriter, r *http.Request) {
		asks("Let me.", "acp_fs_read", `{"path":"/w/a"}`)(w, r)
	}, says("Done."))
	h.Initialize(nil)
	h.Put("/w/a", "text")
	s := h.Session("/w")
	for i := range 20 {
		id := h.Begin("session/prompt", acptest.TextPrompt(s, "Read."))
		time.Sleep(time.Duration(i) * time.Millisecond / 4) // any moment will do
		h.Notify("session/cancel", map[string]string{"sessionId": s})
		if stop := stopOf(t, h, id); stop != "cancelled" && stop != "end_turn" {
			t.Errorf("stopped by %q", stop)
		}
	}
}

// TestACP29OnePromptAtATime: a second prompt is refused, and the first is answered once.
func TestACP29OnePromptAtATime(t *testing.T) {
	asked := make(chan struct{}, 1)
	h := open(t, plan{loose: true}, silent(asked))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	first := h.Begin("session/prompt", acptest.TextPrompt(s, "One."))
	await(t, asked, "a request to the model")
	if _, err := h.Ask("session/prompt", acptest.TextPrompt(s, "Two.")); err == nil || !strings.Contains(err.Error(), "-32600") {
		t.Errorf("the second prompt was answered with %v", err)
	}
	h.Cancel(s)
	if stop := stopOf(t, h, first); stop != "cancelled" {
		t.Errorf("stopped by %q", stop)
	}
}

// TestClientLeaves: a client that leaves stops the model; a call that was dispatched is recorded once.
func TestClientLeaves(t *testing.T) {
	runs, release := make(chan struct{}, 1), make(chan struct{})
	h := open(t, plan{loose: true, engine: func(context.Context, tool.Call) (tool.Result, error) {
		runs <- struct{}{}
		<-release
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}}, asks("", "time_now", `{}`), says("never"))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	h.Begin("session/prompt", acptest.TextPrompt(s, "Work."))
	await(t, runs, "the call")
	h.leave()
	close(release)
	if err := <-h.served; err != nil {
		t.Error(err)
	}
	h.served <- nil
	if got := h.outcomes(t, "time.now"); len(got) != 1 || got[0] != "result " {
		t.Errorf("the log has the outcomes %q", got)
	}
}
