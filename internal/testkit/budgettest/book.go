// Package budgettest is for tests of what is asked of a model: it keeps a book of every
// reservation, and how it ended.
package budgettest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
)

// Book is a budget.Limiter of one process that notes what it is asked.
type Book struct {
	*ratelimit.Local
	mu      sync.Mutex
	entries []*entry
}

// entry is one reservation.
type entry struct {
	budget.Reservation
	book     *Book
	reserved budget.Amount
	ends     []budget.Amount
}

// Open returns a ledger over a book. When the test has ended, every reservation must have ended
// exactly once.
func Open(t testing.TB, set *budget.Set) (*budget.Ledger, *Book) {
	t.Helper()
	b := &Book{Local: ratelimit.NewLocal(time.Now)}
	t.Cleanup(func() {
		for _, got := range b.Ends() {
			if len(got.Ends) != 1 {
				t.Errorf("the reservation %+v has ended %d times: %+v", got.Reserved, len(got.Ends), got.Ends)
			}
		}
	})
	return &budget.Ledger{Limiter: b, Current: func() *budget.Set { return set }}, b
}

// One returns a set of one budget of tokens for everything, each hour.
func One(tokens int64) *budget.Set {
	limit := budget.Amount{Tokens: tokens}
	return &budget.Set{BytesPerToken: 1,
		Budgets: []budget.Budget{{Name: "all", Per: budget.PerAll, Window: budget.Month, Zone: time.UTC, Limit: limit}}}
}

// Reserve implements budget.Limiter.
func (b *Book) Reserve(ctx context.Context, set *budget.Set, charges []budget.Charge, amount budget.Amount) (budget.Reservation, error) {
	r, err := b.Local.Reserve(ctx, set, charges, amount)
	if err != nil {
		return r, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &entry{Reservation: r, book: b, reserved: amount}
	b.entries = append(b.entries, e)
	return budget.NewReservation(e, 0), nil
}

// Settle implements budget.Holder.
func (e *entry) Settle(_ uint64, actual budget.Amount) {
	e.book.mu.Lock()
	e.ends = append(e.ends, actual)
	e.book.mu.Unlock()
	e.Reservation.Settle(actual)
}

// End is how a reservation ended.
type End struct {
	Reserved budget.Amount
	Ends     []budget.Amount
}

// String says how it ended: given back, as reserved, or settled with so many tokens.
func (e End) String() string {
	switch {
	case len(e.Ends) != 1:
		return fmt.Sprintf("ended %d times", len(e.Ends))
	case e.Ends[0] == budget.Amount{}:
		return "given back"
	case e.Ends[0] == e.Reserved:
		return "as reserved"
	}
	return fmt.Sprintf("settled %d", e.Ends[0].Tokens)
}

// Ends are the reservations in their order.
func (b *Book) Ends() []End {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]End, len(b.entries))
	for i, e := range b.entries {
		all[i] = End{e.reserved, slices.Clone(e.ends)}
	}
	return all
}

// Words are the Ends as texts.
func (b *Book) Words() []string {
	var words []string
	for _, e := range b.Ends() {
		words = append(words, e.String())
	}
	return words
}
