package store

import (
	"cmp"
	"context"
	"time"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/store/approval"
)

// NewOpened returns a call at its first step.
func NewOpened(c Call, now time.Time) Call {
	return Call{ID: c.ID, Scope: c.Scope, Key: c.Key, Digest: c.Digest, State: Pending, Step: Opened, Opened: now}
}

// Open records a call that is about to be judged. Where its key has already started
// a call, Open returns that call and records nothing.
func (e *Engine) Open(ctx context.Context, call Call) (prior *Call, err error) {
	if !IsID(call.ID) {
		return nil, ErrNoID
	}
	for {
		err = e.change(ctx, func(s *step) error {
			prior, err = s.open(&call, &e.bounds)
			return err
		})
		if err != nil || prior == nil || !prior.Outlived(e.now()) {
			return prior, err
		}
		if _, err := e.removeCalls(ctx, []string{prior.ID}, nil, func(c *Call) bool { return c.Outlived(e.now()) }); err != nil {
			return nil, err
		}
	}
}

// open is the transition of Open. A prior call that is outlived is to be removed first.
func (s *step) open(call *Call, bounds *Bounds) (prior *Call, err error) {
	name := ""
	if call.Key != "" {
		name = keyName(call.Scope, call.Key)
		if err := s.expect(Key{KeyRecord, name}, Key{CallRecord, call.ID}); err != nil {
			return nil, err
		}
		key, err := get[Started](s, KeyRecord, name)
		if err != nil {
			return nil, err
		}
		if key != nil && key.Call != call.ID {
			owner, err := get[Call](s, CallRecord, key.Call)
			if err != nil {
				return nil, err
			}
			if owner != nil {
				found := *owner
				return &found, nil
			}
		}
	}
	if err := s.expect(Key{CallRecord, call.ID}); err != nil {
		return nil, err
	}
	switch same, err := get[Call](s, CallRecord, call.ID); {
	case err != nil:
		return nil, err
	case same != nil:
		return nil, same.Reopen(*call)
	}
	opened := NewOpened(*call, s.now)
	if s.process.shared() {
		opened.Owner = s.process.Name
	}
	if call.Key != "" {
		if err := s.put(KeyRecord, name, &Started{call.ID}); err != nil {
			return nil, err
		}
	}
	s.commit.Bounds, s.commit.Volatile = bounds, true
	return nil, s.put(CallRecord, call.ID, &opened)
}

// changeCall makes a transition of a call that there is. The rule changes a copy, and says whether
// the call is already as it is to be.
func (e *Engine) changeCall(ctx context.Context, id string, rule func(*step, *Call) (same bool, err error)) error {
	return e.change(ctx, func(s *step) error { return s.changeCall(id, rule) })
}

func (s *step) changeCall(id string, rule func(*step, *Call) (same bool, err error)) error {
	was, err := get[Call](s, CallRecord, id)
	if err != nil {
		return err
	}
	if was == nil {
		return ErrNotFound
	}
	c := *was
	if same, err := rule(s, &c); err != nil || same {
		return err
	}
	return s.put(CallRecord, id, &c)
}

// Dispatch records that the tool of an opened call is about to be called.
func (e *Engine) Dispatch(ctx context.Context, id string, task Task) error {
	return e.changeCall(ctx, id, func(s *step, c *Call) (bool, error) { return false, s.dispatch(c, task) })
}

// dispatch is the transition of Dispatch: it uses approvals up, all or none of those that the call
// passed by. The key of the call becomes as durable as the call.
func (s *step) dispatch(c *Call, task Task) error {
	if err := c.Dispatch(task, s.process.Name); err != nil {
		return err
	}
	c.Task.Spends = nil
	if c.Key != "" {
		name := keyName(c.Scope, c.Key)
		key, err := get[Started](s, KeyRecord, name)
		if err != nil {
			return err
		}
		if key == nil || key.Call != c.ID {
			return ErrNotOwner
		}
		if err := s.put(KeyRecord, name, &Started{c.ID}); err != nil {
			return err
		}
	}
	return s.useApprovals(&task, c.ID)
}

// useApprovals uses up the approvals of a task for its call: all or none of those that the call passed
// by, and what is left of those that its run answers.
func (s *step) useApprovals(task *Task, call string) error {
	for _, id := range task.Using {
		if IsGrant(id) {
			g, err := get[approval.Grant](s, GrantRecord, id)
			if err != nil {
				return err
			}
			if g == nil || !g.Live(s.now) {
				return approval.ErrEnded
			}
			continue
		}
		a, err := get[Asked](s, AskRecord, id)
		if err != nil {
			return err
		}
		if a == nil {
			return approval.ErrEnded
		}
		used := a.Approval
		if err := used.Use(call, s.now); err != nil {
			return err
		}
		if err := s.replace(used); err != nil {
			return err
		}
	}
	for _, id := range task.Spends {
		a, err := get[Asked](s, AskRecord, id)
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		if used := a.Approval; used.Use(call, s.now) == nil {
			if err := s.replace(used); err != nil {
				return err
			}
		}
	}
	return nil
}

// TakeBack takes back what a commit has opened or dispatched although its caller was told that it is
// refused: the call is removed, its key is free, and the approvals that it used are as before.
func (e *Engine) TakeBack(ctx context.Context, done *Commit) error {
	id, _ := done.Begins()
	if id == "" {
		return nil
	}
	return e.change(ctx, func(s *step) error { return s.takeBack(id, done) })
}

// takeBack is the transition of TakeBack.
func (s *step) takeBack(id string, done *Commit) error {
	c, err := get[Call](s, CallRecord, id)
	if _, step := done.Begins(); err != nil || c == nil || c.Step != step || c.Owner != s.process.Name && s.process.shared() {
		return err
	}
	if err := s.removeCall(c); err != nil {
		return err
	}
	for i := range done.Changes {
		before, ok := done.Changes[i].Was.Value.(*Asked)
		if !ok {
			continue
		}
		used, err := get[Asked](s, AskRecord, before.ID)
		if err != nil {
			return err
		}
		if used == nil || used.Ran != id {
			continue
		}
		a := before.Approval
		a.Revision = used.Revision + 1
		if err := s.replace(a); err != nil {
			return err
		}
	}
	return nil
}

// Begins returns the id of the call that a commit opens or dispatches, and which of both; empty: none.
func (c *Commit) Begins() (id string, to Step) {
	for i := range c.Changes {
		was, _ := c.Changes[i].Was.Value.(*Call)
		now, _ := c.Changes[i].Now.(*Call)
		if now != nil && (was == nil && now.Step == Opened || was != nil && was.Step == Opened && now.Step == Dispatched) {
			return now.ID, now.Step
		}
	}
	return "", ""
}

// Adopt keeps a call without a key as it is in another store. Where it is kept already, it must be at
// that step.
func (e *Engine) Adopt(ctx context.Context, call Call) error {
	return e.change(ctx, func(s *step) error {
		same, err := get[Call](s, CallRecord, call.ID)
		if err != nil {
			return err
		}
		if same != nil {
			return same.RequireStep(call.Step)
		}
		return s.put(CallRecord, call.ID, &call)
	})
}

// Update makes one change of a call that was dispatched.
func (e *Engine) Update(ctx context.Context, id string, change Change) error {
	return e.changeCall(ctx, id, func(s *step, c *Call) (bool, error) {
		switch change.(type) {
		case Redispatch, Defer:
			if c.Owner != s.process.Name && c.Step == Dispatched && s.process.shared() {
				return false, ErrNotOwner
			}
		}
		return change.Apply(c, s.now)
	})
}

// ledgerOf are the keys of the thread that a call is counted in.
func ledgerOf(c *Call) ThreadKeys {
	of := KeysOf(c.Scope, "")
	of.Thread = c.Task.Ledger
	return of
}

// Finish ends a call and returns it as it is then. With ErrEnded it returns the call
// as another attempt has finished it.
func (e *Engine) Finish(ctx context.Context, id string, ending Ending) (call Call, err error) {
	counts := !ending.Adds.Empty() && ending.Counted.Turn == 0
	if counts {
		e.recent.changing.RLock()
		defer e.recent.changing.RUnlock()
	}
	err = e.transition(ctx, false, func(s *step) error {
		return s.changeCall(id, func(s *step, c *Call) (bool, error) {
			decidedBy := cmp.Or(c.DecidedBy, nodeOf(c.Owner))
			same, err := c.Finish(ending, s.now)
			if err == nil && !same && s.process.shared() && decidedBy != s.process.Node {
				c.DecidedBy, c.Owner = decidedBy, s.process.Name
			}
			if err == nil && !same && counts {
				var added Reserved
				if added, err = e.addResult(s, ledgerOf(c), ending.Adds); err == nil {
					c.Counted = Counted{added.Turn, added.Adds.Texts()}
				}
			}
			call = *c
			return same, err
		})
	})
	if err == nil && counts { // also where the reply to an attempt before was lost
		added := Reserved{Turn: call.Counted.Turn}
		if added.Adds, err = history.ReadAdds(call.Counted.Adds); err == nil {
			e.note(added.fact(ledgerOf(&call), false))
		}
	}
	return call, err
}

// Settle removes a call that was not dispatched; its key is free again. Other calls stay.
func (e *Engine) Settle(ctx context.Context, id string) error {
	_, err := e.removeCalls(ctx, []string{id}, nil, func(c *Call) bool { return c.Step == Opened })
	return err
}

// Get returns a call; for a call of somebody else, ErrNotFound.
func (e *Engine) Get(ctx context.Context, id string, whose Whose) (Call, error) {
	c, err := view[Call](ctx, e, CallRecord, id)
	switch {
	case err != nil:
		return Call{}, err
	case c == nil || !whose.outlived && c.Outlived(e.now()):
		return Call{}, ErrNotFound
	}
	return whose.Only(*c, nil)
}

// Watch returns a watch for the next change of a call.
func (e *Engine) Watch(id string) (*Watch, error) { return e.watchers.Add(id) }

// Recover returns at most limit calls that need to be recovered for the reason.
func (e *Engine) Recover(ctx context.Context, reason Reason, limit int) (calls []Call, err error) {
	switch reason {
	case Abandoned:
		return e.ofEarlier(ctx, "", limit)
	case Owed:
		if !e.process.shared() {
			return nil, nil
		}
		return e.ofEarlier(ctx, owing(e.process.Node), limit)
	case Expired:
		return e.calls(ctx, Index{DueIndex, ""}, firstRow, rowsUntil(e.now()), limit, func(c *Call) bool {
			return c.Step == Waiting && !c.Until.After(e.now())
		})
	}
	return nil, ErrNoReason
}

// ofEarlier returns calls of the OpenIndex, of a node where there are several, that have other processes,
// each once. While this process runs, they are as many as there were at its start.
func (e *Engine) ofEarlier(ctx context.Context, node string, limit int) (calls []Call, err error) {
	e.recovering.Lock()
	defer e.recovering.Unlock()
	for more := true; more && len(calls) < limit; {
		more = false
		last := e.recovered
		some, err := e.calls(ctx, Index{OpenIndex, node}, last, lastRow, limit-len(calls), func(c *Call) bool {
			last, more = Row{0, c.ID}, true
			return c.Owner != e.process.Name
		})
		if err != nil {
			return calls, err
		}
		calls, e.recovered = append(calls, some...), last
	}
	return calls, nil
}

// calls returns the calls of an index, behind a row and not behind another, that are fit.
func (e *Engine) calls(ctx context.Context, index Index, behind, to Row, limit int, fit func(*Call) bool) (calls []Call, err error) {
	err = indexed(ctx, e, CallRecord, index, behind, to, limit, func(c *Call) bool {
		if fit(c) {
			calls = append(calls, *c)
		}
		return true
	})
	return calls, err
}

// Unfinished returns at most limit calls without an outcome whose ids are behind after, in the
// order of their ids. It is for operators: it changes nothing.
func (e *Engine) Unfinished(ctx context.Context, after string, limit int) ([]Call, error) {
	return e.calls(ctx, Index{OpenIndex, e.process.Node}, Row{0, after}, lastRow, limit, func(c *Call) bool { return c.Step != Ended })
}

// Running passes each call that was dispatched and has no outcome to do, of this process and of all that keep
// calls on the same back end. It is for operators: it changes nothing.
func (e *Engine) Running(ctx context.Context, do func(*Call) (more bool)) error {
	nodes := []string{e.process.Node}
	if e.process.shared() {
		if err := indexed(ctx, e, LeaseRecord, Index{NodeIndex, ""}, firstRow, lastRow, everyRow, func(l *Lease) bool {
			if l.Node != e.process.Node {
				nodes = append(nodes, l.Node)
			}
			return true
		}); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		more := true
		if err := indexed(ctx, e, CallRecord, Index{OpenIndex, node}, firstRow, lastRow, everyRow, func(c *Call) bool {
			if c.Step == Dispatched || c.Step == Waiting {
				more = do(c)
			}
			return more
		}); err != nil || !more {
			return err
		}
	}
	return nil
}

// sweepBatch bounds how many records one commit sweeps.
const sweepBatch = 128

// Sweep removes at most limit calls that have ended longer than Retention ago, and approvals
// as SweepApprovals does.
func (e *Engine) Sweep(ctx context.Context, limit int) (swept int, err error) {
	if swept, err = e.sweepCalls(ctx, limit); err != nil {
		return swept, err
	}
	approvals, err := e.SweepApprovals(ctx, limit-swept)
	return swept + approvals, err
}

func (e *Engine) sweepCalls(ctx context.Context, limit int) (swept int, err error) {
	now := e.now()
	ids, err := e.ids(ctx, Index{EndedIndex, ""}, firstRow, rowsUntil(now.Add(-Retention)), limit)
	for len(ids) > 0 && err == nil {
		some := ids[:min(len(ids), sweepBatch)]
		ids = ids[len(some):]
		var n int
		n, err = e.removeCalls(ctx, some, nil, func(c *Call) bool { return c.Outlived(now) })
		swept += n
	}
	return swept, err
}
