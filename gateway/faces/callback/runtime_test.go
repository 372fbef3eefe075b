package callback_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// hookedStore is a store in memory of which a part can be away, and to which something can
// happen right before or right after one of its methods is called.
type hookedStore struct {
	*store.Memory
	mu    sync.Mutex
	away  []string // the methods that fail, or whose replies are lost
	hooks map[string]func()
}

// once runs a step at the next moment of that name: before or after a method.
func (c *hookedStore) once(moment string, step func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hooks == nil {
		c.hooks = map[string]func(){}
	}
	c.hooks[moment] = step
}

func (c *hookedStore) reached(moment string) {
	c.mu.Lock()
	step := c.hooks[moment]
	delete(c.hooks, moment)
	c.mu.Unlock()
	if step != nil {
		step()
	}
}

func (c *hookedStore) fail(methods ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = methods
}

var errAway = errors.New("the store is away")

func (c *hookedStore) fault(method string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.away, method) {
		return errAway
	}
	return nil
}

func (c *hookedStore) Update(ctx context.Context, id string, change store.Change) error {
	switch change.(type) {
	case store.Defer:
		if err := c.fault("Defer"); err != nil {
			return err
		}
	case store.SetMetadata:
		return c.setMetadata(ctx, id, change)
	}
	return c.Memory.Update(ctx, id, change)
}

func (c *hookedStore) Get(ctx context.Context, id string, whose store.Whose) (store.Call, error) {
	if _, named := whose.Principal(); named {
		found, err := c.Memory.Get(ctx, id, whose)
		c.reached("after Get")
		return found, err
	}
	c.reached("before Get of anyone")
	if err := c.fault("Get of anyone"); err != nil {
		return store.Call{}, err
	}
	found, err := c.Memory.Get(ctx, id, whose)
	c.reached("after Get of anyone")
	return found, err
}

func (c *hookedStore) Watch(id string) (*store.Watch, error) {
	c.reached("before Watch")
	return c.Memory.Watch(id)
}

func (c *hookedStore) Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	c.reached("before Finish")
	if err := c.fault("Finish"); err != nil {
		return store.Call{}, err
	}
	return c.Memory.Finish(ctx, id, ending)
}

func (c *hookedStore) setMetadata(ctx context.Context, id string, change store.Change) error {
	if err := c.fault("Note"); err != nil {
		return err
	}
	c.reached("before Note")
	if err := c.Memory.Update(ctx, id, change); err != nil {
		return err
	}
	return c.fault("reply to Note")
}

// ask asks for a call that is not to come as far as its tool.
func (w *world) ask(completion string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/calls", strings.NewReader(completion))
	r.Header.Set("Content-Type", "text/plain")
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

func (w *world) sent() int {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	return len(w.engine.tasks)
}

// No operation is sent that no tool is, and no arguments that do not fit.
func TestTIP02TIP03NothingUnfitIsSent(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		completion string
		code       refusal.Code
	}{
		"TIP-02, of no toolset":          {`{"tool":{"name":"later.nothing","arguments":{"n":1}}}`, refusal.UnknownTool},
		"TIP-02, in other case":          {`{"tool":{"name":"Later.do","arguments":{"n":1}}}`, refusal.UnknownTool},
		"TIP-02, as its server names it": {`{"tool":{"name":"do","arguments":{"n":1}}}`, refusal.UnknownTool},
		"TIP-03, of another type":        {`{"tool":{"name":"later.do","arguments":{"n":"1"}}}`, refusal.WrongType},
		"TIP-03, of no property":         {`{"tool":{"name":"later.do","arguments":{"n":1,"m":1}}}`, refusal.UnexpectedArgument},
		"TIP-03, missing":                {`{"tool":{"name":"later.needs","arguments":{}}}`, refusal.MissingArgument},
	} {
		t.Run(name, func(t *testing.T) {
			if r := w.ask(c.completion); r.Code < 400 || !strings.Contains(r.Body.String(), `"code":"`+string(c.code)+`"`) {
				t.Errorf("%d %s", r.Code, r.Body)
			}
			if n := w.sent(); n != 0 {
				t.Errorf("%d calls were sent", n)
			}
		})
	}
	w.begin("later.do", "t")
	if n := w.sent(); n != 1 {
		t.Errorf("%d calls were sent, expected the good one", n)
	}
}

// TestTIP12Consent: a call that a row of the policy asks people about is not sent until they allow it.
func TestTIP12Consent(t *testing.T) {
	w := newWorld(t)
	r := w.ask(`{"tool":{"name":"later.asked","arguments":{"n":1}}}`)
	if r.Code != http.StatusAccepted || !strings.Contains(r.Body.String(), `"approval"`) || w.sent() != 0 {
		t.Errorf("%d %s, and %d calls were sent", r.Code, r.Body, w.sent())
	}
}

// A call that is never answered ends with an error, when its time is over and not
// before.
func TestTIP10WhatIsNeverAnsweredEnds(t *testing.T) {
	w := newWorld(t)
	acts, looks := w.begin("later.do", "t"), w.begin("later.look", "t")
	reconcile := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		w.Executor.Reconcile(calls.Backlog{}, func(calls.ReconcileStats) {}).Stop(ctx)
		if err := w.Executor.Kernel.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.advance(maxAge / 2)
	reconcile()
	acts.pending()
	looks.pending()
	w.advance(maxAge / 2)
	reconcile()
	for c, code := range map[waiting]refusal.Code{acts: refusal.OutcomeUnknown, looks: refusal.ToolTimeout} {
		if got := c.output(); !strings.Contains(got, `"code":"`+string(code)+`"`) {
			t.Errorf("found %s, expected %s", got, code)
		}
		if o := w.Journal.Find(c.id, outcome); len(o) != 1 || o[0].Outcome != audit.Expired || o[0].Code != code {
			t.Errorf("%+v", o)
		}
	}
}

// A call that cannot be read or stored is an error: nothing is sent, or the tool has to
// send its message again; the repeat is accepted once.
func TestTIP21StateThatCannotBeKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("before it is sent", func(t *testing.T) {
		w.calls.fail("Defer")
		defer w.calls.fail()
		if r := w.ask(`{"tool":{"name":"later.do","arguments":{"n":1}}}`); r.Code != http.StatusServiceUnavailable || !strings.Contains(r.Body.String(), "store_unavailable") {
			t.Errorf("%d %s", r.Code, r.Body)
		}
		if n := w.sent(); n != 0 {
			t.Errorf("%d calls were sent", n)
		}
	})
	for _, method := range []string{"Get of anyone", "Finish"} {
		t.Run("an answer, "+method, func(t *testing.T) {
			c := w.begin("later.do", "t")
			w.calls.fail(method)
			c.says(503, c.result("text", "x"))
			w.calls.fail()
			c.says(200, c.result("text", "x"))
			c.says(200, c.result("text", "x"))
			if got := c.output(); got != `{"text":"x"}` {
				t.Errorf("found %s", got)
			}
		})
	}
	t.Run("what is noted of it", func(t *testing.T) {
		c := w.begin("later.do", "t")
		w.calls.fail("Note")
		c.says(503, c.message("oauth", "auth_url", "https://id.example/"))
		w.calls.fail()
		c.pending()
		c.says(200, c.result("text", "x", "subscription", true))
		events := c.follow()
		w.calls.fail("Note")
		c.says(503, c.message("subscription_event", "text", "last", "final", true))
		w.calls.fail()
		c.says(200, c.message("subscription_event", "text", "last", "final", true))
		reports := 0
		for range events {
			reports++
		}
		if reports == 0 || reports > 2 || c.state().Subscription {
			t.Errorf("%d events; the call stands as %s", reports, c.state().raw)
		}
	})
}

// A last event that comes twice at the same time ends its subscription once, and
// leaves nothing of it.
func TestLastEventsAtTheSameTime(t *testing.T) {
	w := newWorld(t)
	other := w.again()
	for range 20 { // more than a thread may have
		c := w.begin("later.do", "t")
		c.says(200, c.result("text", "subscribed", "subscription", true))
		if s := c.state(); !s.Subscription {
			t.Fatalf("the call stands as %s", s.raw)
		}
		last := c.message("subscription_event", "text", "last", "final", true)
		w.calls.once("before Note", func() { c.at(other).says(200, last) })
		c.says(200, last)
	}
}

// An event that comes while its subscription is called off leaves nothing of that.
func TestEventBehindTheLast(t *testing.T) {
	w := newWorld(t)
	for i := range 20 { // more than a thread may have
		c := w.begin("later.do", "t")
		c.says(200, c.result("text", "subscribed", "subscription", true))
		if s := c.state(); !s.Subscription {
			t.Fatalf("%d: the call stands as %s", i, s.raw)
		}
		// The first time is for whose the call is, the second for the event.
		w.calls.once("after Get of anyone", func() { w.calls.once("after Get of anyone", func() { c.cancel() }) })
		c.says(200, c.message("subscription_event", "text", "one"))
	}
}

// Where a person must go does not enter a call that ends while it comes, and is
// answered like all that is not waited for.
func TestOAU02AuthorizationBehindTheEnd(t *testing.T) {
	w := newWorld(t)
	other := w.again()
	for name, end := range map[string]func(waiting){
		"answered":   func(c waiting) { c.says(200, c.result("text", "done")) },
		"called off": func(c waiting) { c.cancel() },
	} {
		c := w.begin("later.do", "t")
		w.calls.once("before Note", func() { end(c.at(other)) })
		r := w.post(c.token, c.message("oauth", "auth_url", "https://id.example/hunter2"))
		if unknown := w.post("x", ""); r.Code != http.StatusNotFound || r.Body.String() != unknown.Body.String() {
			t.Errorf("%s: %d %s", name, r.Code, r.Body)
		}
		if s := c.state(); s.State == "authorization" || s.State == "pending" || strings.Contains(s.raw, "hunter2") {
			t.Errorf("%s: the call stands as %s", name, s.raw)
		}
	}
}
