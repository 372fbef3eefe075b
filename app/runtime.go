// Package app joins the parts of the gateway: it opens what a configuration names
// (audit log, store, limits, credentials, engine, tool servers), makes the kernel on top
// of them, serves it over HTTP or to one client on standard input and output, follows
// changes of the configuration, and closes everything in order. It decides nothing about
// a call.
package app

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
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/engine/demo"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

// Runtime is everything that a gateway needs to execute calls. It holds the lock of its
// data folder until it is closed.
type Runtime struct {
	Executor *calls.Executor
	folder   string // that it holds
	log      *audit.Log
	shipping *shipping
	recent   *admin.Recent
	changes  *admin.Changes
	compared *comparing
	engine   *Engine
	secrets  *secret.Store // of tools, tool servers and upstreams
	// Servers watches the tool servers of the configuration.
	Servers    *toolservers.Watcher
	limiter    limiter
	store      callStore
	stops      stopped
	threads    *threads
	reconciler *calls.Reconciler
	// callbacks makes and verifies the URLs at which callback tools answer.
	callbacks *Callbacks
	models    atomic.Pointer[upstream.Set] // the upstreams of the current configuration
	budgets   budgets
	// cancelCalls cuts off the calls that still run; their outcome is recorded as unknown.
	cancelCalls context.CancelFunc
	subscribers []subscriber
}

// KernelConfig returns the part of a configuration that the kernel uses. Without an
// authenticator no credential is required, as on the command line: a user who may read the
// configuration may also see its decisions.
func KernelConfig(c *configs.Config, authn gateway.Authenticator) *gateway.Config {
	var beside *policy.Policy
	if c.Candidate != nil {
		beside = c.Candidate.Policy
	}
	return &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: c.Limits,
		Defaults: gateway.Subject(c.Defaults), AgentRequired: c.AgentRequired, Identity: authn, Digest: c.Digest,
		Threads: c.Rules().Threads, Beside: beside, Hooks: c.Hooks, Approvals: c.Approvals.Rules, People: people(c),
		ApprovalWait: c.Approvals.Wait, ApprovalPages: approvalPages(c),
	}
}

// NewChecker returns a kernel that can check, and nothing else: it has no journal
// and no engine.
func NewChecker(c *configs.Config) (*gateway.Kernel, error) {
	k, err := gateway.New(KernelConfig(c, nil), gateway.Deps{})
	if err != nil {
		return nil, cli.InternalError{Err: err}
	}
	return k, nil
}

// Options are the parts of a Runtime beside its configuration. All except the logger may be
// zero.
type Options struct {
	Logger *slog.Logger
	// RequestLog takes the lines of requests that did not fail; nil is Logger.
	RequestLog *slog.Logger
	Version    string // of this program
	Revision   string // that it was built from; may be empty
	Metrics    *telemetry.Metrics
	Tracing    *Tracing
	// Wait is how long the disk and Redis are waited for; zero is as long as the
	// packages that ask them say. A test has more patience, on a machine that is busy
	// with others.
	Wait time.Duration
	// DrainDelay is how long a draining gateway still accepts connections, so that a load
	// balancer can see that it is not ready; zero is half a second.
	DrainDelay time.Duration
	// noApprovers says that people have no listener, here or at a replica, where they could
	// approve a call.
	noApprovers bool
	// stopsOf is the data folder of the gateway whose stops hold here, too; empty: they are kept in this process's own.
	stopsOf string
	// ChangeDeps changes the parts of the kernel before it is made. It is how a test has
	// a process fail at a point that it names; the program has none, and nothing that it
	// reads can give it one.
	ChangeDeps func(calls.Deps) calls.Deps
}

// Open opens the audit log of a configuration and makes the kernel that executes. Without
// an authenticator, no credential is required.
func Open(ctx context.Context, c *configs.Config, authn gateway.Authenticator, o Options) (h *Runtime, err error) {
	if o.Metrics == nil {
		o.Metrics = telemetry.New()
	}
	if err := c.CheckParts(Has); err != nil {
		return nil, err
	}
	redis, err := redisOptions(c.Redis)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	limits, err := openLimiter(ctx, c, redis, o.Metrics, o.Logger, o.Wait)
	if err != nil {
		return nil, err
	}
	recent, changes := admin.NewRecent(nil), &admin.Changes{}
	spending, err := openBudgets(ctx, c, redis, o.Metrics, recent, o.Wait)
	if err != nil {
		return nil, errors.Join(err, limits.Close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, spending.Close(), limits.Close())
		}
	}()
	record := audit.Content(c.Record)
	log, err := OpenAuditLog(c, o.Logger, o.Wait)
	if err != nil {
		return nil, err
	}
	if err := unpackDemo(c); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	backlog, err := readBacklog(log)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	stored, err := openStore(ctx, c, redis, log, authn == nil, o.Logger, o.Wait)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	state := KernelConfig(c, authn)
	past, err := openLedger(ctx, c, state, stored, log, backlog.Open, o.Logger)
	if err != nil {
		return nil, errors.Join(err, stored.close(), log.Close())
	}
	answers, err := NewCallbacks(c, o.Logger)
	if err != nil {
		return nil, errors.Join(err, past.close(ctx), stored.close(), log.Close())
	}
	var servers *toolservers.Watcher
	secrets := secret.NewStore(nil, o.Logger)
	var k *calls.Executor // which runs no call before it is set
	tools := NewEngine(o.Version, engine.Options{
		OnBreaker: o.onBreaker, ReadSecret: secrets.Resolve, CallbackURL: answers.address, ServerURL: answers.base,
		CallbackServers:    answers.servers,
		CancelSubscription: func(ctx context.Context, by tool.Call, id string) error { return k.CancelSubscription(ctx, by, id) },
	}, func(server string, announced bool) { servers.Changed(server, announced) }, o.Logger)
	o.Metrics.Breakers(tools.OpenBreakers)
	running := deadline.NewRoot()
	compared := newComparing(c, o.Metrics)
	parts := calls.Deps{
		Deps: gateway.Deps{
			Limiter: limits.Limiter, Journal: log, Observer: observer{o.Metrics, recent}, Recent: recent, Shadow: compared,
			AwaitTool: func(ctx context.Context, name string) { servers.WaitTool(ctx, name) },
			Hooks:     newHookClient(tools.outbound), HookObserver: o.Metrics,
			Ledger: past, Secret: past.Secret, ThreadsWithCalls: past.shared,
			RecordContent: record, DeferOutcomes: c.Sync == configs.SyncDecision, Replica: replicaName(), NoApprovers: o.noApprovers,
		},
		Engine: engineAdapter{tools.Engine, running}, IdleWorkers: idleWorkers, Store: stored, Approvals: stored.approvals(),
		ApprovalObserver: o.Metrics, Node: stored.node,
	}
	if o.Tracing != nil {
		parts.Tracer = o.Tracing
	}
	if o.ChangeDeps != nil {
		parts = o.ChangeDeps(parts)
	}
	k, err = calls.New(state, parts)
	if err != nil {
		running.Cancel()
		compared.Close()
		tools.Close()
		secrets.Close()
		return nil, errors.Join(cli.InternalError{Err: err}, past.close(ctx), stored.close(), log.Close())
	}
	// Nothing is judged, and no call dispatched again, before it is known what was stopped.
	stopped, err := openStops(ctx, c, redis, k.Kernel, stored, o)
	if err != nil {
		running.Cancel()
		compared.Close()
		tools.Close()
		secrets.Close()
		return nil, errors.Join(err, stored.close(), log.Close())
	}
	o.Metrics.Threads(func() int { return int(past.count.Load()) })
	o.Metrics.Stops(func() int { return len(stopped.Active()) }, func() bool { return stopped.Problem() != "" })
	// Tools of servers that were not asked yet may not be called from the first Judge on.
	servers = toolservers.NewWatcher(tools, noteQuarantine(k.Kernel.Hold, changes), tools.Keep, o.Logger)
	o.Metrics.Quarantine(servers.Quarantined)
	servers.Prepare(c)
	servers.Commit()
	reconciler := k.Reconcile(backlog, logReconciled(o.Logger))
	r := &Runtime{Executor: k, folder: c.DataDir, log: log, recent: recent, changes: changes, compared: compared, engine: tools,
		Servers: servers, limiter: limits, budgets: spending, store: stored, threads: past, stops: stopped, reconciler: reconciler,
		callbacks: answers, cancelCalls: running.Cancel, secrets: secrets}
	if r.shipping, err = startShipping(c, log, o); err != nil {
		return nil, errors.Join(cli.InternalError{Err: err}, r.Close())
	}
	return r, nil
}

// idleWorkers is how many goroutines are kept for the next calls of tools: some MiB at most.
const idleWorkers = 64

// replicaName names this process beside others.
func replicaName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// unpackDemo writes the bundled demo project to the root that the built-in configuration
// names.
func unpackDemo(c *configs.Config) error {
	if !c.Embedded() {
		return nil
	}
	for _, root := range c.Workspaces[c.Defaults.Workspace].Projects[c.Defaults.Project].Roots {
		if err := demo.UnpackProject(root); err != nil {
			return err
		}
	}
	return nil
}

// settleTimeout is how long closing waits for pending outcomes.
const settleTimeout = 5 * time.Second

// Close records the outcomes that are pending and unlocks the data folder.
func (r *Runtime) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	r.Servers.Close()
	r.reconciler.Stop(ctx)
	stopsClosed := r.stops.Close()
	r.cancelCalls()
	r.compared.Close()
	err := r.settle()
	r.engine.Close()
	r.secrets.Close()
	r.shipping.Close()
	err = errors.Join(err, stopsClosed, r.threads.close(ctx), r.budgets.Close(), r.limiter.Close(), r.store.close())
	if err := errors.Join(err, r.log.Close()); err != nil {
		return cli.InternalError{Err: fmt.Errorf("not closed cleanly: %w", err)}
	}
	return nil
}

// settle waits until pending outcomes are recorded.
func (r *Runtime) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	return r.Executor.Kernel.Flush(ctx)
}

// engineAdapter runs the kernel's calls on the engine until running ends.
type engineAdapter struct {
	engine  *engine.Engine
	running context.Context
}

// Run runs a call until the time at which the kernel does not wait for it any more: nothing
// else ends the context of a call that has begun, so none that follows two is made.
func (r engineAdapter) Run(ctx context.Context, t tool.Call) (tool.Result, error) {
	running, client := r.running, delegate.ClientOf(ctx)
	at, ok := ctx.Deadline()
	if ok {
		bounded := deadline.At(r.running, at)
		defer bounded.Cancel()
		running = bounded
	}
	if client != nil {
		running = delegate.WithClient(running, client)
	}
	return r.engine.Run(running, t)
}

// Bounded reports whether the engine bounds the calls of a tool itself.
func (r engineAdapter) Bounded(run tool.Run) bool { return r.engine.Bounded(run) }

// Authorization asks a tool's server for the status of an authorization.
func (r engineAdapter) Authorization(ctx context.Context, run tool.Run, address string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.running, cancel)()
	return r.engine.Authorization(ctx, run, address)
}

// Cancel notifies the server of a tool that a call was cancelled.
func (r engineAdapter) Cancel(ctx context.Context, t tool.Call) {
	r.engine.Cancel(ctx, t)
}

// CloseThread notifies the servers of callback tools that a thread is closed.
func (r engineAdapter) CloseThread(ctx context.Context, thread string) {
	r.engine.CloseThread(ctx, thread)
}

// CheckResponse says why what a person has chosen may not be sent to a URL.
func (r engineAdapter) CheckResponse(t tool.Call, url string) error {
	return r.engine.CheckResponse(t, url)
}

// Respond sends what a person has chosen to a tool.
func (r engineAdapter) Respond(ctx context.Context, t tool.Call, url string, selected int) error {
	return r.engine.Respond(ctx, t, url, selected)
}
