package budgettest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
)

// Begin is the time at which tests begin: shortly before the end of an hour, a day, a week and a month,
// and behind the time of any real clock, by which Redis forgets keys.
var Begin = time.Date(2082, 5, 31, 23, 50, 0, 0, time.UTC)

// openReservation is an open reservation of the oracle.
type openReservation struct {
	budget.Reservation
	counters []string
	amount   budget.Amount
	settled  bool
}

// CheckAgainstOracle runs random requests against a limiter and against sums in a map, and requires
// that both agree on every verdict and every counter. The limiter begins empty, and goes by the clock.
func CheckAgainstOracle(t *testing.T, open func(t *rapid.T, clock *limittest.Clock) budget.Limiter) {
	rapid.Check(t, func(t *rapid.T) {
		clock := limittest.NewClock(Begin)
		limiter := open(t, clock)
		set := &budget.Set{BytesPerToken: 1}
		for i, window := range []budget.Window{budget.Hour, budget.Day, budget.Week, budget.Month} {
			set.Budgets = append(set.Budgets, budget.Budget{
				Name: fmt.Sprintf("b%d", i), Per: rapid.SampledFrom([]budget.Per{budget.PerAll, budget.PerAgent}).Draw(t, "per"),
				Window: window, Zone: time.UTC,
				Limit: drawLimit(t),
			})
		}
		spent, reserved := map[string]budget.Amount{}, map[string]budget.Amount{}
		var open []*openReservation
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				charges := drawCharges(t, set)
				amount := budget.Amount{Tokens: rapid.Int64Range(0, 60).Draw(t, "tokens"),
					Micros: rapid.Int64Range(0, 60).Draw(t, "micros")}
				fits := true
				h := &openReservation{amount: amount}
				for i := range charges {
					at := place(&charges[i], clock.Now())
					h.counters = append(h.counters, at)
					l, s := charges[i].Budget.Limit, spent[at]
					fits = fits && (l.Tokens == 0 || s.Tokens+amount.Tokens <= l.Tokens) &&
						(l.Micros == 0 || s.Micros+amount.Micros <= l.Micros)
				}
				r, err := limiter.Reserve(t.Context(), set, charges, amount)
				if fits != (err == nil) {
					t.Fatalf("reserve %+v of %v: %v; the oracle says that it fits: %v", amount, spent, err, fits)
				}
				if err != nil {
					checkRefusal(t, err, clock.Now())
					return
				}
				for _, at := range h.counters {
					spent[at], reserved[at] = spent[at].Add(amount), reserved[at].Add(amount)
				}
				h.Reservation = r
				open = append(open, h)
			},
			"settle": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				h := open[rapid.IntRange(0, len(open)-1).Draw(t, "which")] // perhaps one that is settled
				actual := budget.Amount{Tokens: rapid.Int64Range(0, 80).Draw(t, "tokens"),
					Micros: rapid.Int64Range(0, 80).Draw(t, "micros")}
				h.Settle(actual)
				if h.settled {
					return
				}
				h.settled = true
				for _, at := range h.counters {
					spent[at], reserved[at] = spent[at].Less(h.amount).Add(actual), reserved[at].Less(h.amount)
				}
			},
			"wait": func(t *rapid.T) {
				clock.Move(time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute)
			},
			"change a limit": func(t *rapid.T) {
				budgets := append([]budget.Budget(nil), set.Budgets...)
				budgets[rapid.IntRange(0, len(budgets)-1).Draw(t, "which")].Limit = drawLimit(t)
				set = &budget.Set{BytesPerToken: 1, Budgets: budgets}
			},
			"": func(t *rapid.T) {
				var all []budget.Charge
				for i := range set.Budgets {
					for _, subject := range subjectsOf(&set.Budgets[i]) {
						all = append(all, budget.Charge{Budget: &set.Budgets[i], Subject: subject})
					}
				}
				states, err := limiter.Read(t.Context(), all)
				if err != nil {
					t.Fatal(err)
				}
				for i := range states {
					at := place(&all[i], clock.Now())
					if states[i].Spent != spent[at] || states[i].Reserved != reserved[at] {
						t.Fatalf("%s: found %+v, the oracle has %+v with %+v reserved", at, states[i], spent[at], reserved[at])
					}
				}
			},
		})
	})
}

func drawLimit(t *rapid.T) budget.Amount {
	l := budget.Amount{Tokens: rapid.Int64Range(0, 200).Draw(t, "limit of tokens"),
		Micros: rapid.Int64Range(0, 200).Draw(t, "limit of money")}
	if l == (budget.Amount{}) {
		l.Tokens = 1
	}
	return l
}

func subjectsOf(b *budget.Budget) []string {
	if b.Per == budget.PerAll {
		return []string{""}
	}
	return []string{"", "Analyst", "an agent {with} odd/name\n"}
}

// drawCharges draws some budgets, each with one subject.
func drawCharges(t *rapid.T, set *budget.Set) []budget.Charge {
	var all []budget.Charge
	for i := range set.Budgets {
		b := &set.Budgets[i]
		if rapid.Bool().Draw(t, b.Name) {
			all = append(all, budget.Charge{Budget: b, Subject: rapid.SampledFrom(subjectsOf(b)).Draw(t, "subject")})
		}
	}
	return all
}

// place names a counter of the oracle, by its own arithmetic of windows.
func place(c *budget.Charge, at time.Time) string {
	at = at.UTC()
	form := map[budget.Window]string{budget.Hour: "2006-01-02 15", budget.Day: "2006-01-02", budget.Month: "2006-01"}[c.Budget.Window]
	window := at.Format(form)
	if c.Budget.Window == budget.Week {
		year, week := at.ISOWeek()
		window = fmt.Sprintf("%d week %d", year, week)
	}
	return c.Budget.Name + " " + c.Subject + " " + window
}

func checkRefusal(t *rapid.T, err error, now time.Time) {
	var refused *refusal.Error
	if !errors.As(err, &refused) || refused.Code != refusal.RateLimited || refused.RetryAfterMS < 1 ||
		!strings.Contains(refused.Message, "renewed at ") {
		t.Fatalf("found %v; expected a refusal with the end of the window", err)
	}
	if end := now.Add(time.Duration(refused.RetryAfterMS) * time.Millisecond).UTC(); end.Minute() != 0 || end.Second() != 0 {
		t.Fatalf("it is to be sent again at %s", end)
	}
}
