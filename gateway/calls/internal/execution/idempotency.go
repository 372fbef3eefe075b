package execution

import (
	"context"
	"errors"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// ClaimKey stores the call under its key. It returns the outcome of an earlier call that
// has this key, or this id.
func (c *Call) ClaimKey(ctx context.Context, key string) (*Outcome, error) {
	prior, err := c.priorByID(ctx, key)
	if err == nil && prior == nil {
		prior, err = c.openInStore(ctx, key)
		if err != nil {
			c.opened = true // the store may have taken it, and not said so
			c.Forget(ctx)
		}
	}
	if err != nil || prior == nil {
		return nil, err
	}
	answers := elicit.IsAnswerKey(key)
	own := c.StoreCall(key)
	// A call that was put back from a log may have no digest.
	other := prior.Scope != own.Scope || prior.Digest != own.Digest && prior.Digest != "" || !c.MayRepeat(&prior.Call)
	switch {
	case answers && (prior.Step == store.Opened || !other && prior.Step != store.Ended):
		// The first answer is still judged, and has answered nothing if it is refused.
		return nil, refusal.New(refusal.CallInProgress, "An answer to what was asked is being taken in. Send this one again later.")
	case answers && other:
		return nil, refusal.New(refusal.IdempotencyConflict,
			"What was asked has been answered otherwise, and the first answer stands. To be asked again, send the call without the state.")
	case other:
		return nil, refusal.New(refusal.IdempotencyConflict,
			"This idempotency key is that of a request with another completion, agent, user, thread or project: use a new key for a new call.")
	case prior.Step != store.Ended:
		return nil, refusal.New(refusal.CallInProgress, "The call of this idempotency key still runs. Ask for it again later.")
	}
	if err := c.runtime.calls.MarkDelivered(ctx, prior); err != nil {
		return nil, err
	}
	o := Outcome{CallID: prior.ID, Status: prior.Answer.Status, Replayed: true}
	o.SetResult(prior.Result())
	o.applyMetadata(prior.Meta, c.Dialogue())
	return &o, nil
}

// priorByID returns the call of the same principal whose id is the key, or nil. An id
// that no call has is an ordinary key.
func (c *Call) priorByID(ctx context.Context, key string) (*stored.Call, error) {
	// A face may put a prefix and a space before a key.
	if _, own, with := strings.Cut(key, " "); with {
		key = own
	}
	if !gateway.IsCallID(key) {
		return nil, nil
	}
	prior, err := c.runtime.calls.Get(ctx, key, store.Of(c.Principal()))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, refuse.UnsavedAgain(ctx, "key", err)
	}
	return prior, nil
}
