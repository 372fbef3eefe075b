package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// claimKey stores the call under its key. It returns the outcome of an earlier call that
// has this key, or this id.
func (k *Kernel) claimKey(ctx context.Context, c *execution, key string) (*Outcome, error) {
	prior, err := c.priorByID(ctx, key)
	if err == nil && prior == nil {
		prior, err = c.openInStore(ctx, key)
		if err != nil {
			c.opened = true // the store may have taken it, and not said so
			c.forget(ctx)
		}
	}
	if err != nil || prior == nil {
		return nil, err
	}
	answers := strings.HasPrefix(key, answerKeyPrefix)
	other := prior.Scope != c.storeScope() || prior.Digest != c.idempotencyDigest()
	switch {
	case answers && (prior.Step == store.Opened || !other && prior.Step != store.Ended):
		// The first answer is still judged, and has answered nothing if it is refused.
		return nil, refusal.New(refusal.CallInProgress, "An answer to what was asked is being taken in. Send this one again later.")
	case answers && other:
		return nil, refusal.New(refusal.IdempotencyConflict, "What was asked has been answered otherwise, and the first answer stands. Send the call without the state to be asked anew.")
	case other:
		return nil, refusal.New(refusal.IdempotencyConflict, "This idempotency key has been used with another completion. Use a new key for a new call.")
	case prior.Step != store.Ended:
		return nil, refusal.New(refusal.CallInProgress, "The call of this idempotency key still runs. Ask for it again later.")
	}
	if err := k.markDelivered(ctx, prior); err != nil {
		return nil, err
	}
	o := Outcome{CallID: prior.ID, Status: prior.Answer.Status, Replayed: true}
	o.setResult(prior.result())
	o.applyMetadata(prior.meta, c.input.Dialogue)
	return &o, nil
}

// priorByID returns the call of the same principal whose id is the key, or nil. An id
// that no call has is an ordinary key.
func (c *call) priorByID(ctx context.Context, key string) (*storedCall, error) {
	// A face may put a prefix and a space before a key.
	if _, own, with := strings.Cut(key, " "); with {
		key = own
	}
	if !isID(key) {
		return nil, nil
	}
	prior, err := c.kernel.get(ctx, key, store.Of(principalName(c.principal)))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, refuseUnsaved(ctx, err)
	}
	return prior, nil
}

// idempotencyDigest hashes everything the result depends on that the key's scope does not
// cover: one agent must not be given the result of another.
func (c *call) idempotencyDigest() string {
	asked := fmt.Appendf(nil, "%q %t %s", c.subject.Agent, c.input.Truncated, c.inputDigest())
	if n := c.input.Native; n != nil {
		asked = fmt.Appendf(asked, " %q %q", n.Name, n.Wire)
		if n.Version != "" {
			asked = fmt.Appendf(asked, " %q", n.Version)
		}
	}
	if c.request.User != "" { // the tool may be told for whom it acts
		asked = fmt.Appendf(asked, " for %q", c.request.User)
	}
	return digest(asked)
}

// storeScope is the owner of the call: the principal, its workspace and its project.
func (c *judgement) storeScope() store.Scope {
	return store.Scope{Principal: principalName(c.principal), Workspace: c.subject.Workspace, Project: c.subject.Project}
}

// principalName names the owner of calls. Without credentials all callers are one owner.
func principalName(p *identity.Principal) string {
	if p == nil {
		return ""
	}
	return p.Name
}

func refuseUnsaved(ctx context.Context, cause error) error {
	refused := refusal.New(refusal.StoreUnavailable, "The call could not be saved and was not executed. Retry later; changing the call will not help.")
	return refusal.AsCanceled(ctx, refusal.Execute, refused.WithCause(cause))
}
