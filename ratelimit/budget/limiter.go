package budget

import (
	"context"
	"fmt"
	"time"

	"github.com/callgate/callgate/refusal"
)

// Limiter counts budgets. It is safe for concurrent use.
type Limiter interface {
	// Reserve takes an amount from the counters of all charges, or from none. The error is a
	// *refusal.Error: rate_limited, or limiter_unavailable. A charge occurs once.
	Reserve(ctx context.Context, set *Set, charges []Charge, amount Amount) (Reservation, error)
	// Read returns the state of counters in their current windows, in their order.
	Read(ctx context.Context, charges []Charge) ([]State, error)
	// Used returns the counters of which this process knows that they were charged in a window
	// that has not ended, in no order, and perhaps twice.
	Used() []Counter
}

// Reservation is the amount that a request holds in its budgets until it is settled. It is a value, so that a
// request costs no memory. The zero value holds nothing.
type Reservation struct {
	by     Settler
	number uint64
}

// Settler settles reservations by their numbers.
type Settler interface {
	// Settle is Reservation.Settle. A number that it does not have was settled before.
	Settle(number uint64, actual Amount)
}

// NewReservation returns the reservation of a number.
func NewReservation(by Settler, number uint64) Reservation { return Reservation{by, number} }

// Settle puts an amount in the place of the reserved one. Only the first call counts; without any,
// the reserved amount stays charged.
func (r Reservation) Settle(actual Amount) {
	if r.by != nil {
		r.by.Settle(r.number, actual)
	}
}

// State is a counter in one window. Spent has the open reservations in it, which Reserved are.
type State struct {
	Spent, Reserved Amount
	Start, End      time.Time
}

// Exceeds reports whether a budget has no room for an amount.
func (b *Budget) Exceeds(spent, amount Amount) bool {
	return b.Limit.Tokens > 0 && spent.Tokens+amount.Tokens > b.Limit.Tokens ||
		b.Limit.Micros > 0 && spent.Micros+amount.Micros > b.Limit.Micros
}

// SpentError says which budget has no room for a request. A *refusal.Error has it as its cause.
type SpentError struct{ Budget string }

func (e *SpentError) Error() string { return "the budget " + e.Budget + " has no room" }

// Exhausted is the refusal of a request for which a budget has no room at a time of a window.
func (b *Budget) Exhausted(amount Amount, now, end time.Time) *refusal.Error {
	renewed := end.In(b.Zone).Format(time.RFC3339)
	message := fmt.Sprintf("The budget %q of this %s has no room for this request. It is renewed at %s; until then, only a request with a shorter input or a lower bound of output tokens may pass.", b.Name, b.Window, renewed)
	if b.Exceeds(Amount{}, amount) {
		message = fmt.Sprintf("The request asks for more than the budget %q holds in a whole %s, which is renewed at %s. Send a shorter input, or a lower bound of output tokens.", b.Name, b.Window, renewed)
	}
	refused := refusal.New(refusal.RateLimited, message)
	refused.RetryAfterMS = max(1, (end.Sub(now) + time.Millisecond - 1).Milliseconds())
	return refused.WithCause(&SpentError{b.Name})
}

// Unavailable is the refusal of a request whose budgets cannot be judged; the cause is for the
// operator.
func Unavailable(cause error) *refusal.Error {
	return refusal.New(refusal.LimiterUnavailable,
		"The budgets of tokens and money cannot be judged at the moment, so the model was not asked.").WithCause(cause)
}
