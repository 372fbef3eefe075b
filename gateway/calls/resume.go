package calls

import (
	"context"
	"errors"
	"net/http"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls/internal/execution"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/wrapper"
)

// The states of a call that asked people for their approval.
const (
	StateApproval CallState = "approval" // it waits for them
	StateApproved CallState = "approved" // it may be taken up
)

// Wait says how long a request waits for people to approve its calls, and how.
type Wait = approvals.Wait

// AwaitApproval asks people to approve the calls of decisions, of each that was refused for want
// of that alone, waits for all of them together, and judges those anew that people have decided.
// Each such decision becomes the new one.
func (e *Executor) AwaitApproval(ctx context.Context, w Wait, decisions ...*gateway.Decision) {
	e.approvals.AskAndWait(ctx, w, decisions...)
}

// Resume takes up a principal's call that asked people for their approval, by the id of the
// call that asked: it judges the stored call, by the credential of this request and the
// configuration of now, and executes it. Until people have decided it waits as w says, and then
// says that the call still waits. Once it ran, Resume returns what became of it. A call that
// did not ask, and that of another principal, is not_found.
func (e *Executor) Resume(ctx context.Context, request gateway.Request, id string, w Wait) (Outcome, error) {
	admission, err := e.Kernel.AdmitQuery(ctx, request)
	if err != nil {
		return Outcome{}, err
	}
	return e.takeUp(ctx, admission, id, w)
}

// takeUp is Resume for a caller that was admitted.
func (e *Executor) takeUp(ctx context.Context, admission *gateway.Admission, id string, w Wait) (Outcome, error) {
	until := e.now().Add(w.For)
	for {
		a, err := e.approvals.Of(ctx, id, admission.Principal())
		if err != nil {
			return Outcome{}, err
		}
		switch state := e.approvals.State(&a); {
		case a.Ran != "":
			return e.outcomeOfRun(ctx, &a, admission.Principal())
		case state == approval.Waiting:
			if !e.approvals.AwaitVotes(ctx, &a, w, until) {
				return e.outcomeOfApproval(&a, nil), nil
			}
			continue
		case state != approval.Approved:
			return e.outcomeOfApproval(&a, e.approvals.RefuseEnded(&a, state)), nil
		case a.AnswersDigest != "":
			return Outcome{}, refusal.New(refusal.ApprovalConflict,
				"This call answers questions, and the answers are not kept. It is approved: send the same call again.")
		}
		input := gateway.Input{Native: &gateway.NativeCall{Name: a.Tool, Version: a.Version, Arguments: a.Arguments}}
		o := e.handle(ctx, admission.TakeUp(&a).Open(ctx, gateway.ModeCall, input), "", Wait{})
		if o.Refusal != nil && (o.Refusal.Code == refusal.ApprovalRequired || o.Refusal.Code == refusal.IdempotencyConflict) {
			now, err := e.approvals.Of(ctx, id, admission.Principal())
			switch {
			case err != nil: // the call may have run for another request, which the refusal would deny
				return Outcome{}, err
			case now.Ran != "": // another request was quicker
				return e.outcomeOfRun(ctx, &now, admission.Principal())
			case now.Revision != a.Revision: // another was, and its use of the approval was taken back since
				continue
			}
		}
		return o, nil
	}
}

// outcomeOfRun is the outcome of the call that ran by an approval.
func (e *Executor) outcomeOfRun(ctx context.Context, a *approval.Approval, principal string) (Outcome, error) {
	call, err := e.lookupRun(ctx, a, principal)
	if err != nil {
		return Outcome{}, err
	}
	if !call.Ended {
		return Outcome{CallID: call.ID, Pending: true, Status: http.StatusAccepted}, nil
	}
	o := Outcome{CallID: call.ID, Status: call.HTTPStatus, Replayed: true}
	o.SetResult(call.Result)
	return o, nil
}

// lookupRun is the status of the call that ran by an approval. A dispatch that the store did not
// confirm is taken back, and its call is gone then: the caller is to ask again.
func (e *Executor) lookupRun(ctx context.Context, a *approval.Approval, principal string) (CallStatus, error) {
	status, err := e.lookup(ctx, a.Ran, principal)
	var refused *refusal.Error
	if errors.As(err, &refused) && refused.Code == refusal.NotFound {
		if now, again := e.approvals.Of(ctx, a.ID, principal); again != nil || now.Ran != a.Ran {
			return CallStatus{}, stored.RefuseUnknown(ctx, err)
		}
		err = refusal.New(refusal.NotFound, "The call has run as people approved it, and its answer is no longer kept.")
	}
	return status, err
}

// outcomeOfApproval is the outcome of a call that waits for people, or that they have ended.
func (e *Executor) outcomeOfApproval(a *approval.Approval, refused *refusal.Error) Outcome {
	o := Outcome{CallID: a.ID, Refusal: refused, Status: http.StatusAccepted}
	if refused == nil {
		o.ApprovalRequest = approvals.RequestOf(a)
		return o
	}
	o.Status = refused.Status()
	o.SetResult(execution.RefusedResult(gateway.Report{Tool: a.Tool, HasTool: true}, refused))
	return o
}

// statusOfApproval is the status of a principal's call that asked people for their approval, or of
// the call that ran by it.
func (e *Executor) statusOfApproval(ctx context.Context, id, principal string) (CallStatus, error) {
	a, err := e.approvals.Of(ctx, id, principal)
	if err != nil {
		return CallStatus{}, err
	}
	if a.Ran != "" {
		return e.lookupRun(ctx, &a, principal)
	}
	status := CallStatus{ID: a.ID, ApprovalRequest: approvals.RequestOf(&a), approval: e.approvals.State(&a)}
	switch status.approval {
	case approval.Waiting:
		status.State = StateApproval
	case approval.Approved:
		status.State = StateApproved
	default:
		refused := e.approvals.RefuseEnded(&a, status.approval)
		status.State, status.Ended, status.HTTPStatus = StateDone, true, refused.Status()
		var result wrapper.ToolResult
		if result, err = wrapper.Refusal(&a.Tool, refused); err != nil {
			return CallStatus{}, err
		}
		status.Result = result
	}
	return status, nil
}

// withdraw calls off a principal's call that asked people for their approval.
func (e *Executor) withdraw(ctx context.Context, id, principal string) (CallStatus, error) {
	a, err := e.approvals.Of(ctx, id, principal)
	if err != nil {
		return CallStatus{}, err
	}
	_, err = e.approvals.End(ctx, a.ID, approval.EndWithdrawn, principal, "")
	var refused *refusal.Error
	if err != nil && (!errors.As(err, &refused) || refused.Code != refusal.ApprovalConflict) { // it has ended already
		return CallStatus{}, err
	}
	return e.statusOfApproval(ctx, id, principal)
}
