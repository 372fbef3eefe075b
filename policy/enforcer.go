package policy

import (
	"errors"
	"slices"

	"github.com/casbin/casbin/v2/constant"
	"github.com/casbin/casbin/v2/effector"
)

var (
	// errEnforcer is an answer that casbin cannot have meant.
	errEnforcer = errors.New("policy: the enforcer gave an answer that its rows do not give")
	// errCasbin stands for casbin's own error.
	errCasbin = errors.New("policy: casbin failed while enforcing")
)

// enforcer decides one class of requests over the rows that match it: casbin's effector
// merges their effects; a row that asks is an allow row to it. casbin.Enforcer and its role manager are not linked: they need
// package govaluate, which finds methods by name, so that the linker could not remove
// unused methods anywhere (14 MiB of the binary). The zero value denies. An enforcer is
// never changed once built, and safe for concurrent use.
type enforcer struct {
	rows     []*rule // in the order of their lines
	effects  []effector.Effect
	effector effector.Effector
}

// newEnforcer keeps the rows that match when conditions are ignored. The grants are in
// an order in which those that give a role precede those of the role.
func newEnforcer(agent string, at domain, tool string, rules []*rule, grants []*grant) *enforcer {
	subjects := map[string]bool{agent: true}
	for _, g := range grants {
		if subjects[g.member] && matches(at.String(), g.domain.String()) {
			subjects[g.role] = true
		}
	}
	e := &enforcer{effector: effector.NewDefaultEffector()}
	for _, r := range rules {
		if !subjects[r.Subject] || !matches(at.String(), r.Domain) || !matches(tool, r.Tool) {
			continue
		}
		effect := effector.Deny
		if r.Effect != Deny {
			effect = effector.Allow
		}
		e.rows = append(e.rows, r)
		e.effects = append(e.effects, effect)
	}
	return e
}

// enforce evaluates the conditions in the order of their lines until the decision is
// made. The row is the one that decided, nil when none applied.
func (e *enforcer) enforce(j *evaluation) (Decision, error) {
	applied := make([]float64, len(e.rows)) // casbin's form: 1 for a row that applies
	for i, r := range e.rows {
		if j.applies(r) {
			applied[i] = 1
		}
		effect, deciding, err := e.effector.MergeEffects(constant.AllowAndDenyEffect, e.effects, applied, i, len(e.rows))
		switch {
		case err != nil:
			return Decision{}, errCasbin
		case effect == effector.Indeterminate:
			continue
		case deciding < 0 || deciding > i || applied[deciding] == 0:
			return Decision{}, errEnforcer
		}
		allowed, row := effect == effector.Allow, e.rows[deciding]
		// Every row was evaluated before a call is permitted: none that asks is missed.
		if allowed != (row.Effect != Deny) || allowed && i < len(e.rows)-1 {
			return Decision{}, errEnforcer
		}
		d := Decision{Allowed: allowed, Row: &row.Row, Rows: row.place[:]}
		if allowed {
			e.ask(&d, j, applied)
		}
		if j.counted {
			e.count(&d, j, applied)
		}
		return d, nil
	}
	return Decision{}, nil
}

// count counts a decision for the rows that took part.
func (e *enforcer) count(d *Decision, j *evaluation, applied []float64) {
	for i, r := range e.rows {
		asks := len(d.Asks) > 0 && r.Effect == Ask && (applied[i] != 0 || j.failed[r.Line] != nil)
		if applied[i] != 0 || asks {
			r.count.matched.Add(1)
		}
		if asks || d.Row == &r.Row {
			r.count.decided.Add(1)
		}
	}
}

// ask adds the rows that ask to a decision which permits.
func (e *enforcer) ask(d *Decision, j *evaluation, applied []float64) {
	for i, r := range e.rows {
		if r.Effect != Ask || applied[i] == 0 && j.failed[r.Line] == nil {
			continue
		}
		if d.Asks == nil {
			d.Row, d.Rows = &r.Row, nil
		}
		d.Rows = append(d.Rows, r.place[:]...)
		if at, twice := slices.BinarySearch(d.Asks, r.Rule); !twice {
			d.Asks = slices.Insert(d.Asks, at, r.Rule)
		}
	}
}
