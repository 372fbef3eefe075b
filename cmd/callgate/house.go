package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/telemetry"
)

// house is everything that executing calls needs. It holds the lock of its
// data folder until it is closed.
type house struct {
	kernel *gateway.Kernel
	log    *audit.Log
	engine *engine.Engine
	// cut ends the calls that still run; that their outcome is not known is then
	// written down.
	cut context.CancelFunc
}

// stateOf is what a configuration gives to the kernel.
func stateOf(c *configs.Config) *gateway.State {
	s := &gateway.State{
		Output: c.Output, Tools: c.Tools, Policy: c.Access, Spaces: c.Workspaces, Agents: c.Agents, Limits: c.Budgets,
		Defaults: gateway.Subject(c.Defaults), Digest: c.Digest,
	}
	if c.Auth.Mode != "none" {
		s.Identity = c.Keys // without keys it lets nobody in
	}
	return s
}

// operatorState is stateOf for the command line: whoever may read the files of
// the configuration needs no credential to ask what it says.
func operatorState(c *configs.Config) *gateway.State {
	s := stateOf(c)
	s.Identity = nil
	return s
}

// newJudge returns a kernel that can check, and nothing else: it has no journal
// and no engine.
func newJudge(c *configs.Config) (*gateway.Kernel, error) {
	k, err := gateway.New(operatorState(c), gateway.Parts{})
	if err != nil {
		return nil, internalError{err}
	}
	return k, nil
}

// openHouse opens the audit log of a configuration and makes the kernel that
// executes. metrics may be nil.
func openHouse(c *configs.Config, state *gateway.State, metrics *telemetry.Metrics) (*house, error) {
	record := audit.Content(c.Record)
	log, err := audit.Open(c.DataDir, audit.Options{Record: record})
	if err != nil {
		return nil, err
	}
	if err := unpack(c); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	tools := engine.New(engine.Options{})
	replica, err := os.Hostname()
	if err != nil {
		replica = "unknown"
	}
	running, cut := context.WithCancel(context.Background())
	k, err := gateway.New(state, gateway.Parts{
		Limiter: ratelimit.NewLocal(time.Now), Journal: log, Engine: runner{tools, running}, Store: store.NewMemory(time.Now),
		Observer: metrics, Record: record, Replica: replica,
	})
	if err != nil {
		cut()
		tools.Close()
		return nil, errors.Join(internalError{err}, log.Close())
	}
	return &house{kernel: k, log: log, engine: tools, cut: cut}, nil
}

// unpack writes the bundled project to where the built-in configuration has its
// root.
func unpack(c *configs.Config) error {
	if !c.Embedded() {
		return nil
	}
	return engine.Unpack(filepath.Join(c.DataDir, "projects", "alpha"))
}

// settleTime is how long closing waits for outcomes that are still owed.
const settleTime = 5 * time.Second

// Close writes down what is owed and gives the data folder up.
func (h *house) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	h.cut()
	err := h.kernel.Settle(ctx)
	h.engine.Close()
	if err := errors.Join(err, h.log.Close()); err != nil {
		return internalError{fmt.Errorf("the audit log was not closed cleanly: %w", err)}
	}
	return nil
}

// runner hands tasks of the kernel to the engine: neither knows the other. It
// runs them until running ends.
type runner struct {
	engine  *engine.Engine
	running context.Context
}

func (r runner) Run(ctx context.Context, t gateway.Task) (gateway.Output, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.running, cancel)()
	result, err := r.engine.Run(ctx, engine.Call{
		Tool: t.Tool, Version: t.Version, Effect: t.Effect, Run: toEngine(t.Run), Arguments: t.Arguments, ID: t.CallID, Roots: t.Roots,
	})
	return gateway.Output{Body: result.Body, JSON: result.JSON, Attempts: result.Attempts}, err
}

func toEngine(r registry.Run) engine.Run { return engine.Run(r) }
