package configs

import (
	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// readLimits reads the limits file.
func readLimits(root document.Node) *ratelimit.Limits {
	l := &ratelimit.Limits{OnStoreLoss: ratelimit.LossLocal, Replicas: 1}
	ok := root.Object(
		document.Field("caller", func(n document.Node) { l.Caller = readBudget(n) }),
		document.Field("default", func(n document.Node) { l.Default = readAllowance(n) }),
		document.Field("agents", func(n document.Node) {
			l.Agents = map[string]ratelimit.Agent{}
			n.Members("agents", func(key, value document.Node) {
				var a ratelimit.Agent
				fields := append(allowanceFields(&a.Allowance), document.Field("tools", func(n document.Node) { a.Tools = readBudgets(n, "tools") }))
				readBudgetFields(value, fields, &a.Allowance)
				l.Agents[key.Value] = a
			})
		}),
		document.Field("tools", func(n document.Node) { l.Tools = readBudgets(n, "tools") }),
		document.Field("projects", func(n document.Node) {
			l.Projects = map[ratelimit.Project]ratelimit.Budget{}
			n.Members("projects", func(key, value document.Node) {
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
		document.Field("on_store_loss", func(n document.Node) {
			var s string
			n.Text("local or refuse", &s)
			loss, err := ratelimit.ParseStoreLoss(s)
			if err != nil && s != "" {
				n.Fail("%v", err)
			}
			l.OnStoreLoss = loss
		}),
		document.Field("replicas", func(n document.Node) {
			replicas := int64(l.Replicas)
			n.Int("how many gateways share the limits", 1, 1000, &replicas)
			l.Replicas = int(replicas)
		}),
	)
	if !ok {
		return l
	}
	for _, f := range l.Validate() {
		root.At(refusal.Pointer(f.Path...)).Fail("%s", f.Message)
	}
	return l
}

// missingReplicas returns an error if the limits cannot be counted in Redis. While Redis is
// unreachable each gateway would grant all of them, unless the file states the number of
// gateways: a default of one would silently multiply every limit.
func missingReplicas(root document.Node, l *ratelimit.Limits) *document.Fault {
	if l == nil || l.OnStoreLoss != ratelimit.LossLocal || !root.IsMapping() || root.Has("replicas") {
		return nil
	}
	at := root.At("/on_store_loss")
	return &document.Fault{File: at.File, Line: at.Line, Column: at.Column, Message: "found no replicas, with the key redis and on_store_loss local; " +
		"expected replicas: the number of gateways that share the limits, so that each grants its part of them while Redis is away, or on_store_loss: refuse"}
}

// readBudgets reads a mapping from names to budgets.
func readBudgets(n document.Node, of string) map[string]ratelimit.Budget {
	all := map[string]ratelimit.Budget{}
	n.Members(of, func(key, value document.Node) {
		if b := readBudget(value); b != nil {
			all[key.Value] = *b
		}
	})
	return all
}

// readBudget reads {rate, burst}; nil where there is no rate.
func readBudget(n document.Node) *ratelimit.Budget {
	var a ratelimit.Allowance
	fields := allowanceFields(&a)[:2] // without concurrency
	readBudgetFields(n, fields, &a)
	if _, _, stated := n.Child("rate"); !stated && n.IsMapping() {
		n.Fail("found a budget without a rate; expected one such as {rate: 5/s, burst: 10}")
	}
	return a.Budget
}

// readAllowance reads {rate, burst, concurrency}.
func readAllowance(n document.Node) ratelimit.Allowance {
	var a ratelimit.Allowance
	readBudgetFields(n, allowanceFields(&a), &a)
	return a
}

// readBudgetFields reads the fields of a budget. A burst that is not stated is the rate of
// one second.
func readBudgetFields(n document.Node, fields []document.FieldReader, a *ratelimit.Allowance) {
	n.Object(fields...)
	_, burst, stated := n.Child("burst")
	_, _, rated := n.Child("rate")
	switch {
	case stated && !rated && len(fields) > 2: // a budget alone reports its rate itself
		burst.Fail("found a burst without a rate; expected both")
	case a.Budget != nil && !stated:
		a.Budget.Burst = a.Budget.Rate.Burst()
	}
}

func allowanceFields(a *ratelimit.Allowance) []document.FieldReader {
	var burst int64
	return []document.FieldReader{
		document.Field("rate", func(n document.Node) {
			var s string
			n.Text("a rate such as 5/s, 30/m or 100/h", &s)
			if s == "" {
				return
			}
			rate, err := ratelimit.ParseRate(s)
			if err != nil {
				n.Fail("%v", err)
				return
			}
			a.Budget = &ratelimit.Budget{Rate: rate, Burst: int(burst)}
		}),
		document.Field("burst", func(n document.Node) {
			n.Int("a burst", 1, 1_000_000, &burst)
			if a.Budget != nil {
				a.Budget.Burst = int(burst)
			}
		}),
		document.Field("concurrency", func(n document.Node) {
			var c int64
			n.Int("how many calls at the same time", 1, 1_000_000, &c)
			at := int(c)
			a.Concurrency = &at
		}),
	}
}
