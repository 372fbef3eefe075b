package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/tool"
)

// holders are callers by their credentials.
type holders map[string]string

func (h holders) Authenticate(credential string) *identity.Principal {
	name, ok := h[credential]
	if !ok {
		return nil
	}
	return &identity.Principal{Name: name, Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha", "beta"}}
}

// stores are those that a gateway can keep its calls in by itself.
func stores(t *testing.T, test func(*testing.T, calls.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, store.NewMemory(time.Now)) })
	t.Run("file", func(t *testing.T) {
		f, err := boltstore.Open(t.TempDir(), boltstore.Options{Wait: time.Minute, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, f)
	})
}

// TestIDsAreKeys: the id of a call is a key of it, for its principal, whether it was
// begun with another key or with none, and with a face's own word before it.
func TestIDsAreKeys(t *testing.T) {
	stores(t, func(t *testing.T, s calls.Store) {
		e := &engine{}
		state := loose(t)
		state.Identity = holders{"one": "One", "two": "Two"}
		k := kernelOf(t, state, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: s})
		send := func(credential, name, key string) calls.Outcome {
			t.Helper()
			return k.Handle(context.Background(), gateway.Request{Credential: credential, Subject: gateway.Subject{Project: "alpha"}, Inputs: []gateway.Input{natively(name, `{}`)}}, key)
		}
		for i, started := range []string{"", "a-key", "oxp a-key"} {
			runs := e.runs.Load()
			first := send("one", "time.now", started)
			if first.Refusal != nil || first.Replayed {
				t.Fatalf("%q: %+v", started, first)
			}
			for _, key := range []string{first.CallID, "oxp " + first.CallID} {
				if second := send("one", "time.now", key); second.CallID != first.CallID || !second.Replayed || string(second.Result) != string(first.Result) || second.Status != first.Status {
					t.Errorf("%q, and again with %q: %+v", started, key, second)
				}
				if other := send("one", "web.search", key); other.Refusal == nil || other.Refusal.Code != refusal.IdempotencyConflict {
					t.Errorf("%q, and another with %q: %+v", started, key, other)
				}
			}
			elsewhere := gateway.Request{Credential: "one", Subject: gateway.Subject{Project: "beta"}, Inputs: []gateway.Input{natively("time.now", `{}`)}}
			if o := k.Handle(context.Background(), elsewhere, first.CallID); o.Refusal == nil || o.Refusal.Code != refusal.IdempotencyConflict {
				t.Errorf("%q, and in another project: %+v", started, o)
			}
			if ran := e.runs.Load() - runs; ran != 1 {
				t.Errorf("%q: it ran %d times", started, ran)
			}
			// To anybody else, and of none, it is a key as any other.
			stranger := send("two", "time.now", first.CallID)
			if stranger.Replayed || stranger.Refusal != nil || stranger.CallID == first.CallID {
				t.Errorf("%q, of another: %+v", started, stranger)
			}
			unknown := "call_" + strings.Repeat(string(rune('A'+i)), 26)
			if o := send("one", "time.now", unknown); o.Replayed || o.Refusal != nil {
				t.Errorf("of no call: %+v", o)
			}
			if o := send("one", "time.now", unknown); !o.Replayed {
				t.Errorf("of no call, and again: %+v", o)
			}
			if ran := e.runs.Load() - runs; ran != 3 {
				t.Errorf("%q: they ran %d times", started, ran)
			}
		}
	})
}

// TestIDsOfCallsThatRun: what runs, or waits for its tool, is not begun again under its
// id; once it has ended, its answer is that of its id.
func TestIDsOfCallsThatRun(t *testing.T) {
	stores(t, func(t *testing.T, s calls.Store) {
		running, end := make(chan string, 1), make(chan struct{})
		e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
			running <- task.ID
			<-end
			return tool.Result{Pending: true, Until: time.Now().Add(time.Hour)}, nil
		}}
		k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: s})
		send := func(ctx context.Context, key string) calls.Outcome {
			return k.Handle(ctx, gateway.Request{Inputs: []gateway.Input{natively("time.now", `{}`)}}, key)
		}
		leaving, disconnect := context.WithCancel(context.Background())
		defer disconnect()
		first := make(chan calls.Outcome, 1)
		go func() { first <- send(leaving, "") }()
		id := <-running
		for _, step := range []string{"it runs", "it waits"} {
			if o := send(context.Background(), id); o.Refusal == nil || o.Refusal.Code != refusal.CallInProgress {
				t.Errorf("while %s: %+v", step, o)
			}
			if step == "it runs" {
				close(end)
				disconnect()
				if o := <-first; !o.Pending || o.CallID != id {
					t.Fatalf("%+v", o)
				}
			}
		}
		if err := answer(k, id, `{"n":1}`); err != nil {
			t.Fatal(err)
		}
		if o := send(context.Background(), id); !o.Replayed || o.CallID != id || !strings.Contains(string(o.Result), `"n":1`) {
			t.Errorf("after all: %+v", o)
		}
		if e.runs.Load() != 1 {
			t.Errorf("it ran %d times", e.runs.Load())
		}
	})
}

// TestIDsThatCannotBeLookedUp: while nobody knows whether a key is the id of a call,
// nothing is begun with it. No other key is looked for.
func TestIDsThatCannotBeLookedUp(t *testing.T) {
	e := &engine{}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: amnesiac{store.NewMemory(time.Now), func() error { return store.ErrUnavailable }}})
	random := strings.Repeat("A", 26)
	for key, looked := range map[string]bool{
		"call_" + random: true, "oxp call_" + random: true, "call_" + random + "234567": true,
		"call_": false, "call_" + random[1:]: false, "call_" + random[1:] + "a": false, "call_" + random[1:] + "1": false, "call_" + random + "é": false,
		"Call_" + random: false, " x call_" + random: false, "xcall_" + random: false, random: false,
	} {
		o := k.Handle(context.Background(), gateway.Request{Inputs: []gateway.Input{natively("time.now", `{}`)}}, key)
		if (o.Refusal != nil) != looked || looked && o.Refusal.Code != refusal.StoreUnavailable {
			t.Errorf("%q: %+v", key, o)
		}
	}
	if e.runs.Load() != 9 {
		t.Errorf("%d ran", e.runs.Load())
	}
}
