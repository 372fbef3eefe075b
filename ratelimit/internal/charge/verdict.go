package charge

// Cause of limiter_unavailable, for the operator.
type Cause string

func (c Cause) Error() string { return string(c) }

const (
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
	Failed Outcome = iota
	Taken
	Exhausted
	NoSlot
	Closed
)

// Verdict on charges: for exhausted, how long to wait in milliseconds, and for which
// budget.
type Verdict struct {
	Outcome Outcome
	MS      int64
	By      *Charge
}
