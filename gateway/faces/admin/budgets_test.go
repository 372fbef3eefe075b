package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
)

// noon is a time far from the end of any window.
func noon() time.Time { return time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC) }

// spendingOf is a ledger of three budgets, of which something is used and something is reserved.
func spendingOf(t *testing.T, limiter budget.Limiter) *budget.Ledger {
	t.Helper()
	set := &budget.Set{Currency: "EUR", BytesPerToken: 1, Prices: []budget.ModelPrice{{Model: "*", Price: budget.Price{Input: 1_000_000, Output: 2_000_000}}}}
	for _, b := range []budget.Budget{
		{Name: "team", Per: budget.PerAgent, Agents: []string{"Ana*"}, Window: budget.Day, Limit: budget.Amount{Tokens: 1000}},
		{Name: "money", Per: budget.PerAll, Window: budget.Month, Limit: budget.Amount{Micros: 2_500_000}},
		{Name: "clients", Per: budget.PerProject, Window: budget.Month, Limit: budget.Amount{Tokens: 5000, Micros: 1_000_000}},
	} {
		b.Zone = time.UTC
		set.Budgets = append(set.Budgets, b)
	}
	ledger := &budget.Ledger{Limiter: limiter, Current: func() *budget.Set { return set }}
	for i, of := range []budget.Scope{{Agent: "Analyst", Workspace: "acme", Project: "alpha"}, {Agent: "Analyst-2", Workspace: "acme", Project: "alpha"}} {
		h, err := ledger.Reserve(t.Context(), set, of, 200, 100)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			h.Settle(budget.Usage{Input: 30, Output: 10})
		}
	}
	return ledger
}

func shown(all []admin.Budget) (list []string) {
	for _, b := range all {
		text := fmt.Sprintf("%s %s %q %s", b.Budget, b.Per, b.Name, b.Window)
		if b.Tokens != nil {
			text += fmt.Sprintf(" %d+%d of %d, %d left", b.Tokens.Used, b.Tokens.Reserved, b.Tokens.Limit, b.Tokens.Left)
		}
		if b.Money != nil {
			text += fmt.Sprintf(" %s+%s of %s %s, %s left", b.Money.Used, b.Money.Reserved, b.Money.Limit, b.Money.Currency, b.Money.Left)
		}
		list = append(list, text)
	}
	return list
}

// Budgets are listed behind the limits, for the names of the configuration and those in use, in pages
// of any size alike.
func TestBudgets(t *testing.T) {
	f, _, _ := usageFixture(t, func(u *admin.Usage) {
		u.Budgets = spendingOf(t, ratelimit.NewLocal(noon))
		u.BudgetNames = func() budget.Names {
			return budget.Names{Agents: []string{"Intern", "Analyst"}, Projects: []string{"acme/beta"}}
		}
	})
	want := []string{
		`clients project "" month 0+0 of 5000, 5000 left 0.00+0.00 of 1.00 EUR, 1.00 left`,
		`clients project "acme/alpha" month 40+300 of 5000, 4660 left 0.00005+0.0004 of 1.00 EUR, 0.99955 left`,
		`clients project "acme/beta" month 0+0 of 5000, 5000 left 0.00+0.00 of 1.00 EUR, 1.00 left`,
		`money all "" month 0.00005+0.0004 of 2.50 EUR, 2.49955 left`,
		`team agent "" day 0+0 of 1000, 1000 left`,
		`team agent "Analyst" day 40+0 of 1000, 960 left`,
		`team agent "Analyst-2" day 0+300 of 1000, 700 left`,
	}
	all := get[admin.Limits](t, f, "/v1/limits")
	if got := shown(all.Budgets); !slices.Equal(got, want) || len(all.Limits) != 5 || all.Next != "" {
		t.Errorf("found %q, %d limits, next %q", got, len(all.Limits), all.Next)
	}
	if first := all.Budgets[0]; first.Start.Format(time.DateOnly) != "2026-05-01" || first.End.Format(time.DateOnly) != "2026-06-01" {
		t.Errorf("the window is %s to %s", first.Start, first.End)
	}
	for _, query := range []string{"", "&kind=budget"} {
		for size := range 6 {
			var got []string
			limits, pages := 0, 0
			for after := ""; ; pages++ {
				page := get[admin.Limits](t, f, fmt.Sprintf("/v1/limits?limit=%d&after=%s%s", size+1, after, query))
				if n := len(page.Limits) + len(page.Budgets); n > size+1 || pages > 20 {
					t.Fatalf("%d of %d entries on page %d", n, size+1, pages)
				}
				got, limits = append(got, shown(page.Budgets)...), limits+len(page.Limits)
				if after = page.Next; after == "" {
					break
				}
			}
			if !slices.Equal(got, want) || (limits == 5) != (query == "") {
				t.Errorf("in pages of %d%s: %q, %d limits", size+1, query, got, limits)
			}
		}
	}
	if one := get[admin.Limits](t, f, "/v1/limits?kind=caller"); len(one.Budgets) != 0 {
		t.Errorf("of one kind: %+v", one.Budgets)
	}
	for _, query := range []string{"kind=budget&after=x", "kind=budget&after=budget.x", "kind=budget&after=budget.*.*", "kind=slots&after=budget.", "after=budget.a"} {
		if answer, body := send(t, f.Server, sent{method: "GET", path: "/v1/limits?" + query}); answer.StatusCode != 400 {
			t.Errorf("%s: %d %s", query, answer.StatusCode, body)
		}
	}
}

// unread are budgets whose store is away.
type unread struct{ *ratelimit.Local }

func (unread) Read(context.Context, []budget.Charge) ([]budget.State, error) {
	return nil, budget.Unavailable(errors.New("no route to 10.0.0.1"))
}

// Where budgets cannot be read, that is said, and the rest is there; without budgets none is listed.
func TestBudgetsThatCannotBeRead(t *testing.T) {
	f, _, _ := usageFixture(t, func(u *admin.Usage) {
		u.Budgets, u.BudgetNames = spendingOf(t, unread{ratelimit.NewLocal(noon)}), func() budget.Names { return budget.Names{} }
	})
	if got := get[admin.Limits](t, f, "/v1/limits"); got.Problem == "" || len(got.Limits) != 5 || len(got.Budgets) != 0 {
		t.Errorf("found %+v", got)
	}
	f, _, _ = usageFixture(t, func(u *admin.Usage) { u.Budgets = nil; u.Meter = ratelimit.NewLocal(time.Now) })
	if got := get[admin.Limits](t, f, "/v1/limits?kind=budget"); got.Problem != "" || got.Budgets == nil || len(got.Budgets) != 0 {
		t.Errorf("found %+v", got)
	}
}
