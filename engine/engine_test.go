package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

func TestPanicsAreContained(t *testing.T) {
	e := New(Options{})
	e.demo["panics"] = func(context.Context, tool.Call, arguments) (any, *refusal.Error) { panic("SECRET value") }
	e.demo["indexes"] = func(_ context.Context, call tool.Call, _ arguments) (any, *refusal.Error) { return call.Roots[3], nil }
	e.demo["unencodable"] = func(context.Context, tool.Call, arguments) (any, *refusal.Error) { return func() {}, nil }
	for _, name := range []string{"panics", "indexes", "unencodable"} {
		_, err := e.Run(t.Context(), tool.Call{Tool: name, Arguments: []byte(`{}`), Run: tool.Run{Type: "demo"}})
		var refused *refusal.Error
		if !errors.As(err, &refused) || refused.Code != refusal.Internal || refused.Stage != refusal.Execute {
			t.Errorf("%s: got %v", name, err)
		}
		if strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "goroutine") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := e.Run(nil, tool.Call{Tool: "x", Arguments: []byte(`{}`), Run: tool.Run{Type: "demo"}}); err == nil { //nolint:staticcheck // that it is nil is the test
		t.Error("a nil context was taken")
	}
	if _, err := (&Engine{}).Run(t.Context(), tool.Call{Tool: "x", Arguments: []byte(`{}`), Run: tool.Run{Type: "http", URL: "http://127.0.0.1"}}); err == nil {
		t.Error("an engine that nobody made ran a call")
	}
}

// A panic after the call was sent leaves the outcome of a once call unknown.
func TestPanicAfterDispatch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "Thu, 01 Jan 2026 11:00:00 GMT")
		w.WriteHeader(http.StatusConflict)
	}))
	defer server.Close()
	e := New(Options{Now: func() time.Time { panic("SECRET") }})
	defer e.Close()
	for effect, want := range map[string]refusal.Code{"once": refusal.OutcomeUnknown, "read": refusal.Internal} {
		call := tool.Call{Tool: "x", Effect: effect, Arguments: []byte(`{}`), Run: tool.Run{Type: "http", URL: server.URL, Addresses: []string{"127.0.0.1"}}}
		_, err := e.Run(t.Context(), call)
		var refused *refusal.Error
		if !errors.As(err, &refused) || refused.Code != want || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: got %v", effect, err)
		}
	}
}

// Every message for the model is a sentence that holds no internals.
func TestMessages(t *testing.T) {
	call := tool.Call{Tool: "sample", Run: tool.Run{Timeout: time.Second, MaxResultBytes: 1}}
	read := call
	read.Effect = "read"
	all := []*refusal.Error{
		Unavailable("x"), TimedOut("x"), OutcomeUnknown("x"), AddressBlocked("x"), Internal("x"),
		ResultTooLarge(call), ResultTooLarge(read), InvalidResult(call, "x"), InvalidResult(read, "x"),
	}
	for code := 100; code < 600; code++ {
		all = append(all, Status(call, code), Status(read, code))
	}
	for _, refused := range all {
		m := refused.Message
		if !strings.HasSuffix(m, ".") || strings.Count(m, ".") != 1 || strings.Contains(m, "sample") || strings.Contains(m, "://") || refused.Cause == nil {
			t.Errorf("%s: %q, cause %v", refused.Code, m, refused.Cause)
		}
		if refused.Retryable() {
			t.Errorf("%s is retryable", refused.Code)
		}
	}
}

func TestPoolIsBounded(t *testing.T) {
	p := newPool(OutboundOptions{Interfaces: nowhere})
	at := func(n int) *url.URL {
		u, err := url.Parse(fmt.Sprintf("http://127.0.0.1:%d/a", n))
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first, err := p.transport(at(1), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 * maxTransports {
		if _, err := p.transport(at(n+2), nil, false); err != nil {
			t.Fatal(err)
		}
		if again, _ := p.transport(at(1), nil, false); again != first {
			t.Fatalf("after %d others, the one in use was dropped", n+1)
		}
	}
	if len(p.transports) != maxTransports {
		t.Errorf("%d transports, want %d", len(p.transports), maxTransports)
	}
	for _, other := range []struct {
		addresses []string
		fresh     bool
	}{{nil, true}, {[]string{"127.0.0.1"}, false}, {[]string{"127.0.0.1", "::1"}, false}} {
		if shared, _ := p.transport(at(1), other.addresses, other.fresh); shared == first {
			t.Errorf("%+v shares connections", other)
		}
	}
}

// Calls of every kind at once: for the race detector.
func TestConcurrentCalls(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Callgate-Call-Id"))
	}))
	defer server.Close()
	e := New(Options{})
	defer e.Close()
	var running sync.WaitGroup
	for n := range 8 {
		running.Go(func() {
			for i := range 25 {
				id := fmt.Sprintf("call-%d-%d", n, i)
				call := tool.Call{Tool: "web.search", ID: id, Arguments: []byte(`{"query":"memory of agents"}`), Run: tool.Run{Type: "demo"}}
				if i%3 > 0 {
					call.Effect = []string{"read", "once"}[i%2]
					call.Run = tool.Run{Type: "http", URL: server.URL, Addresses: []string{"127.0.0.1"}}
				}
				result, err := e.Run(t.Context(), call)
				if err != nil || i%3 > 0 && string(result.Body) != id {
					t.Errorf("%s: %v %s", id, err, result.Body)
				}
			}
		})
	}
	running.Wait()
}
