package lab

import (
	"context"

	"github.com/callgate/callgate/policy"
)

// Coverage counts which rows of a policy the cases of tests have reached. A nil Coverage counts
// nothing.
type Coverage struct {
	Rows []RowCoverage // all p rows, in the order of the file

	at map[string]int // by place
}

// RowCoverage says how often cases reached one row.
type RowCoverage struct {
	Row     policy.Row
	Decided int // the cases that the row decided
	Matched int // the cases that it matched when conditions are ignored
	// True, False and Failed count how its condition came out, where it has one.
	True, False, Failed int
}

// NewCoverage returns the coverage of a policy by no case.
func NewCoverage(p *policy.Policy) *Coverage {
	c := &Coverage{at: map[string]int{}}
	for i, row := range p.Rows() {
		c.Rows = append(c.Rows, RowCoverage{Row: row})
		c.at[row.Place()] = i
	}
	return c
}

// State is decided, matched or never.
func (r RowCoverage) State() string {
	switch {
	case r.Decided > 0:
		return "decided"
	case r.Matched > 0:
		return "matched"
	}
	return "never"
}

// OneSided reports whether the row has a condition that was not seen both true and false.
func (r RowCoverage) OneSided() bool { return r.Row.When != "" && (r.True == 0 || r.False == 0) }

// Percent is the share of rows that decided a case, rounded down; 100 where there are no rows.
func (c *Coverage) Percent() int {
	if len(c.Rows) == 0 {
		return 100
	}
	return 100 * c.count("decided") / len(c.Rows)
}

// count is how many rows are in a state.
func (c *Coverage) count(state string) int {
	n := 0
	for _, r := range c.Rows {
		if r.State() == state {
			n++
		}
	}
	return n
}

// add counts one case and the places of the rows that decided it. Conditions are evaluated where
// the arguments of the request have passed the schema.
func (c *Coverage) add(ctx context.Context, request policy.Request, decided []string, evaluate bool, by *policy.Policy) {
	if c == nil {
		return
	}
	for _, place := range decided {
		c.Rows[c.at[place]].Decided++
	}
	for _, row := range by.Matching(request.Agent, request.Workspace, request.Project, request.Tool) {
		r := &c.Rows[c.at[row.Place()]]
		r.Matched++
		if !evaluate || row.When == "" {
			continue
		}
		switch met, err := by.Met(ctx, row.Line, request); {
		case err != nil:
			r.Failed++
		case met:
			r.True++
		default:
			r.False++
		}
	}
}
