package configs

import (
	"fmt"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
)

// readLimits reads the limits file; its budgets of tokens and money go into spending.
func readLimits(root document.Node, spending *budget.Set) *ratelimit.Limits {
	l := &ratelimit.Limits{OnStoreLoss: ratelimit.LossLocal, Replicas: 1}
	ok := root.Object(append(budgetFields(spending), document.Fields(l,
		document.Field("caller", func(n document.Node) { l.Caller = readBudget(n) }),
		document.Field("default", func(n document.Node) { l.Default = readAllowance(n) }),
		document.Field("agents", func(n document.Node) {
			l.Agents = map[string]ratelimit.Agent{}
			n.Members("agents", func(key, value document.Node) {
				key.Matching("the name of an agent", plainName)
				var a ratelimit.Agent
				a.Allowance = readAllowance(value, document.Field("tools", func(n document.Node) { a.Tools = readBudgets(n, "tools") }))
				l.Agents[key.Value] = a
			})
		}),
		document.Field("tools", func(n document.Node) { l.Tools = readBudgets(n, "tools") }),
		document.Field("projects", func(n document.Node) {
			l.Projects = map[ratelimit.Project]ratelimit.Budget{}
			n.Members("projects", func(key, value document.Node) {
				key.Matching("the name of a project, as workspace/project", `^[^/*]+/[^/*]+$`)
				p, err := ratelimit.ParseProject(key.Value)
				if err != nil {
					key.Fail("%v", err)
					return
				}
				if b := readBudget(value); b != nil {
					l.Projects[p] = *b
				}
			})
		}),
		document.Field("threads", func(n document.Node) { l.Threads = readThreadLimits(n) }),
	)...)...)
	if !ok {
		return l
	}
	root.FailAt("", l.Validate())
	return l
}

// missingReplicas returns an error if the limits cannot be counted in Redis. While Redis is
// unreachable each gateway would grant all of them, unless the file states the number of
// gateways: a default of one would silently multiply every limit.
func missingReplicas(root document.Node, l *ratelimit.Limits) *document.Fault {
	if l == nil || l.OnStoreLoss != ratelimit.LossLocal || !root.IsMapping() || root.Has("replicas") {
		return nil
	}
	return root.At("/on_store_loss").Fault("found no replicas, with the key redis and on_store_loss local; " +
		"expected replicas: the number of gateways that share the limits, so that each grants its part of them while Redis is away, or on_store_loss: refuse")
}

// plainName is a name without a pattern, as far as a schema says it.
const plainName = `^[^*]+$`

// readBudgets reads a mapping from names to budgets.
func readBudgets(n document.Node, of string) map[string]ratelimit.Budget {
	all := map[string]ratelimit.Budget{}
	n.Members(of, func(key, value document.Node) {
		key.Matching("the name of a tool", plainName)
		if b := readBudget(value); b != nil {
			all[key.Value] = *b
		}
	})
	return all
}

// readBudget reads {rate, burst}; nil where there is no rate. A burst that is not stated is
// the rate of one second.
func readBudget(n document.Node, more ...document.FieldReader) *ratelimit.Budget {
	var b ratelimit.Budget
	n.Object(append(document.Fields(&b,
		document.Parsed("rate", "a rate such as 5/s, 30/m or 100/h", &b.Rate, ratelimit.ParseRate).Matching(`^[1-9][0-9]*/[smh]$`),
	), more...)...)
	n.Describes(func(s *document.Schema) {
		if len(more) == 0 {
			s.Required = []string{"rate"}
		} else {
			s.DependentRequired = map[string][]string{"burst": {"rate"}}
		}
	})
	_, burst, stated := n.Child("burst")
	switch {
	case n.Has("rate"):
	case len(more) == 0 && n.IsMapping():
		n.Fail("found a budget without a rate; expected one such as {rate: 5/s, burst: 10}")
	case len(more) > 0 && stated:
		burst.Fail("found a burst without a rate; expected both")
	}
	if b.Rate == (ratelimit.Rate{}) {
		return nil
	}
	if !stated {
		b.Burst = b.Rate.Burst()
	}
	return &b
}

// readAllowance reads {rate, burst, concurrency} and what more reads.
func readAllowance(n document.Node, more ...document.FieldReader) ratelimit.Allowance {
	var a ratelimit.Allowance
	a.Budget = readBudget(n, append(document.Fields(&a), more...)...)
	return a
}

// defaultEqualWithin is how far back equal calls of a thread are looked for.
const defaultEqualWithin = 10 * time.Minute

// readThreadLimits reads what bounds calls in threads.
func readThreadLimits(n document.Node) *ratelimit.Threads {
	t := &ratelimit.Threads{}
	ok := n.Object(document.Fields(t,
		document.Parsed("new", "how many threads a caller may begin, such as 60/h or 5/m", &t.New, func(s string) (ratelimit.Rate, error) {
			r, err := ratelimit.ParseRate(s)
			if _, per := r.Window(); err == nil && per < history.MinWindow {
				return r, fmt.Errorf("found %q, expected how many threads a caller may begin, such as 60/h or 5/m: the unit is m or h", s)
			}
			return r, err
		}).Matching(`^[1-9][0-9]*/[mh]$`),
		document.Field("equal", func(n document.Node) {
			t.Equal = &ratelimit.Equal{Within: defaultEqualWithin, Tools: map[string]ratelimit.EqualCalls{}}
			n.Object(append(equalCalls(&t.Equal.EqualCalls), document.Fields(t.Equal, document.Field("tools", func(n document.Node) {
				n.Members("tools", func(key, value document.Node) {
					key.Matching("the name of a tool", plainName)
					var e ratelimit.EqualCalls
					value.Object(equalCalls(&e)...)
					t.Equal.Tools[key.Value] = e
				})
			}))...)...)
			if n.IsMapping() && !n.Describing() && !n.Has("calls") && !n.Has("outcomes") && !n.Has("tools") {
				n.Fail("found no bound of equal calls; expected calls, outcomes or tools")
			}
		}),
	)...)
	if ok && !n.Describing() && *t == (ratelimit.Threads{}) {
		n.Fail("found no limit of threads; expected calls, new or equal")
	}
	return t
}

// equalCalls are the readers of what bounds equal calls.
func equalCalls(e *ratelimit.EqualCalls) []document.FieldReader {
	return []document.FieldReader{
		document.Int("calls", "how many equal calls a thread may have", 1, history.MaxEqual, &e.Calls),
		document.Int("outcomes", "how many equal results on end such calls may have", 1, history.MaxEqual, &e.Outcomes),
	}
}
