package gateway

import (
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Approved is a call that passed every check and whose decision is durable. Only this
// package makes one: a Decision gives those of its calls once, and a stored call gives one
// if it may be run again. A Runner runs nothing else; the zero value approves nothing.
type Approved struct{ call *Call }

// Call returns the call; nil for the zero value.
func (a Approved) Call() *Call { return a.call }

// Approve returns the calls of a decision for execution or handover in its mode: one for
// each report, and the zero value for a text. It returns them once. It returns an error if
// the decision is refused, is of another mode or another kernel, or was approved before.
func (o Door) Approve(d *Decision, mode Mode) ([]Approved, *refusal.Error) {
	if refused := d.Refusal(); refused != nil {
		return nil, refused
	}
	if slices.ContainsFunc(d.calls, func(c *Call) bool { return c.kernel != o.kernel }) {
		return nil, refusal.At(refusal.Execute, refusal.Internal, refuse.NothingDone).WithCause(errors.New("a decision of another kernel"))
	}
	if d.mode != mode {
		return nil, refusal.At(refusal.Execute, refusal.Internal,
			refuse.NothingDone).WithCause(fmt.Errorf("a decision of the mode %q in the mode %q", d.mode, mode))
	}
	if slices.ContainsFunc(d.calls, func(c *Call) bool { return asksForApproval(c) && len(c.approvals.using) == 0 }) {
		return nil, refusal.At(refusal.Execute, refusal.Internal,
			refuse.NothingDone).WithCause(errors.New("a call that people have not approved"))
	}
	if !d.approved.CompareAndSwap(false, true) {
		return nil, refuse.AfterDispatch(refusal.Execute, errors.New("a decision was executed or handed over twice"))
	}
	all := d.oneApproved[:0]
	for i, c := range d.calls {
		if d.Reports[i].Verdict == VerdictCall {
			all = append(all, Approved{c})
		} else {
			all = append(all, Approved{})
		}
	}
	return all, nil
}

// AnswerInAdvance reports whether the call carries valid answers to all questions that its
// tool has just asked. If so, the next run passes them to the tool.
func (a Approved) AnswerInAdvance(questions *tool.InputRequired) bool {
	c := a.call
	if c.project == nil {
		return false
	}
	answers := c.input.Dialogue.AnswersInAdvance(questions, c.project.Bounds())
	if answers == nil {
		return false
	}
	c.elicited.answers = answers
	return true
}
