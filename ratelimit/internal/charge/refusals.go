package charge

import (
	"fmt"

	"github.com/callgate/callgate/refusal"
)

// slotRetryMS is the hint how long to wait for a slot. When a call in flight will end
// is unknown; a second keeps a caller from spinning, is short beside a tool call, and
// is the least that Retry-After can say.
const slotRetryMS = 1000

// The messages say how long to wait and nothing about whose budget it is: budgets of
// tools and projects are spent by others too. The cause tells the operator.

func rateLimited(ms int64, by *Charge) error {
	e := refusal.New(refusal.RateLimited, fmt.Sprintf("Too many calls for the moment: wait %d ms, then send the same call again.", ms))
	e.RetryAfterMS, e.Cause = ms, by.cause()
	return e
}

func callerRateLimited(ms int64, by *Charge) error {
	e := refusal.New(refusal.CallerRateLimited,
		fmt.Sprintf("Too many requests for the moment: wait %d ms, then send the same request again.", ms))
	e.RetryAfterMS, e.Cause = ms, by.cause()
	return e
}

func concurrencyLimited(agent string, slots int) error {
	e := refusal.New(refusal.ConcurrencyLimited,
		fmt.Sprintf("Too many calls at the same time: wait about %d ms, or until an earlier call has ended, then send the same call again.",
			slotRetryMS))
	e.RetryAfterMS, e.Cause = slotRetryMS, &spent{limit: fmt.Sprintf("concurrency %d of the agent %s", slots, agent), why: "is reached"}
	return e
}

// CallError is the refusal of a call, or nil if its charges were taken.
func (v Verdict) CallError(d *Charges) error {
	switch v.Outcome {
	case Taken:
		return nil
	case Exhausted:
		return rateLimited(v.MS, v.By)
	case NoSlot:
		return concurrencyLimited(d.Agent, *d.Slots)
	}
	return Unavailable(errDisagree)
}

// CallerError is the refusal of a caller's request, or nil if its charge was taken.
func (v Verdict) CallerError() error {
	switch v.Outcome {
	case Taken:
		return nil
	case Exhausted:
		return callerRateLimited(v.MS, v.By)
	}
	return Unavailable(errDisagree)
}

// Unavailable is the refusal of a call that could not be judged; the cause is for the operator.
func Unavailable(cause error) error {
	return refusal.New(refusal.LimiterUnavailable,
		"The call limits cannot be judged at the moment, so the call was not executed.").WithCause(cause)
}

// cause names the budget that is spent, or has no room, by its key.
func (a *Charge) cause() error {
	of := &spent{limit: fmt.Sprintf("%s (%s)", a.Path(), a.Budget), why: "is spent"}
	if a.TableFull {
		of.why = "has no room for another name, since every bucket is in use"
	}
	return of
}

// spent is the cause of a refusal by a limit.
type spent struct{ limit, why string }

func (s *spent) Error() string { return s.limit + " " + s.why }

// Limit is the key of the limit in limits.yaml, and what it grants.
func (s *spent) Limit() string { return s.limit }
