package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/internal/testkit/budgettest"
	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
)

// setBack is a time of time.Now on a machine whose clock was set back in the meantime: its calendar is
// behind, and its count of how long the process runs is not. Nothing but a clock that is set makes one.
func setBack(at time.Time, by time.Duration) time.Time {
	const monotonic, nanoseconds = 1 << 63, 30
	wall := (*uint64)(unsafe.Pointer(&at))
	if *wall&monotonic == 0 {
		panic("a time without a count of how long the process runs")
	}
	*wall -= uint64(by/time.Second) << nanoseconds
	return at
}

// TestClockSetBackRenewsNothing: a clock that is set back over the end of a window does not open the
// window before again, also where the process was told so by the clock of the system alone.
func TestClockSetBackRenewsNothing(t *testing.T) {
	start := time.Now()
	at := start
	limiter := ratelimit.NewLocal(func() time.Time { return at })
	set := budgettest.One(10)
	set.Budgets[0].Window = budget.Hour
	charges := set.Charges(budget.Scope{})
	if _, err := limiter.Reserve(t.Context(), set, charges, budget.Amount{Tokens: 8}); err != nil {
		t.Fatal(err)
	}
	at = setBack(start.Add(time.Second), 2*time.Hour)
	if !at.After(start) || !at.Round(0).Before(start.Round(0)) {
		t.Fatalf("the clock was not set back: %s, and before it %s", at, start)
	}
	if _, err := limiter.Reserve(t.Context(), set, charges, budget.Amount{Tokens: 3}); err == nil {
		t.Error("the clock was set back by two hours, and a spent budget was renewed")
	}
}

// TestAnEndedReservationIsNoOther: a reservation that has ended, and whose memory another one has now,
// ends nothing.
func TestAnEndedReservationIsNoOther(t *testing.T) {
	limiter := ratelimit.NewLocal(time.Now)
	set := budgettest.One(100)
	charges := set.Charges(budget.Scope{})
	reserve := func(tokens int64) budget.Reservation {
		r, err := limiter.Reserve(t.Context(), set, charges, budget.Amount{Tokens: tokens})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := reserve(10)
	first.Settle(budget.Amount{Tokens: 1})
	second := reserve(20)
	first.Settle(budget.Amount{})
	states, err := limiter.Read(t.Context(), charges)
	if err != nil || states[0].Spent.Tokens != 21 || states[0].Reserved.Tokens != 20 {
		t.Errorf("found %+v, %v", states, err)
	}
	second.Settle(budget.Amount{Tokens: 2})
	if states, err = limiter.Read(t.Context(), charges); err != nil || states[0].Spent.Tokens != 3 || states[0].Reserved.Tokens != 0 {
		t.Errorf("found %+v, %v", states, err)
	}
}

// TestLocalAgainstOracle: the limiter of one process is an oracle of sums in a map.
func TestLocalAgainstOracle(t *testing.T) {
	budgettest.CheckAgainstOracle(t, func(_ *rapid.T, clock *limittest.Clock) budget.Limiter { return ratelimit.NewLocal(clock.Now) })
}

// TestNamesAreBounded: more subjects than there is room for are refused, and forget nobody.
func TestNamesAreBounded(t *testing.T) {
	clock := limittest.NewClock(budgettest.Begin)
	limiter := ratelimit.NewLocalOf(clock.Now, 3)
	b := budget.Budget{Name: "b", Per: budget.PerAgent, Window: budget.Hour, Zone: time.UTC, Limit: budget.Amount{Tokens: 10}}
	take := func(subject string) error {
		_, err := limiter.Reserve(context.Background(), nil, []budget.Charge{{Budget: &b, Subject: subject}}, budget.Amount{Tokens: 10})
		return err
	}
	for i := range 3 {
		if err := take(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	var refused *refusal.Error
	if err := take("3"); !errors.As(err, &refused) || refused.Code != refusal.LimiterUnavailable {
		t.Errorf("found %v", err)
	}
	if err := take("0"); !errors.As(err, &refused) || refused.Code != refusal.RateLimited {
		t.Errorf("found %v", err)
	}
	if clock.Move(time.Hour); take("3") != nil {
		t.Error("the window has ended, and its counters are kept")
	}
	clock.Set(budgettest.Begin)
	if err := take("3"); err == nil {
		t.Error("the clock stands back, and a budget was renewed")
	}
}

// many is a configuration of many budgets and prices, of which each agent has one of its own, and all
// one together.
func many(budgets int) *budget.Set {
	set := &budget.Set{BytesPerToken: 1}
	limit := budget.Amount{Tokens: budget.Most, Micros: budget.Most}
	for i := range budgets {
		set.Budgets = append(set.Budgets, budget.Budget{
			Name: fmt.Sprintf("b%d", i), Agents: []string{fmt.Sprintf("team%d-*", i)}, Per: budget.PerAgent, Window: budget.Day, Zone: time.UTC, Limit: limit,
		})
		set.Prices = append(set.Prices, budget.ModelPrice{Model: fmt.Sprintf("model%d-*", i), Price: budget.Price{Input: 1_250_000, Output: 10_000_000}})
	}
	set.Budgets = append(set.Budgets, budget.Budget{Name: "all", Window: budget.Month, Zone: time.UTC, Limit: limit})
	return set
}

// cycle reserves and settles one request.
func cycle(t testing.TB, ledger *budget.Ledger, set *budget.Set, of budget.Scope) {
	h, err := ledger.Reserve(t.Context(), set, of, 2_000, 500)
	if err != nil {
		t.Fatal(err)
	}
	h.Settle(budget.Usage{Input: 400, Output: 100})
}

// told is what an observer of budgets was told.
type told struct {
	charged  []budget.Amount
	currency string
	spent    int
}

func (o *told) Charged(a budget.Amount, currency string) {
	o.charged, o.currency = append(o.charged, a), currency
}
func (o *told) Spent(string, budget.Amount, bool) { o.spent++ }
func (o *told) Refused(string)                    {}

// TestChargedIsToldOnce: however many budgets cover a request, and never for one that took nothing.
func TestChargedIsToldOnce(t *testing.T) {
	set, seen := many(3), &told{}
	set.Currency = "CHF"
	ledger := &budget.Ledger{Limiter: ratelimit.NewLocal(time.Now), Current: func() *budget.Set { return set }, Observer: seen}
	of := budget.Scope{Principal: "p", Agent: "team1-x", Workspace: "acme", Project: "alpha", Model: "model1-mini"}
	cycle(t, ledger, set, of)
	h, err := ledger.Reserve(t.Context(), set, of, 2_000, 500)
	if err != nil {
		t.Fatal(err)
	}
	h.GiveBack()
	if len(seen.charged) != 1 || seen.charged[0].Tokens != 500 || seen.currency != "CHF" || seen.spent != 2 {
		t.Errorf("%+v", seen)
	}
}

// TestReserveCostsNoMemory: a request of a known agent for a known model allocates nothing, however
// many budgets there are.
func TestReserveCostsNoMemory(t *testing.T) {
	set := many(99)
	ledger := &budget.Ledger{Limiter: ratelimit.NewLocal(time.Now), Current: func() *budget.Set { return set }}
	of := budget.Scope{Principal: "p", Agent: "team98-x", Workspace: "acme", Project: "alpha", Model: "model98-mini"}
	if got := testing.AllocsPerRun(100, func() { cycle(t, ledger, set, of) }); got != 0 {
		t.Errorf("found %v allocations, expected none", got)
	}
}

// BenchmarkReserveSettle: what a request pays in one process, by how many budgets there are, and how
// many agents. Two budgets cover each request.
func BenchmarkReserveSettle(b *testing.B) {
	for _, size := range []struct{ budgets, agents int }{{1, 1}, {10, 100}, {99, 100}, {99, 3_000}} {
		b.Run(fmt.Sprintf("budgets=%d/agents=%d", size.budgets+1, size.agents), func(b *testing.B) {
			set := many(size.budgets)
			ledger := &budget.Ledger{Limiter: ratelimit.NewLocal(time.Now), Current: func() *budget.Set { return set }}
			scopes := make([]budget.Scope, size.agents)
			for i := range scopes {
				team := i % size.budgets
				scopes[i] = budget.Scope{Agent: fmt.Sprintf("team%d-%d", team, i), Workspace: "acme", Project: "alpha", Model: fmt.Sprintf("model%d-mini", team)}
				cycle(b, ledger, set, scopes[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				cycle(b, ledger, set, scopes[i%len(scopes)])
			}
		})
	}
}
