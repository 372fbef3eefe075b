package callback_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit"
)

// unsubscribe has a model of a thread cancel the subscription of an id.
func (w *world) unsubscribe(thread, arguments string) (status int, body, id string) {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/calls", strings.NewReader(`{"tool":{"name":"cancel_subscription","arguments":`+arguments+`}}`))
	r.Header.Set("Content-Type", "text/plain")
	if thread != "" {
		r.Header.Set("Callgate-Thread", thread)
	}
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer.Code, answer.Body.String(), answer.Header().Get("Callgate-Call-Id")
}

func byID(id string) string { return fmt.Sprintf(`{"tool_call_id":%q}`, id) }

// The model reads by which id it can end a subscription, and ends it: its tool is notified,
// its followers see the end, and its events are dropped. The call is in the log as any other.
func TestSUB06AModelCancels(t *testing.T) {
	w := newWorld(t)
	c := w.subscribed()
	if got, want := c.state().raw, `"tool_result":{"tool":"later.do","output":{"text":"subscribed"},"subscription":"`+c.id+`"}`; !strings.Contains(got, want) {
		t.Errorf("found %s; expected %s", got, want)
	}
	follower := c.follow()
	next(t, follower)
	status, body, id := w.unsubscribe("t", byID(c.id))
	if want := `{"tool_result":{"tool":"cancel_subscription","output":{"cancelled":"` + c.id + `"}}}`; status != 200 || strings.TrimSpace(body) != want {
		t.Errorf("%d %s; expected %s", status, body, want)
	}
	if e := next(t, follower); e != "" {
		t.Errorf("found %s after the end", e)
	}
	w.reported(t, c)
	c.says(404, c.event("late"))
	if c.state().Subscription {
		t.Error("it is still active")
	}
	for what, fit := range map[string]func(audit.Record) bool{
		"decisions": func(r audit.Record) bool { return r.Event == audit.Decision && r.Tool == "cancel_subscription" },
		"outcomes":  func(r audit.Record) bool { return r.Event == audit.Ending && r.Outcome == audit.Result },
	} {
		if n := len(w.Journal.Find(id, fit)); n != 1 {
			t.Errorf("%d %s are written down", n, what)
		}
	}
	if status, body, _ := w.unsubscribe("t", byID(c.id)); status != 200 || !strings.Contains(body, "tool_failed") {
		t.Errorf("a second time: %d %s", status, body)
	}
	w.reported(t, c)
}

// A model ends no other subscription than an active one of its own thread, and cannot tell
// others from ids that stand for nothing.
func TestSUB06OnlyOfItsThread(t *testing.T) {
	w := newWorld(t)
	c, waits, ended := w.subscribed(), w.begin("later.do", "t"), w.begin("later.do", "t")
	ended.says(200, ended.result("text", "done"))
	alone := w.begin("later.do", "")
	alone.says(200, alone.result("text", "subscribed", "subscription", true))
	same := ""
	for name, by := range map[string]struct{ thread, id string }{
		"of another thread":    {"other", c.id},
		"of no thread":         {"", c.id},
		"of a call by itself":  {"", alone.id},
		"the id as a thread":   {"other", alone.id},
		"a call that waits":    {"t", waits.id},
		"a call that has none": {"t", ended.id},
		"unknown":              {"t", "call_AAAAAAAAAAAAAAAAAAAAAAAAAA"},
		"empty":                {"t", ""},
		"a path":               {"t", "../../etc/passwd"},
		"long":                 {"t", strings.Repeat("a", 10_000)},
	} {
		status, body, _ := w.unsubscribe(by.thread, byID(by.id))
		if status != 200 || !strings.Contains(body, `"code":"tool_failed"`) || same != "" && body != same {
			t.Errorf("%s: %d %s", name, status, body)
		}
		same = body
	}
	if _, body, id := w.unsubscribe("t", `{"tool_call_id":"`+c.id+`","all":true}`); !strings.Contains(body, "unexpected_argument") {
		t.Errorf("%s: %s", id, body)
	}
	for _, arguments := range []string{`{}`, `{"tool_call_id":null}`, `{"tool_call_id":["` + c.id + `"]}`} {
		if _, body, _ := w.unsubscribe("t", arguments); !strings.Contains(body, `"stage":"schema"`) {
			t.Errorf("%s: %s", arguments, body)
		}
	}
	waits.pending()
	for _, still := range []waiting{c, alone} {
		still.says(200, still.event("still"))
	}
	if len(w.engine.cancelled) > 0 {
		t.Errorf("told: %+v", w.engine.cancelled)
	}
}

// Of a cancellation by a model and a last event, one ends the subscription.
func TestSUB06AtTheSameTimeAsTheEnd(t *testing.T) {
	w := newWorld(t)
	c := w.subscribed()
	w.calls.once("before Note", func() { c.at(w.again()).says(200, c.lastEvent("last")) })
	if _, body, _ := w.unsubscribe("t", byID(c.id)); !strings.Contains(body, "tool_failed") {
		t.Errorf("found %s", body)
	}
	if len(w.engine.cancelled) > 0 {
		t.Errorf("told: %+v", w.engine.cancelled)
	}
}
