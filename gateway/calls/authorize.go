package calls

import (
	"context"
	"errors"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/tool"
)

// Authorizer is an Engine that can look up the status of an authorization that a tool's
// server requires. Its error is a *refusal.Error.
type Authorizer interface {
	Authorization(ctx context.Context, run tool.Run, address string) (status string, err error)
}

// The statuses of an authorization.
const (
	authorizationPending   = "pending"
	authorizationCompleted = "completed"
	authorizationFailed    = "failed"
)

// AuthorizationStatus returns the status of the nth authorization that a principal's call
// was refused for: pending, completed or failed. The approval of people that a call waits for is
// its first and only one. As with Lookup, only the credential and
// the caller of the request are checked. An unknown authorization, and one whose server
// cannot be asked, is not_found. This does not deliver the result of the call.
func (e *Executor) AuthorizationStatus(ctx context.Context, request gateway.Request, id string, nth int) (status string, err error) {
	principal, err := e.principalOf(ctx, request)
	if err != nil {
		return "", err
	}
	absent := refusal.New(refusal.NotFound, "There is no such authorization.")
	found, err := e.calls.Get(ctx, id, store.Of(principal))
	if errors.Is(err, store.ErrNotFound) {
		return e.approvalStatus(ctx, id, principal, nth, absent)
	}
	if err != nil {
		return "", stored.RefuseUnknown(ctx, err)
	}
	challenges := found.Meta.Challenges
	if nth < 0 || nth >= len(challenges) || challenges[nth].CheckURL == "" {
		return "", absent
	}
	tool, err := e.Kernel.ToolVersion(found.Task.Tool, found.Task.Version)
	switch {
	case err != nil:
		return "", err
	case tool == nil, e.authorizer == nil:
		return "", absent
	}
	defer safe.Catch(func(panicked error) { status, err = "", refusal.From(refusal.Execute, panicked) })
	return e.authorizer.Authorization(ctx, tool.Run(), challenges[nth].CheckURL)
}

// approvalStatus is the status of what a principal's call asked people for, as that of an
// authorization. Where it asked for nothing the error is absent.
func (e *Executor) approvalStatus(ctx context.Context, id, principal string, nth int, absent *refusal.Error) (string, error) {
	a, err := e.approvals.Of(ctx, id, principal)
	var refused *refusal.Error
	switch {
	case errors.As(err, &refused) && refused.Code == refusal.NotFound, err == nil && nth != 0:
		return "", absent
	case err != nil:
		return "", err
	}
	switch e.approvals.State(&a) {
	case approval.Waiting:
		return authorizationPending, nil
	case approval.Approved, approval.Used:
		return authorizationCompleted, nil
	default:
		return authorizationFailed, nil
	}
}
