package approval_test

import (
	"testing"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// tokenVote is a yes by a token that ends.
func tokenVote(a *approval.Approval, by string, until time.Time) approval.Vote {
	v := vote(a, by, true)
	v.Until = until
	return v
}

// A yes by a token counts until the token ends: the call waits for votes again, and no call
// passes by it. A vote by a newer token renews the yes.
func TestVotesEndWithTheirToken(t *testing.T) {
	people, ends := allow("ada", "bob").now, start.Add(5*time.Minute)
	a := open(t, "deploys")
	cast(t, a, tokenVote(a, "ada", ends), start)
	cast(t, a, vote(a, "bob", true), start)
	passes := func(now time.Time) bool {
		c := call()
		v, err := approval.Judge(&c, a.Rules, []approval.Approval{*a}, nil, rules, people, now)
		if err != nil {
			t.Fatal(err)
		}
		return v.Passes
	}
	if before := ends.Add(-time.Millisecond); a.State(rules, people, before) != approval.Approved || !passes(before) {
		t.Error("the yes does not count while the token is good")
	}
	if a.State(rules, people, ends) != approval.Waiting || passes(ends) || a.Enough("deploys", rules, people, ends) {
		t.Errorf("after the token: %s, passes: %v", a.State(rules, people, ends), passes(ends))
	}
	for _, older := range []time.Time{ends, ends.Add(-time.Minute)} {
		if same, err := a.Cast(tokenVote(a, "ada", older), ends); err != nil || !same {
			t.Errorf("the same vote by a token until %s: same: %v, %v", older, same, err)
		}
	}
	if same, err := a.Cast(tokenVote(a, "ada", ends.Add(time.Hour)), ends); err != nil || same || !passes(ends) || len(a.Votes) != 2 {
		t.Errorf("renewed: same: %v, %v, %d votes", same, err, len(a.Votes))
	}
}

// A grant ends with the first of the tokens by which it was given.
func TestGrantsEndWithTheirTokens(t *testing.T) {
	people := allow("ada", "bob").now
	a := open(t, "deploys")
	for by, until := range map[string]time.Time{"ada": start.Add(20 * time.Minute), "bob": start.Add(10 * time.Minute)} {
		v := tokenVote(a, by, until)
		v.Remember = approval.Remember{Scope: approval.AnyCall, For: time.Hour}
		cast(t, a, v, start)
	}
	grants := a.Grants(rules, people, start)
	if len(grants) != 1 || !grants[0].Until.Equal(start.Add(10*time.Minute)) {
		t.Fatalf("%+v", grants)
	}
	c, longer := call(), grants[0]
	longer.Until = start.Add(time.Hour) // a record that says otherwise changes nothing
	if !longer.Holds(&c, rules, people, start) || longer.Holds(&c, rules, people, start.Add(10*time.Minute)) {
		t.Error("the votes of a grant are not counted by the clock")
	}
	if again := a.Grants(rules, people, start.Add(10*time.Minute)); len(again) > 0 {
		t.Errorf("granted after a token has ended: %+v", again)
	}
}
