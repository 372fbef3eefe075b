// Package facetest sets up what stands behind a face: a kernel without limits, a store
// in memory, a journal that the test reads, and a door. Tests alone import it.
package facetest

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/native"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/leaks"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/telemetry"
)

// Main runs the tests of a face, and fails where goroutines are left. It is for
// TestMain, and does not return.
func Main(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	leaks.Main(m)
}

// Tool is an engine of one tool.
type Tool func(gateway.Task) (gateway.Output, error)

// Run runs it.
func (f Tool) Run(_ context.Context, t gateway.Task) (gateway.Output, error) { return f(t) }

// Plan is what a test chooses of a house.
type Plan struct {
	Config *configs.Config
	Engine gateway.Engine
	// Change has the last word on what the kernel is made of; nil leaves it as it is.
	Change func(*gateway.Config, *gateway.Deps)
	Log    io.Writer // of one line at a time
}

// House is what stands behind a face. The face is mounted on the door.
type House struct {
	*server.Door
	Kernel *gateway.Kernel
	Ledger *Ledger
	Logger *slog.Logger
}

// Open builds a house.
func Open(t testing.TB, p Plan) *House {
	t.Helper()
	c := p.Config
	state := &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents,
		Limits: &ratelimit.Limits{Replicas: 1}, Defaults: gateway.Subject(c.Defaults), AgentRequired: c.AgentRequired, Digest: c.Digest,
	}
	h := &House{Ledger: &Ledger{}, Logger: slog.New(slog.NewJSONHandler(&guarded{to: p.Log}, nil))}
	parts := gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: h.Ledger, Store: store.NewMemory(time.Now), Engine: p.Engine}
	if p.Change != nil {
		p.Change(state, &parts)
	}
	k, err := gateway.New(state, parts)
	if err != nil {
		t.Fatal(err)
	}
	h.Kernel = k
	h.Door = newDoor(h.Logger, k)
	return h
}

// Door is a door with nothing behind it, for a kernel that a test has made itself.
func Door(k *gateway.Kernel) *server.Door { return newDoor(slog.New(slog.DiscardHandler), k) }

func newDoor(log *slog.Logger, k *gateway.Kernel) *server.Door {
	return server.New(server.Options{Metrics: telemetry.New(), Log: log, Refuse: native.Refuse, Identify: k.Identify})
}

// guarded is a writer for several goroutines.
type guarded struct {
	mu sync.Mutex
	to io.Writer
}

func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.to.Write(p)
}
