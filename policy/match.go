package policy

import (
	"context"

	"github.com/callgate/callgate/policy/condition"
)

// Match is a row whose subject, domain and tool match a request.
type Match struct {
	Row  Row
	rule *rule
}

// Matches lists the rows that match when conditions are ignored, in the order of their lines.
func (p *Policy) Matches(agent, workspace, project, tool string) []Match {
	at := domain{workspace, project}
	if p == nil || p.index == nil || unmatchable(agent, at, tool) != "" {
		return nil
	}
	rules, _ := p.index.candidates(agent, at, tool)
	matches := make([]Match, len(rules))
	for i, r := range rules {
		matches[i] = Match{r.Row, r}
	}
	return matches
}

// Evaluate evaluates the condition of the row for a request that it matches. A row without a
// condition is always met; an error means that the condition failed.
func (m Match) Evaluate(ctx context.Context, r Request) (met bool, err error) {
	if m.rule.condition == nil {
		return true, nil
	}
	variables := condition.Variables(r)
	return m.rule.condition.Evaluate(ctx, &variables)
}

// ParseRow reads a p row as the file writes it. The row has no file and line, so that it equals
// a row of a policy without those. The error is one or more *FileError, of line 1.
func ParseRow(written string) (Row, error) {
	f := &faults{}
	if len(written) > maxLine || !cleanLine(written, 1, f) {
		f.add(1, 1, "a row that no file can hold", "a row as the policy file writes it")
		return Row{}, f.err()
	}
	fields, ok := splitFields(written, 1, f)
	if !ok {
		return Row{}, f.err()
	}
	if fields[0].text != "p" {
		f.add(1, 1, "a row that is not a p row", "p, subject, domain, tool, when, effect")
		return Row{}, f.err()
	}
	parsed, ok := parseRow(record{line: 1, raw: written, fields: fields}, f)
	if !ok {
		return Row{}, f.err()
	}
	return parsed.Content(), nil
}

// Content is the row without its place: equal rows have equal content.
func (r Row) Content() Row {
	r.File, r.Line = "", 0
	return r
}
