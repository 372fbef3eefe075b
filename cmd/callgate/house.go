package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/upstream"
)

// house is everything that executing calls needs. It holds the lock of its
// data folder until it is closed.
type house struct {
	kernel *gateway.Kernel
	log    *audit.Log
	engine *tooling
	// servers are where tools were found.
	servers *fleet
	limits  limits
	calls   keeping
	tender  *gateway.Reconciler
	// callbacks are the addresses at which tools answer.
	callbacks *callbacks
	models    atomic.Pointer[upstream.Set] // that can be asked now
	// cut ends the calls that still run; that their outcome is not known is then
	// written down.
	cut context.CancelFunc
}

// stateOf is what a configuration gives to the kernel. Without somebody who
// knows credentials, nobody is asked for one: so it is on the command line, where
// whoever may read the files of the configuration may ask what it says.
func stateOf(c *configs.Config, who gateway.Authenticator) *gateway.Config {
	return &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: c.Limits,
		Defaults: gateway.Subject(c.Defaults), AgentRequired: c.AgentRequired, Identity: who, Digest: c.Digest,
	}
}

// newJudge returns a kernel that can check, and nothing else: it has no journal
// and no engine.
func newJudge(c *configs.Config) (*gateway.Kernel, error) {
	k, err := gateway.New(stateOf(c, nil), gateway.Deps{})
	if err != nil {
		return nil, internalError{err}
	}
	return k, nil
}

// witnesses are told what goes on. All but the logger may be nil.
type witnesses struct {
	metrics *telemetry.Metrics
	tracing *tracing
	logger  *slog.Logger
}

// openHouse opens the audit log of a configuration and makes the kernel that
// executes.
func (e env) openHouse(ctx context.Context, c *configs.Config, state *gateway.Config, w witnesses) (h *house, err error) {
	limits, err := newLimits(ctx, c, w.metrics, w.logger, e.wait)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, limits.Close())
		}
	}()
	record := audit.Content(c.Record)
	log, err := openLog(c, w.logger, e.wait)
	if err != nil {
		return nil, err
	}
	if err := unpack(c); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	calls, err := newKeeping(ctx, c, w.logger, e.wait)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	past, err := pastOf(c.DataDir)
	if err != nil {
		return nil, errors.Join(err, calls.close(), log.Close())
	}
	answers, err := newCallbacks(c, w.logger)
	if err != nil {
		return nil, errors.Join(err, calls.close(), log.Close())
	}
	var servers *fleet
	tools := newTooling(engine.Options{OnBreaker: w.breaker, CallbackURL: answers.address, ServerURL: answers.base}, func(server string) { servers.changed(server) })
	w.metrics.Breakers(tools.OpenBreakers)
	running, cut := context.WithCancel(context.Background())
	parts := gateway.Deps{
		Limiter: limits.Limiter, Journal: log, Engine: runner{tools.Engine, running}, Store: calls,
		Observer: w.metrics, RecordContent: record, Replica: replica(), Node: calls.node,
	}
	if w.tracing != nil {
		parts.Tracer = w.tracing
	}
	if e.fit != nil {
		parts = e.fit(parts)
	}
	k, err := gateway.New(state, parts)
	if err != nil {
		cut()
		tools.Close()
		return nil, errors.Join(internalError{err}, calls.close(), log.Close())
	}
	// Before anything is judged, what no server was asked for yet is in quarantine.
	servers = newFleet(tools, k.Quarantine, tools.Keep, w.logger)
	w.metrics.Quarantine(servers.quarantined)
	servers.follow(c)
	servers.followed()
	tender := k.Reconcile(past, tending(w.logger))
	return &house{kernel: k, log: log, engine: tools, servers: servers, limits: limits, calls: calls, tender: tender, callbacks: answers, cut: cut}, nil
}

// replica names this process beside others.
func replica() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// unpack writes the bundled project to where the built-in configuration has its
// root.
func unpack(c *configs.Config) error {
	if !c.Embedded() {
		return nil
	}
	for _, root := range c.Workspaces[c.Defaults.Workspace].Projects[c.Defaults.Project].Roots {
		if err := engine.UnpackProject(root); err != nil {
			return err
		}
	}
	return nil
}

// settleTime is how long closing waits for outcomes that are still owed.
const settleTime = 5 * time.Second

// Close writes down what is owed and gives the data folder up.
func (h *house) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	h.servers.close()
	h.tender.Stop(ctx)
	h.cut()
	err := h.settle()
	h.engine.Close()
	err = errors.Join(err, h.limits.Close(), h.calls.close())
	if err := errors.Join(err, h.log.Close()); err != nil {
		return internalError{fmt.Errorf("not closed cleanly: %w", err)}
	}
	return nil
}

// settle waits for what is owed.
func (h *house) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	return h.kernel.Flush(ctx)
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
	var progress func(engine.Progress)
	if t.Progress != nil {
		progress = func(p engine.Progress) { t.Progress(gateway.Progress(p)) }
	}
	var log func(engine.Log)
	if t.Log != nil {
		log = func(l engine.Log) { t.Log(gateway.Log(l)) }
	}
	result, err := r.engine.Run(ctx, engine.Call{
		Tool: t.Tool, Version: t.Version, Effect: t.Effect, Run: toEngine(t.Run), Arguments: t.Arguments, Typed: t.Typed, ID: t.CallID, Roots: t.Roots,
		Thread: t.Thread, Ancestors: t.Ancestors, User: t.User,
		Progress: progress, Log: log, LogLevel: t.LogLevel, Asks: t.Asks, State: t.State, Answers: t.Answers,
	})
	o := gateway.Output{Body: result.Body, JSON: result.JSON, Attempts: result.Attempts, Pending: result.Pending, Until: result.Until}
	for _, c := range result.Challenges {
		o.Challenges = append(o.Challenges, gateway.Challenge(c))
	}
	if result.InputRequired != nil {
		o.Asked = &gateway.Asked{State: result.InputRequired.State}
		for _, q := range result.InputRequired.Questions {
			o.Asked.Questions = append(o.Asked.Questions, gateway.Question(q))
		}
	}
	return o, err
}

// Authorization asks the server of a tool how an authorization stands.
func (r runner) Authorization(ctx context.Context, run registry.Run, address string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.running, cancel)()
	return r.engine.Authorization(ctx, toEngine(run), address)
}

// Cancel tells the server of a tool that a call was called off.
func (r runner) Cancel(ctx context.Context, t gateway.Task) {
	r.engine.Cancel(ctx, engine.Call{
		Tool: t.Tool, Version: t.Version, Effect: t.Effect, Run: toEngine(t.Run), ID: t.CallID, Thread: t.Thread,
	})
}

func toEngine(r registry.Run) engine.Run { return engine.Run(r) }
