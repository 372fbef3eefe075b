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
)

// house is everything that executing calls needs. It holds the lock of its
// data folder until it is closed.
type house struct {
	kernel *gateway.Kernel
	log    *audit.Log
	engine *engine.Engine
}

// stateOf is what a configuration gives to the kernel.
func stateOf(c *configs.Config) *gateway.State {
	return &gateway.State{
		Output: c.Output, Tools: c.Tools, Policy: c.Access, Spaces: c.Workspaces, Agents: c.Agents, Limits: c.Budgets,
		Defaults: gateway.Subject(c.Defaults), Digest: c.Digest,
	}
}

// newJudge returns a kernel that can check, and nothing else: it has no journal
// and no engine.
func newJudge(c *configs.Config) (*gateway.Kernel, error) {
	k, err := gateway.New(stateOf(c), gateway.Parts{})
	if err != nil {
		return nil, internalError{err}
	}
	return k, nil
}

// openHouse opens the audit log of a configuration and makes the kernel that
// executes.
func openHouse(c *configs.Config) (*house, error) {
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
	k, err := gateway.New(stateOf(c), gateway.Parts{
		Limiter: ratelimit.NewLocal(time.Now), Journal: log, Engine: runner{tools}, Record: record, Replica: replica,
	})
	if err != nil {
		tools.Close()
		return nil, errors.Join(internalError{err}, log.Close())
	}
	return &house{kernel: k, log: log, engine: tools}, nil
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
func (r *house) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	err := r.kernel.Settle(ctx)
	r.engine.Close()
	if err := errors.Join(err, r.log.Close()); err != nil {
		return internalError{fmt.Errorf("the audit log was not closed cleanly: %w", err)}
	}
	return nil
}

// runner hands tasks of the kernel to the engine: neither knows the other.
type runner struct{ engine *engine.Engine }

func (r runner) Run(ctx context.Context, t gateway.Task) (gateway.Output, error) {
	result, err := r.engine.Run(ctx, engine.Call{
		Tool: t.Tool, Version: t.Version, Effect: t.Effect, Run: toEngine(t.Run), Arguments: t.Arguments, ID: t.CallID, Roots: t.Roots,
	})
	return gateway.Output{Body: result.Body, JSON: result.JSON, Attempts: result.Attempts}, err
}

func toEngine(r registry.Run) engine.Run { return engine.Run(r) }
