package store_test

import (
	"errors"
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
	within(t, "what is recorded is evicted, which happens behind the answer to a call", func() bool {
		_, err := a.Get(ctx, "2", store.OfAnyone())
		return errors.Is(err, store.ErrNotFound)
	})
	if _, err := a.Get(ctx, "1", store.OfAnyone()); err != nil {
		t.Errorf("what is owed was evicted: %v", err)
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

// A node that has left for good costs nothing after a day, unless it has calls that somebody is to take over. One
// that comes back all the same puts back what Redis has lost in the meantime.
func TestNodesThatHaveLeft(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	clock := newClock()
	clock.ms.Store(time.Now().Add(-store.Retention).UnixMilli()) // the logs are written today
	hooks := testHooks{now: clock.now, lease: time.Minute}
	leave := func(name string) (dir string) {
		dir = t.TempDir()
		g := joining(t, dir, o, hooks)
		g.wait(t, true)
		ended(t, g, newCall(name+" ended", name))
		if name == "busy" {
			dispatched(t, g, newCall(name, ""), read)
			opened(t, g, newCall(name+" opened", "k"))
		}
		must(t, g.Close())
		return dir
	}
	left := leave("left")
	stays := join(t, o, hooks)
	client := s.Client()
	defer client.Close()
	nodes := func() int64 {
		n, err := client.ZCard(ctx, o.KeyPrefix()+"{store}:nodes").Result()
		must(t, err)
		return n
	}
	looks := func(limit int) (taken []store.Call) {
		taken, err := stays.Recover(ctx, store.Abandoned, limit)
		must(t, err)
		return taken
	}
	clock.advance(store.Retention)
	if looks(10); nodes() != 2 {
		t.Errorf("%d nodes, though the lease of one has been over for less than a day", nodes())
	}
	clock.advance(time.Minute)
	if looks(10); nodes() != 1 {
		t.Errorf("%d nodes, though one has left for a day", nodes())
	}
	must(t, client.FlushAll(ctx).Err())
	within(t, "going on without the node", func() bool {
		_, err := stays.Get(ctx, "left ended", store.OfAnyone())
		return errors.Is(err, store.ErrNotFound)
	})
	back := joining(t, left, o, hooks)
	back.wait(t, true)
	if prior := claimed(t, back, newCall("second", "left")); prior == nil || prior.ID != "left ended" {
		t.Errorf("the key of the last day has started %+v", prior)
	}
	dispatched(t, back, newCall("third", "k3"), once)
	if nodes() != 2 {
		t.Errorf("%d nodes, though one has come back", nodes())
	}

	leave("busy")
	clock.advance(2 * store.Retention)
	within(t, "renewing", func() bool {
		var renewed bool
		lease, err := back.Lease(ctx)
		renewed = err == nil && lease.Until.After(clock.now())
		lease, err = stays.Lease(ctx)
		return renewed && err == nil && lease.Until.After(clock.now())
	})
	if taken := looks(1); len(taken) != 1 || taken[0].ID != "busy" || nodes() != 3 {
		t.Errorf("%d nodes; taken over: %+v", nodes(), taken)
	}
	if looks(10); nodes() != 2 {
		t.Errorf("%d nodes, though the last call was taken over", nodes())
	}
}

// What a gateway owes is owed after a loss of Redis as well, once, and its answer is kept.
func TestOwedAfterALoss(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	o.Replicas = 2
	dir := t.TempDir()
	a, b := joining(t, t.TempDir(), o, testHooks{}), joining(t, dir, o, testHooks{})
	a.wait(t, true)
	b.wait(t, true)
	must(t, a.Update(ctx, dispatched(t, a, newCall("1", "k"), once), store.Defer{Until: time.Now().Add(time.Hour)}))
	_, err := b.Finish(ctx, "1", ending("callback", "r"))
	must(t, err)
	client := s.Client()
	defer client.Close()
	must(t, client.FlushAll(ctx).Err())
	for _, g := range []*gateway{a, b} {
		within(t, "the call is back", func() bool {
			c, err := g.Get(ctx, "1", store.OfAnyone())
			return err == nil && c.Owed() && string(c.Answer.Result) == "r"
		})
	}
	must(t, b.Close())
	b = joining(t, dir, o, testHooks{})
	b.wait(t, true)
	owed, err := b.Recover(ctx, store.Owed, 10)
	if err != nil || len(owed) != 1 || owed[0].ID != "1" {
		t.Fatalf("owed: %+v, %v", owed, err)
	}
	must(t, b.Update(ctx, "1", store.Recorded{}))
	if calls, err := a.Recover(ctx, store.Abandoned, 10); len(calls) > 0 || err != nil {
		t.Errorf("recovered where it was decided: %+v, %v", calls, err)
	}
}
