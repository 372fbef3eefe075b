// Package policylint finds in a configuration what its policy and limits say without effect, or
// surely otherwise than was meant. Each finding has an id that does not change, and a section of
// docs/policy-lint.md.
package policylint

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/policy"
)

// Lint returns the findings in a configuration, by file and line; those that may well be meant
// only where all are asked for.
func Lint(ctx context.Context, c *configs.Config, all bool) ([]Finding, error) {
	judge, err := c.DryRun()
	if err != nil {
		return nil, err
	}
	l := &linter{Config: c, ctx: ctx, judge: judge, warned: map[int]bool{}, places: placesOf(c), tools: toolNames(c)}
	for _, w := range c.PolicyWarnings {
		l.warned[w.Line] = true
		l.add(ID(w.Kind), w.File, w.Line, "%s", w.Message)
	}
	l.superfluous()
	l.conditions()
	l.labels()
	l.dottedDenials()
	if err := l.reaches(); err != nil {
		return nil, err
	}
	if !all {
		l.found = slices.DeleteFunc(l.found, func(f Finding) bool { return f.ID.byRequest() })
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(slices.Index(IDs(), a.ID), slices.Index(IDs(), b.ID)))
	})
	return l.found, ctx.Err()
}

// dottedDenials finds deny rows of NAME.* that do not reach what requests may bring under a similar name:
// tools of a request have no dots in their names, where a model is shown them for dots of the registry's.
func (l *linter) dottedDenials() {
	if !l.BringsTools {
		return
	}
	for _, r := range l.Policy.Rows() {
		domain, dotted := strings.CutSuffix(r.Tool, ".*")
		if r.Effect != policy.Deny || !dotted {
			continue
		}
		name := strings.ReplaceAll(domain, ".", "_") + "_x"
		if slices.ContainsFunc(l.places, func(at place) bool { return r.MayMatch(at.request(domain+".x")) && l.permits(at, name) }) {
			l.row(DottedDeny, r, "requests may bring a tool such as %s, which this row does not deny and another allows: list the tools that are allowed, or deny * where tool.startsWith('%s')", name, strings.TrimSuffix(name, "x"))
		}
	}
}

// permits reports whether some row permits a tool in a place, and none denies it whatever its arguments are.
func (l *linter) permits(at place, tool string) bool {
	permitted := false
	for _, r := range l.Policy.Matching(at.agent, at.workspace, at.project, tool) {
		if r.Effect == policy.Deny {
			if met, err := l.Policy.Met(l.ctx, r.Line, at.request(tool)); r.When == "" || met && err == nil {
				return false
			}
		}
		permitted = permitted || r.Effect != policy.Deny
	}
	return permitted
}

// superfluous finds rows without which every call is decided as with them.
func (l *linter) superfluous() {
	for _, s := range l.Policy.Superfluous() {
		switch {
		case l.warned[s.Row.Line]:
		case s.Reason == policy.Shadowed:
			l.row(Shadowed, s.Row, "line %d does the same for everything that this row matches", s.By.Line)
		case s.Reason == policy.Overridden && s.Row.Effect == policy.Ask:
			l.row(AskNothing, s.Row, "line %d denies everything that this row matches, so nobody is ever asked", s.By.Line)
		case s.Reason == policy.Overridden:
			l.row(Overridden, s.Row, "line %d denies everything that this row matches", s.By.Line)
		case s.Reason == policy.DeniesNothing:
			l.row(DenyNothing, s.Row, "no row permits anything that this row denies")
		}
	}
}
