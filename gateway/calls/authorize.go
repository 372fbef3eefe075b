package calls

import (
	"context"
	"errors"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// Authorizer is an Engine that can ask how an authorization stands which the server
// of a tool has asked for. Its error is a *refusal.Error.
type Authorizer interface {
	Authorization(ctx context.Context, run tool.Run, address string) (status string, err error)
}

// AuthorizationStatus asks how the nth authorization stands that a principal's call was
// refused for: pending, completed or failed. As with Lookup, nothing of the request
// but its credential and its caller is looked at. What is not there, and what its
// tool's server cannot be asked, is not_found. The result of the call is not
// delivered by that.
func (e *Executor) AuthorizationStatus(ctx context.Context, request gateway.Request, id string, nth int) (status string, err error) {
	principal, err := e.principalOf(ctx, request)
	if err != nil {
		return "", err
	}
	absent := refusal.New(refusal.NotFound, "There is no such authorization.")
	found, err := e.get(ctx, id, store.Of(principal))
	if errors.Is(err, store.ErrNotFound) {
		return "", absent
	}
	if err != nil {
		return "", refuseUnknown(ctx, err)
	}
	challenges := found.meta.Challenges
	if nth < 0 || nth >= len(challenges) || challenges[nth].CheckURL == "" {
		return "", absent
	}
	tool, err := e.ToolVersion(found.Task.Tool, found.Task.Version)
	switch {
	case err != nil:
		return "", err
	case tool == nil, e.authorizer == nil:
		return "", absent
	}
	defer func() {
		if p := recover(); p != nil {
			status, err = "", refusal.From(refusal.Execute, safe.PanicError(p))
		}
	}()
	return e.authorizer.Authorization(ctx, tool.Run(), challenges[nth].CheckURL)
}
