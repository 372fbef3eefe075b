package store_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
)

func TestStopCovers(t *testing.T) {
	target := store.StopTarget{
		Scope: store.Scope{Principal: "bot", Workspace: "acme", Project: "alpha"}, Agent: "Analyst", Tool: "github.issues.create", Thread: "child", Ancestors: []string{"root", "middle"},
	}
	ofModel := target
	ofModel.Tool = ""
	for name, c := range map[string]struct {
		stop        store.Stop
		call, model bool
	}{
		"everything":                 {store.Stop{}, true, true},
		"the principal":              {store.Stop{Principal: "bot"}, true, true},
		"another principal":          {store.Stop{Principal: "bo"}, false, false},
		"the agent":                  {store.Stop{Agent: "Analyst"}, true, true},
		"another case":               {store.Stop{Agent: "analyst"}, false, false},
		"the workspace":              {store.Stop{Workspace: "acme"}, true, true},
		"the project":                {store.Stop{Workspace: "acme", Project: "alpha"}, true, true},
		"that of another workspace":  {store.Stop{Workspace: "globex", Project: "alpha"}, false, false},
		"another project":            {store.Stop{Workspace: "acme", Project: "beta"}, false, false},
		"the tool":                   {store.Stop{Tool: "github.issues.create"}, true, false},
		"below a name":               {store.Stop{Tool: "github.*"}, true, false},
		"further below":              {store.Stop{Tool: "github.issues.*"}, true, false},
		"every tool":                 {store.Stop{Tool: "*"}, true, false},
		"below another name":         {store.Stop{Tool: "git.*"}, false, false},
		"a name that it begins with": {store.Stop{Tool: "github.issues"}, false, false},
		"below its own name":         {store.Stop{Tool: "github.issues.create.*"}, false, false},
		"the thread":                 {store.Stop{Thread: "child"}, true, true},
		"an ancestor":                {store.Stop{Thread: "root"}, true, true},
		"another thread":             {store.Stop{Thread: "other"}, false, false},
		"the agent with the tool":    {store.Stop{Agent: "Analyst", Tool: "github.*"}, true, false},
		"another agent with it":      {store.Stop{Agent: "Intern", Tool: "github.*"}, false, false},
	} {
		if call, model := c.stop.Covers(&target), c.stop.Covers(&ofModel); call != c.call || model != c.model {
			t.Errorf("%s: a call %v, a request to a model %v; want %v and %v", name, call, model, c.call, c.model)
		}
	}
}

// In whatever order gateways learn of stops and their ends, and however often, they end up with the same
// list, and no end is lost.
func TestMergeStops(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var parts [3][]store.Stop
		first := map[string]time.Time{} // the earliest end of each
		for i := range parts {
			for range random.IntN(6) {
				n := random.IntN(8)
				s := store.Stop{ID: fmt.Sprint("stop_", n), Agent: fmt.Sprint(n), Since: now.Add(-time.Duration(n%3) * time.Minute)}
				if random.IntN(2) == 0 {
					s.Until = now.Add(time.Duration(random.IntN(20)-10) * time.Hour)
				}
				parts[i] = store.MergeStops(parts[i], []store.Stop{s}, now)
				if at, known := first[s.ID]; !known || !s.Until.IsZero() && (at.IsZero() || s.Until.Before(at)) {
					first[s.ID] = s.Until
				}
			}
		}
		merge := func(of ...int) (all []store.Stop) {
			for _, i := range of {
				all = store.MergeStops(all, parts[i], now)
			}
			return all
		}
		all := merge(0, 1, 2)
		for _, order := range [][]int{{2, 1, 0}, {1, 0, 2, 1, 0}, {0, 0, 2, 1}} {
			if again := merge(order...); !reflect.DeepEqual(again, all) {
				t.Fatalf("seed %d: %v: %v, want %v", seed, order, again, all)
			}
		}
		if len(all) != len(first) || store.StopsAdd(parts[1], all) || store.StopsAdd(all, all) {
			t.Fatalf("seed %d: %v of %v", seed, all, first)
		}
		for _, s := range all {
			if !s.Until.Equal(first[s.ID]) {
				t.Fatalf("seed %d: %s ends %s, want %s", seed, s.ID, s.Until, first[s.ID])
			}
		}
	}
}

// What ended long ago is forgotten, and of too many stops those that ended first; no active one is.
func TestStopsAreBounded(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	var list []store.Stop
	for n := range store.MaxActiveStops {
		list = append(list, store.Stop{ID: fmt.Sprint("active", n), Since: now})
	}
	for n := range store.MaxStops {
		list = append(list, store.Stop{ID: fmt.Sprint("ended", n), Since: now, Until: now.Add(-time.Duration(n) * time.Minute)})
	}
	list = append(list, store.Stop{ID: "old", Since: now, Until: now.Add(-31 * 24 * time.Hour)})
	merged := store.MergeStops(list, nil, now)
	has := func(id string) bool {
		return slices.ContainsFunc(merged, func(s store.Stop) bool { return s.ID == id })
	}
	if len(merged) != store.MaxStops || has("old") || !has("ended0") || has(fmt.Sprint("ended", store.MaxStops-1)) {
		t.Errorf("%d are left", len(merged))
	}
	for n := range store.MaxActiveStops {
		if !has(fmt.Sprint("active", n)) {
			t.Fatalf("active%d is gone", n)
		}
	}
	var more []store.Stop // of several gateways that could not know of each other
	for n := range store.MaxStops + 100 {
		more = append(more, store.Stop{ID: fmt.Sprint("more", n), Since: now, Until: now.Add(time.Hour)})
	}
	if merged := store.MergeStops(merged, more, now); len(merged) != store.MaxStops+100+store.MaxActiveStops {
		t.Errorf("%d are left of those that are active", len(merged))
	}
}

// Gateways share stops and ends, say which are in force where, and bring back what Redis has lost.
func TestSharedStops(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	a, b := join(t, o, testHooks{}), join(t, o, testHooks{})
	share := func(r *gateway, own ...store.Stop) []store.Stop {
		t.Helper()
		var all []store.Stop
		within(t, "stops are shared", func() (ok bool) {
			var err error
			all, err = r.ShareStops(ctx, own)
			return err == nil
		})
		return all
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	one, two := store.Stop{ID: "one", Agent: "Analyst", Reason: "r", By: "op", Since: now}, store.Stop{ID: "two", Tool: "github.*", Since: now.Add(1)}
	share(a, one)
	if all := share(b, two); !reflect.DeepEqual(all, []store.Stop{one, two}) {
		t.Fatalf("both: %v", all)
	}
	must(t, b.ConfirmStops(ctx, []string{"one", "two"}))
	leases, err := a.Leases(ctx)
	confirmed := 0
	for _, l := range leases {
		if slices.Equal(l.Stops, []string{"one", "two"}) {
			confirmed++
		}
	}
	if err != nil || len(leases) != 2 || confirmed != 1 {
		t.Errorf("leases: %+v, %v", leases, err)
	}
	ended := one
	ended.Until = now
	share(b, ended)
	if all := share(a, one); !reflect.DeepEqual(all, []store.Stop{ended, two}) {
		t.Errorf("one has ended: %v", all)
	}
	c := s.Client()
	defer c.Close()
	must(t, c.FlushAll(ctx).Err())
	if all := share(a, ended, two); len(all) != 2 {
		t.Errorf("put back: %v", all)
	}
	if all := share(b, one); !reflect.DeepEqual(all, []store.Stop{ended, two}) {
		t.Errorf("after a loss: %v", all)
	}
}
