package outbound

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// events gathers what breakers tell.
type events struct {
	mu   sync.Mutex
	all  []BreakerEvent
	kind []BreakerKind
}

func (e *events) add(event BreakerEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
	e.kind = append(e.kind, event.Kind)
}

func (e *events) kinds() []BreakerKind {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.kind)
}

// ending is an attempt that ends so.
func ending(h health) func() (tool.Result, *Failure) {
	return func() (tool.Result, *Failure) {
		if h == healthOK {
			return tool.Result{}, nil
		}
		return tool.Result{}, &Failure{refusal: refuse.Unavailable("the cause"), health: h}
	}
}

// TestBreaker: it opens after so many failures in a row, lets one attempt through
// when it has rested, and closes when that one is answered.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var report events
		bs := newBreakers(report.add)
		call := tool.Call{Tool: "a.tool", Version: "1.0.0"}
		tried := func(h health) bool {
			t.Helper()
			made := false
			_, f, tried := bs.forCall(call).attempt(func() (tool.Result, *Failure) { made = true; return ending(h)() })
			if made != tried || tried && (f == nil) != (h == healthOK) {
				t.Fatalf("the attempt was made: %t, said to be: %t, with the fault %v", made, tried, f)
			}
			return tried
		}
		for range MaxFailures - 1 {
			tried(healthFailed)
		}
		if got := bs.failing(); !slices.Equal(got, []BreakerState{{"a.tool", "1.0.0", "closed", MaxFailures - 1}}) {
			t.Errorf("listed %v", got)
		}
		tried(healthOK) // and anew
		if got := bs.failing(); len(got) != 0 {
			t.Errorf("listed %v after an answer", got)
		}
		for range MaxFailures - 1 {
			tried(healthFailed)
			tried(healthUnknown) // counts neither way
		}
		if bs.countOpen() != 0 || !tried(healthFailed) || bs.countOpen() != 1 {
			t.Fatalf("%d are open", bs.countOpen())
		}
		if got := bs.failing(); len(got) != 1 || got[0].State != "open" {
			t.Errorf("listed %v", got)
		}
		time.Sleep(OpenTime)
		if tried(healthOK) {
			t.Error("an attempt was made while it was open")
		}
		time.Sleep(time.Millisecond)
		if !tried(healthUnknown) || !tried(healthFailed) {
			t.Error("no attempt was made after the rest")
		}
		if tried(healthOK) {
			t.Error("an attempt was made after the probe had failed")
		}
		time.Sleep(OpenTime + time.Millisecond)

		// One probe at a time.
		answered := make(chan struct{})
		var running sync.WaitGroup
		var passed atomic.Int64
		for range 50 {
			running.Go(func() {
				if _, _, tried := bs.forCall(call).attempt(func() (tool.Result, *Failure) { <-answered; return tool.Result{}, nil }); tried {
					passed.Add(1)
				}
			})
		}
		synctest.Wait()
		close(answered)
		running.Wait()
		if passed.Load() != 1 {
			t.Errorf("%d probes at the same time", passed.Load())
		}
		if bs.countOpen() != 0 || !tried(healthFailed) {
			t.Error("it did not close")
		}
		if got := report.kinds(); !slices.Equal(got, []BreakerKind{BreakerOpened, BreakerClosed}) {
			t.Errorf("told of %v", got)
		}
		if first := report.all[0]; first.Tool != "a.tool" || first.Version != "1.0.0" || first.Cause == nil || first.Cause.Error() != "the cause" {
			t.Errorf("told of %+v", first)
		}
	})
}

// An attempt that was under way when the breaker opened says nothing of what came
// after.
func TestBreakerIsNotMovedByThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bs := newBreakers(nil)
		b := bs.forCall(tool.Call{})
		answer := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { b.attempt(func() (tool.Result, *Failure) { <-answer; return tool.Result{}, nil }) })
		synctest.Wait()
		for range MaxFailures {
			b.attempt(ending(healthFailed))
		}
		close(answer)
		running.Wait()
		if bs.countOpen() != 1 {
			t.Error("an answer to an attempt from before closed it")
		}
	})
}

// TestBreakersAreBounded: by number, and what nobody calls is forgotten.
func TestBreakersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bs := newBreakers(nil)
		dead := tool.Call{Tool: "dead"}
		for range MaxFailures {
			bs.forCall(dead).attempt(ending(healthFailed))
		}
		for n := range maxBreakers + 100 {
			time.Sleep(time.Millisecond)
			bs.forCall(tool.Call{Tool: fmt.Sprint(n)})
			if n%1000 == 0 && bs.forCall(dead).circuit.State() == 0 {
				t.Fatal("one in use was begun anew")
			}
		}
		if len(bs.all) != maxBreakers {
			t.Errorf("%d breakers, want %d", len(bs.all), maxBreakers)
		}
		time.Sleep(time.Millisecond)
		bs.forCall(dead)
		time.Sleep(forgetTime)
		if bs.countOpen() != 1 || len(bs.all) != 1 {
			t.Errorf("%d open of %d, want 1 of 1", bs.countOpen(), len(bs.all))
		}
		time.Sleep(time.Second)
		if bs.countOpen() != 0 || len(bs.all) != 0 {
			t.Errorf("%d open of %d, want none", bs.countOpen(), len(bs.all))
		}
	})
}

func TestBlame(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	dialing := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want health
	}{
		"refused":            {t.Context(), dialing(syscall.ECONNREFUSED), healthFailed},
		"reset":              {t.Context(), dialing(syscall.ECONNRESET), healthFailed},
		"no route":           {t.Context(), dialing(syscall.EHOSTUNREACH), healthFailed},
		"no such name":       {t.Context(), &net.DNSError{IsNotFound: true}, healthFailed},
		"broken off":         {t.Context(), io.ErrUnexpectedEOF, healthFailed},
		"not in time":        {late, context.DeadlineExceeded, healthFailed},
		"stopped":            {stopped, context.Canceled, healthUnknown},
		"a blocked address":  {t.Context(), fmt.Errorf("dial: %w", &blockedError{"x"}), healthUnknown},
		"no descriptor left": {t.Context(), &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}, healthUnknown},
		"no port left":       {t.Context(), dialing(syscall.EADDRNOTAVAIL), healthUnknown},
	} {
		if got := healthOfError(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	sent := ConnectionFailure(stopped, tool.Call{Tool: "sample", Effect: "read"}, "its server", context.Canceled, true).Refusal()
	if sent.Code != refusal.ToolUnavailable || !strings.Contains(sent.Message, "no whole answer") {
		t.Errorf("stopped once it was sent: %v", sent)
	}
	for status, want := range map[int]health{101: healthOK, 204: healthOK, 301: healthOK, 400: healthOK, 404: healthOK, 408: healthOK, 429: healthOK, 499: healthOK, 500: healthFailed, 501: healthFailed, 502: healthFailed, 503: healthFailed, 504: healthFailed, 599: healthFailed} {
		if got := healthOfStatus(status); got != want {
			t.Errorf("status %d: %d, want %d", status, got, want)
		}
	}
}
