package app

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/telemetry"
)

// modelWait is how long a request to a model waits for Redis: short beside the model's answer.
const modelWait = time.Second

// budgets are the budgets of tokens and money of the current configuration, and who counts them.
type budgets struct {
	ledger  *budget.Ledger
	current *atomic.Pointer[budget.Set]
	shared  sharedLimiter // nil where they are this process's own
}

// openBudgets returns the budgets that a configuration asks to be counted, in this process or on
// Redis.
func openBudgets(ctx context.Context, c *configs.Config, redis redisconn.Options, metrics *telemetry.Metrics, recent *admin.Recent,
	wait time.Duration) (budgets, error) {
	b := budgets{current: &atomic.Pointer[budget.Set]{}}
	b.ledger = &budget.Ledger{Current: b.current.Load, Observer: budgetObserver{metrics, recent}}
	b.current.Store(c.Budgets)
	if c.Redis == nil {
		b.ledger.Limiter = ratelimit.NewLocal(time.Now)
		return b, nil
	}
	// The limiter of calls has told the warnings, and what is unfit.
	var err error
	if b.shared, _, err = linked.redisLimiter(ctx, redis, cmp.Or(wait, modelWait), nil); err != nil {
		return budgets{}, fmt.Errorf("redis: %w", err)
	}
	b.ledger.Limiter = b.shared
	return b, nil
}

// Close closes the connections to Redis.
func (b budgets) Close() error {
	if b.shared == nil {
		return nil
	}
	return b.shared.Close()
}

// budgetObserver counts what is spent.
type budgetObserver struct {
	metrics *telemetry.Metrics
	recent  *admin.Recent
}

func (o budgetObserver) Charged(amount budget.Amount, currency string) {
	o.recent.Charged(amount.Tokens, amount.Micros, currency)
}

func (o budgetObserver) Spent(name string, spent budget.Amount, asReserved bool) {
	o.metrics.BudgetSpent(name, spent.Tokens, spent.Micros, asReserved)
}

func (o budgetObserver) Refused(name string) { o.metrics.BudgetRefused(name) }

// serveModels has the upstreams of a configuration asked, within its budgets.
func (r *Runtime) serveModels(c *configs.Config) {
	r.budgets.current.Store(c.Budgets)
	r.models.Store(c.Upstreams)
}
