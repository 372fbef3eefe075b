package calls

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Follower follows one call for its principal. It is for one goroutine.
type Follower struct {
	executor      *Executor
	admission     *gateway.Admission
	id            string
	seen          bool
	approvalState approval.State // of a call that asked people, as it was seen; else empty
	metadata      []byte         // of the call as it was seen
}

// Follow admits a request that follows a call until it has ended. As with Lookup, only the
// credential and the caller of the request are checked; both are checked again before a
// result is returned.
func (e *Executor) Follow(ctx context.Context, request gateway.Request, id string) (*Follower, error) {
	a, err := e.Kernel.AdmitQuery(ctx, request)
	if err != nil {
		return nil, err
	}
	return &Follower{executor: e, admission: a, id: id}, nil
}

// Next returns the status of the call: at once the first time, and later when it has ended
// or its metadata has changed. It marks a result as delivered, as Lookup does.
func (f *Follower) Next(ctx context.Context) (CallStatus, error) {
	e, principal := f.executor, f.admission.Principal()
	if f.seen && f.approvalState != "" {
		if _, _, err := e.approvals.AwaitChange(ctx, f.id, f.approvalState); err != nil {
			return CallStatus{}, refuseFollow(ctx, err)
		}
	} else if f.seen {
		changed := func(call *stored.Call) bool {
			return call.Step == store.Ended || !bytes.Equal(call.Metadata, f.metadata)
		}
		if _, err := e.calls.WaitFor(ctx, f.id, principal, changed); err != nil && !errors.Is(err, store.ErrNotFound) {
			return CallStatus{}, refuseFollow(ctx, err)
		}
	}
	f.seen = true
	if err := f.admission.Recheck(ctx); err != nil {
		return CallStatus{}, err
	}
	status, err := e.lookup(ctx, f.id, principal)
	f.metadata, f.approvalState = nil, status.approval
	if err == nil && status.stored != nil {
		f.id, f.metadata = status.ID, status.stored.Metadata // that of the call that ran, once it did
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
	return stored.RefuseUnknown(ctx, err)
}
