package lab

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/policy"
)

// The beginnings of comments that a suggestion writes.
const (
	headComment   = "# policy suggest: "
	unusedComment = "# unused since "
	widerComment  = "# wider than its use since "
)

// SuggestOptions are the options of a suggestion.
type SuggestOptions struct {
	Head  []string // lines about the log, without a line end
	Since string   // the day of the first call, for comments
	// Agent leaves all rows alone but those that are for this agent only; empty is every row.
	Agent string
}

// SuggestCounts says what a suggestion changes.
type SuggestCounts struct {
	Rows     int // allow rows that it looked at
	Unused   int // that became comments
	Narrowed int // that became others
}

// Suggest writes the policy file anew, narrower by its use. The data must be those that the
// policy was loaded from. A suggestion for the result and the same uses is the result.
func (u *Uses) Suggest(data []byte, o SuggestOptions) ([]byte, SuggestCounts) {
	var counts SuggestCounts
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), "\n")
	rows := map[int]policy.Row{}
	kept := map[policy.Row]bool{}
	first := map[policy.Row]policy.Row{} // by content
	for _, r := range u.policy.Rows() {
		rows[r.Line], first[r.Content()] = r, r
		if exact := u.narrower(r, o); exact == nil {
			kept[r.Content()] = true
		}
	}
	var out []string
	for _, line := range o.Head {
		out = append(out, headComment+line)
	}
	for i, line := range lines {
		if strings.HasPrefix(line, headComment) {
			continue
		}
		r, isRow := rows[i+1]
		if !isRow {
			// A row that repeats another is none of the policy's, and would be one without it.
			if again, err := policy.ParseRow(line); err == nil {
				r, isRow = first[again.Content()], true
			}
		}
		if !isRow || r.Effect != policy.Allow || !u.concerns(r, o) {
			out = append(out, line)
			continue
		}
		counts.Rows++
		exact := u.narrower(r, o)
		switch {
		case exact == nil:
			out = append(out, line)
			continue
		case len(exact) == 0:
			counts.Unused++
			out = append(out, unusedComment+o.Since+": "+line)
			continue
		}
		counts.Narrowed++
		out = append(out, widerComment+o.Since+": "+line)
		for _, row := range exact {
			if !kept[row] {
				kept[row] = true
				out = append(out, row.CSV())
			}
		}
	}
	return []byte(strings.Join(out, "\n") + "\n"), counts
}

// narrower lists the rows, without places, that a row becomes: nil is the row itself, and
// empty is none.
func (u *Uses) narrower(r policy.Row, o SuggestOptions) []policy.Row {
	if r.Effect != policy.Allow || !u.concerns(r, o) {
		return nil
	}
	of := u.rows[r.Line]
	if of == nil {
		return []policy.Row{}
	}
	var exact []policy.Row
	if len(of.exact) > maxExact {
		row := r.Content()
		row.Domain, row.Tool = of.domain, of.tool
		exact = append(exact, row)
	} else {
		for _, key := range slices.SortedFunc(maps.Keys(of.exact), compareKeys) {
			row := r.Content()
			row.Subject, row.Domain, row.Tool = key.agent, key.domain(), key.tool
			exact = append(exact, row)
		}
	}
	if len(exact) == 1 && exact[0] == r.Content() {
		return nil
	}
	return exact
}

func compareKeys(a, b callKey) int {
	return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.project, b.project),
		cmp.Compare(a.tool, b.tool))
}

// concerns reports whether a row may be changed: with an agent, only if it is for no other.
func (u *Uses) concerns(r policy.Row, o SuggestOptions) bool {
	if o.Agent == "" || r.Subject == o.Agent {
		return true
	}
	if u.members == nil {
		u.members = map[string][]string{}
		for _, g := range u.policy.Grants() {
			u.members[g.Role] = append(u.members[g.Role], g.Member)
		}
	}
	seen := map[string]bool{r.Subject: true}
	for next := []string{r.Subject}; len(next) > 0; next = next[1:] {
		for _, member := range u.members[next[0]] {
			switch {
			case seen[member]:
			case strings.HasPrefix(member, "role:"):
				next = append(next, member)
			case member != o.Agent:
				return false
			}
			seen[member] = true
		}
	}
	return seen[o.Agent]
}
