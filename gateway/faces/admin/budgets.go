package admin

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
)

// KindBudget is the kind of budgets of tokens and money, which are listed behind all limits.
const KindBudget = "budget"

// LimitKinds are the values of the parameter kind of GET /v1/limits.
func LimitKinds() []string {
	var kinds []string
	for _, k := range ratelimit.LevelKinds() {
		kinds = append(kinds, string(k))
	}
	return append(kinds, KindBudget)
}

// Budget is what a budget of tokens and money has left for one name, in the window of now. With
// Redis the figures are those of all gateways.
type Budget struct {
	Budget string        `json:"budget"` // its name
	Per    budget.Per    `json:"per"`    // all, agent, principal or project
	Window budget.Window `json:"window"` // hour, day, week or month
	// Name is the agent, the principal, or the workspace/project; empty: requests that name none, or
	// everything together.
	Name   string        `json:"name"`
	Start  time.Time     `json:"start"` // of the window
	End    time.Time     `json:"end"`   // when it is renewed
	Tokens *BudgetTokens `json:"tokens,omitempty"`
	Money  *BudgetMoney  `json:"money,omitempty"`
}

// BudgetTokens are tokens of a budget. Used and Reserved together may exceed Limit by what a provider
// has taken beyond a reservation.
type BudgetTokens struct {
	Limit    int64 `json:"limit"`
	Used     int64 `json:"used"`
	Reserved int64 `json:"reserved"` // by requests under way, and by those of a gateway that ended
	Left     int64 `json:"left"`
}

// BudgetMoney is money of a budget, in units of the currency.
type BudgetMoney struct {
	Currency string `json:"currency"`
	Limit    string `json:"limit"`
	Used     string `json:"used"`
	Reserved string `json:"reserved"`
	Left     string `json:"left"`
}

// afterBudget begins the next of a page that ends with a budget, or before the first of them. No
// cursor of limits begins with it.
const afterBudget = KindBudget + "."

// budgets adds a page of budgets to an answer: as many as are still wanted.
func (u *Usage) budgets(ctx context.Context, answer *Limits, after string, count int) error {
	if u.Budgets.Set() == nil {
		return nil
	}
	if count == 0 {
		answer.Next = afterBudget
		return nil
	}
	page, err := u.Budgets.Levels(ctx, budget.LevelQuery{After: after, Count: count, Names: u.BudgetNames()})
	switch {
	case errors.Is(err, budget.ErrCursor):
		return badCursor()
	case err != nil:
		answer.Problem = "The budgets of tokens and money cannot be read now: Redis does not answer."
		return nil //nolint:nilerr // the answer says it
	}
	if page.Next != "" {
		answer.Next = afterBudget + page.Next
	}
	for i := range page.Levels {
		answer.Budgets = append(answer.Budgets, budgetOf(&page.Levels[i], page.Currency))
	}
	return nil
}

func badCursor() error { return bad("The parameter after is not the next of a page.") }

// budgetOf shows one level.
func budgetOf(l *budget.Level, currency string) Budget {
	b, used, left := l.Budget, l.Spent.Less(l.Reserved), l.Budget.Limit.Less(l.Spent)
	view := Budget{Budget: b.Name, Per: b.Per, Window: b.Window, Name: l.Subject, Start: l.Start.In(b.Zone), End: l.End.In(b.Zone)}
	if b.Limit.Tokens > 0 {
		view.Tokens = &BudgetTokens{Limit: b.Limit.Tokens, Used: used.Tokens, Reserved: l.Reserved.Tokens, Left: left.Tokens}
	}
	if b.Limit.Micros > 0 {
		view.Money = &BudgetMoney{
			Currency: currency, Limit: budget.FormatMoney(b.Limit.Micros), Used: budget.FormatMoney(used.Micros),
			Reserved: budget.FormatMoney(l.Reserved.Micros), Left: budget.FormatMoney(left.Micros),
		}
	}
	return view
}

// afterOf divides the parameter after: that of limits, or that of budgets.
func afterOf(after string) (ofBudgets string, isBudget bool) {
	return strings.CutPrefix(after, afterBudget)
}
