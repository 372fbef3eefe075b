package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// broken is a transport that panics, each time otherwise.
type broken struct{ panics func(call tool.Call) }

func (b broken) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	b.panics(call)
	return tool.Result{}, nil
}

func (b broken) Discover(context.Context, tool.Server) ([]tool.Definition, error) { return nil, nil }

func TestPanicsAreContained(t *testing.T) {
	e := New(Options{Transports: map[string]Transport{
		"panics":  broken{func(tool.Call) { panic("SECRET value") }},
		"indexes": broken{func(call tool.Call) { _ = call.Roots[3] }},
	}})
	for _, kind := range []string{"panics", "indexes"} {
		_, err := e.Run(t.Context(), tool.Call{Tool: "x", Arguments: []byte(`{}`), Run: tool.Run{Type: kind}})
		var refused *refusal.Error
		if !errors.As(err, &refused) || refused.Code != refusal.Internal || refused.Stage != refusal.Execute {
			t.Errorf("%s: got %v", kind, err)
		}
		if strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "goroutine") {
			t.Errorf("%s: %v", kind, err)
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
