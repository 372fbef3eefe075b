package approval_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// granted is a grant that two people have made.
func granted(t testing.TB, scopes ...approval.Scope) (*approval.Approval, []approval.Grant) {
	t.Helper()
	a := open(t, "deploys")
	for i, scope := range scopes {
		v := vote(a, []string{"ada", "bob"}[i], true)
		if scope != "" {
			v.Remember = approval.Remember{Scope: scope, For: time.Duration(30+i) * time.Minute}
		}
		if err := a.MayRemember(v, rules); err != nil {
			t.Fatal(err)
		}
		cast(t, a, v, start)
	}
	return a, a.Grants(rules, allow("ada", "bob").now, start)
}

func TestGrantsNeedEnoughPeople(t *testing.T) {
	for _, tc := range []struct {
		offers []approval.Scope
		want   approval.Scope // "": none
	}{
		{[]approval.Scope{"same", "same"}, "same"}, {[]approval.Scope{"tool", "same"}, "same"}, {[]approval.Scope{"tool", "thread"}, "thread"},
		{[]approval.Scope{"tool", "tool"}, "tool"}, {[]approval.Scope{"same", "thread"}, ""}, {[]approval.Scope{"tool", ""}, ""}, {[]approval.Scope{"tool"}, ""},
	} {
		_, grants := granted(t, tc.offers...)
		if tc.want == "" && len(grants) > 0 || tc.want != "" && (len(grants) != 1 || grants[0].Scope != tc.want || grants[0].Until != start.Add(30*time.Minute)) {
			t.Errorf("%q: %+v", tc.offers, grants)
		}
	}
	a, _ := granted(t, "tool", "tool")
	if again := a.Grants(rules, allow("ada").now, start); len(again) > 0 {
		t.Errorf("one of two approvers has lost the right: %+v", again)
	}
	cast(t, a, vote(a, "ada", false), start)
	if again := a.Grants(rules, allow("ada", "bob").now, start); len(again) > 0 {
		t.Errorf("denied: %+v", again)
	}
}

func TestMayRemember(t *testing.T) {
	a := open(t, "refunds")
	for offer, want := range map[approval.Remember]error{
		{}: nil,
		{Scope: approval.Same, For: 8 * time.Hour}: nil,
		{Scope: approval.Same, For: 9 * time.Hour}: approval.ErrRemember,
		{Scope: approval.Same}:                     approval.ErrRemember,
		{Scope: approval.AnyCall, For: time.Hour}:  approval.ErrRemember,
		{For: time.Hour}:                           approval.ErrRemember,
	} {
		v := vote(a, "ada", true)
		v.Remember = offer
		if err := a.MayRemember(v, rules); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", offer, err, want)
		}
	}
}

// Every grant holds for the calls of its scope and no others, and as long as its rule, its
// approvers and its time say.
func TestGrantsHold(t *testing.T) {
	changes := map[string]struct {
		change func(*approval.Call)
		holds  []approval.Scope
	}{
		"nothing":    {func(*approval.Call) {}, approval.Scopes()},
		"thread":     {func(c *approval.Call) { c.Thread = "u" }, []approval.Scope{approval.AnyCall, approval.Same}},
		"arguments":  {func(c *approval.Call) { c.Arguments = []byte(`{}`) }, []approval.Scope{approval.AnyCall, approval.InThread}},
		"answers":    {func(c *approval.Call) { c.AnswersDigest = "u" }, []approval.Scope{approval.AnyCall, approval.InThread}},
		"definition": {func(c *approval.Call) { c.Definition = "u" }, nil},
		"tool":       {func(c *approval.Call) { c.Tool = "u" }, nil},
		"version":    {func(c *approval.Call) { c.Version = "u" }, nil},
		"principal":  {func(c *approval.Call) { c.Principal = "u" }, nil},
		"user":       {func(c *approval.Call) { c.User = "u" }, nil},
		"agent":      {func(c *approval.Call) { c.Agent = "u" }, nil},
		"workspace":  {func(c *approval.Call) { c.Workspace = "u" }, nil},
		"project":    {func(c *approval.Call) { c.Project = "u" }, nil},
	}
	people := allow("ada", "bob").now
	for _, scope := range approval.Scopes() {
		_, grants := granted(t, scope, scope)
		if len(grants) != 1 {
			t.Fatalf("%s: %+v", scope, grants)
		}
		for name, tc := range changes {
			c := call()
			tc.change(&c)
			v, err := approval.Judge(&c, []string{"deploys"}, nil, grants, rules, people, start.Add(time.Minute))
			if want := slices.Contains(tc.holds, scope); err != nil || v.Passes != want || want && v.Using[0] != grants[0].ID {
				t.Errorf("%s, %s changed: %+v, %v", scope, name, v, err)
			}
		}
		c, g := call(), grants[0]
		shorter := approval.Rules{"deploys": {Name: "deploys", Approve: 2, Remember: map[approval.Scope]time.Duration{scope: time.Minute}}}
		more := approval.Rules{"deploys": {Name: "deploys", Approve: 3, Remember: rules["deploys"].Remember}}
		for name, holds := range map[string]bool{
			"the right is lost":          g.Holds(&c, rules, allow("ada").now, start),
			"it is over":                 g.Holds(&c, rules, people, g.Until),
			"the rule is gone":           g.Holds(&c, approval.Rules{}, people, start),
			"the rule remembers shorter": g.Holds(&c, shorter, people, start),
			"the rule asks for more":     g.Holds(&c, more, people, start),
		} {
			if holds {
				t.Errorf("%s: it holds", name)
			}
		}
	}
}

// A denial that stands is stronger than a grant, and each rule needs its own yes.
func TestJudge(t *testing.T) {
	people := allow("ada", "bob").now
	_, grants := granted(t, "tool", "tool")
	denied := open(t, "deploys")
	cast(t, denied, vote(denied, "ada", false), start)
	c := call()
	v, err := approval.Judge(&c, []string{"deploys"}, []approval.Approval{*denied}, grants, rules, people, start)
	if err != nil || v.Passes || v.Denied == nil {
		t.Errorf("got %+v, %v", v, err)
	}
	a := open(t, "refunds")
	cast(t, a, vote(a, "ada", true), start)
	both := []string{"deploys", "refunds"}
	if v, _ = approval.Judge(&c, both, []approval.Approval{*a}, nil, rules, people, start); v.Passes || !slices.Equal(v.Missing, []string{"deploys"}) || v.Using != nil {
		t.Errorf("got %+v", v)
	}
	if v, _ = approval.Judge(&c, both, []approval.Approval{*a}, grants, rules, people, start); !v.Passes || len(v.Using) != 2 {
		t.Errorf("got %+v", v)
	}
	other := call()
	other.Thread = "u"
	if v, _ = approval.Judge(&other, []string{"refunds"}, []approval.Approval{*a}, nil, rules, people, start); v.Passes {
		t.Errorf("another call: %+v", v)
	}
}
