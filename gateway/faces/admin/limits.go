package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// Usage are the endpoints that say what is in use now: limits, slots, breakers and calls. All
// members must be set; Meter may be nil, and then no level can be read, and so may Budgets.
type Usage struct {
	Kernel *gateway.Kernel
	Meter  ratelimit.Meter
	// Budgets are the budgets of tokens and money, nil where there are none; BudgetNames are the
	// names that the configuration in force has.
	Budgets     *budget.Ledger
	BudgetNames func() budget.Names
	// Names are the agents and callers that the configuration in force names.
	Names func() (agents, callers []string)
	// SharedLimits says that limits are counted on Redis.
	SharedLimits bool
	Breakers     func() []Breaker
	Pools        func() []server.PoolUse
	// Unfinished lists calls without an outcome, in the order of their ids, behind one of them.
	Unfinished func(ctx context.Context, after string, limit int) ([]store.Call, error)
	Now        func() time.Time // nil is time.Now
}

// Limits is a page of limits, and what else bounds this gateway.
type Limits struct {
	// Counted is where budgets and slots of agents are counted: here or redis. On Redis a page
	// reads one key for each of its limits, and finds no names that only other gateways use.
	Counted string `json:"counted"`
	// Problem says why no limit is listed: they cannot be read now.
	Problem string  `json:"problem,omitempty"`
	Limits  []Limit `json:"limits"` // by kind and name
	// Budgets are budgets of tokens and money, by budget and name. They follow the last limit.
	Budgets []Budget `json:"budgets"`
	Next    string   `json:"next,omitempty"` // the parameter after of the next page
	// Breakers are those of tools that are open, or whose server has just failed, at most 100;
	// Omitted counts the others.
	Breakers []Breaker `json:"breakers"`
	Omitted  int       `json:"omitted,omitempty"`
	// Pools are the bounds of requests at the same time.
	Pools []server.PoolUse `json:"pools"`
}

// Limit is one limit and what is left of it.
type Limit struct {
	Kind  ratelimit.LevelKind `json:"kind"`  // agent, agent_tool, tool, project, caller or slots
	Limit string              `json:"limit"` // its key in the limits file
	// Name is whose it is: an agent, a tool, a workspace or a caller; Of the tool of an agent, or
	// the project of a workspace.
	Name       string `json:"name"`
	Of         string `json:"of,omitempty"`
	Rate       string `json:"rate,omitempty"` // absent for slots
	Size       int    `json:"size"`           // the burst, or how many slots there are
	Left       int    `json:"left"`           // whole tokens, or free slots
	FullMillis int64  `json:"full_in_ms"`     // until nothing of a budget is missing
}

// Breaker keeps calls from a tool whose server does not answer.
type Breaker struct {
	Tool     string `json:"tool"`
	Version  string `json:"version"`
	State    string `json:"state"`    // closed, half-open or open
	Failures int    `json:"failures"` // in a row; ten open a closed breaker
}

// maxListed bounds the breakers of an answer.
const maxListed = 100

// Endpoints are those of what is in use.
func (u *Usage) Endpoints() []Endpoint {
	return []Endpoint{
		{
			Method: http.MethodGet, Path: "/v1/limits", Summary: "What is left of each limit, breakers, and requests at the same time",
			Answer: Limits{}, Serve: u.limits,
			Query: []Parameter{
				{"kind", "agent, agent_tool, tool, project, caller, slots, or budget, of tokens and money"},
				{"limit", "how many entries, 1 to 500; 50 where it is absent"}, {"after", "next of the page before"},
			},
		},
		{
			Method: http.MethodGet, Path: "/v1/calls", Summary: "Calls under way: judged, dispatched, or waiting for their tool",
			Answer: RunningCalls{}, Serve: u.calls,
			Query: []Parameter{{"limit", "how many calls, 1 to 500; 50 where it is absent"}, {"after", "next of the page before"}},
		},
	}
}

// limits answers GET /v1/limits.
func (u *Usage) limits(r *Request) (any, error) {
	count, err := r.Limit()
	if err != nil {
		return nil, err
	}
	kind, err := r.Choice("kind", LimitKinds()...)
	if err != nil {
		return nil, err
	}
	answer := Limits{Counted: "here", Limits: []Limit{}, Budgets: []Budget{}, Breakers: u.Breakers(), Pools: u.Pools()}
	if u.SharedLimits {
		answer.Counted = "redis"
	}
	if len(answer.Breakers) > maxListed {
		answer.Omitted = len(answer.Breakers) - maxListed
	}
	answer.Breakers = append([]Breaker{}, answer.Breakers[:len(answer.Breakers)-answer.Omitted]...)
	after, isBudget := afterOf(r.Query("after"))
	if kind == KindBudget || isBudget && kind == "" {
		if kind == KindBudget && !isBudget && after != "" {
			return nil, badCursor()
		}
		return &answer, u.budgets(r.Context(), &answer, after, count)
	}
	agents, callers := u.Names()
	q := ratelimit.LevelQuery{Kind: ratelimit.LevelKind(kind), After: r.Query("after"), Count: count, Agents: agents, Callers: callers}
	page, err := u.levels(r.Context(), q)
	switch {
	case errors.Is(err, ratelimit.ErrCursor):
		return nil, badCursor()
	case err != nil:
		answer.Problem = err.Error()
		return &answer, nil //nolint:nilerr // the answer says it
	}
	answer.Next = page.Next
	for i := range page.Levels {
		l := &page.Levels[i]
		answer.Limits = append(answer.Limits,
			Limit{l.Kind, l.Limit, l.Name, l.Of, l.Budget.Rate.String(), l.Size, l.Left, (l.Full + time.Millisecond - 1).Milliseconds()})
	}
	if kind == "" && page.Next == "" {
		err = u.budgets(r.Context(), &answer, "", count-len(page.Levels))
	}
	return &answer, err
}

func (u *Usage) levels(ctx context.Context, q ratelimit.LevelQuery) (ratelimit.LevelPage, error) {
	if u.Meter == nil {
		return ratelimit.LevelPage{}, errors.New("this limiter cannot be read")
	}
	return u.Meter.Levels(ctx, u.Kernel.Config().Limits, q)
}

// RunningCalls is a page of calls without an outcome, in the order of their ids. With a store on
// Redis they are those of this gateway, and calls that are being judged are left out.
type RunningCalls struct {
	Calls []RunningCall `json:"calls"`
	Next  string        `json:"next,omitempty"` // the parameter after of the next page
}

// RunningCall is a call without an outcome. Its caller and tool are known once it was dispatched.
type RunningCall struct {
	CallID    string `json:"call_id"`
	State     string `json:"state"` // opened: is being judged; dispatched: its tool may have acted; waiting: its tool answers later
	Principal string `json:"principal"`
	Agent     string `json:"agent"`
	Workspace string `json:"workspace"`
	Project   string `json:"project"`
	Tool      string `json:"tool"`
	Version   string `json:"version"`
	Effect    string `json:"effect"`
	// Attempts counts how often it was dispatched.
	Attempts  int        `json:"attempts"`
	Opened    time.Time  `json:"opened"`
	AgeMillis int64      `json:"age_ms"`
	Until     *time.Time `json:"until,omitempty"` // when a waiting call expires
}

// calls answers GET /v1/calls.
func (u *Usage) calls(r *Request) (any, error) {
	count, err := r.Limit()
	if err != nil {
		return nil, err
	}
	found, err := u.Unfinished(r.Context(), r.Query("after"), count)
	if err != nil {
		return nil, refusal.New(refusal.StoreUnavailable, "The calls cannot be read now. Try again later.").WithCause(err)
	}
	now := time.Now()
	if u.Now != nil {
		now = u.Now()
	}
	answer := RunningCalls{Calls: []RunningCall{}}
	for i := range found {
		answer.Calls = append(answer.Calls, runningCall(&found[i], now))
	}
	if len(found) == count {
		answer.Next = found[count-1].ID
	}
	return answer, nil
}

// runningCall shows a call without an outcome.
func runningCall(c *store.Call, now time.Time) RunningCall {
	t := &c.Task
	running := RunningCall{
		CallID: c.ID, State: string(c.Step), Principal: c.Scope.Principal, Agent: t.Agent, Workspace: c.Scope.Workspace,
		Project: c.Scope.Project,
		Tool:    t.Tool, Version: t.Version, Effect: t.Effect, Attempts: c.Attempts, Opened: c.Opened,
		AgeMillis: max(0, now.Sub(c.Opened).Milliseconds()),
	}
	if c.Step == store.Waiting {
		until := c.Until
		running.Until = &until
	}
	return running
}
