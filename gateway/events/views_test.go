package events_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/store"
)

// Views take bounded room: of ten thousand forged threads a principal gets its share, another
// still has room, those of two principals never meet, and old ones leave.
func TestViewsAreBounded(t *testing.T) {
	var v events.Views
	now := time.Now()
	view, ok := events.NewView("diff", map[string]any{"patch": "x"})
	if !ok {
		t.Fatal("a small view is not taken")
	}
	taken := 0
	for n := range 10_000 {
		if v.Put(events.Call{Principal: "one", Thread: fmt.Sprint(n)}, view, now) {
			taken++
		}
	}
	if taken != 64 {
		t.Errorf("one principal has views of %d threads", taken)
	}
	if latest, _ := v.Follow(events.Call{Principal: "two", Thread: "0"}).Next(); len(latest) > 0 {
		t.Errorf("another principal sees %s", latest)
	}
	if !v.Put(events.Call{Principal: "two", Thread: "0"}, view, now) {
		t.Error("another principal has no room")
	}
	if later := now.Add(store.Retention); !v.Put(events.Call{Principal: "one", Thread: "new"}, view, later) {
		t.Error("old views do not leave")
	}
	if latest, _ := v.Follow(events.Call{Principal: "one", Thread: "0"}).Next(); len(latest) > 0 {
		t.Errorf("an old view is still sent: %s", latest)
	}
}

// A follower is told of the first view of its thread, and of each change; a view that has
// not changed is not sent again.
func TestViewsAreFollowed(t *testing.T) {
	var v events.Views
	of := events.Call{Principal: "p", Thread: "t"}
	put := func(of events.Call, kind string) {
		view, _ := events.NewView(kind, map[string]any{})
		if !v.Put(of, view, time.Now()) {
			t.Fatal("no room")
		}
	}
	f := v.Follow(of)
	next := func(want ...string) (changed <-chan struct{}) {
		t.Helper()
		latest, changed := f.Next()
		var got []string
		for _, view := range latest {
			got = append(got, view.Type)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("found %v; expected %v", got, want)
		}
		return changed
	}
	changed := next()
	put(events.Call{Principal: "p", Thread: "other"}, "x")
	<-changed // of another thread, this once
	changed = next()
	put(of, "a")
	<-changed
	changed = next("a")
	put(of, "b")
	put(of, "a")
	put(of, "a")
	<-changed
	next("b", "a")
	changed = next()
	v.Forget("other", of.Thread)
	v.Forget(of.Principal, "other")
	if latest, _ := v.Follow(of).Next(); len(latest) != 2 {
		t.Errorf("found %v", latest)
	}
	v.Forget(of.Principal, of.Thread)
	<-changed
	changed = next()
	put(of, "b")
	<-changed
	next("b")
}
