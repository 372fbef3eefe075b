package calls

import (
	"context"
	"errors"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls/internal/execution"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// Question is a question to a caller about a call of its own.
type Question = approvals.Question

// Questions asks people to approve the calls of a decision, of one that was refused for want of
// that alone. It returns what the caller can be asked of each call; nil at the places of others, and
// nothing where nobody is asked.
func (e *Executor) Questions(ctx context.Context, d *gateway.Decision) []*Question {
	return e.approvals.Questions(ctx, d)
}

// MaxReason bounds the reason of a Confirmation, in characters.
const MaxReason = approval.MaxReason

// Confirmation is the answer of a caller to what it was asked of a call of its own.
type Confirmation struct {
	ID string // of the approval
	// Tool and Arguments are the call that the caller was shown. A no may be without Arguments: hooks may have changed those
	// that a caller wrote.
	Tool      string
	Arguments []byte
	Yes       bool
	Reason    string
	// Outdated says that the conversation has gone on since the answer: it brought what it could then,
	// and nothing is voted or executed any more.
	Outdated bool
}

// Confirm takes the answer of an admitted caller, and returns the outcome of its call. A yes is its
// vote, once, for rules that callers answer; then the call is judged by the credential of this
// request and the configuration of now, and executed, as Resume does. A no ends the approval. An
// answer that comes again changes nothing, and has the outcome of the call that ran.
//
// An approval of another caller is not_found. One of another call, agent or place, and a no to a
// call that has run, is approval_conflict. The error is a *refusal.Error.
func (e *Executor) Confirm(ctx context.Context, admission *gateway.Admission, c Confirmation, w Wait) (Outcome, error) {
	a, err := e.approvals.Of(ctx, c.ID, admission.Principal())
	if err != nil {
		return Outcome{}, err
	}
	switch {
	case !c.isOf(&a, admission.Subject()):
		return Outcome{}, refusal.New(refusal.ApprovalConflict, "The call is not the one that was asked for. Nothing was executed.")
	case a.Ran != "" && !c.Yes:
		return Outcome{}, refuseLateNo()
	case a.Ran == "" && c.Outdated:
		return e.passedOutcome(&a), nil
	case a.Ran != "":
		return e.outcomeOfRun(ctx, &a, admission.Principal())
	}
	_, err = e.approvals.Confirm(ctx, admission.Principal(), a.ID, approvals.Ballot{Yes: c.Yes, Digest: a.Digest, Reason: c.Reason})
	var refused *refusal.Error
	if err != nil && (!errors.As(err, &refused) || refused.Code != refusal.ApprovalConflict && refused.Code != refusal.PermissionDenied) {
		return Outcome{}, err
	}
	if !c.Yes {
		return e.declined(ctx, &a, c.Reason)
	}
	// Where the vote was not taken, the approval has ended, or its rules are for others by now: that
	// is what the call is judged by.
	o, err := e.takeUp(ctx, admission, a.ID, w)
	if err == nil && o.ApprovalRequest != nil && o.Refusal == nil {
		o.Refusal = consent.RefuseUnapproved(a.Tool)
		o.SetResult(execution.RefusedResult(gateway.Report{Tool: a.Tool, HasTool: true}, o.Refusal))
	}
	return o, err
}

// isOf reports whether the caller was shown the call of an approval, in its place.
func (c *Confirmation) isOf(a *approval.Approval, s gateway.Subject) bool {
	if !c.Yes && c.Arguments == nil {
		return c.Tool == a.Tool && s.Agent == a.Agent && s.Workspace == a.Workspace && s.Project == a.Project
	}
	call := a.Call
	call.Tool, call.Arguments = c.Tool, c.Arguments
	call.Agent, call.Workspace, call.Project = s.Agent, s.Workspace, s.Project
	digest, err := call.Digest()
	return err == nil && digest == a.Digest
}

// declined is the outcome of a call that its caller has declined. One whose rules are for others by
// now is called off.
func (e *Executor) declined(ctx context.Context, requested *approval.Approval, reason string) (Outcome, error) {
	a, err := e.approvals.Of(ctx, requested.ID, requested.Principal)
	if err != nil {
		return Outcome{}, err
	}
	if a.Live(e.now()) {
		if a, err = e.approvals.End(ctx, a.ID, approval.EndWithdrawn, a.Principal, reason); err != nil {
			return Outcome{}, err
		}
	}
	if a.Ran != "" {
		return Outcome{}, refuseLateNo()
	}
	return e.outcomeOfApproval(&a, e.approvals.RefuseEnded(&a, e.approvals.State(&a))), nil
}

func refuseLateNo() *refusal.Error {
	return refusal.New(refusal.ApprovalConflict, "The call has run already, and cannot be declined any more.")
}

// passedOutcome is the outcome of a call that did not run before its conversation went on.
func (e *Executor) passedOutcome(a *approval.Approval) Outcome {
	switch state := e.approvals.State(a); state {
	case approval.Waiting, approval.Approved:
		return e.outcomeOfApproval(a, consent.RefusePassed(a.Tool))
	default:
		return e.outcomeOfApproval(a, e.approvals.RefuseEnded(a, state))
	}
}
