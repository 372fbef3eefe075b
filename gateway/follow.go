package gateway

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// awaitEnd waits until a pending call has ended, for as long as its tool may take and
// the caller stays. A call that has not ended by then stays pending.
func (k *Kernel) awaitEnd(ctx context.Context, c *call, pending Outcome) (o Outcome) {
	o = pending
	start := c.trace.start()
	defer func() {
		c.trace.step("wait", start, nil)
		c.finishTrace(VerdictCall, o.Refusal, "", 0, o.Result)
	}()
	principal := principalName(c.principal)
	waiting, cancel := context.WithTimeout(ctx, o.deadline.Sub(k.deps.Now()))
	defer cancel()
	call, err := k.waitFor(waiting, c.id, principal, func(call *storedCall) bool { return call.Step == store.Ended })
	if err != nil && ctx.Err() == nil {
		// Nobody is made to wait for the next look at what has expired.
		if call, err = k.get(ctx, c.id, store.Of(principal)); err == nil && k.isExpired(call) {
			k.expire(ctx, call)
			call, err = k.get(ctx, c.id, store.Of(principal))
		}
	}
	if err != nil || call.Step != store.Ended || k.markDelivered(ctx, call) != nil {
		return o
	}
	return outcomeOf(call, c.input.Dialogue)
}

// outcomeOf is the outcome of a stored call that has ended.
func outcomeOf(call *storedCall, d *elicit.Dialogue) Outcome {
	result := call.result()
	o := Outcome{CallID: call.ID, Status: call.Answer.Status, Refusal: result.Refusal}
	o.setResult(result)
	o.applyMetadata(call.meta, d)
	return o
}

// waitFor waits until fit accepts a call of the principal, and returns it.
func (k *Kernel) waitFor(ctx context.Context, id, principal string, fit func(*storedCall) bool) (*storedCall, error) {
	for {
		watch, err := k.watch(id)
		if err != nil {
			return nil, err
		}
		call, err := k.get(ctx, id, store.Of(principal))
		if err != nil || fit(call) {
			watch.Stop()
			return call, err
		}
		select {
		case <-watch.Changed:
		case <-ctx.Done():
			watch.Stop()
			return nil, ctx.Err()
		}
		watch.Stop()
	}
}

// Follower follows one call for its principal. It is for one goroutine.
type Follower struct {
	admission *Admission
	id        string
	seen      bool
	metadata  []byte // of the call as it was seen
}

// Follow lets a request in that follows a call until it has ended. As with
// Lookup, nothing of the request but its credential and its caller is looked at;
// both are looked at again before a result is told.
func (k *Kernel) Follow(ctx context.Context, request Request, id string) (*Follower, error) {
	request.Inputs = nil
	c, err := k.admitRequest(ctx, request, nil)
	if err != nil {
		return nil, err
	}
	request.Subject, request.identified = c.subject, nil
	return &Follower{admission: &Admission{kernel: k, request: request, principal: principalName(c.principal)}, id: id}, nil
}

// Next returns how the call stands: at once the first time, and later when it has
// ended or its metadata has changed. A result is delivered by that, as by Lookup.
func (f *Follower) Next(ctx context.Context) (CallStatus, error) {
	k, principal := f.admission.kernel, f.admission.principal
	if f.seen {
		changed := func(call *storedCall) bool {
			return call.Step == store.Ended || !bytes.Equal(call.Metadata, f.metadata)
		}
		if _, err := k.waitFor(ctx, f.id, principal, changed); err != nil && !errors.Is(err, store.ErrNotFound) {
			return CallStatus{}, refuseFollow(ctx, err)
		}
	}
	f.seen = true
	if _, err := k.admitRequest(ctx, f.admission.request, f.admission); err != nil {
		return CallStatus{}, err
	}
	status, err := k.lookup(ctx, f.id, principal)
	f.metadata = nil
	if err == nil {
		f.metadata = status.stored.Metadata
	}
	return status, err
}

// refuseFollow is the refusal for a call that cannot be waited for.
func refuseFollow(ctx context.Context, err error) error {
	if errors.Is(err, store.ErrFull) || errors.Is(err, events.ErrFull) {
		refused := refusal.New(refusal.Overloaded, "Too many calls are waited for. Ask again later.")
		refused.RetryAfterMS = time.Second.Milliseconds()
		return refused
	}
	return refuseUnknown(ctx, err)
}
