package policy

import (
	"context"

	"github.com/callgate/callgate/policy/condition"
)

// evaluation evaluates the conditions of one request, each at most once.
type evaluation struct {
	// probe evaluates no request: conditions of rows that permit are met if allowsMet is set,
	// those of deny rows are not.
	probe, allowsMet bool
	counted          bool // its decision counts for the rows
	ctx              context.Context
	variables        condition.Variables
	applied          []bool        // by position in the enforcer: the rows that took part
	seen             int           // how many rows casbin has matched
	failed           map[int]error // by line, of the conditions that failed
}

func newEvaluation(ctx context.Context, r Request) *evaluation {
	return &evaluation{ctx: ctx, variables: condition.Variables(r)}
}

// applies reports whether a row that matches otherwise takes part in the decision:
// its condition is met, or failed on a deny row. A row that asks takes part in whether the
// call is permitted as an allow row does.
func (j *evaluation) applies(r *rule) bool {
	if r.condition == nil {
		return true
	}
	if j.probe {
		return j.allowsMet && r.Effect != Deny
	}
	met, err := r.condition.Evaluate(j.ctx, &j.variables)
	if err != nil {
		if j.failed == nil {
			j.failed = map[int]error{}
		}
		j.failed[r.Line] = err
		return r.Effect == Deny
	}
	return met
}
