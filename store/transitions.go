package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The transitions, as an Engine makes them.
// A transition that is refused leaves the call unchanged.

// Dispatch takes an opened call to the step at which its tool may act.
func (c *Call) Dispatch(task Task, owner string) error {
	if err := c.RequireStep(Opened); err != nil {
		return err
	}
	if err := task.validate(); err != nil {
		return err
	}
	c.Step, c.Task, c.Owner, c.Attempts = Dispatched, task, owner, 1
	return nil
}

// Change is a change by Update of a call that was dispatched: Redispatch, Defer,
// SetMetadata, Deliver or Recorded.
type Change interface {
	// Apply makes the change, unless it returns an error. same reports that the call is
	// already as it is to be.
	Apply(c *Call, now time.Time) (same bool, err error)
}

// Redispatch counts another attempt: the tool is about to be called once more. A call
// whose effect is once, and one that waits, is refused with ErrDispatched.
type Redispatch struct{}

// Apply makes the change.
func (Redispatch) Apply(c *Call, _ time.Time) (same bool, err error) {
	if err := c.RequireStep(Dispatched); err != nil {
		return false, err
	}
	if !c.Task.repeatable() {
		return false, ErrDispatched
	}
	c.Attempts++
	return false, nil
}

// Defer begins to wait: the tool answers later, and the call expires at Until.
type Defer struct{ Until time.Time }

// Apply makes the change.
func (d Defer) Apply(c *Call, _ time.Time) (same bool, err error) {
	if c.Step == Waiting && c.Until.UnixMilli() == d.Until.UnixMilli() {
		return true, nil // sent again, since its reply was lost
	}
	if err := c.RequireStep(Dispatched); err != nil {
		return false, err
	}
	c.Step, c.Until = Waiting, d.Until
	return false, nil
}

// Finish ends a call. same reports that the same attempt has already ended it so.
func (c *Call) Finish(e Ending, now time.Time) (same bool, err error) {
	switch {
	case e.State != Done && e.State != Unknown || e.Attempt == "":
		return false, errInvalidEnding
	case c.Step == Ended && c.FinishedBy == e.Attempt:
		if same = e.Deliver || !c.DeliveredByEnding; !same {
			c.Delivered, c.DeliveredByEnding = false, false
		}
		return same, nil
	case c.Step == Ended:
		return false, ErrEnded
	case c.Step == Opened:
		return false, ErrTooEarly
	}
	c.Step, c.State, c.Answer, c.FinishedBy, c.Ended = Ended, e.State, e.Answer, e.Attempt, now
	c.Delivered, c.DeliveredByEnding, c.Task.Arguments, c.Metadata = e.Deliver, e.Deliver, nil, e.Metadata
	c.DecidedBy, c.Counted = "", e.Counted
	return false, nil
}

// Owed reports whether a call has ended on another node than the one whose log has its decision, and may
// have no outcome in any log: the node that has ended it records that.
func (c *Call) Owed() bool { return c.Step == Ended && c.DecidedBy != "" }

// Recorded says that the outcome of a call that was owed is in the log.
type Recorded struct{}

// Apply makes the change.
func (Recorded) Apply(c *Call, _ time.Time) (same bool, err error) {
	same, c.DecidedBy = !c.Owed(), ""
	return same, c.RequireStep(Ended)
}

// SetMetadata replaces the metadata of a call that waits or has ended, as At says. If they
// are neither Was nor already Metadata, it is refused with ErrConflict: of two writers that
// have read the same metadata, one replaces them.
type SetMetadata struct {
	At            Step
	Was, Metadata []byte
}

// Apply makes the change.
func (s SetMetadata) Apply(c *Call, _ time.Time) (same bool, err error) {
	if s.At.Rank() < Waiting.Rank() {
		return false, ErrTooEarly
	}
	if err := c.RequireStep(s.At); err != nil {
		return false, err
	}
	same = bytes.Equal(c.Metadata, s.Metadata)
	if !same && !bytes.Equal(c.Metadata, s.Was) {
		return false, ErrConflict
	}
	c.Metadata = s.Metadata
	return same, nil
}

// Deliver hands the result of a principal's call to its thread. Every time but the first
// it is refused with ErrDelivered.
type Deliver struct{ Principal string }

// Apply makes the change.
func (d Deliver) Apply(c *Call, now time.Time) (same bool, err error) {
	switch {
	case c.Scope.Principal != d.Principal || c.Outlived(now):
		return false, ErrNotFound
	case c.Step != Ended:
		return false, ErrTooEarly
	case c.Delivered:
		return false, ErrDelivered
	}
	c.Delivered = true
	return false, nil
}

var (
	errInvalidEnding = errors.New("store: an ending needs a final state and an attempt")
	// ErrTooEarly is the error of a step that does not follow the step that the call has reached.
	ErrTooEarly = errors.New("store: the call has not reached that step")
	// ErrNoID is the error of a call without an id, or with one that is too long.
	ErrNoID         = errors.New("store: a call needs an id of at most 1,024 bytes")
	errInvalidUsing = errors.New("store: a dispatch names each approval once")
	errDuplicateID  = errors.New("store: another call has this id")
	// ErrNoReason is the error of a recovery without a reason.
	ErrNoReason = errors.New("store: calls are recovered for a reason")
)

// maxID bounds an id, which names records and rows: a back end may refuse a longer name, and all that is
// written with it.
const maxID = 1024

// IsID reports whether a call may have the id.
func IsID(id string) bool { return id != "" && len(id) <= maxID }

// Reopen answers Open for an id that exists already: it may be the same request,
// sent again.
func (c *Call) Reopen(again Call) error {
	if c.Key != again.Key || c.Scope != again.Scope || c.Digest != again.Digest {
		return errDuplicateID
	}
	return c.RequireStep(Opened)
}

// RequireStep returns an error unless the call is at the step.
func (c *Call) RequireStep(step Step) error {
	switch {
	case c.Step == step:
		return nil
	case c.Step == Ended:
		return ErrEnded
	case c.Step.Rank() > step.Rank():
		return ErrDispatched
	}
	return ErrTooEarly
}

func (t *Task) validate() error {
	if err := validateUsing(slices.Concat(t.Using, t.Spends)); err != nil || slices.ContainsFunc(t.Spends, IsGrant) {
		return cmp.Or(err, errInvalidUsing)
	}
	switch t.Effect {
	case "read", "idempotent", "once":
		return nil
	}
	return fmt.Errorf("store: found the effect %.20q, expected read, idempotent or once", t.Effect)
}

// validateUsing refuses ids that are repeated, and more than there can be.
func validateUsing(using []string) error {
	for i, id := range using {
		if id == "" || strings.Contains(id, " ") || slices.Contains(using[:i], id) || len(using) > maxUsing {
			return errInvalidUsing
		}
	}
	return nil
}

// repeatable reports whether a task may be dispatched twice.
func (t *Task) repeatable() bool { return t.Effect == "read" || t.Effect == "idempotent" }

// Size returns the memory that the texts of a task take, in bytes.
func (t *Task) Size() int64 {
	return int64(len(t.Tool) + len(t.Version) + len(t.Agent) + len(t.Effect) + len(t.Arguments) +
		len(t.Caller) + len(t.RequestID) + len(t.Trace) + len(t.Thread) + len(t.Group) + len(t.Ledger) + len(t.Input) + len(t.Config))
}

// Size is the number of bytes that a call counts for.
func (c *Call) Size() int64 {
	n := int64(len(c.ID)+len(c.Key)+len(c.Digest)) + c.Task.Size() + int64(len(c.Answer.Result)) + int64(len(c.Metadata))
	for _, text := range c.Counted.Adds {
		n += int64(len(text))
	}
	return n
}

// Evictable reports whether a call may be removed to make room.
func (c *Call) Evictable() bool { return c.Step == Ended && c.Key == "" && !c.Owed() }

// Outlived reports whether a call has been kept for Retention.
func (c *Call) Outlived(now time.Time) bool { return c.Step == Ended && now.Sub(c.Ended) >= Retention }
