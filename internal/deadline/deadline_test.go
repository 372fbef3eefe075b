package deadline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/internal/deadline"
)

type key struct{}

// ended is why a context has ended by Err, and whether Done, where waits is set, says so too.
func ended(t *testing.T, c context.Context, waits bool) error {
	t.Helper()
	err := c.Err()
	if !waits {
		return err
	}
	select {
	case <-c.Done():
		if err == nil {
			t.Error("Done is closed, and Err is nil")
		}
	default:
		if err != nil {
			t.Errorf("%v, and Done is open", err)
		}
	}
	return err
}

// TestSameAsContext: beside context.WithTimeout, at each time and for each way to end, whether
// or not somebody waits. Only a deadline that nobody asked for before Cancel is not seen.
func TestSameAsContext(t *testing.T) {
	for name, end := range map[string]func(cancel, cancelParent func()){
		"deadline":          func(_, _ func()) { time.Sleep(2 * time.Second) },
		"cancel":            func(cancel, _ func()) { cancel() },
		"parent":            func(_, cancelParent func()) { cancelParent() },
		"deadline, cancel":  func(cancel, _ func()) { time.Sleep(2 * time.Second); cancel() },
		"cancel, deadline":  func(cancel, _ func()) { cancel(); time.Sleep(2 * time.Second) },
		"parent, then both": func(cancel, cancelParent func()) { cancelParent(); cancel(); time.Sleep(2 * time.Second) },
	} {
		for _, waits := range []string{"never", "before", "after"} {
			t.Run(name+", waits "+waits, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, cancelParent := context.WithCancel(context.WithValue(context.Background(), key{}, "v"))
					defer cancelParent()
					ours := deadline.WithTimeout(parent, time.Second)
					theirs, cancel := context.WithTimeout(parent, time.Second)
					defer cancel()
					if ended(t, ours, waits == "before") != nil {
						t.Fatal("it has ended at once")
					}
					end(func() { ours.Cancel(); cancel() }, cancelParent)
					synctest.Wait()
					want := theirs.Err()
					if name == "deadline, cancel" && waits != "before" {
						want = context.Canceled // nobody had asked
					}
					if got := ended(t, ours, waits != "never"); !errors.Is(got, want) {
						t.Errorf("%v, want %v", got, want)
					}
					at, _ := ours.Deadline()
					if want, _ := theirs.Deadline(); !at.Equal(want) || ours.Value(key{}) != "v" {
						t.Errorf("%v, %v", at, ours.Value(key{}))
					}
				})
			})
		}
	}
}

// TestChildren end with it, and a wait for it ends at the deadline.
func TestChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c := deadline.WithTimeout(outer, time.Hour)
		defer c.Cancel()
		child, cancelChild := context.WithCancel(c)
		defer cancelChild()
		start := time.Now()
		<-child.Done()
		if took := time.Since(start); took != time.Second || !errors.Is(context.Cause(child), context.DeadlineExceeded) {
			t.Errorf("after %v: %v", took, context.Cause(child))
		}
	})
}

// TestOneAllocation: work that ends at once sets no timer.
func TestOneAllocation(t *testing.T) {
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { deadline.WithTimeout(ctx, time.Second).Cancel() }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestRoom: a context in the memory of its work takes no other, and one that was used already is left to
// whoever has it.
func TestRoom(t *testing.T) {
	ctx := context.Background()
	rooms := make([]deadline.Context, 101)
	if n := testing.AllocsPerRun(100, func() {
		rooms[0].WithTimeout(ctx, time.Second).Cancel()
		rooms = rooms[1:]
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	var room deadline.Context
	first := room.WithTimeout(ctx, time.Hour)
	first.Cancel()
	second := room.WithTimeout(ctx, time.Minute)
	defer second.Cancel()
	if first != &room || second == &room {
		t.Errorf("the room is at %p, the contexts at %p and %p", &room, first, second)
	}
	if !errors.Is(first.Err(), context.Canceled) || second.Err() != nil {
		t.Errorf("the first: %v; the second: %v", first.Err(), second.Err())
	}
}

func TestTimeOnly(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	defer cancel()
	detached := deadline.WithTimeout(context.WithoutCancel(cancelled), time.Hour)
	attached := deadline.WithTimeout(cancelled, time.Hour)
	root := deadline.NewRoot()
	rooted := deadline.WithTimeout(root, time.Hour)
	for name, c := range map[string]struct {
		ctx  context.Context
		root *deadline.Root
		want bool
	}{
		"detached":                        {detached, nil, true},
		"detached, within one":            {deadline.WithTimeout(detached, time.Minute), nil, true},
		"of a root":                       {rooted, root, true},
		"of a root, within one":           {deadline.WithTimeout(rooted, time.Minute), root, true},
		"of a root, with a value between": {deadline.WithTimeout(context.WithValue(rooted, key{}, 1), time.Minute), nil, false},
		"attached":                        {attached, nil, false},
		"attached, within one":            {deadline.WithTimeout(attached, time.Minute), nil, false},
		"with a value between":            {deadline.WithTimeout(context.WithValue(attached, key{}, 1), time.Minute), nil, false},
		"of package context":              {cancelled, nil, false},
		"a root":                          {root, nil, false},
		"without an end":                  {context.Background(), nil, false},
	} {
		if got, ok := deadline.TimeOnly(c.ctx); ok != c.want || got != c.root {
			t.Errorf("%s: %p, %t", name, got, ok)
		}
	}
}
