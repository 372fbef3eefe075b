package store

import (
	"context"
	"slices"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// A shared back end may lose what it has confirmed. Each gateway then puts back what it still knows: what
// its process has written a moment ago, and runs, by Restore; and what its audit log says, by Fold.
// Both may be repeated, and change nothing where the back end knows as much or more.

// Kept is a record as this process has written it; a Value of nil: it was removed.
type Kept struct {
	Key
	Value Value
}

// Restore puts records back.
func (e *Engine) Restore(ctx context.Context, kept []Kept) error {
	return e.inBatches(ctx, len(kept), func(s *step, i int) error { return s.restore(kept[i]) })
}

// inBatches makes transitions of n things, some in one commit.
func (e *Engine) inBatches(ctx context.Context, n int, rule func(s *step, i int) error) error {
	for from := 0; from < n; from += readBatch {
		if err := e.change(ctx, func(s *step) error {
			for i := from; i < min(n, from+readBatch); i++ {
				if err := rule(s, i); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *step) restore(k Kept) error {
	switch v := k.Value.(type) {
	case nil:
		return s.restoreRemoval(k.Key)
	case *Call:
		return s.restoreCall(v)
	case *Asked:
		return s.restoreAsked(v)
	case *approval.Grant:
		if was, err := get[approval.Grant](s, GrantRecord, v.ID); err != nil || was != nil && !v.Follows(was) || v.Outlived(s.now) {
			return err
		}
		return s.put(GrantRecord, v.ID, v)
	}
	return nil // what belongs to another record comes with that
}

// restoreRemoval removes a call that this process has taken back. What ends otherwise, an approval or a grant, is kept as ended.
func (s *step) restoreRemoval(key Key) error {
	if key.Kind != CallRecord {
		return nil
	}
	c, err := get[Call](s, CallRecord, key.ID)
	if err != nil || c == nil || c.Step.Rank() > Dispatched.Rank() || c.Owner != s.process.Name {
		return err
	}
	return s.removeCall(c)
}

func (s *step) restoreCall(c *Call) error {
	was, err := get[Call](s, CallRecord, c.ID)
	if err != nil || c.Outlived(s.now) {
		return err
	}
	if was == nil || was.isBehind(c) {
		if err := s.put(CallRecord, c.ID, c); err != nil {
			return err
		}
	}
	if err := s.restoreKey(c); err != nil || c.Step == Opened {
		return err
	}
	_, _, err = s.restoreUse(c.ID, c.Task.Using, s.now)
	return err
}

// isBehind reports whether a call is a state before another of the same call.
func (c *Call) isBehind(other *Call) bool {
	switch {
	case c.Step != other.Step:
		return c.Step.Rank() < other.Step.Rank()
	case c.Step == Ended && c.FinishedBy == other.FinishedBy:
		return !c.Delivered && other.Delivered
	}
	return c.Attempts < other.Attempts
}

// restoreKey gives a call its key back, unless the key has started another one.
func (s *step) restoreKey(c *Call) error {
	if c.Key == "" {
		return nil
	}
	name := keyName(c.Scope, c.Key)
	key, err := get[Started](s, KeyRecord, name)
	if err != nil {
		return err
	}
	if key != nil {
		owner, err := get[Call](s, CallRecord, key.Call)
		if err != nil || key.Call == c.ID || owner != nil && (owner.Step != Opened || c.Step == Opened) {
			return err
		}
	}
	return s.put(KeyRecord, name, &Started{c.ID})
}

// restoreUse marks approvals as used by a call, whatever their votes are. It returns how many were not, and whether
// one is not there.
func (s *step) restoreUse(call string, using []string, at time.Time) (n int, absent bool, err error) {
	for _, id := range using {
		if IsGrant(id) {
			continue
		}
		a, err := get[Asked](s, AskRecord, id)
		if err != nil {
			return n, absent, err
		}
		absent = absent || a == nil
		if a == nil || a.Ran != "" {
			continue
		}
		n++
		used := a.Approval
		used.Ran, used.RanAt, used.Arguments, used.Ended = call, at, nil, approval.Ending{}
		used.Revision++
		if err := s.replace(used); err != nil {
			return n, absent, err
		}
	}
	return n, absent, nil
}

// restoreAsked puts an approval back, or what it says beyond the one that there is.
func (s *step) restoreAsked(a *Asked) error {
	was, err := get[Asked](s, AskRecord, a.ID)
	if err != nil || a.Outlived(s.now) {
		return err
	}
	if was != nil {
		return s.replace(approval.Merge(was.Approval, a.Approval))
	}
	if err := s.put(AskRecord, a.ID, a); err != nil || !a.Live(s.now) && !a.Stands(s.now) {
		return err
	}
	question, err := get[Question](s, QuestionRecord, a.Digest)
	if err != nil {
		return err
	}
	all := &Question{}
	if question != nil {
		all.Approvals = append(all.Approvals, question.Approvals...)
	}
	all.Approvals = append(all.Approvals, a.ID)
	return s.put(QuestionRecord, a.Digest, all)
}

// Fact is what a record of the gateway's audit log says of a call, an approval or a grant.
type Fact struct {
	At   time.Time
	Call Call // what is known of it: ID, Scope, Digest, Task
	// KeyHash is the KeyHash of its idempotency key; nil: it has none, or the record does not say it.
	KeyHash []byte
	// Kind says which record it is of.
	Kind FactKind
	// Approval is the approval that has ended so, and Grant the grant that was revoked.
	Approval string
	Ended    approval.Ending
	Grant    string
}

// FactKind is what a Fact is of.
type FactKind int

// The kinds of facts.
const (
	Executed    FactKind = iota // a call was about to be dispatched here
	HandedOver                  // a call was handed over to the application
	NotExecuted                 // and was not dispatched after all
	OutcomeKnown
	ApprovalEnded
	GrantRevoked
)

// Folded counts what Fold has put back.
type Folded struct {
	Keys      int // of calls that have ended, and whose answers are lost
	Running   int // calls of earlier processes without an outcome
	Uses      int // of approvals
	Approvals int // and grants that have ended
}

// Plus is what two have put back.
func (n Folded) Plus(m Folded) Folded {
	return Folded{n.Keys + m.Keys, n.Running + m.Running, n.Uses + m.Uses, n.Approvals + m.Approvals}
}

// Fold puts back what the audit log of this node says. Facts come in the order of the log. It returns
// those of calls, approvals and grants that are not there: where another gateway puts them back later, fold these
// once more.
func (e *Engine) Fold(ctx context.Context, facts []Fact) (all Folded, missing []Fact, err error) {
	for from := 0; from < len(facts); from += readBatch {
		var some Folded
		before := len(missing)
		if err := e.change(ctx, func(s *step) error {
			some, missing = Folded{}, missing[:before]
			for i := from; i < min(len(facts), from+readBatch); i++ {
				there, err := s.fold(&facts[i], &some)
				if err != nil {
					return err
				}
				if !there {
					left := facts[i]
					if left.Kind == Executed { // the call is there, and may be removed before
						left.Kind = HandedOver
					}
					missing = append(missing, left)
				}
			}
			return nil
		}); err != nil {
			return all, missing, err
		}
		all = all.Plus(some)
	}
	return all, missing, nil
}

// loggedProcess is the process of a node of which only the log is left.
const loggedProcess = "/logged"

// fold puts back what a fact says. there is false where a record is not there that it says more of.
func (s *step) fold(f *Fact, n *Folded) (there bool, err error) {
	switch f.Kind {
	case Executed, HandedOver:
		return s.foldDecision(f, n)
	case NotExecuted, OutcomeKnown:
		return s.foldOutcome(f, n)
	case ApprovalEnded:
		a, err := get[Asked](s, AskRecord, f.Approval)
		if err != nil || a == nil || !a.open() {
			return a != nil, err
		}
		n.Approvals++
		ended := a.Approval
		ended.Ended, ended.Arguments = f.Ended, nil
		ended.Ended.Once = f.Ended.By == a.Principal // no log says whether a caller's own denial stands
		ended.Revision++
		return true, s.replace(ended)
	case GrantRevoked:
		g, err := get[approval.Grant](s, GrantRecord, f.Grant)
		if err != nil || g == nil || !g.Live(s.now) {
			return g != nil, err
		}
		n.Approvals++
		revoked := g.Revoked(s.now)
		return true, s.put(GrantRecord, f.Grant, &revoked)
	}
	return true, nil
}

// foldDecision puts back a call that was about to be dispatched, and the uses of its approvals. That it was
// dispatched is not known: it is taken for dispatched, unless its outcome says otherwise.
func (s *step) foldDecision(f *Fact, n *Folded) (there bool, err error) {
	// What becomes of a call that this process holds is not in the log yet.
	if f.Kind == Executed && f.KeyHash != nil && !s.process.Holds(f.Call.ID) {
		was, err := get[Call](s, CallRecord, f.Call.ID)
		if err != nil {
			return false, err
		}
		if was == nil || was.Step == Opened {
			c := f.Call
			c.Key, c.State, c.Step, c.Owner, c.Attempts, c.Opened = hashedKey+string(f.KeyHash), Pending, Dispatched,
				s.process.Node+loggedProcess, 1, f.At
			if err := s.restoreKey(&c); err != nil {
				return false, err
			}
			if err := s.put(CallRecord, c.ID, &c); err != nil {
				return false, err
			}
			n.Running++
		}
	}
	used, absent, err := s.restoreUse(f.Call.ID, slices.Concat(f.Call.Task.Using, f.Call.Task.Spends), f.At)
	n.Uses += used
	return !absent, err
}

// foldOutcome ends a call whose answer is lost, or removes one that was not dispatched.
func (s *step) foldOutcome(f *Fact, n *Folded) (there bool, err error) {
	was, err := get[Call](s, CallRecord, f.Call.ID)
	if err != nil || was == nil || was.Step == Ended || s.process.Holds(was.ID) {
		return was != nil, err
	}
	logged := was.Owner == s.process.Node+loggedProcess
	if f.Kind == NotExecuted && (nodeOf(was.Owner) != s.process.Node || was.Step.Rank() > Dispatched.Rank()) {
		return true, nil
	}
	if logged {
		n.Running--
	}
	if f.Kind == NotExecuted {
		return true, s.removeCall(was)
	}
	n.Keys++
	c := *was
	if c.Step == Opened { // its decision did not name its key
		c.Step = Dispatched
	}
	_, err = c.Finish(Ending{State: Unknown, Attempt: s.process.Node + loggedProcess}, f.At)
	if err != nil {
		return true, err
	}
	return true, s.put(CallRecord, c.ID, &c)
}
