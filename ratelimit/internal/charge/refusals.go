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
	e := refusal.New(refusal.RateLimited, fmt.Sprintf("%s: wait %d ms, then send the same call again.", by.tooMany("calls"), ms))
	e.RetryAfterMS, e.Cause = ms, by.cause()
	return e
}

func callerRateLimited(ms int64, by *Charge) error {
	e := refusal.New(refusal.CallerRateLimited,
		fmt.Sprintf("%s: wait %d ms, then send the same request again.", by.tooMany("requests"), ms))
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

// Unavailable is the refusal of a request that could not be judged; the cause is for the operator. The request may
// be one that asks about a call which has acted.
func Unavailable(cause error) error {
	return refusal.New(refusal.LimiterUnavailable,
		"The limits cannot be checked now, so this request was refused. Retry later.").WithCause(cause)
}

// cause names the budget that is spent, or has no room, by its key.
func (a *Charge) cause() error {
	of := &spent{limit: fmt.Sprintf("%s (%s)", a.Path(), a.Budget), why: "is spent"}
	if a.TableFull {
		of.why = "has no room for another name, since every bucket is in use"
	}
	return of
}

// tooMany says why there was no token. One request is too many for a share, which begins empty.
func (a *Charge) tooMany(what string) string {
	if a.Undivided != (Budget{}) {
		return "The shared limits are away, and this gateway's share of them, which begins empty, has no room for more " + what + " now"
	}
	return "Too many " + what + " for the moment"
}

// spent is the cause of a refusal by a limit.
type spent struct{ limit, why string }

func (s *spent) Error() string { return s.limit + " " + s.why }

// Limit is the key of the limit in limits.yaml, and what it grants.
func (s *spent) Limit() string { return s.limit }
