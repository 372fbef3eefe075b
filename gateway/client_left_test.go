package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// hooked calls before with each record, and then appends it to another journal.
type hooked struct {
	gateway.Journal
	before func() error
}

func (h hooked) Append(ctx context.Context, r audit.Record) error {
	if err := h.before(); err != nil {
		return err
	}
	return h.Journal.Append(ctx, r)
}

// hookedLimiter is the same for a limiter.
type hookedLimiter struct {
	ratelimit.Limiter
	before func() error
}

func (h hookedLimiter) Take(ctx context.Context, l *ratelimit.Limits, key ratelimit.Key) (ratelimit.Lease, error) {
	if err := h.before(); err != nil {
		return ratelimit.Lease{}, err
	}
	return h.Limiter.Take(ctx, l, key)
}

// hookedStore is the same for the calls that begin in a store.
type hookedStore struct {
	calls.Store
	before func() error
}

func (h hookedStore) Open(ctx context.Context, c store.Call) (*store.Call, error) {
	if err := h.before(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // as stores that wait do
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
	return h.Store.Open(ctx, c)
}

// counts is an observer that keeps verdicts, and how many records were not written.
type counts struct {
	judged      []string
	notRecorded int
}

func (c *counts) Judged(verdict string, refused *refusal.Error, _, _ string) {
	if refused != nil {
		verdict += " " + string(refused.Stage) + " " + string(refused.Code)
	}
	c.judged = append(c.judged, verdict)
}
func (*counts) ThreadRefused(string)                        {}
func (*counts) ThreadMoved()                                {}
func (*counts) Stage(refusal.Stage, time.Duration)          {}
func (*counts) Ended(string, time.Duration, string, string) {}
func (c *counts) Recorded(durable bool, _ time.Duration) {
	if !durable {
		c.notRecorded++
	}
}

// TestClientsThatLeave: a call whose client left before its decision was durable is
// refused as canceled, where it was, and not as a fault of a part. A part that fails
// by itself keeps its code, also when the client left in the same moment.
func TestClientsThatLeave(t *testing.T) {
	gone := func(disconnect context.CancelFunc) func() error { return func() error { disconnect(); return nil } }
	fails := func(code refusal.Code, cause error) func(context.CancelFunc) func() error {
		return func(context.CancelFunc) func() error {
			return func() error { return refusal.New(code, "m").WithCause(cause) }
		}
	}
	failsThen := func(code refusal.Code, cause error) func(context.CancelFunc) func() error {
		return func(cancel context.CancelFunc) func() error {
			return func() error { cancel(); return refusal.New(code, "m").WithCause(cause) }
		}
	}
	for name, c := range map[string]struct {
		completion              string
		left                    bool // before anything
		limiter, journal, opens func(context.CancelFunc) func() error
		want                    string
	}{
		"before anything":            {completion: search, left: true, want: "execute canceled"},
		"before a faulty completion": {completion: `{"tool"`, left: true, want: "execute canceled"},
		"before the limits":          {completion: search, limiter: gone, want: "rate canceled"},
		"before the record":          {completion: search, journal: gone, want: "log canceled"},
		"before its key is kept":     {completion: search, opens: gone, want: "execute canceled"},
		"limits that failed":         {completion: search, limiter: fails(refusal.LimiterUnavailable, context.DeadlineExceeded), want: "rate limiter_unavailable"},
		"limits that were closed":    {completion: search, limiter: fails(refusal.LimiterUnavailable, context.Canceled), want: "rate limiter_unavailable"},
		"a log that failed":          {completion: search, journal: fails(refusal.AuditUnavailable, errors.New("disk")), want: "log audit_unavailable"},
		"a log that failed beside":   {completion: search, journal: failsThen(refusal.AuditUnavailable, errors.New("disk")), want: "log audit_unavailable"},
		"a log that was slow":        {completion: search, journal: fails(refusal.AuditUnavailable, context.DeadlineExceeded), want: "log audit_unavailable"},
		"a store that failed beside": {completion: search, opens: failsThen(refusal.StoreUnavailable, errors.New("disk")), want: "execute store_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if c.left {
				leave()
			}
			dir := t.TempDir()
			log, err := audit.Open(dir, audit.Options{Wait: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			e, seen := &engine{}, &counts{}
			happened := map[string]bool{}
			once := func(what string, hook func(context.CancelFunc) func() error) func() error {
				return func() error {
					if hook == nil || happened[what] {
						return nil
					}
					happened[what] = true
					return hook(leave)()
				}
			}
			s := state(t, vectorConfig)
			s.Limits = &ratelimit.Limits{Replicas: 1}
			k := kernelOf(t, s, calls.Deps{
				Deps: gateway.Deps{
					Limiter:  hookedLimiter{ratelimit.NewLocal(time.Now), once("limiter", c.limiter)},
					Journal:  hooked{log, once("journal", c.journal)},
					Observer: seen,
				},
				Store:  hookedStore{store.NewMemory(time.Now), once("opens", c.opens)},
				Engine: e,
			})

			o := k.Handle(ctx, completion(c.completion), "k")
			if o.Refusal == nil || e.runs.Load() != 0 {
				t.Fatalf("the tool ran %d times: %v", e.runs.Load(), o.Refusal)
			}
			if got := strings.Join(seen.judged, ", "); got != "refused "+c.want {
				t.Errorf("judged as %s, expected %s", got, c.want)
			}
			canceled := strings.HasSuffix(c.want, " canceled")
			if canceled && (o.Refusal.Retryable() || o.Status >= 500 || !bytes.Contains(o.Result, []byte(`"canceled"`))) {
				t.Errorf("answered %d %s", o.Status, o.Result)
			}
			if canceled && seen.notRecorded != 0 {
				t.Errorf("%d records count as not written", seen.notRecorded)
			}
			if got := fmt.Sprint(logged(t, dir)); got != "[decision refused "+c.want+"]" {
				t.Errorf("the log has %s", got)
			}
			// A refused call holds neither its key nor a slot.
			if o := k.Handle(t.Context(), completion(search), "k"); o.Refusal != nil || e.runs.Load() != 1 {
				t.Errorf("the next call ran %d times: %v", e.runs.Load(), o.Refusal)
			}
		})
	}
}

// logged lists the decisions and outcomes in the log of a folder.
func logged(t *testing.T, dir string) (lines []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var r struct{ Event, Verdict, Stage, Code string }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Join([]string{r.Event, r.Verdict, r.Stage, r.Code}, " "))
	}
	return lines
}

// TestClientsThatLeaveConditions: a condition of the policy that is not judged to its
// end, since the client has left, is no fault of the policy.
func TestClientsThatLeaveConditions(t *testing.T) {
	ctx, disconnect := context.WithCancel(t.Context())
	disconnect()
	j, e := &journal{}, &engine{}
	d := open(t, e, j).Kernel.Judge(ctx, completion(`{"tool":{"name":"payments.refund","arguments":{"payment_id":"pay_abc123","amount":5,"currency":"EUR"}}}`))
	if r := d.Refusal(); r == nil || r.Code != "canceled" || r.Stage != refusal.Permission {
		t.Errorf("judged %v", r)
	}
	if all := j.all(); len(all) != 1 || all[0].Verdict != audit.Refused || all[0].Code != "canceled" {
		t.Errorf("the log has %+v", all)
	}
}

// TestLookupsOfClientsThatLeave: a lookup that ends because its client has left is no
// fault of the store.
func TestLookupsOfClientsThatLeave(t *testing.T) {
	j, e := &journal{}, &engine{}
	s := state(t, vectorConfig)
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e, Store: leavingStore{store.NewMemory(time.Now)}})
	ctx, disconnect := context.WithCancel(t.Context())
	disconnect()
	_, looked := k.Lookup(ctx, gateway.Request{}, "call_x")
	_, called := k.Cancel(ctx, gateway.Request{}, "call_x")
	for what, err := range map[string]error{"lookup": looked, "cancel": called} {
		var r *refusal.Error
		if !errors.As(err, &r) || r.Code != "canceled" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// leavingStore cannot look a call up for a client that has left.
type leavingStore struct{ calls.Store }

func (leavingStore) Get(ctx context.Context, _ string, _ store.Whose) (store.Call, error) {
	return store.Call{}, fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
}

// TestCallersThatLeavePay: coming and leaving takes from the caller's rate as staying
// does.
func TestCallersThatLeavePay(t *testing.T) {
	hourly, _ := ratelimit.ParseRate("1/h")
	s := state(t, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1, Caller: &ratelimit.Budget{Rate: hourly, Burst: 2}}
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(newClock().now), Journal: &journal{}}, Engine: &engine{}, Store: store.NewMemory(time.Now)})
	ctx, disconnect := context.WithCancel(t.Context())
	disconnect()
	request := completion(search)
	request.CallerAddress = "192.0.2.1"
	for i, want := range []refusal.Code{"canceled", "canceled", refusal.CallerRateLimited} {
		if code := codeOf(k.Kernel.Judge(ctx, request)); code != want {
			t.Errorf("request %d: %s, expected %s", i, code, want)
		}
	}
}

// leavesAfter has the client leave once a record is durable.
type leavesAfter struct {
	gateway.Journal
	disconnect context.CancelFunc
}

func (j leavesAfter) Append(ctx context.Context, r audit.Record) error {
	defer j.disconnect()
	return j.Journal.Append(ctx, r)
}

// TestClientsThatLeaveLate: a call whose decision is durable is executed and has its one
// outcome, although its client left in that moment.
func TestClientsThatLeaveLate(t *testing.T) {
	ctx, disconnect := context.WithCancel(t.Context())
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	e := &engine{}
	k := kernelOf(t, state(t, vectorConfig), calls.Deps{
		Deps:   gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: leavesAfter{log, disconnect}},
		Engine: e, Store: store.NewMemory(time.Now),
	})
	o := k.Handle(ctx, completion(search), "")
	settle(t, k)
	if o.Refusal != nil || e.runs.Load() != 1 || ctx.Err() == nil {
		t.Errorf("the tool ran %d times: %v", e.runs.Load(), o.Refusal)
	}
	if got := fmt.Sprint(logged(t, dir)); got != "[decision tool_call   outcome tool_call  ]" {
		t.Errorf("the log has %s", got)
	}
}
