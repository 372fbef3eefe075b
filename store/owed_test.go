package store_test

import (
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
)

// A call that another node has ended than the one that has decided it is owed, to the next process of the node
// that has ended it and to nobody else, until its outcome is recorded.
func TestOwed(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	o.Bounds = store.Bounds{Calls: 6, PrincipalPercent: 100}
	clock := newClock()
	a := join(t, o, testHooks{now: clock.now})
	dir := t.TempDir()
	b := joining(t, dir, o, testHooks{now: clock.now})
	b.wait(t, true)
	owed := func(g *gateway) (ids []string) {
		calls, err := g.Recover(ctx, store.Owed, 100)
		must(t, err)
		for _, c := range calls {
			if !c.Owed() {
				t.Errorf("got %+v", c)
			}
			ids = append(ids, c.ID)
		}
		return ids
	}
	finish := func(g *gateway, id string) store.Call {
		c, err := g.Finish(ctx, id, ending(id, "r"))
		must(t, err)
		return c
	}
	for _, id := range []string{"1", "2"} {
		must(t, a.Update(ctx, dispatched(t, a, newCall(id, ""), once), store.Defer{Until: clock.now().Add(time.Hour)}))
		if c := finish(b, id); !c.Owed() || c.Evictable() {
			t.Errorf("got %+v", c)
		}
		if c, err := b.Finish(ctx, id, ending(id, "r")); err != nil || !c.Owed() {
			t.Errorf("once more: %+v, %v", c, err)
		}
	}
	dispatched(t, a, newCall("own", ""), once)
	if c := finish(a, "own"); c.Owed() || c.DecidedBy != "" || !c.Evictable() {
		t.Errorf("got %+v", c)
	}
	must(t, b.Update(ctx, "2", store.Recorded{}))
	must(t, b.Update(ctx, "2", store.Recorded{}))
	for _, g := range []*gateway{a, b} {
		if ids := owed(g); len(ids) != 0 {
			t.Errorf("owed %q", ids)
		}
		if calls, err := g.Unfinished(ctx, "", 100); err != nil || len(calls) != 0 {
			t.Errorf("unfinished: %+v, %v", calls, err)
		}
	}
	for i := range 12 { // which evict what may be evicted
		dispatched(t, a, newCall(string(rune('a'+i)), ""), once)
		finish(a, string(rune('a'+i)))
	}
	if _, err := a.Get(ctx, "1", store.OfAnyone()); err != nil {
		t.Errorf("what is owed was evicted: %v", err)
	}
	if _, err := a.Get(ctx, "2", store.OfAnyone()); err == nil {
		t.Error("what is recorded was not evicted")
	}
	must(t, b.Close())
	clock.advance(time.Minute)
	if ids := owed(a); len(ids) != 0 {
		t.Errorf("another node is owed %q", ids)
	}
	if calls, err := a.Recover(ctx, store.Abandoned, 100); err != nil || len(calls) != 0 {
		t.Errorf("abandoned: %+v, %v", calls, err)
	}
	b = joining(t, dir, o, testHooks{now: clock.now})
	b.wait(t, true)
	if ids := owed(b); len(ids) != 1 || ids[0] != "1" {
		t.Errorf("the next process is owed %q", ids)
	}
	if ids := owed(b); len(ids) != 0 {
		t.Errorf("again: %q", ids)
	}
	must(t, b.Update(ctx, "1", store.Recorded{}))
	must(t, b.Close())
	b = joining(t, dir, o, testHooks{now: clock.now})
	b.wait(t, true)
	if ids := owed(b); len(ids) != 0 {
		t.Errorf("recorded, and owed: %q", ids)
	}

	// What is owed for a day is forgotten with the call.
	dispatched(t, a, newCall("old", "k"), once)
	finish(b, "old")
	must(t, b.Close())
	clock.advance(store.Retention)
	for n := 1; n > 0; {
		var err error
		n, err = a.Sweep(ctx, 100)
		must(t, err)
	}
	b = joining(t, dir, o, testHooks{now: clock.now})
	b.wait(t, true)
	if ids := owed(b); len(ids) != 0 {
		t.Errorf("swept, and owed: %q", ids)
	}
}

// A call that was taken over is owed by whoever ends it, but for the node that has decided it.
func TestOwedOfATakeover(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	dir, other := t.TempDir(), t.TempDir()
	open := func(dir string) *gateway {
		g := joining(t, dir, o, testHooks{lease: 300 * time.Millisecond})
		g.wait(t, true)
		return g
	}
	take := func(g *gateway) (taken []store.Call) {
		for end := time.Now().Add(patient); len(taken) < 2 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			taken = append(taken, recovered(t, g)...)
		}
		if len(taken) != 2 {
			t.Fatalf("took %+v", taken)
		}
		return taken
	}
	a := open(dir)
	dispatched(t, a, newCall("1", "k1"), once)
	dispatched(t, a, newCall("2", "k2"), once)
	must(t, a.Close())
	b := open(other)
	take(b)
	if c, err := b.Finish(ctx, "1", ending("b", "r")); err != nil || !c.Owed() {
		t.Errorf("got %+v, %v", c, err)
	}
	dispatched(t, b, newCall("3", "k3"), once)
	must(t, b.Close())
	a = open(dir)
	take(a)
	if c, err := a.Finish(ctx, "2", ending("a", "r")); err != nil || c.Owed() || c.DecidedBy != "" {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := a.Finish(ctx, "3", ending("a", "r")); err != nil || !c.Owed() {
		t.Errorf("got %+v, %v", c, err)
	}
}
