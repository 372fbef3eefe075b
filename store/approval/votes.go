package approval

import (
	"errors"
	"slices"
	"time"
)

// Voter is a person who may vote, as the configuration or the credential has it now. The
// zero value may decide nothing.
type Voter struct {
	Principal string
	// Subject is the voter's name at the issuer of its token; empty for one without a token.
	// The user of a call may be named so.
	Subject string
	// Approves are the rules that the voter may decide.
	Approves []string
	// Agents are those that the voter stands for.
	Agents []string
	// Until is until when that is known; zero: for as long as the configuration says so. It is
	// the end of a token, of whose principal nothing is known after it.
	Until time.Time
}

// People returns what the person behind a vote may do now. For a principal of the
// configuration that is what the configuration says; a principal that it does not have may
// do nothing. For a principal of a token, of which only the vote is there, Vote.Rules are
// the rules that its token allowed. It is not asked for votes of callers.
type People func(Vote) Voter

// The errors of MayVote.
var (
	// ErrRequester says that nobody may approve a call of their own.
	ErrRequester = errors.New("approval: the voter is the requester, its user, or stands for its agent")
	// ErrNotApprover says that the voter may decide none of the rules.
	ErrNotApprover = errors.New("approval: the voter may decide none of its rules")
	// ErrRemember says that a rule does not let a yes stand so long, or for such calls.
	ErrRemember = errors.New("approval: the rule does not let a yes stand like that")
)

// MayVote returns the rules of the approval that the voter may decide; they are what
// Vote.Rules must be.
func (a *Approval) MayVote(v Voter) ([]string, error) {
	if a.isRequester(v) {
		return nil, ErrRequester
	}
	var decides []string
	for _, rule := range a.Rules {
		if slices.Contains(v.Approves, rule) {
			decides = append(decides, rule)
		}
	}
	if len(decides) == 0 {
		return nil, ErrNotApprover
	}
	return decides, nil
}

// MayConfirm returns the rules of the approval that its own caller may decide, for a vote
// with Caller.
func (a *Approval) MayConfirm(principal string, rules Rules) ([]string, error) {
	var decides []string
	for _, name := range a.Rules {
		if rule, known := rules[name]; known && rule.By == ByCaller && principal == a.Principal {
			decides = append(decides, name)
		}
	}
	if len(decides) == 0 {
		return nil, ErrNotApprover
	}
	return decides, nil
}

// MayRemember returns an error unless every rule that the vote decides lets a yes stand as
// the vote offers.
func (a *Approval) MayRemember(v Vote, rules Rules) error {
	if v.Remember == (Remember{}) {
		return nil
	}
	for _, name := range v.Rules {
		if most := rules[name].Remember[v.Remember.Scope]; v.Remember.For <= 0 || v.Remember.For > most {
			return ErrRemember
		}
	}
	if !v.Yes || v.Remember.Scope == InThread && a.Thread == "" {
		return ErrRemember
	}
	return nil
}

// isRequester reports whether the voter is the one who asks. Without authentication nobody
// has a name, and nobody can be told apart.
func (c *Call) isRequester(v Voter) bool {
	if v.Principal == "" {
		return c.Principal != ""
	}
	isUser := c.User != "" && (v.Principal == c.User || v.Subject == c.User)
	return v.Principal == c.Principal || isUser || c.Agent != "" && slices.Contains(v.Agents, c.Agent)
}

// counted returns the votes for yes that count for a rule now, one of each person: those of
// people who could decide the rule when they voted, can now, and are not the requester.
func (c *Call) counted(votes []Vote, rule Rule, people People, now time.Time) (yes []Vote) {
	for _, v := range votes {
		switch {
		case !v.Yes || !v.Until.IsZero() && !now.Before(v.Until) ||
			!slices.Contains(v.Rules, rule.Name) || slices.ContainsFunc(yes, func(other Vote) bool { return other.By == v.By }):
			continue
		case v.Caller:
			if rule.By != ByCaller || v.By != c.Principal {
				continue
			}
		default:
			voter := people(v)
			if voter.Principal != v.By || c.isRequester(voter) || !slices.Contains(voter.Approves, rule.Name) {
				continue
			}
		}
		yes = append(yes, v)
	}
	return yes
}

// Enough reports whether so many people say yes that a rule is satisfied now. A rule that
// the configuration does not have is never satisfied.
func (a *Approval) Enough(name string, rules Rules, people People, now time.Time) bool {
	rule, known := rules[name]
	return known && rule.Approve > 0 && a.Yes(name, rules, people, now) >= rule.Approve
}

// Yes returns how many people's approvals count for a rule now; 0 if there is no such rule.
func (a *Approval) Yes(name string, rules Rules, people People, now time.Time) int {
	rule, known := rules[name]
	if !known {
		return 0
	}
	return len(a.Call.counted(a.Votes, rule, people, now))
}

// State returns the state of the approval by the rules and the people of now.
func (a *Approval) State(rules Rules, people People, now time.Time) State {
	switch a.Ended.End {
	case EndDenied:
		return Denied
	case EndWithdrawn, EndRevoked:
		return Withdrawn
	case EndExpired:
		return Expired
	}
	switch {
	case a.Ran != "":
		return Used
	case a.approvedUntil(rules, people, a.Rules, now).After(now):
		return Approved
	case now.Before(a.Until):
		return Waiting
	}
	return Expired
}

// Pending reports whether a call may wait for the approval: people can decide it, or have approved it.
func (a *Approval) Pending(rules Rules, people People, now time.Time) bool {
	state := a.State(rules, people, now)
	return state == Waiting || state == Approved
}

// WasApproved reports whether enough people said yes, by the rules and the people of now, when the time of the approval
// ended.
func (a *Approval) WasApproved(rules Rules, people People) bool {
	return !a.approvedUntil(rules, people, a.Rules, a.Closes().Add(-time.Nanosecond)).IsZero()
}

// approvedUntil returns until when the approval can be used for rules that it asks for; the
// zero time if too few people say yes.
func (a *Approval) approvedUntil(rules Rules, people People, asks []string, now time.Time) time.Time {
	for _, name := range asks {
		if !slices.Contains(a.Rules, name) || !a.Enough(name, rules, people, now) {
			return time.Time{}
		}
	}
	var yes []Vote // those that count for any of its rules
	for _, name := range a.Rules {
		yes = append(yes, a.Call.counted(a.Votes, rules[name], people, now)...)
	}
	return a.closes(yes)
}
