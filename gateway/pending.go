package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// pend notes that the tool answers later. Where that cannot be noted yet it is
// owed: until it is noted, the call looks like one that runs.
func (c *call) pend(ctx context.Context, output Output, start time.Time) Outcome {
	until := output.Until
	if until.IsZero() {
		until = start.Add(c.tool.Run().Timeout)
	}
	taken := c.trace.start()
	c.trace.add(string(refusal.Execute), start, taken, nil)
	err := c.noteWaiting(ctx, until)
	c.trace.stored(ctx, taken, err)
	if errors.Is(err, store.ErrEnded) { // the answer came first
		call, err := c.kernel.store.Find(context.WithoutCancel(ctx), c.id)
		if err == nil && call.Step == store.Ended {
			return c.endedBefore(context.WithoutCancel(ctx), &call)
		}
	} else if err != nil {
		c.kernel.owed.owe(func() {
			for err := err; unnoted(err); err = c.noteWaiting(ctx, until) {
				time.Sleep(again)
			}
		})
	}
	return c.pending(start, until)
}

func (c *call) noteWaiting(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWait)
	defer cancel()
	return c.kernel.store.Defer(ctx, c.id, until)
}

// unnoted tells errors of a store that cannot be asked from those that say how a
// call stands.
func unnoted(err error) bool {
	return err != nil && !errors.Is(err, store.ErrEnded) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDispatched) && !errors.Is(err, store.ErrNotOwner)
}

// notPending is the refusal for what a tool says of a call that does not wait for it.
// Why is for the operator alone.
func notPending(why string) *refusal.Error {
	return refusal.New(refusal.NotFound, "There is no such call that waits for an answer.").WithCause(errors.New(why))
}

// overdue tells whether a call has waited for long enough.
func (k *Kernel) overdue(call *store.Call) bool {
	return call.Step == store.Waiting && !k.parts.Now().Before(call.Until)
}

// expire ends a call whose tool has not answered in time, unless somebody does so.
func (k *Kernel) expire(ctx context.Context, call *store.Call) {
	if c := k.restore(call); k.ends.begin(c) {
		c.expire(ctx)
	}
}

// expire tells whether it was this that has ended the call.
func (c *call) expire(ctx context.Context) bool {
	c.expired = true
	o := c.finish(ctx, Output{}, c.overdue(c.stored.Task.Effect), c.started)
	return !c.late && !o.Pending
}

// ends are calls that wait, and that are being ended here: each once at a time, so
// that what asks for it again and again, while the store is away, leaves no more
// than one behind. The zero value has none.
type ends struct {
	mu   sync.Mutex
	byID map[string]bool
}

// begin notes that a call is being ended, until that is told.
func (e *ends) begin(c *call) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byID[c.id] {
		return false
	}
	if e.byID == nil {
		e.byID = map[string]bool{}
	}
	e.byID[c.id] = true
	c.told = func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.byID, c.id)
	}
	return true
}

// restore is a call as the store has it: enough to write its outcome down, and,
// where its tool is still what it was, to run it again.
func (k *Kernel) restore(stored *store.Call) *call {
	state, t := k.state.Load(), &stored.Task
	c := &call{
		kernel: k, state: state, mode: ModeCall, id: stored.ID, stored: stored, started: stored.Opened, digest: t.Input,
		subject: Subject{Agent: t.Agent, Workspace: stored.Scope.Workspace, Project: stored.Scope.Project},
		request: &Request{ID: t.RequestID, CallerAddress: t.Caller, TraceID: t.Trace, Thread: t.Thread},
		parsed:  parser.Result{Kind: parser.Call, Name: t.Tool, HasName: true, Arguments: t.Arguments},
		repeats: max(stored.Attempts-1, 0),
	}
	if tool, ok := state.Tools.LookupVersion(t.Tool, t.Version); ok && tool.Effect() == t.Effect {
		c.tool = tool
	}
	return c
}

// debts are outcomes that are not written down yet.
type debts struct {
	mu   sync.Mutex
	open int
	none chan struct{} // closed when open falls to zero
	room chan struct{} // holds a token for each decision whose handing over is owed
}

// pay writes an outcome down, and settles what that settles. The call has ended,
// so it is owed: where the journal refuses, it is tried again until it is there.
// Meanwhile the journal refuses new decisions too, so the debts are no more than
// the calls in flight.
func (k *Kernel) pay(r audit.Record, settle func()) {
	if k.write(context.Background(), r) != nil {
		k.owe(settle, r)
		return
	}
	settle()
}

// owe writes outcomes down beside the caller, in their order, and says when that
// is done.
func (k *Kernel) owe(done func(), records ...audit.Record) {
	k.owed.owe(func() {
		defer done()
		for _, r := range records {
			for k.write(context.Background(), r) != nil {
				time.Sleep(again)
			}
		}
	})
}

// owe does beside the caller what must be done.
func (d *debts) owe(work func()) {
	d.mu.Lock()
	if d.open++; d.none == nil {
		d.none = make(chan struct{})
	}
	d.mu.Unlock()
	go func() {
		work()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.open--; d.open == 0 {
			close(d.none)
			d.none = nil
		}
	}()
}

// Flush waits until every outcome is written down. Its error says that some
// are not, when ctx ends before.
func (k *Kernel) Flush(ctx context.Context) error {
	k.owed.mu.Lock()
	none := k.owed.none
	k.owed.mu.Unlock()
	if none == nil {
		return nil
	}
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return refusal.New(refusal.AuditUnavailable, "The outcome of a call could not be recorded.").WithCause(ctx.Err())
	}
}
