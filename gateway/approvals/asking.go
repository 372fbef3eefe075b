package approvals

import (
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/approval"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// Wait says how long a request waits for people to approve its calls, and how. The zero value
// does not wait.
type Wait struct {
	For time.Duration
	// Park runs a function that waits, while the request holds no slot that others need. Its
	// refusal says that the request must end. If it is nil, the function is just run.
	Park func(context.Context, func(context.Context)) *refusal.Error
	// Caller, if it is not nil, asks the caller of the one call of the request what it says
	// itself, and how long the request waits for others, instead of For. It is asked again
	// after each vote that does not decide, and where the call is asked for anew.
	Caller func(context.Context, Question) Said
}

// Ask asks people to approve the calls of a decision that was refused because they need it,
// and for nothing else. Equal calls that wait are asked for once. If that cannot be stored or
// recorded, the calls are refused for that reason instead. It reports whether people are asked.
func (d *Desk) Ask(ctx context.Context, decision *gateway.Decision) (asked bool) {
	asking := decision.Asking()
	if asking == nil {
		return false
	}
	ctx = context.WithoutCancel(ctx) // a caller that leaves may come back for it
	for i, c := range asking {
		if c == nil {
			continue
		}
		r := &decision.Reports[i]
		if r.Asked == nil && r.Refusal.Code == refusal.ApprovalRequired {
			if d.isUsed(ctx, c.TakesUp()) {
				return false
			}
			a, err := d.Open(ctx, c)
			if err != nil {
				r.Refusal = refusal.From(refusal.Approval, err)
				return false
			}
			r.Asked = Asked(&a)
		}
		if r.Asked == nil {
			return false
		}
		asked = true
	}
	return asked
}

// isUsed reports whether a call has run by an approval. A request that takes the approval up once
// more gets what became of that, and asks nobody anew.
func (d *Desk) isUsed(ctx context.Context, id string) bool {
	if id == "" {
		return false
	}
	a, err := d.Get(ctx, id)
	return err == nil && a.Ran != ""
}

// Asked is what a caller sees of an approval.
func Asked(a *approval.Approval) *gateway.Asked {
	return &gateway.Asked{ID: a.ID, Rules: a.Rules, Until: a.Closes()}
}

// AskAndWait asks people to approve the calls of a decision, if it was refused for want of that
// alone, waits for them, and judges the request anew once they have decided. The decision
// becomes the new one.
func (d *Desk) AskAndWait(ctx context.Context, decision *gateway.Decision, w Wait) {
	until := d.deps.Now().Add(w.For)
	for d.Ask(ctx, decision) && d.AwaitDecided(ctx, decision, w, until) {
		decision.Become(decision.Reopen(ctx).Judge(ctx))
	}
}

// AwaitVotes waits for a time until an approval waits for votes no longer, and reports whether
// it does not, and the request may go on.
func (d *Desk) AwaitVotes(ctx context.Context, a *approval.Approval, w Wait, until time.Time) (decided bool) {
	return d.wait(ctx, w, until, func(ctx context.Context) bool {
		_, _, err := d.Await(ctx, a.ID)
		return err == nil
	})
}

// AwaitDecided waits until everything that a decision asked for was decided, and reports
// whether it was, and the request may go on.
func (d *Desk) AwaitDecided(ctx context.Context, decision *gateway.Decision, w Wait, until time.Time) (decided bool) {
	if w.Caller != nil {
		within, decided := d.askCaller(ctx, decision, w)
		if decided {
			return true
		}
		until = d.deps.Now().Add(within)
	}
	return d.wait(ctx, w, until, func(ctx context.Context) bool {
		decided := true
		for i := range decision.Reports {
			asked := decision.Reports[i].Asked
			if asked == nil || !decided {
				continue
			}
			a, state, err := d.Await(ctx, asked.ID)
			decided = err == nil
			if state == approval.Expired || state == approval.Withdrawn { // nobody is asked anew for a call that was called off
				decision.Reports[i].Refusal, decision.Reports[i].Asked, decided = consent.RefuseEnded(&a, state), nil, false
			}
		}
		return decided
	})
}

// wait runs a function that waits, until a time and while the request may stay.
func (d *Desk) wait(ctx context.Context, w Wait, until time.Time, done func(context.Context) bool) (decided bool) {
	within := until.Sub(d.deps.Now())
	if within <= 0 {
		return false
	}
	wait := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		decided = done(ctx)
	}
	if w.Park == nil {
		wait(ctx)
		return decided
	}
	return w.Park(ctx, wait) == nil && decided
}

// Of returns what a principal's call has asked for. That of another principal is not_found. The
// error is a *refusal.Error.
func (d *Desk) Of(ctx context.Context, id, principal string) (approval.Approval, error) {
	a, err := d.Get(ctx, id)
	if err != nil {
		var refused *refusal.Error
		if errors.As(err, &refused) && refused.Code != refusal.NotFound {
			return a, err
		}
	}
	if err != nil || a.Principal != principal {
		return approval.Approval{}, refusal.New(refusal.NotFound, "There is no such call.")
	}
	return a, nil
}

// RefuseGone is the refusal of a call whose approvals and grants let it pass when it was judged,
// of which one has ended before its dispatch: with the reason of the person who ended it, where
// there is one.
func (d *Desk) RefuseGone(ctx context.Context, using []string) *refusal.Error {
	for _, id := range using {
		if store.IsGrant(id) {
			continue
		}
		if a, err := d.Get(ctx, id); err == nil && !a.Live(d.deps.Now()) {
			return consent.RefuseEnded(&a, d.State(&a))
		}
	}
	return consent.RefuseDenied("")
}
