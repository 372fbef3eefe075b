package calls

import (
	"context"
	"errors"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/wrapper"
)

// Lookup returns the status of a call of the principal. A call that does not exist, and
// one of another principal, is not_found. Only the credential and the caller of the
// request are checked.
//
// Lookup marks the result of an ended call as delivered; Delivered reports whether it was
// delivered before.
func (e *Executor) Lookup(ctx context.Context, request gateway.Request, id string) (CallStatus, error) {
	principal, err := e.principalOf(ctx, request)
	if err != nil {
		return CallStatus{}, err
	}
	return e.lookup(ctx, id, principal)
}

// lookup is Lookup for an admitted principal.
func (e *Executor) lookup(ctx context.Context, id, principal string) (CallStatus, error) {
	call, err := e.calls.Get(ctx, id, store.Of(principal))
	if errors.Is(err, store.ErrNotFound) {
		return e.statusOfApproval(ctx, id, principal)
	}
	if err != nil {
		return CallStatus{}, stored.RefuseUnknown(ctx, err)
	}
	if err := e.calls.MarkDelivered(ctx, call); err != nil {
		return CallStatus{}, err
	}
	return statusOf(call), nil
}

// CallState is the state of a call, as it is written on the wire.
type CallState = store.State

// The states of a call.
const (
	StatePending = store.Pending // it runs, or its tool answers later
	StateDone    = store.Done
	StateUnknown = store.Unknown // it has ended, and its outcome is not known
	// StateAuthorization is the state of a pending call whose tool waits for a person to
	// open Metadata.AuthURL.
	StateAuthorization CallState = "authorization"
	// StateChoice is the state of a pending call whose tool waits for a person to choose, by
	// Metadata.Choice.
	StateChoice CallState = "choice"
)

// Metadata is the data about a call beside its state and its result.
type Metadata = stored.Metadata

// CallStatus is the status of a call, as its principal may see it.
type CallStatus struct {
	ID    string
	State CallState
	Ended bool
	// Delivered tells that the result was given before: then it is not to enter its
	// thread again.
	Delivered bool
	// Result is the result for the model, and HTTPStatus its status. Both are empty until
	// the call has ended.
	Result     wrapper.ToolResult
	HTTPStatus int
	Metadata   Metadata
	// ApprovalRequest is what people are asked to approve, or were; nil: nothing, or the call ran.
	ApprovalRequest *gateway.ApprovalRequest

	stored   *stored.Call
	approval approval.State // of a call that asked, and has not run
}

// statusOf is the status of a stored call.
func statusOf(s *stored.Call) CallStatus {
	status := CallStatus{ID: s.ID, State: s.State, Ended: s.Step == store.Ended, Metadata: s.Meta, stored: s}
	switch {
	case s.Step == store.Waiting && s.Meta.Choice != nil:
		status.State = StateChoice
	case s.Step == store.Waiting && s.Meta.AuthURL != "":
		status.State = StateAuthorization
	case status.Ended:
		status.Delivered, status.Result, status.HTTPStatus = s.Delivered, s.Result(), s.Answer.Status
	}
	return status
}
