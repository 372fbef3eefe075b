package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/workers"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/tool"
)

// A gateway of a test can be told to fail at a point between two steps of a call.
// Only the program of the test binary reads these variables; the one that is built
// has nobody who does.
const (
	// failAt is "kill POINT" or "panic POINT": at its first passage once SIGUSR1 has
	// armed it, or "now kill POINT", armed from the start.
	failAt = "CALLGATE_TEST_FAIL_AT"
	// stepClock lets SIGUSR1 put the kernel's clock an hour ahead, and SIGUSR2 an
	// hour back.
	stepClock = "CALLGATE_TEST_STEP_CLOCK"
)

// The points, in the order in which a call passes them. At one that begins with
// "before" the step has not been done yet, at the others it is durable.
var points = struct{ opened, decided, dispatched, ran, finished, outcome string }{
	"after open", "after decision", "after dispatch", "after run", "after finish", "after outcome",
}

// sabotage is what fits the parts of a kernel with failures that the environment
// names; nil where it names none.
func sabotage() func(calls.Deps) calls.Deps {
	switch at := os.Getenv(failAt); {
	case at != "":
		return newSaboteur(at).fit
	case os.Getenv(stepClock) != "":
		return steppedClock
	}
	return nil
}

// saboteur fails once, at one point.
type saboteur struct {
	point string
	armed atomic.Bool
	fail  func()
}

func newSaboteur(at string) *saboteur {
	s := &saboteur{fail: func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // one's own process can be killed
		select {}
	}}
	at, now := strings.CutPrefix(at, "now ")
	how, point, _ := strings.Cut(at, " ")
	if how == "panic" {
		s.fail = func() { panic("a failure of the test") }
	}
	s.point = point
	s.armed.Store(now)
	arming := make(chan os.Signal, 1)
	signal.Notify(arming, syscall.SIGUSR1)
	go func() {
		for range arming {
			s.armed.Store(true)
			fmt.Fprintln(os.Stderr, "armed")
		}
	}()
	return s
}

func (s *saboteur) pass(point string) {
	if point == s.point && s.armed.CompareAndSwap(true, false) {
		s.fail()
	}
}

// around passes the points before and after a step.
func around[T any](s *saboteur, step string, do func() T) T {
	s.pass("before " + step)
	did := do()
	s.pass("after " + step)
	return did
}

func (s *saboteur) fit(p calls.Deps) calls.Deps {
	p.Limiter = failingLimiter{p.Limiter, s}
	p.Journal = failingJournal{p.Journal, s}
	p.Engine = failingEngine{p.Engine, s}
	p.Store = failingStore{p.Store, s}
	if p.Approvals != nil {
		p.Approvals = failingApprovals{p.Approvals, s}
	}
	return p
}

type failingLimiter struct {
	ratelimit.Limiter
	*saboteur
}

func (f failingLimiter) Take(ctx context.Context, limits *ratelimit.Limits, key ratelimit.Key) (lease ratelimit.Lease, err error) {
	err = around(f.saboteur, "take", func() (err error) { lease, err = f.Limiter.Take(ctx, limits, key); return err })
	return lease, err
}

type failingJournal struct {
	gateway.Journal
	*saboteur
}

func (f failingJournal) Append(ctx context.Context, r audit.Record) error {
	step := "decision"
	switch r.Event {
	case audit.Ending:
		step = "outcome"
	case audit.Approval:
		step = "event"
	}
	return around(f.saboteur, step, func() error { return f.Journal.Append(ctx, r) })
}

type failingEngine struct {
	workers.Engine
	*saboteur
}

func (f failingEngine) Run(ctx context.Context, t tool.Call) (o tool.Result, err error) {
	err = around(f.saboteur, "run", func() (err error) { o, err = f.Engine.Run(ctx, t); return err })
	return o, err
}

type failingStore struct {
	calls.Store
	*saboteur
}

func (f failingStore) Open(ctx context.Context, c store.Call) (prior *store.Call, err error) {
	err = around(f.saboteur, "open", func() (err error) { prior, err = f.Store.Open(ctx, c); return err })
	return prior, err
}

func (f failingStore) Dispatch(ctx context.Context, id string, task store.Task) error {
	return around(f.saboteur, "dispatch", func() error { return f.Store.Dispatch(ctx, id, task) })
}

func (f failingStore) Finish(ctx context.Context, id string, e store.Ending) (c store.Call, err error) {
	err = around(f.saboteur, "finish", func() (err error) { c, err = f.Store.Finish(ctx, id, e); return err })
	return c, err
}

func (f failingStore) Get(ctx context.Context, id string, whose store.Whose) (c store.Call, err error) {
	got := func() (err error) { c, err = f.Store.Get(ctx, id, whose); return err }
	if _, named := whose.Principal(); !named {
		err = got()
		return c, err
	}
	err = around(f.saboteur, "get", got)
	return c, err
}

func (f failingStore) Recover(ctx context.Context, reason store.Reason, limit int) (calls []store.Call, err error) {
	recovered := func() (err error) { calls, err = f.Store.Recover(ctx, reason, limit); return err }
	if reason != store.Abandoned {
		err = recovered()
		return calls, err
	}
	err = around(f.saboteur, "recover", recovered)
	return calls, err
}

type approvalStore interface{ store.Approvals }

type failingApprovals struct {
	approvalStore
	*saboteur
}

func (f failingApprovals) Ask(ctx context.Context, a approval.Approval) (kept approval.Approval, joined bool, err error) {
	err = around(f.saboteur, "ask", func() (err error) { kept, joined, err = f.approvalStore.Ask(ctx, a); return err })
	return kept, joined, err
}

func (f failingApprovals) Vote(ctx context.Context, id string, v approval.Vote) (a approval.Approval, err error) {
	err = around(f.saboteur, "vote", func() (err error) { a, err = f.approvalStore.Vote(ctx, id, v); return err })
	return a, err
}

// steppedClock gives a kernel a clock that signals step.
func steppedClock(p calls.Deps) calls.Deps {
	var ahead atomic.Int64
	p.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	stepping := make(chan os.Signal, 1)
	signal.Notify(stepping, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range stepping {
			step := time.Hour
			if s == syscall.SIGUSR2 {
				step = -step
			}
			ahead.Add(int64(step))
			fmt.Fprintln(os.Stderr, "armed")
		}
	}()
	return p
}
