package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

func timeNow() gateway.Input {
	return gateway.Input{Native: &gateway.NativeCall{Name: "time.now", Wire: "time_now", Arguments: []byte("{}")}}
}

// loose is the vectors' configuration without limits.
func loose(t testing.TB) *gateway.Config {
	t.Helper()
	s := state(t, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	return s
}

func settle(t testing.TB, k *calls.Executor) {
	t.Helper()
	if err := k.Kernel.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// slow is a journal that takes no outcome of what was handed over until it is let
// go.
type slow struct {
	*journal
	let chan struct{}
}

func (s slow) Append(ctx context.Context, r audit.Record) error {
	if r.Outcome == audit.HandedOver {
		<-s.let
	}
	return s.journal.Append(ctx, r)
}

func TestHandOver(t *testing.T) {
	ctx := context.Background()
	e, j := &engine{}, slow{&journal{}, make(chan struct{})}
	s := state(t, vectorConfig)
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(newClock().now), Journal: j}, Engine: e, Store: newShelf()})
	a := admit(t, k, gateway.Request{})
	d := a.Judge(ctx, gateway.ModeEnforce, timeNow(), gateway.Input{Completion: []byte("Looking."), TextOnly: true}, timeNow())
	o := k.HandOver(ctx, d) // returns although the journal takes no outcome
	if len(o) != 3 || o[0].Status != 200 || o[0].Refusal != nil || o[0].Result != nil || o[0].CallID != d.Reports[0].CallID || string(o[1].Text) != "Looking." || o[2].CallID == o[0].CallID {
		t.Fatalf("got %+v", o)
	}
	if records := j.all(); len(records) != 3 {
		t.Fatalf("%d records before the outcomes", len(records))
	}
	waiting, cancel := context.WithTimeout(ctx, time.Millisecond)
	if k.Kernel.Flush(waiting) == nil {
		t.Error("settled while outcomes are owed")
	}
	cancel()
	// Its slots are free at once: the concurrency of Analyst is 4.
	held := a.Judge(ctx, gateway.ModeEnforce, timeNow(), timeNow(), timeNow(), timeNow())
	if got := refusedBy(held); got != "" {
		t.Errorf("the slots were not given back: %s", got)
	}
	held.Release()
	close(j.let)
	settle(t, k)
	ended := map[string]audit.Record{}
	for _, r := range j.all() {
		if r.Event == audit.Ending {
			if ended[r.CallID].CallID != "" {
				t.Errorf("%s ended twice", r.CallID)
			}
			ended[r.CallID] = r
		}
		if r.Mode != audit.Enforce {
			t.Errorf("%s of the mode %s", r.Event, r.Mode)
		}
	}
	for _, i := range []int{0, 2} {
		r := ended[o[i].CallID]
		if r.Outcome != audit.HandedOver || r.Verdict != audit.ToolCall || r.Code != "" || r.Tool != "time.now" || r.ConfigDigest != s.Digest {
			t.Errorf("ended as %+v", r)
		}
	}
	if len(ended) != 2 || e.runs.Load() != 0 {
		t.Errorf("%d outcomes, ran %d times", len(ended), e.runs.Load())
	}
	if _, err := k.Lookup(ctx, gateway.Request{}, o[0].CallID); refusedAs(err) != "request not_found" {
		t.Errorf("the store has a call that was not executed: %v", err)
	}
}

// TestModes: a decision is acted on in its own mode, once.
func TestModes(t *testing.T) {
	ctx := context.Background()
	e, j := &engine{}, &journal{}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e, Store: newShelf()})
	a := admit(t, k, gateway.Request{})
	code := func(outcomes []calls.Outcome) refusal.Code {
		if r := outcomes[0].Refusal; r != nil {
			return r.Code
		}
		return ""
	}
	for name, c := range map[string]struct {
		mode         gateway.Mode
		right, wrong func(context.Context, *gateway.Decision) []calls.Outcome
		runs         int64
	}{
		"call":    {gateway.ModeCall, k.Execute, k.HandOver, 1},
		"enforce": {gateway.ModeEnforce, k.HandOver, k.Execute, 0},
	} {
		e.runs.Store(0)
		d := a.Judge(ctx, c.mode, timeNow())
		if got := code(c.wrong(ctx, d)); got != refusal.Internal || e.runs.Load() != 0 {
			t.Errorf("%s: in the other mode %q, ran %d times", name, got, e.runs.Load())
		}
		if got := code(c.right(ctx, d)); got != "" || e.runs.Load() != c.runs {
			t.Errorf("%s: %q, ran %d times", name, got, e.runs.Load())
		}
		if got := code(c.right(ctx, d)); got != refusal.Internal || e.runs.Load() != c.runs {
			t.Errorf("%s: twice %q, ran %d times", name, got, e.runs.Load())
		}
		settle(t, k)
		ended := 0
		for _, r := range j.all() {
			if r.CallID == d.Reports[0].CallID && r.Event == audit.Ending {
				ended++
			}
			if r.CallID == d.Reports[0].CallID && string(r.Mode) != name {
				t.Errorf("%s: written as %s", name, r.Mode)
			}
		}
		if ended != 1 {
			t.Errorf("%s: %d outcomes", name, ended)
		}
		// Text and refusals are acted on by the same rule.
		text := a.Judge(ctx, c.mode, gateway.Input{Completion: []byte("Noon.")})
		if got := code(c.wrong(ctx, text)); got != refusal.Internal {
			t.Errorf("%s: text in the other mode: %q", name, got)
		}
		if o := c.right(ctx, text); string(o[0].Text) != "Noon." {
			t.Errorf("%s: text %+v", name, o)
		}
		bad := a.Judge(ctx, c.mode, gateway.Input{Completion: []byte("{")})
		for _, act := range []func(context.Context, *gateway.Decision) []calls.Outcome{c.right, c.wrong} {
			if o := act(ctx, bad); code(o) != refusal.MalformedJSON || !strings.Contains(string(o[0].Result), "malformed_json") {
				t.Errorf("%s: refused %+v", name, o)
			}
		}
	}
	for _, mode := range []gateway.Mode{"", "Call", "check"} {
		d := a.Judge(ctx, mode, timeNow())
		if got := refusedBy(d); got != "identity internal" {
			t.Errorf("mode %q: %q", mode, got)
		}
		e.runs.Store(0)
		if k.Execute(ctx, d); code(k.HandOver(ctx, d)) != refusal.Internal || e.runs.Load() != 0 {
			t.Errorf("mode %q: acted on", mode)
		}
		if _, err := a.Stream(ctx, mode, false); refusedAs(err) != "identity internal" {
			t.Errorf("mode %q: streams: %v", mode, err)
		}
	}
}

// flaky is a journal that takes the third try of an outcome.
type flaky struct {
	*journal
	tries atomic.Int64
}

func (f *flaky) Append(ctx context.Context, r audit.Record) error {
	if r.Event == audit.Ending {
		switch f.tries.Add(1) {
		case 1:
			return errors.New("full")
		case 2:
			panic("secret of the journal")
		}
	}
	return f.journal.Append(ctx, r)
}

// TestHandedOverIsOwed: what the journal refuses, or panics at, is tried again
// until it is there; and the process lives.
func TestHandedOverIsOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &flaky{journal: &journal{}}
		k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}})
		a := admit(t, k, gateway.Request{})
		k.HandOver(t.Context(), a.Judge(t.Context(), gateway.ModeEnforce, timeNow()))
		settle(t, k)
		records := j.all()
		if len(records) != 2 || records[1].Outcome != audit.HandedOver || j.tries.Load() != 3 {
			t.Errorf("%d tries, records %+v", j.tries.Load(), records)
		}
	})
}

// TestJournalThatPanics before the act stops it.
func TestJournalThatPanics(t *testing.T) {
	e := &engine{}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: journalPanics{}}, Engine: e})
	for _, in := range []string{search, "Noon.", "{"} {
		o := k.Execute(t.Context(), k.Kernel.Judge(t.Context(), completion(in)))[0]
		if o.Refusal == nil || e.runs.Load() != 0 {
			t.Errorf("%q: %+v", in, o)
		}
	}
}

type journalPanics struct{}

func (journalPanics) Append(context.Context, audit.Record) error { panic("secret of the journal") }

// TestHandOverIsBounded: while outcomes cannot be written down only so many are
// owed; who comes then waits a little, and is refused.
func TestHandOverIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := slow{&journal{}, make(chan struct{})}
		k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}})
		a := admit(t, k, gateway.Request{})
		decide := func() *gateway.Decision { return a.Judge(t.Context(), gateway.ModeEnforce, timeNow(), timeNow()) }
		started := time.Now()
		for range 256 {
			if o := k.HandOver(t.Context(), decide()); o[0].Refusal != nil {
				t.Fatal(o[0].Refusal)
			}
		}
		if time.Since(started) != 0 {
			t.Errorf("handing over waited %s", time.Since(started))
		}
		// Text is owed nothing, so it does not wait.
		text := a.Judge(t.Context(), gateway.ModeEnforce, gateway.Input{Completion: []byte("Noon.")})
		if o := k.HandOver(t.Context(), text); string(o[0].Text) != "Noon." || time.Since(started) != 0 {
			t.Errorf("text waited %s: %+v", time.Since(started), o)
		}
		gone, disconnect := context.WithCancel(t.Context())
		disconnect()
		var late sync.WaitGroup
		for _, ctx := range []context.Context{t.Context(), gone} {
			late.Go(func() {
				want := refusal.AuditUnavailable
				if ctx == gone {
					want = refusal.Canceled
				}
				for _, o := range k.HandOver(ctx, decide()) {
					if o.Refusal == nil || o.Refusal.Code != want || !strings.Contains(string(o.Result), string(want)) {
						t.Errorf("one too many: %+v", o)
					}
				}
				if waited := time.Since(started); ctx == gone && waited != 0 || waited > 5*time.Second {
					t.Errorf("it waited %s", waited)
				}
			})
		}
		time.Sleep(time.Minute)
		close(j.let)
		late.Wait()
		settle(t, k)
		ended := map[string]int{}
		var handed, refused, left int
		for _, r := range j.all() {
			switch {
			case r.Event != audit.Ending:
				continue
			case r.Outcome == audit.HandedOver:
				handed++
			case r.Outcome == audit.Failed && r.Code == refusal.AuditUnavailable:
				refused++
			case r.Outcome == audit.Failed && r.Code == refusal.Canceled:
				left++
			}
			if ended[r.CallID]++; ended[r.CallID] > 1 {
				t.Errorf("%s ended twice", r.CallID)
			}
		}
		if handed != 512 || refused != 2 || left != 2 {
			t.Errorf("%d handed over, %d refused, of %d the client left", handed, refused, left)
		}
		// There is room again.
		if o := k.HandOver(t.Context(), decide()); o[0].Refusal != nil {
			t.Error(o[0].Refusal)
		}
		settle(t, k)
	})
}
