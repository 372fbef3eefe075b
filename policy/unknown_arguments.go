package policy

import (
	"context"
	"strings"

	"github.com/callgate/callgate/internal/safe"
)

// Outlook is the decision of the rows on a call whose arguments are not known.
type Outlook int

// The outlooks. Depends is a call that some arguments allow, or have people asked, and
// others do not.
const (
	Depends Outlook = iota
	WillDeny
	WillAsk
	WillAllow
)

// Foresee says what Permit answers to a request whatever its arguments and its past are; those of the request
// are not read. The rows, as file:line, are those that take part for all arguments; with other
// arguments others may, without changing the answer. There are none for Depends. It
// is Depends also where an argument could make a condition fail, such as a number that cannot
// be represented, and that would change the answer.
func (p *Policy) Foresee(ctx context.Context, r Request) (o Outlook, rows []string, err error) {
	defer safe.RecoverZero(&o, &err)
	at := domain{r.Workspace, r.Project}
	if p == nil || p.index == nil {
		return Depends, nil, errNoPolicy
	}
	if unmatchable(r.Agent, at, r.Tool) != "" {
		return WillDeny, nil, nil
	}
	matching, _ := p.index.candidates(r.Agent, at, r.Tool)
	v := newEvaluation(ctx, r).variables
	var denies, asks, allows foreseen
	for _, rule := range matching {
		applies := always
		if rule.condition != nil {
			met, known, err := rule.condition.Hidden(ctx, &v)
			if ctx.Err() != nil {
				return Depends, nil, ctx.Err()
			}
			applies = whether(rule, met, known, err)
		}
		switch {
		case rule.Effect == Deny:
			denies.add(rule, applies)
		case rule.Effect == Allow:
			allows.add(rule, applies)
		case applies == failing: // asks, and does not permit
			asks.add(rule, always)
		default:
			asks.add(rule, applies)
			allows.add(nil, applies)
		}
	}
	switch {
	case denies.sure:
		return WillDeny, denies.rows, nil
	case !allows.possible:
		return WillDeny, nil, nil
	case denies.possible || !allows.sure:
		return Depends, nil, nil
	case asks.sure:
		return WillAsk, asks.rows, nil
	case asks.possible:
		return Depends, nil, nil
	}
	return WillAllow, allows.rows[:1], nil
}

// certainty says whether a row takes part in a decision.
type certainty int

const (
	never certainty = iota
	perhaps
	always
	failing // its condition fails, whatever the arguments are
)

// whether says of a row whose condition was evaluated without the arguments whether it takes
// part. A condition that reads arguments or the past may fail by reading them, whatever it answers.
func whether(r *rule, met, known bool, err error) certainty {
	mayFail := strings.Contains(r.When, "args") || !r.condition.Reads().None()
	switch {
	case err != nil && mayFail:
		return perhaps
	case err != nil && r.Effect == Deny:
		return always
	case err != nil && r.Effect == Ask:
		return failing
	case err != nil:
		return never
	case !known:
		return perhaps
	case r.Effect == Deny && met, r.Effect == Allow && !met:
		if met {
			return always
		}
		return never
	case mayFail:
		return perhaps
	case met:
		return always
	}
	return never
}

// foreseen gathers the rows of one effect.
type foreseen struct {
	sure, possible bool
	rows           []string // that are sure
}

func (f *foreseen) add(r *rule, c certainty) {
	f.possible = f.possible || c != never
	f.sure = f.sure || c == always
	if c == always && r != nil {
		f.rows = append(f.rows, r.Place())
	}
}
