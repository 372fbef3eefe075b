// Package execution is the life of one approved call: it is in the store before its tool is
// called, it is marked there as dispatched, and it has exactly one outcome, which the store
// takes before the journal does.
//
//	ClaimKey or Persist → Execute: dispatch → run → Finish: wrap → end → record
//
// The engine is in a gateway.Runner that only this package holds, and that runs a
// gateway.Approved and nothing else.
package execution

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/gateway/workers"
	"github.com/callgate/callgate/internal/deadline"
)

// Deps are the parts that executions use.
type Deps struct {
	Kernel *gateway.Kernel
	Door   gateway.Door
	// Engine runs tools; without one, every tool is unavailable.
	Engine workers.Engine
	// IdleWorkers is how many goroutines wait for the next calls of the engine.
	IdleWorkers int
	Calls       stored.Calls
	// Approvals tells why an approval that a call needs cannot be used.
	Approvals *approvals.Desk
	Observer  gateway.Observer // may be nil
	Now       func() time.Time
	// Node is the same for every process that writes this journal, and for no other.
	Node string
}

// Runtime makes the executions of a process. It is safe for concurrent use.
type Runtime struct {
	door      gateway.Door
	runner    gateway.Runner
	calls     stored.Calls
	journal   *journal.Writer
	approvals *approvals.Desk
	observer  gateway.Observer
	now       func() time.Time
	ending    endingCalls
	// The names of attempts to end calls begin with those of the node, and of the process.
	node, process string
	attempts      atomic.Uint64
	draining      context.Context // ends with Drain
	drain         context.CancelFunc
}

// New returns a runtime.
func New(deps Deps) *Runtime {
	draining, drain := context.WithCancel(context.Background())
	node := deps.Node + "/"
	return &Runtime{
		door: deps.Door, runner: gateway.NewRunner(deps.Engine, deps.IdleWorkers), calls: deps.Calls, journal: deps.Kernel.Writer(),
		approvals: deps.Approvals, observer: deps.Observer, now: deps.Now, node: node, process: node + rand.Text() + "/",
		draining: draining, drain: drain,
	}
}

// Drain ends the waiting for tools that call back. Their calls stay pending.
func (r *Runtime) Drain() { r.drain() }

// Call is the execution of a call: from its first entry in the store, over its dispatch, to
// its one outcome.
type Call struct {
	*gateway.Call
	runtime       *Runtime
	opened        bool         // the store has it, as one that was not dispatched
	stored        *stored.Call // the store's entry, if the call was restored from it
	priorAttempts int          // how often it was dispatched before
	expired       bool         // its tool has not answered by the time that it had promised to
	endedByOther  bool         // another has ended it before
	result        []byte       // what its tool has answered, before hooks
	onEnded       func()       // is called once the store has said how it ended; may be nil
	// Metadata are kept of its end beside the result.
	Metadata stored.Metadata

	// Room for what most calls need once: their contexts of the store, and the lists of a decision that
	// has one call.
	persisting, dispatching, ending deadline.Context
	list                            [1]*Call
	outcomes                        [1]Outcome
}

// New returns the execution of a call; a text has no call.
func (r *Runtime) New(call *gateway.Call) *Call { return &Call{Call: call, runtime: r} }

// All returns the executions of the calls of a decision. first, which may be nil, is that of the first
// call where there is one already.
func (r *Runtime) All(approved []gateway.Approved, first *Call) []*Call {
	if len(approved) == 0 {
		return nil
	}
	if first == nil || approved[0].Call() == nil {
		first = r.New(approved[0].Call())
	}
	all := append(first.list[:0], first)
	for _, a := range approved[1:] {
		all = append(all, r.New(a.Call()))
	}
	return all
}

// Restore returns a stored call: enough to record its outcome and, if its tool has not
// changed, to run it again.
func (r *Runtime) Restore(stored *stored.Call) *Call {
	return &Call{Call: r.door.Restore(stored.Call), runtime: r, stored: stored, priorAttempts: max(stored.Attempts-1, 0)}
}

// EndedByOther reports whether another has ended the call before Finish did.
func (c *Call) EndedByOther() bool { return c.endedByOther }
