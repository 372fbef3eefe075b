package gateway_test

import (
	"context"
	"encoding/hex"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// shelved is a kernel without limits on a store that can be told to fail.
func shelved(t *testing.T, e *engine) (*calls.Executor, *shelf, *journal) {
	t.Helper()
	s, j := newShelf(), &journal{}
	return kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e, Store: s}), s, j
}

// TestNotDispatched: what the store does not take in as dispatched is not, and its
// key starts another.
func TestNotDispatched(t *testing.T) {
	ctx := context.Background()
	for _, how := range []string{"error at dispatch", "panic at dispatch"} {
		e := &engine{}
		k, s, j := shelved(t, e)
		s.fail(how)
		for name, o := range map[string]calls.Outcome{
			"Handle":  k.Handle(ctx, completion(search), "key"),
			"Execute": k.Execute(ctx, k.Kernel.Judge(ctx, completion(search)))[0],
		} {
			if o.Refusal == nil || o.Refusal.Code != refusal.StoreUnavailable || o.Status != 503 || strings.Contains(string(o.Result), "secret") {
				t.Errorf("%s, %s: %+v", how, name, o)
			}
			got := j.outcomes(o.CallID)
			if len(got) != 1 || got[0].Outcome != audit.Failed || got[0].Code != refusal.StoreUnavailable {
				t.Errorf("%s, %s: %+v", how, name, got)
			}
		}
		if e.runs.Load() != 0 {
			t.Errorf("%s: ran %d times", how, e.runs.Load())
		}
		s.fail("")
		if o := k.Handle(ctx, completion(search), "key"); o.Refusal != nil || e.runs.Load() != 1 {
			t.Errorf("%s: the key afterwards: %+v", how, o.Refusal)
		}
	}
}

// TestRecordsOfAKey: the decision and the outcome of an executed call name the key that it holds, also
// where another process ends it. Records of other calls name none.
func TestRecordsOfAKey(t *testing.T) {
	ctx := context.Background()
	k, s, j := shelved(t, &engine{})
	named := k.Handle(ctx, completion(search), "key")
	kept, err := s.Get(ctx, named.CallID, store.OfAnyone())
	if err != nil {
		t.Fatal(err)
	}
	key := hex.EncodeToString(store.KeyHash(kept.Scope, "key"))
	k.Handle(ctx, completion(search), "")
	k.Handle(ctx, completion(`{"tool":`), "refused")
	s.fail("error at dispatch")
	undone := k.Handle(ctx, completion(search), "undone")
	events := 0
	for _, r := range j.all() {
		wantKey, wantRequest := "", ""
		switch {
		case r.CallID == named.CallID:
			wantKey, wantRequest = key, kept.Digest
			events++
		case r.CallID == undone.CallID && r.Event == audit.Decision: // nobody knows yet
			wantKey, wantRequest = hex.EncodeToString(store.KeyHash(kept.Scope, "undone")), kept.Digest
			events++
		}
		if r.KeySHA256 != wantKey || r.RequestSHA256 != wantRequest {
			t.Errorf("the key %q, the request %q; want %q and %q: %+v", r.KeySHA256, r.RequestSHA256, wantKey, wantRequest, r)
		}
	}
	if events != 3 {
		t.Errorf("%d records of keys, want 3", events)
	}
}

// TestNoStore: without a store nothing is executed, and what executes nothing is
// judged all the same.
func TestNoStore(t *testing.T) {
	ctx := context.Background()
	e := &engine{}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e})
	for name, code := range map[string]refusal.Code{search: refusal.StoreUnavailable, `{"tool":`: refusal.MalformedJSON, "Noon.": ""} {
		o := k.Handle(ctx, completion(name), "")
		if (o.Refusal == nil) != (code == "") || o.Refusal != nil && o.Refusal.Code != code {
			t.Errorf("%s: %+v", name, o.Refusal)
		}
	}
	if e.runs.Load() != 0 {
		t.Errorf("ran %d times", e.runs.Load())
	}
	k.Reconcile(calls.Backlog{}, func(calls.ReconcileStats) {}).Stop(ctx)
}

// TestUnsavedWithAKey: who repeats a request while the store is away is not told that its call did not run.
func TestUnsavedWithAKey(t *testing.T) {
	k, s, _ := shelved(t, &engine{})
	if o := k.Handle(t.Context(), completion(search), "key"); o.Refusal != nil {
		t.Fatal(o.Refusal)
	}
	s.at = len(s.opened) + 1
	s.fail("error")
	for key, says := range map[string]string{"key": "whether an earlier one with the same key did is not known", "": "was not executed"} {
		o := k.Handle(t.Context(), completion(search), key)
		if s.at++; o.Refusal == nil || o.Refusal.Code != refusal.StoreUnavailable || !strings.Contains(o.Refusal.Message, says) {
			t.Errorf("with the key %q: %v", key, o.Refusal)
		}
	}
}

// TestUnheardEnd: an end that the store takes in without saying so is asked for
// again, and is one end.
func TestUnheardEnd(t *testing.T) {
	ctx := context.Background()
	k, s, j := shelved(t, &engine{})
	s.fail("unheard at the end")
	o := k.Handle(ctx, completion(search), "key")
	if o.Pending || o.Refusal != nil || len(j.outcomes(o.CallID)) != 1 {
		t.Errorf("%+v with %d outcomes", o, len(j.outcomes(o.CallID)))
	}
	if second := k.Handle(ctx, completion(search), "key"); second.CallID != o.CallID || string(second.Result) != string(o.Result) {
		t.Errorf("the key: %+v", second)
	}
}

// TestAwayAtTheEnd: a result that the store has not taken in is given to nobody; it
// is there, with its one outcome, when the store is back.
func TestAwayAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		e := &engine{}
		k, s, j := shelved(t, e)
		s.fail("panic at the end")
		o := k.Handle(ctx, completion(search), "")
		if !o.Pending || o.Status != 202 || o.Result != nil || len(j.outcomes(o.CallID)) != 0 {
			t.Errorf("while it is away: %+v", o)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if k.Kernel.Flush(short) == nil {
			t.Error("settled while an end is owed")
		}
		s.fail("")
		if err := k.Kernel.Flush(ctx); err != nil {
			t.Error(err)
		}
		call, err := k.Lookup(ctx, gateway.Request{}, o.CallID)
		if err != nil || call.State != store.Done || call.Delivered || len(j.outcomes(o.CallID)) != 1 || e.runs.Load() != 1 {
			t.Errorf("afterwards: %+v, %v, ran %d times, %+v", call, err, e.runs.Load(), j.all())
		}
	})
}

// TestEndedByAnother: a call that another has ended, meanwhile, has that end.
func TestEndedByAnother(t *testing.T) {
	ctx := context.Background()
	var shop *shelf
	e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
		_, err := shop.Memory.Finish(ctx, task.ID, store.Ending{State: store.Unknown, Attempt: "another", Answer: store.Answer{
			Result: []byte(`{"tool_result":{"tool":"web.search","output":{"error":{"code":"outcome_unknown","stage":"execute","message":"m"}}}}`), Status: 502,
		}})
		return tool.Result{Body: []byte("late")}, err
	}}
	k, s, j := shelved(t, e)
	shop = s
	o := k.Handle(ctx, completion(search), "")
	if o.Status != 502 || o.Refusal == nil || o.Refusal.Code != refusal.OutcomeUnknown || strings.Contains(string(o.Result), "late") || len(j.outcomes(o.CallID)) != 0 {
		t.Errorf("%+v, %+v", o, j.all())
	}
}

// TestAwait: a caller waits for a callback tool as long as the tool may take, and is told
// that the call is pending where it takes longer.
func TestAwait(t *testing.T) {
	const timeout = 10 * time.Second // of web.search, by default
	for name, c := range map[string]struct {
		until    time.Duration // by when the tool says that it will answer; 0: it does not say
		answered time.Duration // when it does; 0: it does not
		leaves   time.Duration // when the caller does
		took     time.Duration
		status   int
		outcome  audit.Outcome
	}{
		"in time":                  {time.Hour, 3 * time.Second, 0, 3 * time.Second, 200, audit.Result},
		"in time, of no time":      {0, 3 * time.Second, 0, 3 * time.Second, 200, audit.Result},
		"later":                    {time.Hour, 0, 0, timeout, 202, ""},
		"not at all":               {0, 0, 0, timeout, 504, audit.Expired},
		"not at all, and sooner":   {2 * time.Second, 0, 0, 2 * time.Second, 504, audit.Expired},
		"the caller does not wait": {time.Hour, 0, time.Second, time.Second, 202, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var k *calls.Executor
				e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
					if c.answered > 0 {
						time.AfterFunc(c.answered, func() {
							if err := answer(k, task.ID, `{}`); err != nil {
								t.Error(err)
							}
						})
					}
					o := tool.Result{Pending: true}
					if c.until > 0 {
						o.Until = time.Now().Add(c.until)
					}
					return o, nil
				}}
				kernel, _, j := shelved(t, e)
				k = kernel
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if c.leaves > 0 {
					time.AfterFunc(c.leaves, cancel)
				}
				start := time.Now()
				o := k.Handle(ctx, completion(search), "key")
				if o.Status != c.status || o.Pending != (c.status == 202) || time.Since(start).Round(time.Second) != c.took {
					t.Errorf("%+v after %s", o, time.Since(start))
				}
				synctest.Wait() // the end stands before its outcome is written down
				got := j.outcomes(o.CallID)
				if (c.outcome == "") != (len(got) == 0) || len(got) > 0 && got[0].Outcome != c.outcome {
					t.Errorf("%+v", got)
				}
				call, err := k.Lookup(context.Background(), gateway.Request{}, o.CallID)
				if err != nil || call.Delivered != (c.outcome != "") {
					t.Errorf("%+v, %v", call, err)
				}
				second := k.Handle(context.Background(), completion(search), "key")
				if c.outcome == "" && (second.Refusal == nil || second.Refusal.Code != refusal.CallInProgress) || c.outcome != "" && string(second.Result) != string(o.Result) {
					t.Errorf("its key: %+v", second)
				}
			})
		})
	}
}
