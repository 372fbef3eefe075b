package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/condition"
	"github.com/callgate/callgate/policy/internal/lexical"
)

// maxNearMisses bounds how many rows an explanation lists.
const maxNearMisses = 20

// Explanation says how a request was decided, for an operator.
type Explanation struct {
	Decision
	// Why is one sentence on the decision.
	Why string
	// NearMisses holds the other rows that matched, and those that failed to match in
	// one thing only: the nearest first, then by line. Omitted counts those
	// beyond the first twenty.
	NearMisses []NearMiss
	Omitted    int
}

// NearMiss is a row that did not decide, and why.
type NearMiss struct {
	Row Row
	Why string

	rank int
}

// Explain decides as Permit does and says why, with the conditions and the arguments that they read.
// Nil arguments are not known. It looks at every row: it is for operators, not for the path of a call.
func (p *Policy) Explain(ctx context.Context, r Request) (e Explanation, err error) {
	defer safe.RecoverZero(&e, &err)
	d, err := p.Permit(ctx, r)
	if err != nil {
		return Explanation{}, err
	}
	e.Decision = d
	at := domain{r.Workspace, r.Project}
	if why := unmatchable(r.Agent, at, r.Tool); why != "" {
		e.Why = "Denied: " + why + "."
		return e, nil
	}
	roles, _ := p.index.roles.of(r.Agent, at)
	subjects := map[string]bool{r.Agent: true}
	for _, role := range roles {
		subjects[role] = true
	}
	j := newEvaluation(ctx, r)
	var deciding *rule
	for _, rule := range p.rules {
		if d.Row != nil && d.Row.Line == rule.Line {
			j.applies(rule) // to know whether its condition failed
			deciding = rule
			continue
		}
		if why, rank := p.nearMiss(rule, r, subjects, j, d); why != "" {
			e.NearMisses = append(e.NearMisses, NearMiss{Row: rule.Row, Why: why, rank: rank})
		}
	}
	slices.SortStableFunc(e.NearMisses, func(a, b NearMiss) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Row.Line, b.Row.Line))
	})
	if len(e.NearMisses) > maxNearMisses {
		e.Omitted = len(e.NearMisses) - maxNearMisses
		e.NearMisses = e.NearMisses[:maxNearMisses]
	}
	e.Why = whyDecided(deciding, j)
	return e, nil
}

// whyDecided is the sentence on a decision by a row; nil is none.
func whyDecided(row *rule, j *evaluation) string {
	if row == nil {
		return "Denied: no allow row matches."
	}
	verb := map[Effect]string{Allow: "Allowed", Deny: "Denied", Ask: "Approval required"}[row.Effect]
	if row.When == "" {
		return fmt.Sprintf("%s by %s.", verb, row.Row)
	}
	reads := j.reading(row)
	missing := j.missing(row)
	switch err := j.failed[row.Line]; {
	case err != nil && missing != "":
		return fmt.Sprintf("%s by %s: %s is not decided without %s, and %s.", verb, row.Row, reads, missing, onFailure(row.Effect))
	case err != nil:
		return fmt.Sprintf("%s by %s: its condition failed (%v), and %s. It is %s.", verb, row.Row, err, onFailure(row.Effect), reads)
	}
	return fmt.Sprintf("%s by %s: its condition is met: %s.", verb, row.Row, reads)
}

// missing says what of that which a condition reads an explanation was not given; "" for nothing.
func (j *evaluation) missing(r *rule) string {
	var missing []string
	if j.variables.Arguments == nil && strings.Contains(r.When, "args") {
		missing = append(missing, "the arguments")
	}
	if j.variables.Past == nil && !r.condition.Reads().None() {
		missing = append(missing, "the past of a thread")
	}
	return strings.Join(missing, " and ")
}

// reading is a condition, and what it reads of the arguments and of the past.
func (j *evaluation) reading(r *rule) string {
	read := slices.Concat(readArguments(r.When, j.variables.Arguments), j.readPast(r.condition.Reads()))
	if len(read) == 0 {
		return r.When
	}
	return r.When + ", where " + strings.Join(read, " and ")
}

// readPast lists what conditions saw of the past that one reads, with the values.
func (j *evaluation) readPast(reads condition.Reads) []string {
	if reads.None() || j.variables.Past == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(j.variables.Past.Saw()), func(saw string) bool {
		return !(reads.Labels && strings.HasPrefix(saw, "thread.labels=")) && !slices.ContainsFunc(reads.Terms, func(t history.Term) bool {
			rest, of := strings.CutPrefix(saw, t.String())
			return of && rest != "" && strings.ContainsRune("=#", rune(rest[0]))
		})
	})
}

// readArguments lists what a condition reads of the arguments, with the values.
func readArguments(when string, arguments map[string]any) []string {
	paths, err := condition.Paths(when)
	if err != nil || arguments == nil {
		return nil
	}
	var read []string
	for _, path := range paths {
		name := "args." + strings.Join(path, ".")
		var value any = arguments
		there := true
		for _, step := range path {
			members, _ := value.(map[string]any)
			if value, there = members[step]; !there {
				break
			}
		}
		if there {
			read = append(read, name+" is "+shown(value))
		} else {
			read = append(read, name+" is not there")
		}
	}
	return read
}

// maxShown is the most bytes of an argument that an explanation shows.
const maxShown = 200

// shown is an argument as printable JSON, cut.
func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "no JSON"
	}
	var b strings.Builder
	for _, r := range string(text) {
		if b.Len() > maxShown {
			return b.String() + "…"
		}
		if r > '~' {
			escaped := strconv.QuoteRuneToASCII(r)
			b.WriteString(escaped[1 : len(escaped)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// onFailure says what a row does whose condition failed.
func onFailure(e Effect) string {
	switch e {
	case Deny:
		return "a deny row then denies"
	case Ask:
		return "a row that asks then asks, and does not permit"
	}
	return "an allow row then does not allow"
}

// nearMiss says why a row did not decide; "" where it is far from matching. The rank
// is smaller for nearer rows.
func (p *Policy) nearMiss(rule *rule, r Request, subjects map[string]bool, j *evaluation, d Decision) (why string, rank int) {
	at := domain{r.Workspace, r.Project}
	patterns := at.patterns()
	subject := subjects[rule.Subject]
	domain := slices.Contains(patterns[:], rule.domain)
	tool := lexical.Matches(r.Tool, rule.Tool)
	switch {
	case subject && domain && tool:
		return p.conditionNearMiss(rule, j, d)
	case domain && tool:
		if isRole(rule.Subject) {
			return fmt.Sprintf("wrong subject: %s does not have %s in %s", parser.Quote(r.Agent), rule.Subject, parser.Quote(at.String())),
				3
		}
		return fmt.Sprintf("wrong subject: the row is for %s", rule.Subject), 4
	case subject && tool:
		return fmt.Sprintf("wrong domain: the row is for %s", rule.Domain), 2
	case subject && domain:
		return fmt.Sprintf("wrong tool: the row is for %s", rule.Tool), 5
	}
	return "", 0
}

// conditionNearMiss says why a row that matches otherwise did not decide.
func (p *Policy) conditionNearMiss(rule *rule, j *evaluation, d Decision) (why string, rank int) {
	if rule.condition != nil {
		met := j.applies(rule)
		reads := j.reading(rule)
		failed := j.failed[rule.Line]
		why := fmt.Sprintf("condition failed (%v): %s", failed, reads)
		if missing := j.missing(rule); missing != "" {
			why = "condition not decided without " + missing + ": " + reads
		}
		switch {
		case failed != nil && rule.Effect == Ask && d.Allowed:
			return "asks as well: " + why, 0
		case failed != nil:
			return why, 0
		case !met:
			return "condition false: " + reads, 0
		}
	}
	switch {
	case d.Row != nil && d.Row.Effect == Deny && rule.Effect != Deny:
		return fmt.Sprintf("matches, but line %d denies", d.Row.Line), 1
	case d.Row != nil && d.Row.Effect == Ask && rule.Effect == Allow:
		return fmt.Sprintf("matches, but line %d asks", d.Row.Line), 1
	case rule.Effect == Ask:
		return "asks as well", 1
	}
	return "matches as well", 1
}
