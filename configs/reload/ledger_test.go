package reload

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// ledger knows which configurations were ever saved whole, by digest.
type ledger struct {
	mu   sync.RWMutex
	kept map[string]int
}

// enter notes a save before it begins, and returns its digest, which is reckoned
// from what is to be saved and not from the disk.
func (l *ledger) enter(t testing.TB, files map[string]configtest.File, n int) string {
	t.Helper()
	m := configtest.Memory{}
	for name, f := range files {
		m[name] = f.Data
	}
	c, err := configs.LoadFrom(m, "callgate.yaml", "")
	must(t, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[c.Digest] = n
	return c.Digest
}

// check fails for a configuration that nobody ever saved whole.
func (l *ledger) check(s style, c *configs.Config) error {
	l.mu.RLock()
	n, saved := l.kept[c.Digest]
	l.mu.RUnlock()
	if !saved {
		return fmt.Errorf("what is served was never saved; its numbers are %v", numbers(c, 1))
	}
	want := [4]int{n, n, n, n}
	if s.alone {
		want = [4]int{1, 1, 1, n}
	}
	if s.name == "new tool file" {
		want = [4]int{1, 1, 1, 1}
	}
	if found := numbers(c, want[3]); found != want {
		return fmt.Errorf("save %d is served with the numbers %v; expected %v", n, found, want)
	}
	return nil
}

// readers look at what is served, all the time, until stop is called.
func readers(t testing.TB, h *servedFiles, l *ledger, s style, pace time.Duration) (stop func()) {
	var ended atomic.Bool
	var checks atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for !ended.Load() {
				if err := l.check(s, h.current.Load()); err != nil {
					t.Error(err)
					return
				}
				checks.Add(1)
				time.Sleep(pace)
			}
		})
	}
	return func() {
		ended.Store(true)
		all.Wait()
		if checks.Load() == 0 {
			t.Error("nothing was checked")
		}
		t.Logf("%d checks", checks.Load())
	}
}
