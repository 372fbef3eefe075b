package engine_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/tool"
)

func TestBounded(t *testing.T) {
	e := engine.New(engine.Options{})
	defer e.Close()
	for name, c := range map[string]struct {
		run  tool.Run
		want bool
	}{
		"over HTTP":                            {tool.Run{Type: "http"}, true},
		"with a credential of the environment": {tool.Run{Type: "http", Credential: "env:KEY"}, true},
		"with a credential in a file":          {tool.Run{Type: "http", Credential: "file:/key"}, false},
		"of a program":                         {tool.Run{Type: "mcp"}, false},
		"of OXP":                               {tool.Run{Type: "oxp"}, false},
		"of the demonstration":                 {tool.Run{Type: "demo"}, false},
		"of no type":                           {tool.Run{}, false},
	} {
		if got := e.Bounded(c.run); got != c.want {
			t.Errorf("a tool %s: %t, want %t", name, got, c.want)
		}
	}
}

// TestBoundedCallsEnd: beside the hostile answers, a server that accepts and reads nothing:
// neither the handshake of TLS nor a long request takes longer than the context.
func TestBoundedCallsEnd(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	e := engine.New(engine.Options{})
	defer e.Close()
	arguments := []byte(`{"text":"` + strings.Repeat("x", 32<<20) + `"}`)
	for _, scheme := range []string{"http", "https"} {
		for _, effect := range []string{"read", "once"} {
			task := tool.Call{ID: "id", Tool: "a.b", Effect: effect, Arguments: arguments, Run: tool.Run{
				Type: "http", URL: scheme + "://" + listener.Addr().String() + "/", Addresses: []string{"127.0.0.1/32"}, Timeout: time.Minute,
			}}
			if !e.Bounded(task.Run) {
				t.Fatal("the engine does not bound calls over HTTP")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			start := time.Now()
			_, err := e.Run(ctx, task)
			cancel()
			if took := time.Since(start); err == nil || took > 20*time.Second {
				t.Errorf("%s, %s: ended after %v: %v", scheme, effect, took, err)
			}
		}
	}
}
