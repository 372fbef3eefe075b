package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// budgetMetrics count what is spent of budgets of tokens and money, by the names of the
// configuration.
type budgetMetrics struct{ tokens, money, asReserved, refusals *prometheus.CounterVec }

func newBudgetMetrics(create promauto.Factory) budgetMetrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return create.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"budget"})
	}
	return budgetMetrics{
		tokens:     counter("callgate_budget_tokens_total", "Tokens that requests to models were charged with, by budget."),
		money:      counter("callgate_budget_money_total", "Money that requests to models were charged with, in units of the currency of the prices, by budget."),
		asReserved: counter("callgate_budget_charged_as_reserved_total", "Requests to models that stay charged as they were reserved, since it is not known what they took, by budget."),
		refusals:   counter("callgate_budget_refusals_total", "Requests to models that were refused since a budget had no room, by budget."),
	}
}

// BudgetSpent counts what a request to a model was charged with; micros are millionths of money.
func (m *budgetMetrics) BudgetSpent(budget string, tokens, micros int64, asReserved bool) {
	const million = 1e6
	m.tokens.WithLabelValues(budget).Add(float64(tokens))
	m.money.WithLabelValues(budget).Add(float64(micros) / million)
	if asReserved {
		m.asReserved.WithLabelValues(budget).Inc()
	}
}

// BudgetRefused counts a request for which a budget had no room.
func (m *budgetMetrics) BudgetRefused(budget string) { m.refusals.WithLabelValues(budget).Inc() }
