package store_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/detector"
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

// Whoever asks for a call that moves to the file waits until it is there, or stays. A move that the disk
// confirms when nobody waits for it any more leaves one call, which ends once.
func TestUnkeyedCallMovesAsOne(t *testing.T) {
	c := newClock()
	var block atomic.Pointer[chan struct{}]
	entered := make(chan struct{}, 16)
	f := openFile(t, t.TempDir(), beforeCommit(boltstore.Options{UnkeyedInMemory: true, Now: c.now}, func() error {
		if c := block.Load(); c != nil {
			entered <- struct{}{}
			<-*c
		}
		return nil
	}))
	until := c.now().Add(time.Hour)
	for _, id := range []string{"confirmed", "late"} {
		dispatched(t, f, newCall(id, ""), once)
		held := make(chan struct{})
		block.Store(&held)
		moves, giveUp := context.WithCancel(ctx)
		moved := make(chan error)
		go func() { moved <- f.Update(moves, id, store.Defer{Until: until}) }()
		<-entered
		impatient, leave := context.WithTimeout(ctx, time.Millisecond)
		_, err := f.Get(impatient, id, store.Of("p"))
		refused(t, err, store.ErrUnavailable)
		leave()
		if id == "late" {
			giveUp()
			refused(t, <-moved, store.ErrUnavailable)
			if got, err := f.Get(ctx, id, store.Of("p")); err != nil || got.Step != store.Dispatched {
				t.Errorf("got %+v, %v", got, err)
			}
		}
		block.Store(nil)
		close(held)
		if id == "confirmed" {
			must(t, <-moved)
		}
		giveUp()
		if got, err := f.Finish(ctx, id, ending("a", "answer")); err != nil || got.Step != store.Ended {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
		_, err = f.Finish(ctx, id, ending("b", "another"))
		refused(t, err, store.ErrEnded)
	}
	// What is done with the late one may be written behind the move.
	dispatched(t, f, newCall("keyed", "k"), once)
	c.advance(2 * time.Hour)
	if due, err := f.Recover(ctx, store.Expired, 10); len(due) > 0 || err != nil {
		t.Errorf("calls that have ended expire: %+v, %v", due, err)
	}
	if left, err := f.Unfinished(ctx, "", 10); len(left) != 1 || left[0].ID != "keyed" || err != nil {
		t.Errorf("without an outcome: %+v, %v", left, err)
	}
}

// A call whose move is refused stays as it was, and ends in memory.
func TestUnkeyedCallStaysWhereTheDiskRefuses(t *testing.T) {
	var broken atomic.Bool
	f := openFile(t, t.TempDir(), beforeCommit(boltstore.Options{UnkeyedInMemory: true}, func() error {
		if broken.Load() {
			return errors.New("the disk is broken")
		}
		return nil
	}))
	a := asked(t, f, question(t, newClock(), "call_A", "p", `{}`, "refunds"))
	dispatched(t, f, newCall("waits", ""), once)
	opened(t, f, newCall("uses", ""))
	broken.Store(true)
	refused(t, f.Update(ctx, "waits", store.Defer{Until: time.Now()}), store.ErrUnavailable)
	refused(t, f.Dispatch(ctx, "uses", using(a.ID)), store.ErrUnavailable)
	for id, step := range map[string]store.Step{"waits": store.Dispatched, "uses": store.Opened} {
		if got, err := f.Get(ctx, id, store.Of("p")); err != nil || got.Step != step || len(got.Task.Using) > 0 {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	must(t, f.Settle(ctx, "uses"))
	if got, err := f.Finish(ctx, "waits", ending("a", "r")); err != nil || got.Step != store.Ended {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A call without a key whose result is handed over allocates nothing but, at times, the growth of a map.
func TestAllocationsOfAnUnkeyedCall(t *testing.T) {
	if detector.On {
		t.Skip("the race detector allocates")
	}
	s := openFile(t, t.TempDir(), boltstore.Options{UnkeyedInMemory: true})
	ids := make([]string, 2002)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	end := ending("a", "r")
	end.Deliver = true
	next := 0
	if n := testing.AllocsPerRun(2000, func() {
		id := ids[next]
		next++
		dispatched(t, s, newCall(id, ""), once)
		if _, err := s.Finish(ctx, id, end); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("a call takes %v allocations, want none", n)
	}
}
