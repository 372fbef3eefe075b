package compare

import (
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/condition"
)

// always is the text of no condition.
const always = ""

// terms are the rows that match one call, as sets of the texts of conditions: all that the
// decision depends on. Rows that cannot change it are left out.
type terms struct {
	deny, permit []string            // sorted
	asks         map[string][]string // by rule, sorted
	key          string              // equal for equal terms
}

// newTerms reduces the rows that match a call.
func newTerms(rows []*policy.Row) terms {
	t := terms{}
	for _, r := range rows {
		switch r.Effect {
		case policy.Deny:
			t.deny = append(t.deny, r.When)
		case policy.Ask:
			if t.asks == nil {
				t.asks = map[string][]string{}
			}
			t.asks[r.Rule] = append(t.asks[r.Rule], r.When)
			t.permit = append(t.permit, r.When)
		default:
			t.permit = append(t.permit, r.When)
		}
	}
	t.deny, t.permit = set(t.deny), set(t.permit)
	if len(t.permit) == 0 || slices.Contains(t.deny, always) {
		return terms{}
	}
	var key strings.Builder
	write := func(kind string, texts []string) {
		for _, text := range texts {
			key.WriteString(kind + "\n" + text + "\n") // no text has a line end
		}
	}
	write("deny", t.deny)
	write("permit", t.permit)
	for _, rule := range slices.Sorted(maps.Keys(t.asks)) {
		t.asks[rule] = set(t.asks[rule])
		write("ask:"+rule, t.asks[rule])
	}
	t.key = key.String()
	return t
}

// set sorts texts; no condition makes the others needless.
func set(texts []string) []string {
	if slices.Contains(texts, always) {
		return []string{always}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// never reports whether no call is permitted.
func (t terms) never() bool { return len(t.permit) == 0 }

// conditional reports whether the decision depends on a condition.
func (t terms) conditional() bool {
	isCondition := func(text string) bool { return text != always }
	for _, texts := range t.asks {
		if slices.ContainsFunc(texts, isCondition) {
			return true
		}
	}
	return slices.ContainsFunc(t.deny, isCondition) || slices.ContainsFunc(t.permit, isCondition)
}

// conditions holds the texts of conditions as they compare, each read once.
type conditions map[string]condition.Conjunction

func (c conditions) of(text string) condition.Conjunction {
	read, known := c[text]
	if !known {
		read = condition.ReadConjunction(text)
		c[text] = read
	}
	return read
}

// compare says how two terms differ.
func (c conditions) compare(old, now terms) Verdict {
	if old.key == now.key {
		return Equivalent
	}
	notWider, notNarrower := c.implies(now, old), c.implies(old, now)
	switch {
	case notWider && notNarrower:
		return Equivalent
	case notWider:
		return Narrower
	case notNarrower:
		return Wider
	}
	return Incomparable
}

// implies reports that t permits no call that u refuses, and asks in every case in which u
// asks. False is no proof of the contrary, unless neither has a condition. A row that denies or asks
// does so also where its condition fails.
func (c conditions) implies(t, u terms) bool {
	if t.never() {
		return true
	}
	if u.never() || !c.within(u.deny, t.deny, condition.Conjunction.FailsWithin) ||
		!c.within(t.permit, u.permit, condition.Conjunction.Implies) {
		return false
	}
	for rule, texts := range u.asks {
		if !c.within(texts, t.asks[rule], condition.Conjunction.FailsWithin) {
			return false
		}
	}
	return true
}

// within reports that wherever some of the texts a hold, some of b do.
func (c conditions) within(a, b []string, implies func(a, b condition.Conjunction) bool) bool {
	return !slices.ContainsFunc(a, func(text string) bool {
		if _, found := slices.BinarySearch(b, text); found {
			return false
		}
		return !slices.ContainsFunc(b, func(other string) bool { return implies(c.of(text), c.of(other)) })
	})
}

// String says how far a call reaches: never, always or on conditions, and which rules ask.
func (t terms) String() string {
	if t.never() {
		return "never"
	}
	var rules []string
	conditional := false
	for _, rule := range slices.Sorted(maps.Keys(t.asks)) {
		rules = append(rules, rule)
		conditional = conditional || !slices.Contains(t.asks[rule], always)
	}
	reach := "always"
	if len(t.deny) > 0 || !slices.Contains(t.permit, always) {
		reach = "on conditions"
	}
	switch {
	case len(rules) == 0:
		return reach
	case conditional:
		return reach + ", may ask " + strings.Join(rules, ", ")
	case reach == "always":
		return "asks " + strings.Join(rules, ", ")
	}
	return reach + ", asks " + strings.Join(rules, ", ")
}
