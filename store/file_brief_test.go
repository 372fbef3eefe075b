package store_test

import (
	"errors"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/boltstore"
)

// TestUnkeyedInMemoryKeepsKeyedAndWaiting opens the file anew, as after a crash: it
// holds the calls with keys and those that wait, and no others.
func TestUnkeyedInMemoryKeepsKeyedAndWaiting(t *testing.T) {
	dir := t.TempDir()
	s := openFile(t, dir, boltstore.Options{UnkeyedInMemory: true})
	for _, id := range []string{"plain", "waiting", "late"} {
		dispatched(t, s, newCall(id, ""), once)
	}
	dispatched(t, s, newCall("keyed", "k"), once)
	until := time.Now().Add(time.Hour)
	must(t, s.Update(ctx, "waiting", store.Defer{Until: until}))
	if _, err := s.Finish(ctx, "late", ending("a", "early")); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(ctx, "late", store.Defer{Until: until}); !errors.Is(err, store.ErrEnded) {
		t.Errorf("a call that has ended waits: %v", err)
	}
	for id, step := range map[string]store.Step{"plain": store.Dispatched, "waiting": store.Waiting, "keyed": store.Dispatched, "late": store.Ended} {
		if c, err := s.Get(ctx, id, store.Of("p")); err != nil || c.Step != step {
			t.Errorf("%s: %q %v, want %q", id, c.Step, err, step)
		}
	}
	must(t, s.Close())

	s = openFile(t, dir, boltstore.Options{UnkeyedInMemory: true})
	left, err := s.Recover(ctx, store.Abandoned, 10)
	must(t, err)
	found := map[string]store.Step{}
	for _, c := range left {
		found[c.ID] = c.Step
	}
	if len(found) != 2 || found["waiting"] != store.Waiting || found["keyed"] != store.Dispatched {
		t.Errorf("found %v after the crash", found)
	}
	if c, err := s.Finish(ctx, "waiting", ending("b", "answer")); err != nil || c.Task.Tool == "" {
		t.Errorf("a call that waited cannot be ended: %+v %v", c, err)
	}
}

// TestUnkeyedInMemoryNotifiesWatchers: a watch is notified when its call begins to
// wait and moves to the file, and when it has ended there.
func TestUnkeyedInMemoryNotifiesWatchers(t *testing.T) {
	s := openFile(t, t.TempDir(), boltstore.Options{UnkeyedInMemory: true})
	dispatched(t, s, newCall("1", ""), once)
	for _, step := range []func(){
		func() { must(t, s.Update(ctx, "1", store.Defer{Until: time.Now().Add(time.Hour)})) },
		func() { _, err := s.Finish(ctx, "1", ending("a", "answer")); must(t, err) },
	} {
		w, err := s.Watch("1")
		must(t, err)
		step()
		select {
		case <-w.Changed:
		case <-time.After(patient):
			t.Fatal("a watch was not told")
		}
		w.Stop()
	}
}

// A call without a key takes a record and a value for each of its three steps, and at times the
// growth of a map: the rest of its way allocates nothing.
func TestAllocationsOfAnUnkeyedCall(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); !ok || slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector allocates")
	}
	s := openFile(t, t.TempDir(), boltstore.Options{UnkeyedInMemory: true})
	ids := make([]string, 2002)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	end := ending("a", "r")
	next := 0
	if n := testing.AllocsPerRun(2000, func() {
		id := ids[next]
		next++
		dispatched(t, s, newCall(id, ""), once)
		if _, err := s.Finish(ctx, id, end); err != nil {
			t.Fatal(err)
		}
	}); n > 5 {
		t.Errorf("a call takes %v allocations, want at most 5", n)
	}
}
