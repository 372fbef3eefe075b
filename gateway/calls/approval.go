package calls

import (
	"context"
	"time"

	"github.com/callgate/callgate/approval"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/refusal"
)

// Wait says how long a request waits for people to approve its calls, and how. The zero value
// does not wait.
type Wait struct {
	For time.Duration
	// Park runs a function that waits, while the request holds no slot that others need. Its
	// refusal says that the request must end. If it is nil, the function is just run.
	Park func(context.Context, func(context.Context)) *refusal.Error
}

// ask asks people to approve the calls of a decision that was refused because they need it,
// and for nothing else. Equal calls that wait are asked for once. If that cannot be stored or
// recorded, the calls are refused for that reason instead. It reports whether people are asked.
func (e *Executor) ask(ctx context.Context, d *gateway.Decision) (asked bool) {
	asking := d.Asking()
	if asking == nil {
		return false
	}
	ctx = context.WithoutCancel(ctx) // a caller that leaves may come back for it
	for i, c := range asking {
		if c == nil {
			continue
		}
		r := &d.Reports[i]
		if r.Asked == nil && r.Refusal.Code == refusal.ApprovalRequired {
			a, err := e.approvals.Open(ctx, c)
			if err != nil {
				r.Refusal = refusal.From(refusal.Approval, err)
				return false
			}
			r.Asked = askedFor(&a)
		}
		if r.Asked == nil {
			return false
		}
		asked = true
	}
	return asked
}

func askedFor(a *approval.Approval) *gateway.Asked {
	return &gateway.Asked{ID: a.ID, Rules: a.Rules, Until: a.Closes()}
}

// AwaitApproval asks people to approve the calls of a decision, if it was refused for want of
// that alone, waits for them, and judges the request anew once they have decided. The decision
// becomes the new one.
func (e *Executor) AwaitApproval(ctx context.Context, d *gateway.Decision, w Wait) {
	until := e.now().Add(w.For)
	for e.ask(ctx, d) && e.awaitDecided(ctx, d, w, until) {
		d.Become(d.Reopen(ctx).Judge(ctx))
	}
}

// awaitState waits for a time until an approval waits for votes no longer, and reports whether
// it does not, and the request may go on.
func (e *Executor) awaitState(ctx context.Context, a *approval.Approval, w Wait, within time.Duration) (decided bool) {
	if within <= 0 {
		return false
	}
	wait := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, _, err := e.approvals.Await(ctx, a.ID)
		decided = err == nil
	}
	if w.Park == nil {
		wait(ctx)
		return decided
	}
	return w.Park(ctx, wait) == nil && decided
}

// awaitDecided waits until everything that a decision asked for was decided, and reports
// whether it was, and the request may go on.
func (e *Executor) awaitDecided(ctx context.Context, d *gateway.Decision, w Wait, until time.Time) (decided bool) {
	if !e.now().Before(until) {
		return false
	}
	wait := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, until.Sub(e.now()))
		defer cancel()
		decided = true
		for i := range d.Reports {
			asked := d.Reports[i].Asked
			if asked == nil || !decided {
				continue
			}
			a, state, err := e.approvals.Await(ctx, asked.ID)
			decided = err == nil
			if state == approval.Expired || state == approval.Withdrawn { // nobody is asked anew for a call that was called off
				d.Reports[i].Refusal, d.Reports[i].Asked, decided = refuseEnded(&a, state), nil, false
			}
		}
	}
	if w.Park == nil {
		wait(ctx)
		return decided
	}
	return w.Park(ctx, wait) == nil && decided
}

// refuseExpired is the refusal of a call that nobody has decided in time.
func refuseExpired(a *approval.Approval) *refusal.Error {
	return consent.RefuseExpired(a.Tool, a.Until.Sub(a.Opened))
}
