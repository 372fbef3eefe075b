package configs

import (
	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/ratelimit"
)

// readLimits reads the limits file.
func readLimits(root node) *ratelimit.Limits {
	l := &ratelimit.Limits{OnStoreLoss: ratelimit.LossLocal, Replicas: 1}
	before := len(root.report.faults)
	root.object(
		field{"caller", func(n node) { l.Caller = n.budget() }},
		field{"default", func(n node) { l.Default = n.allowance() }},
		field{"agents", func(n node) {
			l.Agents = map[string]ratelimit.Agent{}
			n.members("agents", func(key, value node) {
				var a ratelimit.Agent
				fields := append(value.allowanceFields(&a.Allowance), field{"tools", func(n node) { a.Tools = n.budgets("tools") }})
				value.withBurst(fields, &a.Allowance)
				l.Agents[key.Value] = a
			})
		}},
		field{"tools", func(n node) { l.Tools = n.budgets("tools") }},
		field{"projects", func(n node) {
			l.Projects = map[ratelimit.Project]ratelimit.Budget{}
			n.members("projects", func(key, value node) {
				p, err := ratelimit.ParseProject(key.Value)
				if err != nil {
					key.fail("%v", err)
					return
				}
				if b := value.budget(); b != nil {
					l.Projects[p] = *b
				}
			})
		}},
		field{"on_store_loss", func(n node) {
			var s string
			n.text("local or refuse", &s)
			loss, err := ratelimit.ParseStoreLoss(s)
			if err != nil && s != "" {
				n.fail("%v", err)
			}
			l.OnStoreLoss = loss
		}},
		field{"replicas", func(n node) {
			replicas := int64(l.Replicas)
			n.whole("how many gateways share the limits", 1, 1000, &replicas)
			l.Replicas = int(replicas)
		}},
	)
	if len(root.report.faults) > before {
		return l
	}
	for _, f := range l.Validate() {
		root.at(pointerOf(f.Path)).fail("%s", f.Message)
	}
	return l
}

// unshared says why the limits cannot be counted in Redis; nil where they can. While
// Redis is away each gateway would grant all of them, unless the file says how many
// gateways there are: a default of one would multiply every limit without a word.
func unshared(root node, l *ratelimit.Limits) *Fault {
	if l == nil || l.OnStoreLoss != ratelimit.LossLocal || root.Kind != yaml.MappingNode || root.states("replicas") {
		return nil
	}
	at := root.at("/on_store_loss")
	return &Fault{File: at.file, Line: at.Line, Column: at.Column, Message: "found no replicas, with the key redis and on_store_loss local; " +
		"expected replicas: the number of gateways that share the limits, so that each grants its part of them while Redis is away, or on_store_loss: refuse"}
}

// budgets reads a mapping from names to budgets.
func (n node) budgets(of string) map[string]ratelimit.Budget {
	all := map[string]ratelimit.Budget{}
	n.members(of, func(key, value node) {
		if b := value.budget(); b != nil {
			all[key.Value] = *b
		}
	})
	return all
}

// budget reads {rate, burst}; nil where there is no rate.
func (n node) budget() *ratelimit.Budget {
	var a ratelimit.Allowance
	fields := n.allowanceFields(&a)[:2] // without concurrency
	n.withBurst(fields, &a)
	if _, _, stated := n.child("rate"); !stated && n.Kind == yaml.MappingNode {
		n.fail("found a budget without a rate; expected one such as {rate: 5/s, burst: 10}")
	}
	return a.Budget
}

// allowance reads {rate, burst, concurrency}.
func (n node) allowance() ratelimit.Allowance {
	var a ratelimit.Allowance
	n.withBurst(n.allowanceFields(&a), &a)
	return a
}

// withBurst reads the fields of a budget. A burst that is not stated is what
// one second brings.
func (n node) withBurst(fields []field, a *ratelimit.Allowance) {
	n.object(fields...)
	_, burst, stated := n.child("burst")
	_, _, rated := n.child("rate")
	switch {
	case stated && !rated && len(fields) > 2: // a budget alone reports its rate itself
		burst.fail("found a burst without a rate; expected both")
	case a.Budget != nil && !stated:
		a.Budget.Burst = a.Budget.Rate.Burst()
	}
}

func (n node) allowanceFields(a *ratelimit.Allowance) []field {
	var burst int64
	return []field{
		{"rate", func(n node) {
			var s string
			n.text("a rate such as 5/s, 30/m or 100/h", &s)
			if s == "" {
				return
			}
			rate, err := ratelimit.ParseRate(s)
			if err != nil {
				n.fail("%v", err)
				return
			}
			a.Budget = &ratelimit.Budget{Rate: rate, Burst: int(burst)}
		}},
		{"burst", func(n node) {
			n.whole("a burst", 1, 1_000_000, &burst)
			if a.Budget != nil {
				a.Budget.Burst = int(burst)
			}
		}},
		{"concurrency", func(n node) {
			var c int64
			n.whole("how many calls at the same time", 1, 1_000_000, &c)
			at := int(c)
			a.Concurrency = &at
		}},
	}
}
