package callback_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/threads"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/store"
)

var _ calls.ThreadCloser = (*toolEngine)(nil)

// CloseThread keeps the threads that are closed, and then does as the test says.
func (e *toolEngine) CloseThread(ctx context.Context, thread string) {
	e.mu.Lock()
	e.closed = append(e.closed, thread)
	closing := e.closing
	e.mu.Unlock()
	if closing != nil {
		closing(ctx)
	}
}

// close closes the thread that headers name.
func (w *world) close(headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/threads/close", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

// closed are the threads of which servers were told.
func (w *world) closed() []string {
	w.t.Helper()
	if err := w.Executor.Kernel.Flush(context.Background()); err != nil {
		w.t.Error(err)
	}
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	return slices.Sorted(slices.Values(w.engine.closed))
}

// Closing a thread tells the servers of it and forgets its views. Its calls wait on, and its
// subscriptions stay active. A thread that nobody knows is answered alike.
func TestLIF01ClosingAThread(t *testing.T) {
	w := newWorld(t)
	c, other, subscribed := w.begin("later.do", "t"), w.begin("later.do", "other"), w.subscribed()
	early, elsewhere := c.follow(), other.follow()
	next(t, early)
	next(t, elsewhere)
	c.says(200, c.view("diff", map[string]any{"patch": "one"}))
	other.says(200, other.view("diff", map[string]any{"patch": "other"}))
	next(t, early)
	next(t, elsewhere)
	written := len(w.Journal.Records())
	first := w.close("Callgate-Thread", "t")
	for _, answer := range []*httptest.ResponseRecorder{first, w.close("Callgate-Thread", "t"), w.close("Callgate-Thread", "unknown")} {
		if answer.Code != 202 || answer.Body.String() != first.Body.String() {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
	}
	if answer := w.close(); answer.Code != 400 || !strings.Contains(answer.Body.String(), "Callgate-Thread") {
		t.Errorf("without a thread: %d %s", answer.Code, answer.Body)
	}
	if got, want := w.closed(), []string{"t", "t", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("told of %q; expected %q", got, want)
	}
	if n := len(w.Journal.Records()); n != written {
		t.Errorf("%d records are written", n-written)
	}
	c.pending()
	subscribed.says(200, subscribed.event("still"))
	late, kept := c.follow(), other.follow()
	next(t, late)
	next(t, kept)
	if got := next(t, kept); !strings.Contains(got, `"other"`) {
		t.Errorf("of another thread: found %s", got)
	}
	c.says(200, c.view("plan", map[string]any{"patch": "two"}))
	for _, follower := range []<-chan string{early, late} {
		if got := next(t, follower); !strings.HasPrefix(got, `view {"view_type":"plan"`) {
			t.Errorf("found %s", got)
		}
	}
	c.says(200, c.result("text", "done"))
	if got := c.output(); !strings.Contains(got, "done") {
		t.Errorf("found %s", got)
	}
	if len(w.engine.cancelled) > 0 {
		t.Errorf("cancelled: %+v", w.engine.cancelled)
	}
}

// named knows every caller by its credential.
type named struct{}

func (named) Authenticate(credential string) *identity.Principal {
	if credential == "" {
		return nil
	}
	return &identity.Principal{Name: credential, Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}
}

// A caller closes threads of its own alone: by the name that the tool has of them, which is
// never another's, whatever the caller states.
func TestLIF01OfTheCallerAlone(t *testing.T) {
	w := newWorld(t)
	w.callers = named{}
	w.open()
	group := func(principal, thread string) string {
		return threads.Group(store.Scope{Principal: principal, Workspace: "acme", Project: "alpha"}, thread)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/calls", strings.NewReader(`{"tool":{"name":"later.do","arguments":{"n":1}}}`))
	for name, value := range map[string]string{"Content-Type": "text/plain", "Callgate-Thread": "t", "Authorization": "Bearer one"} {
		r.Header.Set(name, value)
	}
	if w.ServeHTTP(httptest.NewRecorder(), r); len(w.engine.tasks) != 1 || w.engine.tasks[0].Thread != group("one", "t") {
		t.Fatalf("the tool has %+v", w.engine.tasks)
	}
	for _, thread := range []string{"t", group("one", "t")} {
		if answer := w.close("Authorization", "Bearer two", "Callgate-Thread", thread); answer.Code != 202 {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
	}
	if got := w.closed(); slices.Contains(got, group("one", "t")) || len(got) != 2 {
		t.Errorf("another closes %q", got)
	}
	for name, c := range map[string]struct {
		status  int
		headers []string
	}{
		"nobody":             {401, []string{"Callgate-Thread", "t"}},
		"another agent":      {403, []string{"Callgate-Thread", "t", "Authorization", "Bearer one", "Callgate-Agent", "Intern"}},
		"another workspace":  {403, []string{"Callgate-Thread", "t", "Authorization", "Bearer one", "Callgate-Workspace", "globex"}},
		"another project":    {403, []string{"Callgate-Thread", "t", "Authorization", "Bearer one", "Callgate-Project", "beta"}},
		"an unknown project": {403, []string{"Callgate-Thread", "t", "Authorization", "Bearer one", "Callgate-Project", "unknown"}},
	} {
		if answer := w.close(c.headers...); answer.Code != c.status {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
	}
	if got := w.closed(); len(got) != 2 {
		t.Errorf("told of %q", got)
	}
	if w.close("Authorization", "Bearer one", "Callgate-Thread", "t"); !slices.Contains(w.closed(), group("one", "t")) {
		t.Errorf("told of %q", w.closed())
	}
}

// Servers that hang hold up no caller, and the end of the process for a bounded time. There are
// a bounded number of such threads, and one principal has a part of these.
func TestLIF01ServersThatHang(t *testing.T) {
	w := newWorld(t)
	w.callers = named{}
	w.open()
	hang, times := make(chan struct{}), make(chan time.Duration, 64)
	w.engine.closing = func(ctx context.Context) {
		began := time.Now()
		until, bounded := ctx.Deadline()
		if !bounded {
			until = began.Add(time.Hour)
		}
		times <- until.Sub(began)
		<-hang
	}
	release := func() {
		w.engine.mu.Lock()
		defer w.engine.mu.Unlock()
		w.engine.closing = func(context.Context) { panic("broken") }
		close(hang)
	}
	closes := func(principal string, want int) {
		t.Helper()
		answer := w.close("Authorization", "Bearer "+principal, "Callgate-Thread", "t")
		if answer.Code != want || want == 503 && (answer.Header().Get("Retry-After") == "" || !strings.Contains(answer.Body.String(), `"overloaded"`)) {
			t.Errorf("%s: %d %s", principal, answer.Code, answer.Body)
		}
	}
	principals := []string{"one", "two", "three", "four"}
	for _, principal := range principals {
		for range 8 {
			closes(principal, 202)
		}
		closes(principal, 503)
	}
	closes("five", 503)
	for range 32 {
		if bound := <-times; bound > 3*time.Second {
			t.Errorf("servers are waited for %s", bound)
		}
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if w.Executor.Kernel.Flush(over) == nil {
		t.Error("the end does not wait for servers")
	}
	release()
	if n := len(w.closed()); n != 32 {
		t.Errorf("told %d times", n)
	}
	for range 2 * len(principals) { // a fault gives its place back
		closes("five", 202)
		w.closed()
	}
}
