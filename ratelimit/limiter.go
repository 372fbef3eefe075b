// Package ratelimit decides whether a call fits into its budgets.
//
// # Budgets
//
// A budget is a token bucket: a rate at which tokens come back and a burst,
// which is how many it holds. A call takes one token from every budget that
// applies to it, and one concurrency slot of its agent:
//
//	agents.A (or default)   the agent; each agent has a bucket of its own
//	agents.A.tools.T        this agent with this tool
//	tools.T                 this tool, for all agents together
//	projects.W/P            this project, for all agents together
//
// They are taken all or none: a call that one of them refuses changes none of
// them. The slot comes back with Lease.Release, the tokens do not. Apart from
// these, and before a completion is parsed, caller holds one bucket for each
// caller.
//
// A rate is written N/s, N/m or N/h: N a whole number without sign, spaces or
// leading zeros, the rate at most 1000000/s. A budget without a burst holds
// what one second brings, rounded up, and at least 1. A key that is absent
// is a budget that does not apply, with one exception: what an agent named
// under agents does not state, it has from default (rate with its burst, and
// concurrency, each for itself). So naming an agent in order to add one limit
// never lifts another; an agent that is to have more says how much.
//
// # Time
//
// The time to wait in a refusal is exact: the same call made so many
// milliseconds later passes, one made a millisecond earlier does not, if
// nobody else takes from the same budgets meanwhile. Time never runs
// backwards here: while the clock stands before the latest time seen,
// nothing is refilled, and the time to wait includes the gap.
package ratelimit

import "context"

// Key says which agent calls which tool, and where.
type Key struct {
	Agent, Tool string
	// Workspace and Project name the project whose budget applies; empty, none does.
	// Leave both empty for a caller outside the project: such a call is refused
	// later, and must not take the tokens of others.
	Workspace, Project string
	// Paid says that the call has taken its tokens before, when it was judged the first
	// time: it takes its concurrency slot alone.
	Paid bool
}

// Limiter admits calls by the limits that each call passes; its own state outlives
// configurations. When a budget changes, its bucket keeps its tokens (cut to the new
// burst) and follows the new budget from the next call on.
//
// A nil context, a context that is done, nil limits, an empty agent, tool or
// caller, and a budget or concurrency that admits nothing are refused as
// limiter_unavailable. Every error is a *refusal.Error. Implementations are
// safe for concurrent use.
type Limiter interface {
	// Take takes a token from every budget that applies and a concurrency slot, all
	// or none. Refusals: rate_limited, with the time until all budgets have a token;
	// else concurrency_limited; limiter_unavailable if no decision is possible. The
	// lease must be released when the call has ended, however it ended.
	Take(ctx context.Context, limits *Limits, key Key) (Lease, error)
	// Caller takes a token from the caller's bucket. A caller is a principal or
	// a remote address. Refusals: caller_rate_limited, limiter_unavailable.
	Caller(ctx context.Context, limits *Limits, caller string) error
}

// Lease is a call's hold on a concurrency slot of its agent. Copies are the same
// lease, and the zero Lease holds nothing.
type Lease struct{ slot *slot }

// NewLease returns the lease of a slot that the limiter counts itself: end gives it
// back, and is called once at most.
func NewLease(end func()) Lease { return Lease{&slot{end: end}} }

// Release gives the slot back, once: further calls, from any goroutine and on
// any copy, do nothing. Tokens are not given back.
func (l Lease) Release() {
	if l.slot != nil {
		l.slot.release()
	}
}
