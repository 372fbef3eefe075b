package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/policy/condition"
)

// Grant is one g row of the policy file, as written.
type Grant struct {
	Line                 int // from 1
	Member, Role, Domain string
}

// Grants returns the g rows, in the order of the file. The result is the caller's.
func (p *Policy) Grants() []Grant {
	if p == nil {
		return nil
	}
	grants := make([]Grant, len(p.grants))
	for i, g := range p.grants {
		grants[i] = Grant{Line: g.line, Member: g.member, Role: g.role, Domain: g.domainText}
	}
	return grants
}

// Matching lists the rows that match a call when conditions are ignored, in the order of
// the file. The rows are the policy's and must not be changed.
func (p *Policy) Matching(agent, workspace, project, tool string) []*Row {
	at := domain{workspace, project}
	if p == nil || p.index == nil || unmatchable(agent, at, tool) != "" {
		return nil
	}
	rules, _ := p.index.candidates(agent, at, tool)
	rows := make([]*Row, len(rules))
	for i, r := range rules {
		rows[i] = &r.Row
	}
	return rows
}

// Met evaluates the condition of the row at a line of the file; a row without one is met.
// The error says why it failed.
func (p *Policy) Met(ctx context.Context, line int, r Request) (bool, error) {
	i, found := slices.BinarySearchFunc(p.rules, line, func(rule *rule, line int) int { return cmp.Compare(rule.Line, line) })
	if !found {
		return false, fmt.Errorf("policy: no row is at line %d", line)
	}
	if p.rules[i].condition == nil {
		return true, nil
	}
	v := condition.Variables(r)
	return p.rules[i].condition.Evaluate(ctx, &v)
}

// CSV is the row as a line of the policy file.
func (r Row) CSV() string {
	effect := string(r.Effect)
	if r.Effect == Ask {
		effect = askPrefix + r.Rule
	}
	fields := []string{"p", r.Subject, r.Domain, r.Tool, r.When, effect}
	for i, field := range fields {
		if strings.ContainsAny(field, `",`) || strings.Trim(field, " ") != field {
			fields[i] = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
		}
	}
	return strings.Join(fields, ", ")
}
