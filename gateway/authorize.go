package gateway

import (
	"context"
	"errors"

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
func (k *Kernel) AuthorizationStatus(ctx context.Context, request Request, id string, nth int) (status string, err error) {
	c, err := k.admitRequest(ctx, request, nil)
	if err != nil {
		return "", err
	}
	absent := refusal.New(refusal.NotFound, "There is no such authorization.")
	found, err := k.get(ctx, id, store.Of(principalName(c.principal)))
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
	tool, ok := c.config.Tools.LookupVersion(found.Task.Tool, found.Task.Version)
	if !ok {
		return "", absent
	}
	if k.quarantined(tool.Name()) {
		return "", refuseQuarantined(tool.Name())
	}
	asker, ok := k.deps.Engine.(Authorizer)
	if !ok {
		return "", absent
	}
	defer func() {
		if p := recover(); p != nil {
			status, err = "", refusal.From(refusal.Execute, safe.PanicError(p))
		}
	}()
	return asker.Authorization(ctx, tool.Run(), challenges[nth].CheckURL)
}
