package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/testkit/ports"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// breakerEvents gathers what breakers tell.
type breakerEvents struct {
	mu   sync.Mutex
	all  []outbound.BreakerEvent
	kind []outbound.BreakerKind
}

func (e *breakerEvents) add(event outbound.BreakerEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
	e.kind = append(e.kind, event.Kind)
}

func (e *breakerEvents) kinds() []outbound.BreakerKind {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.kind)
}

// bench is a tool that answers as it is told, and counts.
type bench struct {
	*httptest.Server
	hits   atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
}

func newBench(t *testing.T, answer http.HandlerFunc) *bench {
	t.Helper()
	b := &bench{}
	b.answer.Store(&answer)
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.hits.Add(1)
		io.Copy(io.Discard, r.Body) // else nobody notices that the client leaves
		(*b.answer.Load())(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *bench) call(effect string) tool.Call {
	return tool.Call{
		Tool: "sample", Version: "1.0.0", Effect: effect, ID: "call_1", Arguments: []byte(`{}`),
		Run: tool.Run{Type: "http", URL: b.URL, Timeout: 30 * time.Second, MaxResultBytes: 100, Addresses: []string{"127.0.0.1/32"}},
	}
}

func answering(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func codeOf(err error) refusal.Code {
	var refused *refusal.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// TestToolAway: a tool whose server does not answer is not asked any more, and
// every call of it is told so at once.
func TestToolAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		change func(*tool.Call)
		once   refusal.Code // of the calls that are sent
	}{
		"breaks off":   {hangUp, nil, refusal.OutcomeUnknown},
		"is no server": {nil, nil, refusal.ToolUnavailable},
		"fails":        {answering(500), nil, refusal.ToolFailed},
		"is behind a proxy that does not reach it": {answering(502), nil, refusal.OutcomeUnknown},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(c *tool.Call) { c.Run.Timeout = 50 * time.Millisecond }, refusal.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			server := newBench(t, c.answer)
			call := server.call("once")
			if c.answer == nil {
				call.Run.URL = "http://" + ports.Hold(t)
			}
			if c.change != nil {
				c.change(&call)
			}
			var report *breakerEvents
			var e *Engine
			for e == nil {
				report = &breakerEvents{}
				e = New(Options{OnBreaker: report.add})
				if !toolAway(t, e, server, call, c.once, c.change != nil) {
					e.Close()
					e = nil
					call.Run.Timeout = min(2*call.Run.Timeout, time.Minute)
					server = newBench(t, c.answer) // a call that was late does not come to this one
					call.Run.URL = server.call("once").Run.URL
				}
			}
			defer e.Close()
			if got := report.kinds(); !slices.Equal(got, []outbound.BreakerKind{outbound.BreakerOpened, outbound.BreakerRefused, outbound.BreakerRefused, outbound.BreakerRefused, outbound.BreakerRefused, outbound.BreakerRefused}) {
				t.Errorf("told of %v", got)
			}

			// Another version, another place, other addresses: other breakers.
			for _, other := range []func(*tool.Call){
				func(c *tool.Call) { c.Version = "2.0.0" }, func(c *tool.Call) { c.Tool = "other" },
				func(c *tool.Call) { c.Run.URL += "/x" }, func(c *tool.Call) { c.Run.Addresses = []string{"127.0.0.1"} },
			} {
				call := call
				other(&call)
				if result, _ := e.Run(t.Context(), call); result.Attempts != 1 {
					t.Errorf("%+v was tried %d times", call, result.Attempts)
				}
			}
		})
	}
}

// toolAway opens the breaker of a tool and calls it while it is open. It returns
// false where everything was so slow that nothing follows: a call that was to hang has
// not come to the tool in its time, or the breaker has rested meanwhile.
func toolAway(t *testing.T, e *Engine, server *bench, call tool.Call, once refusal.Code, hangs bool) bool {
	t.Helper()
	server.hits.Store(0)
	var began time.Time
	for n := range outbound.MaxFailures {
		began = time.Now()
		result, err := e.Run(t.Context(), call)
		if late := codeOf(err) == refusal.ToolTimeout || server.hits.Load() <= int64(n); hangs && late && call.Run.Timeout < time.Minute {
			return false
		}
		if codeOf(err) != once || result.Attempts != 1 {
			t.Fatalf("call %d: %v after %d attempts", n+1, err, result.Attempts)
		}
	}
	hits, open := server.hits.Load(), e.OpenBreakers()
	var wrong []string
	refused := func(call tool.Call) {
		if result, err := e.Run(t.Context(), call); codeOf(err) != refusal.ToolUnavailable || result.Attempts != 0 || !strings.Contains(err.Error(), "breaker") {
			wrong = append(wrong, fmt.Sprintf("%q: %v after %d attempts", call.Effect, err, result.Attempts))
		}
	}
	for _, effect := range []string{"once", "read", "idempotent", ""} {
		call := call
		call.Effect = effect
		refused(call)
	}
	call.Run.Timeout += time.Second // it is the same tool for all that
	refused(call)
	requests := server.hits.Load() - hits
	if time.Since(began) >= outbound.OpenTime && call.Run.Timeout < time.Minute {
		return false
	}
	if open != 1 || requests != 0 || wrong != nil {
		t.Errorf("%d breakers are open; the tool was asked %d times while it was; %q", open, requests, wrong)
	}
	return true
}

// TestToolWell: a server that answers for itself is never shut out, whatever it
// says, and nor is one that was not asked.
func TestToolWell(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		change func(*tool.Call)
		want   refusal.Code
	}{
		"no":                     {answering(400), nil, refusal.ToolFailed},
		"too many requests":      {answering(429), nil, refusal.ToolFailed},
		"a redirect":             {answering(302), nil, refusal.ToolFailed},
		"an invalid result":      {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "image/png") }, nil, refusal.InvalidResult},
		"too large a result":     {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 101)) }, nil, refusal.ResultTooLarge},
		"an address not allowed": {nil, func(c *tool.Call) { c.Run.Addresses = nil }, refusal.AddressBlocked},
	} {
		var report breakerEvents
		server := newBench(t, c.answer)
		e := New(Options{OnBreaker: report.add})
		for range 3 * outbound.MaxFailures {
			call := server.call("once")
			if c.change != nil {
				c.change(&call)
			}
			if _, err := e.Run(t.Context(), call); codeOf(err) != c.want {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if e.OpenBreakers() != 0 || len(report.kinds()) > 0 {
			t.Errorf("%s: %d open, told of %v", name, e.OpenBreakers(), report.kinds())
		}
		e.Close()
	}
}

// A caller that stops its calls shuts nobody out.
func TestStoppedCallsAreNotTheTools(t *testing.T) {
	arrived := make(chan struct{}, 1)
	server := newBench(t, func(_ http.ResponseWriter, r *http.Request) { arrived <- struct{}{}; <-r.Context().Done() })
	e := New(Options{})
	defer e.Close()
	for range outbound.MaxFailures + 1 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		if result, err := e.Run(ctx, server.call("once")); codeOf(err) != refusal.OutcomeUnknown || result.Attempts != 1 {
			t.Fatalf("%v after %d attempts", err, result.Attempts)
		}
	}
	if e.OpenBreakers() != 0 {
		t.Error("the breaker is open")
	}
}

// TestToolReturns: one probe finds that the tool is back, and then all pass.
func TestToolReturns(t *testing.T) {
	t.Parallel()
	server := newBench(t, hangUp)
	var report breakerEvents
	e := New(Options{OnBreaker: report.add})
	defer e.Close()
	for range outbound.MaxFailures {
		e.Run(t.Context(), server.call("once"))
	}
	release, arrived := make(chan struct{}), make(chan struct{}, 100)
	slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-release })
	server.answer.Store(&slow)
	server.hits.Store(0)

	var running sync.WaitGroup
	stop := make(chan struct{})
	for range 8 {
		running.Go(func() {
			for {
				if _, err := e.Run(t.Context(), server.call("once")); err == nil {
					return
				}
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	select {
	case <-arrived:
	case <-time.After(30 * time.Second):
		t.Error("no probe was made")
	}
	for range 100 {
		if _, err := e.Run(t.Context(), server.call("read")); codeOf(err) != refusal.ToolUnavailable {
			t.Fatalf("beside the probe: %v", err)
		}
	}
	if n := server.hits.Load(); n != 1 {
		t.Errorf("%d probes at a time", n)
	}
	close(release)
	time.AfterFunc(30*time.Second, sync.OnceFunc(func() { close(stop) }))
	running.Wait()
	if _, err := e.Run(t.Context(), server.call("once")); err != nil || e.OpenBreakers() != 0 {
		t.Errorf("after its return: %v, %d open", err, e.OpenBreakers())
	}
	if got := slices.DeleteFunc(report.kinds(), func(k outbound.BreakerKind) bool { return k == outbound.BreakerRefused }); !slices.Equal(got, []outbound.BreakerKind{outbound.BreakerOpened, outbound.BreakerClosed}) {
		t.Errorf("told of %v", got)
	}
}

// TestOpensInBetween: a call whose attempts open the breaker ends as the last of
// them did, and not as one that was never sent.
func TestOpensInBetween(t *testing.T) {
	server := newBench(t, answering(503))
	e := New(Options{})
	defer e.Close()
	for range outbound.MaxFailures - 1 {
		if _, err := e.Run(t.Context(), server.call("once")); codeOf(err) != refusal.OutcomeUnknown {
			t.Fatal(err)
		}
	}
	result, err := e.Run(t.Context(), server.call("read"))
	if codeOf(err) != refusal.ToolUnavailable || !strings.Contains(err.Error(), "HTTP status 503") || result.Attempts != 1 || server.hits.Load() != outbound.MaxFailures {
		t.Errorf("%v after %d attempts, %d hits", err, result.Attempts, server.hits.Load())
	}
}

// TestEveryAnswerIsOneForTheBreaker: an answer that is no result ends a row of failures as a
// result does.
func TestEveryAnswerIsOneForTheBreaker(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no":                answering(404),
		"a redirect":        answering(307),
		"an invalid result": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "image/png") },
		"a result":          answering(200),
	} {
		server := newBench(t, hangUp)
		e := New(Options{})
		for n := range 2*outbound.MaxFailures - 1 {
			now := http.HandlerFunc(hangUp)
			if n == outbound.MaxFailures-1 {
				now = answer
			}
			server.answer.Store(&now)
			if result, _ := e.Run(t.Context(), server.call("once")); result.Attempts != 1 {
				t.Errorf("%s: call %d was not sent", name, n+1)
			}
		}
		if e.OpenBreakers() != 0 {
			t.Errorf("%s: the breaker is open", name)
		}
		e.Close()
	}
}
