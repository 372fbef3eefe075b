package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/policy"
)

// Verdict says how a new policy compares to an old one.
type Verdict string

// The verdicts. Wider and Narrower are proven: a policy is Wider if it refuses or asks about
// no call that passed more easily before.
const (
	Equivalent   Verdict = "equivalent"
	Wider        Verdict = "wider"
	Narrower     Verdict = "narrower"
	Incomparable Verdict = "incomparable" // both, or it cannot be compared
)

// Join is the verdict on two changes together.
func (v Verdict) Join(other Verdict) Verdict {
	switch {
	case v == other || other == Equivalent:
		return v
	case v == Equivalent:
		return other
	}
	return Incomparable
}

// call is one agent, project and tool.
type call struct {
	agent string
	at    place
	tool  string
}

// Group is a number of calls that differ in the same way by the same rows.
type Group struct {
	Change Verdict `json:"change"`
	// Agents, Projects and Tools are those of the calls, up to three each; More says that
	// there are others.
	Agents   []string `json:"agents"`
	Projects []string `json:"projects"`
	Tools    []string `json:"tools"`
	More     bool     `json:"more,omitempty"`
	Calls    int      `json:"calls"` // agent × project × tool
	OldReach string   `json:"old_reach"`
	NewReach string   `json:"new_reach"`
	// OldRows and NewRows are the rows that only one side has for these calls, as file:line.
	OldRows []string `json:"old_rows"`
	NewRows []string `json:"new_rows"`
	// Open says that the conditions of the rows cannot be compared.
	Open bool `json:"open,omitempty"`
}

// Result is a whole comparison.
type Result struct {
	Verdict Verdict
	Calls   int // agents × projects × tools, with strangers
	Differ  int // of them, that differ or may
	Groups  []Group
	Omitted int // groups that are not listed
}

// maxGroups bounds the groups that are kept.
const maxGroups = 10_000

// Compare compares two policies. An error means that nothing is known.
func Compare(ctx context.Context, old, now *policy.Policy, w World) (Result, error) {
	a, b := fileOf(old), fileOf(now)
	n := newNames(w, a, b)
	changed := newChanges(a, b)
	r := &comparison{
		old: old, now: now, conditions: conditions{}, groups: map[string]*Group{},
		result: Result{Verdict: Equivalent, Calls: n.triples()},
	}
	if len(changed.regions) == 0 {
		return r.result, nil
	}
	for _, agent := range n.agents {
		changed.each(n, agent, func(at place, tool string) { r.add(call{agent, at, tool}) })
		if err := ctx.Err(); err != nil {
			return Result{}, fmt.Errorf("compare: %w", err)
		}
	}
	return r.finish(), nil
}

// Same reports that two policies decide a call alike for the same reasons, whatever its
// arguments are: by rows of the same effects and conditions. False is no proof of the contrary.
func Same(a, b *policy.Policy, agent, workspace, project, tool string) bool {
	return newTerms(a.Matching(agent, workspace, project, tool)).key == newTerms(b.Matching(agent, workspace, project, tool)).key
}

// comparison gathers a result.
type comparison struct {
	old, now   *policy.Policy
	conditions conditions
	groups     map[string]*Group
	result     Result
}

// add compares one call under both.
func (r *comparison) add(c call) {
	oldRows := r.old.Matching(c.agent, c.at.workspace, c.at.project, c.tool)
	newRows := r.now.Matching(c.agent, c.at.workspace, c.at.project, c.tool)
	old, now := newTerms(oldRows), newTerms(newRows)
	change := r.conditions.compare(old, now)
	if change == Equivalent {
		return
	}
	r.result.Differ++
	r.result.Verdict = r.result.Verdict.Join(change)
	g := Group{
		Change: change, OldReach: old.String(), NewReach: now.String(),
		OldRows: onlyIn(oldRows, newRows), NewRows: onlyIn(newRows, oldRows),
	}
	key := strings.Join(append(append([]string{string(change), g.OldReach, g.NewReach, "-"}, g.OldRows...),
		append([]string{"-"}, g.NewRows...)...), "\n")
	found := r.groups[key]
	if found == nil {
		if len(r.groups) >= maxGroups {
			r.result.Omitted++
			return
		}
		found = &g
		r.groups[key] = found
		g.Open = change == Incomparable && (old.conditional() || now.conditional())
	}
	found.Calls++
	found.add(c)
}

// add notes the names of one call.
func (g *Group) add(c call) {
	for _, list := range []struct {
		names *[]string
		name  string
	}{{&g.Agents, c.agent}, {&g.Projects, c.at.String()}, {&g.Tools, c.tool}} {
		switch {
		case slices.Contains(*list.names, list.name):
		case len(*list.names) < maxNames:
			*list.names = append(*list.names, list.name)
		default:
			g.More = true
		}
	}
}

// maxNames bounds the names of a group that are listed.
const maxNames = 3

// onlyIn lists the places of the rows whose effect and condition no row of the others has.
func onlyIn(rows, others []*policy.Row) []string {
	places := []string{}
	for _, r := range rows {
		same := func(o *policy.Row) bool { return o.Effect == r.Effect && o.Rule == r.Rule && o.When == r.When }
		if !slices.ContainsFunc(others, same) {
			places = append(places, r.Place())
		}
	}
	return places
}

// finish sorts the groups: the most calls first.
func (r *comparison) finish() Result {
	for _, g := range r.groups {
		r.result.Groups = append(r.result.Groups, *g)
	}
	first := func(g Group) string { return g.Agents[0] + "\n" + g.Projects[0] + "\n" + g.Tools[0] }
	slices.SortFunc(r.result.Groups, func(a, b Group) int {
		return cmp.Or(strings.Compare(string(b.Change), string(a.Change)), cmp.Compare(b.Calls, a.Calls),
			strings.Compare(first(a), first(b)), slices.Compare(a.OldRows, b.OldRows), slices.Compare(a.NewRows, b.NewRows))
	})
	return r.result
}
