package approval

import (
	"slices"
	"time"
)

// Verdict is the result of the votes on a call that asks.
type Verdict struct {
	// Passes says that every rule is satisfied. Using are the ids of the approvals and
	// grants that satisfy them: the dispatch of the call must name them all, and is
	// refused unless all of them are still there.
	Passes bool
	Using  []string
	// Spends are the approvals of this very call that it does not pass by, and whose votes made the
	// grants that it passes by: the run answers them, so the dispatch uses them up where they are
	// left. Else one yes would let the call run once more when its grant is gone.
	Spends []string
	// Repeat is that of the first of all these approvals which has one.
	Repeat Repeat
	// Denied is the denial that stands; nil if there is none.
	Denied *Approval
	// Missing are the rules that are not satisfied.
	Missing []string
	// Asks are the rules by which people are to be asked where the call does not pass: those that no
	// grant satisfies, or those of a pending approval of this very call that has all of them and no others
	// than the call asks for, so that it is joined.
	Asks []string
}

// Judge decides whether a call passes that asks for rules. Found are the approvals of its
// digest and the grants of its keys that the store has; others change nothing. A rule that
// the configuration does not have is not satisfied.
func Judge(c *Call, asks []string, found []Approval, grants []Grant, rules Rules, people People, now time.Time) (Verdict, error) {
	digest, err := c.Digest()
	if err != nil {
		return Verdict{Missing: asks, Asks: asks}, err
	}
	of := make([]*Approval, 0, len(found)) // this very call
	for i := range found {
		if a := &found[i]; a.Digest == digest && a.Principal == c.Principal {
			of = append(of, a)
		}
	}
	for _, a := range of {
		if a.Stands(now) {
			return Verdict{Denied: a, Missing: asks, Asks: asks}, nil
		}
	}
	v := Verdict{}
	for _, rule := range asks {
		id := grantedBy(c, rule, grants, rules, people, now)
		if id == "" {
			v.Asks = append(v.Asks, rule)
			id = approvedBy(rule, of, rules, people, now)
		}
		switch {
		case id == "":
			v.Missing = append(v.Missing, rule)
		case !slices.Contains(v.Using, id):
			v.Using = append(v.Using, id)
		}
	}
	if v.Passes = len(v.Missing) == 0; v.Passes {
		v.Asks = nil
	} else {
		v.Using, v.Asks = nil, joined(of, asks, v.Asks, rules, people, now)
	}
	for _, a := range of {
		made := func(g Grant) bool { return g.Approval == a.ID && slices.Contains(v.Using, g.ID) }
		if a.Live(now) && !slices.Contains(v.Using, a.ID) && slices.ContainsFunc(grants, made) {
			v.Spends = append(v.Spends, a.ID)
		}
		if v.Repeat == (Repeat{}) && (slices.Contains(v.Using, a.ID) || slices.Contains(v.Spends, a.ID)) {
			v.Repeat = a.Repeat
		}
	}
	return v, nil
}

// joined returns the rules of a pending approval that has those which are to be asked for, and no others
// than the call asks for; if there is none, those which are to be asked for.
func joined(of []*Approval, asks, ungranted []string, rules Rules, people People, now time.Time) []string {
	within := func(some, all []string) bool {
		return !slices.ContainsFunc(some, func(rule string) bool { return !slices.Contains(all, rule) })
	}
	for _, a := range of {
		if a.Pending(rules, people, now) && within(ungranted, a.Rules) && within(a.Rules, asks) {
			return a.Rules
		}
	}
	return ungranted
}

// grantedBy returns the id of the grant that satisfies a rule. Grants come before approvals, since they
// are not used up.
func grantedBy(c *Call, rule string, grants []Grant, rules Rules, people People, now time.Time) string {
	for i := range grants {
		if g := &grants[i]; g.Rule == rule && g.Holds(c, rules, people, now) {
			return g.ID
		}
	}
	return ""
}

// approvedBy returns the id of the approval that satisfies a rule.
func approvedBy(rule string, of []*Approval, rules Rules, people People, now time.Time) string {
	for _, a := range of {
		if a.Live(now) && a.approvedUntil(rules, people, []string{rule}, now).After(now) {
			return a.ID
		}
	}
	return ""
}
