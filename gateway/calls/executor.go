// Package calls executes calls that the kernel approved: each is in the store before its
// tool is called, so each has exactly one outcome, given by Execute, by Complete for a tool
// that answers later, or by the Reconciler for a call that expired or whose process died.
// Its result enters its thread once.
//
//	identify → claim its key → judge → record → dispatch → run → finish → record its outcome → deliver
//
// There is one way to the engine, and the compiler enforces it: the engine is in a
// gateway.Runner, which runs a gateway.Approved and nothing else, and only package gateway
// makes one, of a call that passed every check and whose decision is durable. It gives them away by
// the gateway.Door of the kernel, which this package has and passes to nobody but its package
// execution: whoever has the kernel alone can judge, and let nothing through.
package calls

import (
	"context"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls/internal/execution"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/gateway/workers"
	"github.com/callgate/callgate/internal/ring"
	"github.com/callgate/callgate/store"
)

// Outcome is the outcome of one input.
type Outcome = execution.Outcome

// Store keeps calls; package store documents what is asked of it.
type Store = stored.Store

// Deps are the parts that an executor uses beside a configuration. If a part is nil, calls
// that need it are refused.
type Deps struct {
	// Deps are those of the kernel. New sets its Questions to read from Store.
	gateway.Deps
	// Engine runs tools. It may also be a Canceller, a ThreadCloser, an Authorizer or a
	// Responder.
	Engine workers.Engine
	// IdleWorkers is how many goroutines wait for the next calls of the engine.
	IdleWorkers int
	Store       Store
	// Approvals keeps what people are asked to approve; nil: nobody can be asked, and a call
	// that needs it is refused.
	Approvals store.Approvals
	// ApprovalObserver counts what people are asked and say; it may be nil.
	ApprovalObserver approvals.Observer
	// Node is the same for every process that writes this journal, and for no other.
	Node string
}

// Executor judges calls by its kernel, and executes those that it approved. It is safe for
// concurrent use.
type Executor struct {
	Kernel     *gateway.Kernel // which judges
	door       gateway.Door
	canceller  Canceller    // nil where the engine cannot
	closer     ThreadCloser // the same
	authorizer Authorizer   // the same
	responder  Responder    // the same
	executions *execution.Runtime
	calls      stored.Calls
	journal    *journal.Writer
	now        func() time.Time
	replica    string

	approvals *approvals.Desk
	handOvers slots
	given     *ring.Ring[gateway.GivenKey, gateway.Given]
	// disputes counts what the tools of calls have sent beside the one answer.
	disputes    disputeCounter
	events      events.Hub
	views       events.Views
	queues      queues
	cancelSlots chan struct{} // holds a token for each tool that is being notified
	closings    closings
}

// New returns an executor with a kernel that judges by a configuration.
func New(config *gateway.Config, deps Deps) (*Executor, error) {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	e := &Executor{
		calls: stored.In(deps.Store), now: deps.Now, replica: deps.Replica,
		handOvers: make(slots, maxHandedOver), given: ring.New[gateway.GivenKey, gateway.Given](maxGiven),
		cancelSlots: make(chan struct{}, maxCancels),
	}
	e.canceller, _ = deps.Engine.(Canceller)
	e.closer, _ = deps.Engine.(ThreadCloser)
	e.authorizer, _ = deps.Engine.(Authorizer)
	e.responder, _ = deps.Engine.(Responder)
	deps.Questions = e.calls
	e.approvals = approvals.New(func() approvals.Kernel { return e.Kernel },
		approvals.Deps{Store: deps.Approvals, Observer: deps.ApprovalObserver, Now: deps.Now, Replica: deps.Replica})
	if deps.Approvals != nil {
		deps.Consents = e.approvals
	}
	k, door, err := gateway.NewWithDoor(config, deps.Deps)
	if err != nil {
		return nil, err
	}
	e.Kernel, e.door, e.journal = k, door, k.Writer()
	e.executions = execution.New(execution.Deps{
		Kernel: k, Door: door, Engine: deps.Engine, IdleWorkers: deps.IdleWorkers, Calls: e.calls, Approvals: e.approvals,
		Observer: deps.Observer, Now: deps.Now, Node: deps.Node,
	})
	return e, nil
}

// Desk is where people decide the calls that ask them.
func (e *Executor) Desk() *approvals.Desk { return e.approvals }

// Drain answers the callers that wait for tools to call back, now and from now on: their calls are
// pending. A process that ends takes no callbacks any more, and the calls go on without it.
func (e *Executor) Drain() { e.executions.Drain() }

// principalOf admits a request about calls, and returns its principal.
func (e *Executor) principalOf(ctx context.Context, request gateway.Request) (string, error) {
	a, err := e.Kernel.AdmitQuery(ctx, request)
	if err != nil {
		return "", err
	}
	return a.Principal(), nil
}
