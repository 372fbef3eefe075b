package charge

// Cause of limiter_unavailable, for the operator.
type Cause string

func (c Cause) Error() string { return string(c) }

const (
	// ErrNoLimiter and the causes below are faults of a caller of the limiter, or of its limits.
	ErrNoLimiter     Cause = "there is no limiter, or it has no clock"
	ErrNoContext     Cause = "there is no context"
	ErrNoLimits      Cause = "there are no limits"
	ErrNoNames       Cause = "the request names no agent, no tool or no caller"
	ErrInvalidLimits Cause = "the limits hold a budget or a concurrency that admits nothing"
	errDisagree      Cause = "a budget refused after it had agreed"
)

// Outcome of charges. Its zero value refuses.
type Outcome uint8

const (
	Failed    Outcome = iota // nothing is known: the limiter could not judge
	Taken                    // every charge was taken
	Exhausted                // a budget has no room; nothing was taken
	NoSlot                   // no slot of a concurrency is free; nothing was taken
	Refused                  // a window has no room, as the charges' refusal says; nothing was taken
	Moved                    // the windows are those of another time; nothing was taken
	Closed                   // the counters are closed; nothing was taken
)

// Verdict on charges: for exhausted, how long to wait in milliseconds, and for which
// bucket.
type Verdict struct {
	Outcome Outcome
	MS      int64
	By      *Charge
}
