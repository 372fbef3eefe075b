package windows_test

import (
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/budgettest"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/internal/windows"
)

// TestOwedAmountsInFlightCount: what was granted while the store was away counts for this gateway's
// part also while a request carries it to the store, and comes back where the store has not got it.
func TestOwedAmountsInFlightCount(t *testing.T) {
	now := func() time.Time { return budgettest.Begin }
	table := windows.NewShared(now, time.Hour, func(c budget.Counter, _ time.Time) string { return c.Budget })
	charges := budgettest.One(1000).Charges(budget.Scope{})
	take := func(tokens int64) (budget.Reservation, error) {
		return table.Take(charges, budget.Amount{Tokens: tokens}, 2)
	}
	all := table.Find(charges, now(), true)
	if _, err := take(1); err == nil {
		t.Error("nothing is known of the window, and something was granted")
	}
	exchange := func(spent int64) func(certain bool, number uint64) {
		sent := table.Send(all, nil)
		return func(certain bool, number uint64) {
			if number == 0 {
				table.Received(all, sent, nil, now(), certain)
				return
			}
			state := windows.State{Epoch: "e", Number: number, Spent: budget.Amount{Tokens: spent}}
			table.Received(all, sent, []windows.State{state}, now(), certain)
		}
	}
	exchange(600)(true, 1)
	table.Lost()
	held, err := take(150) // of (1000-600)/2
	if err != nil {
		t.Fatal(err)
	}
	answer := exchange(750)
	if _, err := take(60); err == nil {
		t.Error("150 of 200 are on their way, and 60 more were granted")
	}
	answer(false, 0)
	if _, err := take(60); err == nil {
		t.Error("150 of 200 are still owed, and 60 more were granted")
	}
	exchange(750)(true, 2)
	if _, err := take(125); err != nil { // of (1000-750)/2
		t.Error(err)
	}
	held.Settle(budget.Amount{Tokens: 50})
	exchange(0)(false, 0)
	if owing := table.Known(true); len(owing) != 1 || owing[0].Owed.Tokens != 25 || owing[0].Sending.Tokens != 0 {
		t.Errorf("owed: %+v", owing)
	}
}
