// Package facetest sets up the parts behind a face: a kernel without limits, a store in
// memory, a journal that the test reads, and a server. Only tests import it.
package facetest

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/workers"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/tool"
)

// Main runs the tests of a face, and fails where goroutines are left. It is for
// TestMain, and does not return.
func Main(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	leaks.Main(m)
}

// ToolFunc is an engine of one tool.
type ToolFunc func(tool.Call) (tool.Result, error)

// Run runs it.
func (f ToolFunc) Run(_ context.Context, t tool.Call) (tool.Result, error) { return f(t) }

// Options are the choices of a test for a Fixture.
type Options struct {
	Config *configs.Config
	Engine workers.Engine
	// Change edits the dependencies of the kernel last; nil changes nothing.
	Change func(*gateway.Config, *calls.Deps)
	Log    io.Writer // of one line at a time; nil discards
}

// Fixture is everything behind a face. A test mounts its face on the Server.
type Fixture struct {
	*server.Server
	Executor *calls.Executor
	Journal  *Journal
	Logger   *slog.Logger
}

// New builds a Fixture; it fails the test if the kernel cannot be built.
func New(t testing.TB, p Options) *Fixture {
	t.Helper()
	if p.Log == nil {
		p.Log = io.Discard
	}
	c := p.Config
	state := &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents,
		Limits: &ratelimit.Limits{Replicas: 1}, Defaults: gateway.Subject(c.Defaults), AgentRequired: c.AgentRequired, Digest: c.Digest,
		Hooks:     c.Hooks,
		Threads:   gateway.Threads{DefaultLabels: c.Threads.DefaultLabels, ShareUnnamed: c.Threads.Unnamed == configs.UnnamedShared},
		Approvals: c.Approvals.Rules, People: everybody(c), ApprovalWait: c.Approvals.Wait,
	}
	h := &Fixture{Journal: &Journal{}, Logger: slog.New(slog.NewJSONHandler(&lockedWriter{to: p.Log}, nil))}
	kept := store.NewMemory(time.Now)
	parts := calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: h.Journal}, Store: kept, Approvals: kept,
		Engine: p.Engine}
	if p.Change != nil {
		p.Change(state, &parts)
	}
	k, err := calls.New(state, parts)
	if err != nil {
		t.Fatal(err)
	}
	h.Executor = k
	h.Server = newServer(h.Logger, k)
	return h
}

// NewServer returns a server without routes, for a kernel that a test has made itself.
func NewServer(k *calls.Executor) *server.Server { return newServer(slog.New(slog.DiscardHandler), k) }

func newServer(log *slog.Logger, k *calls.Executor) *server.Server {
	return server.New(server.Options{Metrics: telemetry.New(), Log: log, Refuse: native.Refuse, Identify: k.Kernel.Identify})
}

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (g *lockedWriter) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.to.Write(p)
}

// everybody lets voters of any name approve by every rule; they stand for no agent.
func everybody(c *configs.Config) approval.People {
	rules := slices.Sorted(maps.Keys(c.Approvals.Rules))
	return func(v approval.Vote) approval.Voter { return approval.Voter{Principal: v.By, Approves: rules} }
}

// Secret reads secrets in tests: env:TEXT leads to the text itself.
func Secret(_ context.Context, reference string) (string, error) {
	return strings.TrimPrefix(reference, "env:"), nil
}
