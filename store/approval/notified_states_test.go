package approval_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/store/approval"
)

// reported is a set of states.
func reported(states ...approval.State) (t approval.Notified) {
	for _, s := range states {
		t = t.With(s)
	}
	return t
}

func TestUnnotified(t *testing.T) {
	people := allow("ada", "bob")
	used := func(a *approval.Approval) error { return a.Use("call_B", start.Add(2*time.Minute)) }
	withdraw := func(a *approval.Approval) error {
		return a.Finish(approval.Ending{End: approval.EndWithdrawn}, start.Add(2*time.Minute))
	}
	expire := func(a *approval.Approval) error {
		return a.Finish(approval.Ending{End: approval.EndExpired}, start.Add(time.Hour))
	}
	yes := func(a *approval.Approval) error {
		_, err := a.Cast(vote(a, "ada", true), start.Add(time.Minute))
		return err
	}
	no := func(a *approval.Approval) error {
		_, err := a.Cast(vote(a, "bob", false), start.Add(2*time.Minute))
		return err
	}
	type states = []approval.State
	for name, c := range map[string]struct {
		acts     []func(*approval.Approval) error
		after    time.Duration
		reported approval.Notified
		want     states
	}{
		"asked":                                  {nil, 0, 0, states{approval.Waiting}},
		"asked and told":                         {nil, 0, reported(approval.Waiting), nil},
		"approved":                               {[]func(*approval.Approval) error{yes}, 2 * time.Minute, reported(approval.Waiting), states{approval.Approved}},
		"approved at once":                       {[]func(*approval.Approval) error{yes}, 2 * time.Minute, 0, states{approval.Waiting, approval.Approved}},
		"used":                                   {[]func(*approval.Approval) error{yes, used}, 3 * time.Minute, 0, states{approval.Waiting, approval.Approved, approval.Used}},
		"used without a yes of its own":          {[]func(*approval.Approval) error{used}, 3 * time.Minute, reported(approval.Waiting), states{approval.Used}},
		"denied":                                 {[]func(*approval.Approval) error{no}, 3 * time.Minute, reported(approval.Waiting), states{approval.Denied}},
		"denied after a yes":                     {[]func(*approval.Approval) error{yes, no}, 3 * time.Minute, reported(approval.Waiting, approval.Approved), states{approval.Denied}},
		"withdrawn":                              {[]func(*approval.Approval) error{withdraw}, 3 * time.Minute, 0, states{approval.Waiting, approval.Withdrawn}},
		"over, and nobody was told":              {nil, time.Hour, 0, nil},
		"over, and not recorded yet":             {nil, time.Hour, reported(approval.Waiting), nil},
		"expired":                                {[]func(*approval.Approval) error{expire}, 2 * time.Hour, reported(approval.Waiting), states{approval.Expired}},
		"expired, and nobody was told":           {[]func(*approval.Approval) error{expire}, 2 * time.Hour, 0, nil},
		"used long ago":                          {[]func(*approval.Approval) error{yes, used}, 20 * time.Hour, reported(approval.Waiting, approval.Approved), states{approval.Used}},
		"used long ago, and nobody was told":     {[]func(*approval.Approval) error{yes, used}, 20 * time.Hour, 0, nil},
		"used, and told of all but its approval": {[]func(*approval.Approval) error{yes, used}, time.Hour, reported(approval.Waiting, approval.Used), nil},
	} {
		a := open(t, "refunds")
		for _, act := range c.acts {
			if err := act(a); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := a.Unnotified(c.reported, rules, people.now, start.Add(c.after)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for _, s := range c.want {
			if at := a.Since(s); at.Before(start) || at.After(start.Add(c.after)) {
				t.Errorf("%s: %s since %v", name, s, at)
			}
		}
	}
	// Without the right to approve, a yes is no state.
	a := open(t, "refunds")
	if err := yes(a); err != nil {
		t.Fatal(err)
	}
	if got := a.Unnotified(reported(approval.Waiting), rules, allow().now, start.Add(2*time.Minute)); len(got) > 0 {
		t.Errorf("the yes of nobody: %v", got)
	}
}

func TestNotifiedIsASet(t *testing.T) {
	all := []approval.State{approval.Waiting, approval.Approved, approval.Used, approval.Denied, approval.Expired, approval.Withdrawn}
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOf(rapid.SampledFrom(append(all, "no state"))).Draw(t, "states")
		set := reported(some...)
		for _, s := range all {
			if set.Has(s) != slices.Contains(some, s) {
				t.Fatalf("%v of %v: %s", set.States(), some, s)
			}
		}
		if set.Has("no state") || reported(set.States()...) != set {
			t.Fatalf("%v of %v", set.States(), some)
		}
	})
}
