package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/callgate/callgate/store"
)

// TestSparingKeepsWhatIsAskedFor opens the file anew, as after a crash: it holds
// the calls of keys and those that wait, and no others.
func TestSparingKeepsWhatIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	f := openFile(t, dir, store.FileOptions{})
	s := store.Spare(f)
	for _, id := range []string{"plain", "waiting", "late"} {
		dispatched(t, s, newCall(id, ""), once)
	}
	dispatched(t, s, newCall("keyed", "k"), once)
	until := time.Now().Add(time.Hour)
	must(t, s.Defer(ctx, "waiting", until))
	if _, err := s.Finish(ctx, "late", ending("a", "early")); err != nil {
		t.Fatal(err)
	}
	if err := s.Defer(ctx, "late", until); !errors.Is(err, store.ErrEnded) {
		t.Errorf("a call that has ended waits: %v", err)
	}
	for id, step := range map[string]store.Step{"plain": store.Dispatched, "waiting": store.Waiting, "keyed": store.Dispatched, "late": store.Ended} {
		if c, err := s.Get(ctx, id, "p"); err != nil || c.Step != step {
			t.Errorf("%s: %q %v, want %q", id, c.Step, err, step)
		}
	}
	must(t, f.Close())

	s = store.Spare(openFile(t, dir, store.FileOptions{}))
	left, err := s.Recover(ctx, 10)
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

// TestSparingTellsWatchers: whoever watches a call learns that it has begun to
// wait, although it is kept elsewhere from then on, and that it ended.
func TestSparingTellsWatchers(t *testing.T) {
	s := store.Spare(openFile(t, t.TempDir(), store.FileOptions{}))
	dispatched(t, s, newCall("1", ""), once)
	for _, step := range []func(){
		func() { must(t, s.Defer(ctx, "1", time.Now().Add(time.Hour))) },
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
