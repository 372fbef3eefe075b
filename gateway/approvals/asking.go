package approvals

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Wait says how long a request waits for people to approve its calls, and how. The zero value
// does not wait.
type Wait struct {
	For time.Duration
	// Park runs a function that waits, while the request holds no slot that others need. Its
	// refusal says that the request must end. If it is nil, the function is just run.
	Park func(context.Context, func(context.Context)) *refusal.Error
	// Caller, if it is not nil, asks the caller of the calls of the one decision of the request
	// what it says itself of each, and how long the request waits for others, instead of For. It
	// is asked again after each vote that does not decide, and where a call is asked for anew.
	Caller func(context.Context, Question) CallerAnswer
}

// Ask asks people to approve the calls of a decision that was refused because they need it,
// and for nothing else. Equal calls that wait are asked for once. If that cannot be stored or
// recorded, the calls are refused for that reason instead. It reports whether people are asked.
func (d *Desk) Ask(ctx context.Context, decision *gateway.Decision) (requested bool) {
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
		if r.ApprovalRequest == nil && r.Refusal.Code == refusal.ApprovalRequired {
			if d.isUsed(ctx, c.TakesUp()) {
				return false
			}
			a, err := d.Open(ctx, c)
			if err != nil {
				r.Refusal = refusal.From(refusal.Approval, err)
				return false
			}
			r.ApprovalRequest = RequestOf(&a)
		}
		if r.ApprovalRequest == nil {
			return false
		}
		requested = true
	}
	return requested
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

// RequestOf is the part of an approval that a caller sees.
func RequestOf(a *approval.Approval) *gateway.ApprovalRequest {
	return &gateway.ApprovalRequest{ID: a.ID, Rules: a.Rules, Until: a.Closes()}
}

// AskAndWait asks people to approve the calls of decisions, of each that was refused for want of
// that alone, waits for all of them together, and judges those anew that people have decided.
// Each such decision becomes the new one.
func (d *Desk) AskAndWait(ctx context.Context, w Wait, decisions ...*gateway.Decision) {
	until := d.deps.Now().Add(w.For)
	for len(decisions) > 0 {
		decisions = slices.DeleteFunc(slices.Clone(decisions), func(decision *gateway.Decision) bool { return !d.Ask(ctx, decision) })
		decisions = d.AwaitDecided(ctx, w, until, decisions...)
		for _, decision := range decisions {
			decision.Become(decision.Reopen(ctx).Judge(ctx))
		}
	}
}

// AwaitVotes waits for a time until an approval waits for votes no longer, and reports whether
// it does not, and the request may go on.
func (d *Desk) AwaitVotes(ctx context.Context, a *approval.Approval, w Wait, until time.Time) (decided bool) {
	return d.wait(ctx, w, until, func(_, bounded context.Context) bool {
		_, _, err := d.Await(bounded, a.ID)
		return err == nil
	})
}

// AwaitDecided waits until everything that decisions asked for was decided, or the time is over.
// It returns the decisions whose calls were all decided by then; none if the request must end.
func (d *Desk) AwaitDecided(ctx context.Context, w Wait, until time.Time, decisions ...*gateway.Decision) (decided []*gateway.Decision) {
	if w.Caller != nil && len(decisions) == 1 {
		within, voted := d.askCaller(ctx, decisions[0], w)
		if voted {
			return decisions
		}
		until = d.deps.Now().Add(within)
	}
	goesOn := d.wait(ctx, w, until, func(ctx, bounded context.Context) bool {
		for _, decision := range decisions {
			if d.isDecided(ctx, bounded, decision) {
				decided = append(decided, decision)
			}
		}
		return true
	})
	if !goesOn {
		return nil
	}
	return decided
}

// isDecided waits until everything that a decision asked for was decided, or bounded ends. Of
// what could not be waited for any more it looks at the state once: people may have decided it
// while something else was waited for. Of a request that has ended nothing is decided.
func (d *Desk) isDecided(ctx, bounded context.Context, decision *gateway.Decision) bool {
	for i := range decision.Reports {
		requested := decision.Reports[i].ApprovalRequest
		if requested == nil {
			continue
		}
		a, state, err := d.Await(bounded, requested.ID)
		if err != nil && bounded.Err() != nil && ctx.Err() == nil {
			if a, err = d.Get(ctx, requested.ID); err == nil {
				state = d.State(&a)
			}
		}
		switch {
		case err != nil || state == approval.Waiting:
			return false
		case state == approval.Expired || state == approval.Withdrawn: // nobody is asked anew for a call that was called off
			decision.Reports[i].Refusal, decision.Reports[i].ApprovalRequest = d.RefuseEnded(&a, state), nil
			return false
		}
	}
	return ctx.Err() == nil
}

// wait runs a function that waits while the request may stay, and reports whether it did and the
// request may go on. The second context of the function ends at a time.
func (d *Desk) wait(ctx context.Context, w Wait, until time.Time, done func(ctx, bounded context.Context) bool) (ok bool) {
	within := until.Sub(d.deps.Now())
	if within <= 0 {
		return false
	}
	wait := func(ctx context.Context) {
		bounded, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		ok = done(ctx, bounded)
	}
	if w.Park == nil {
		wait(ctx)
		return ok
	}
	return w.Park(ctx, wait) == nil && ok
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
		return approval.Approval{}, refusal.New(refusal.NotFound, "There is no such call of yours.")
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
			return d.RefuseEnded(&a, d.State(&a))
		}
	}
	return consent.RefuseGone()
}
