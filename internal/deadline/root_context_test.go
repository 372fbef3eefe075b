package deadline_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/deadline"
)

// TestRootCallsHooks: at its end it calls each hook that is attached, and no other; contexts
// made from it end.
func TestRootCallsHooks(t *testing.T) {
	root := deadline.NewRoot()
	child := deadline.WithTimeout(root, time.Hour)
	defer child.Cancel()
	var called [6]int
	hooks := make([]deadline.Hook, len(called))
	for i := range hooks {
		hooks[i].Call = func() { called[i]++ }
	}
	for i := range 5 {
		root.Attach(&hooks[i])
	}
	// The first, the last and one between.
	for _, i := range []int{0, 4, 2} {
		if !root.Detach(&hooks[i]) {
			t.Errorf("hook %d was not attached", i)
		}
	}
	if root.Detach(&hooks[2]) {
		t.Error("a hook was detached twice")
	}
	root.Attach(&hooks[2])
	root.Cancel()
	root.Cancel()
	root.Attach(&hooks[5])
	if want := [6]int{0, 1, 1, 1, 0, 1}; called != want {
		t.Errorf("called %v, want %v", called, want)
	}
	for i := range hooks {
		if root.Detach(&hooks[i]) {
			t.Errorf("hook %d is still attached", i)
		}
	}
	if !errors.Is(child.Err(), context.Canceled) {
		t.Errorf("the child: %v", child.Err())
	}
}

// TestRootEndsInTheMiddle: of many that attach and detach, each learns by Detach alone
// whether its hook was called. Once Cancel has returned, every hook was.
func TestRootEndsInTheMiddle(t *testing.T) {
	for range 20 {
		root := deadline.NewRoot()
		var all sync.WaitGroup
		var ended atomic.Bool
		for range 8 {
			all.Go(func() {
				var called atomic.Int32
				h := deadline.Hook{Call: func() { called.Add(1) }}
				for over := false; !over; {
					called.Store(0)
					root.Attach(&h)
					over = ended.Load()
					running := root.Detach(&h)
					if running == (called.Load() != 0) || running && over {
						t.Errorf("detached %t, called %d times; the root had ended: %t", running, called.Load(), over)
					}
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
		root.Cancel()
		ended.Store(true)
		all.Wait()
	}
}

// TestHooksAllocateNothing: a hook of a call costs no memory.
func TestHooksAllocateNothing(t *testing.T) {
	root := deadline.NewRoot()
	h := deadline.Hook{Call: func() {}}
	if n := testing.AllocsPerRun(100, func() { root.Attach(&h); root.Detach(&h) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
