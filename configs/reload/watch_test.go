package reload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/internal/testkit/leaks"
)

// bound is how long after the last write a new configuration may take.
const bound = 2 * time.Second

// servedFiles is a process that serves a configuration, as far as a Watch sees it.
type servedFiles struct {
	*Watcher
	t       testing.TB
	dir     string
	current atomic.Pointer[configs.Config]
	loads   atomic.Int64
	swaps   atomic.Int64
	refuse  atomic.Pointer[error] // what Swap answers
	mu      sync.Mutex
	events  []Event
	finish  func()
}

// open loads the configuration of a folder and makes a watch, which start runs.
func open(t testing.TB, main string, opts WatcherOptions) *servedFiles {
	t.Helper()
	first, err := configs.Load(main)
	if err != nil {
		t.Fatal(err)
	}
	h := &servedFiles{t: t, dir: filepath.Dir(main)}
	h.current.Store(first)
	opts.Swap = func(_ context.Context, c *configs.Config) error {
		h.swaps.Add(1)
		if err := h.refuse.Load(); err != nil {
			return *err
		}
		h.current.Store(c)
		return nil
	}
	opts.Report = func(e Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, e)
	}
	h.Watcher = NewWatcher(main, first, opts)
	whole := h.load
	h.load = func(s *fingerprint) (*configs.Config, error) { h.loads.Add(1); return whole(s) }
	return h
}

// start runs the watch until the test ends or finish is called, which tells
// that Run has returned.
func (h *servedFiles) start() *servedFiles {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	h.finish = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("Run returned %v", err)
		}
	})
	h.t.Cleanup(h.finish)
	return h
}

// await waits until something is so. Its limit is only there to end a test that
// fails.
func (h *servedFiles) await(what string, so func() bool) {
	h.t.Helper()
	for range 12_000 {
		if so() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	h.t.Fatalf("it never came that %s; the events are %v and the state is %+v", what, h.received(), h.State())
}

func (h *servedFiles) received() []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// kinds are the kinds of the events so far.
func (h *servedFiles) kinds() string {
	var all []string
	for _, e := range h.received() {
		all = append(all, string(e.Kind))
	}
	return strings.Join(all, " ")
}

func (h *servedFiles) expect(kinds string) {
	h.t.Helper()
	if found := h.kinds(); found != kinds {
		h.t.Fatalf("found the events %q (%v); expected %q", found, h.received(), kinds)
	}
}

func (h *servedFiles) last() Event {
	all := h.received()
	return all[len(all)-1]
}

// save writes one file as a plain program does.
func (h *servedFiles) save(name, data string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(data), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// slow runs a test in virtual time with a watch that gets no notice of changes,
// so that looking at intervals does the whole work.
func slow(t *testing.T, changed map[string]string, test func(t *testing.T, h *servedFiles)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, configtest.Write(t, t.TempDir(), configtest.With(t, changed)), WatcherOptions{})
		test(t, h)
	})
}

func TestReload(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		first := h.current.Load()
		began := h.State()
		if began.Digest != first.Digest || began.Faults != nil || !began.FailingSince.IsZero() || began.RestartKeys != nil || !began.Since.Equal(time.Now()) {
			t.Fatalf("found the state %+v before anything happened", began)
		}
		h.start()
		time.Sleep(10 * time.Second)
		h.expect("")
		h.save("limits.yaml", strings.ReplaceAll(configtest.Base(t)["limits.yaml"].Data, "replicas: 2", "replicas: 3"))
		time.Sleep(bound)
		h.expect("reloaded")
		now := h.current.Load()
		if now == first || now.Limits.Replicas != 3 || first.Limits.Replicas != 2 {
			t.Errorf("found %d replicas, and %d in the configuration before", now.Limits.Replicas, first.Limits.Replicas)
		}
		if s := h.State(); s.Digest != now.Digest || s.Faults != nil || s.Since.Before(began.Since.Add(10*time.Second)) {
			t.Errorf("found the state %+v", s)
		}
		if e := h.last(); e.Digest != now.Digest || !slices.Equal(e.Files, []string{filepath.Join(h.dir, "limits.yaml")}) {
			t.Errorf("found the event %+v", e)
		}
		// The same bytes again are nothing new.
		h.save("limits.yaml", strings.ReplaceAll(configtest.Base(t)["limits.yaml"].Data, "replicas: 2", "replicas: 3"))
		h.Reload()
		time.Sleep(bound)
		h.expect("reloaded")
		if h.swaps.Load() != 1 || h.current.Load() != now {
			t.Error("the same bytes were swapped in again")
		}
	})
}

// TestChangedBeforeRun changes a file between the load at the start and Run.
func TestChangedBeforeRun(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		h.save("limits.yaml", "replicas: 7\n# end\n")
		h.start()
		time.Sleep(bound)
		h.expect("reloaded")
		if n := h.current.Load().Limits.Replicas; n != 7 {
			t.Errorf("found %d replicas; expected 7", n)
		}
	})
}

// TestQuiet counts loads: where nothing moves, and where only other files do,
// there is the one at the start.
func TestQuiet(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		h.start()
		for i := range 300 {
			time.Sleep(time.Second)
			h.save("notes.txt", fmt.Sprint(i))
			h.save("tools/web.yaml.tmp", fmt.Sprint(i))
		}
		h.expect("")
		if n := h.loads.Load(); n != 1 {
			t.Errorf("found %d loads in five minutes without a change; expected the one at the start", n)
		}
	})
}

// TestReloadLoads asks for a load when nothing has moved: it is made, not
// ten times for ten requests that come together, and changes nothing.
func TestReloadLoads(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		h.opts.Interval = time.Hour
		h.start()
		time.Sleep(time.Second)
		for range 10 {
			h.Reload()
		}
		time.Sleep(bound)
		if n := h.loads.Load(); n < 2 || n > 3 {
			t.Errorf("found %d loads; expected one at the start, and one or two for the asking", n)
		}
		h.save("limits.yaml", "replicas: 4\n# end\n")
		h.Reload()
		time.Sleep(bound)
		h.expect("reloaded")
	})
}

// TestEmbedded runs the watch of the default, which waits and does nothing.
func TestEmbedded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := configs.Load("")
		if err != nil {
			t.Fatal(err)
		}
		w := NewWatcher("", c, WatcherOptions{Report: func(e Event) { t.Errorf("found the event %+v", e) }})
		w.load = func(*fingerprint) (*configs.Config, error) { t.Error("it loads"); return nil, errors.New("no") }
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		w.Reload()
		if err := w.Run(ctx); err != nil || ctx.Err() == nil {
			t.Errorf("Run returned %v before its time", err)
		}
		if w.State().Digest != c.Digest {
			t.Errorf("found the state %+v", w.State())
		}
	})
}

// TestRunTwice runs a watch that runs, and one that has ended.
func TestRunTwice(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		h.start()
		synctest.Wait()
		if err := h.Run(t.Context()); err == nil {
			t.Error("it runs twice at once")
		}
		h.finish()
		h.start()
		h.save("limits.yaml", "replicas: 4\n# end\n")
		time.Sleep(bound)
		h.expect("reloaded")
	})
}

// TestWithoutOptions leaves out all that may be: nothing is ever served but the
// first, and says so.
func TestWithoutOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := configtest.Write(t, dir, configtest.Base(t))
		first, err := configs.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWatcher(path, first, WatcherOptions{})
		ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
		defer cancel()
		if err := os.WriteFile(filepath.Join(dir, "limits.yaml"), []byte("replicas: 4\n# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if s := w.State(); s.Digest != first.Digest || len(s.Faults) != 1 {
			t.Errorf("found the state %+v", s)
		}
	})
}

// TestStopsAtOnce ends the context at every stage of a reload.
func TestStopsAtOnce(t *testing.T) {
	for after := time.Duration(0); after < 900*time.Millisecond; after += 50 * time.Millisecond {
		slow(t, nil, func(t *testing.T, h *servedFiles) {
			h.save("limits.yaml", "replicas: 4\n# end\n")
			h.start()
			time.Sleep(after)
			ended := time.Now()
			h.finish()
			if took := time.Since(ended); took > 0 {
				t.Errorf("ended after %v, Run returned %v later", after, took)
			}
		})
	}
}

// TestLeavesNothing runs a watch with notice and ends it: no goroutine is left.
func TestLeavesNothing(t *testing.T) {
	defer leaks.None(t, goleak.IgnoreCurrent())
	h := open(t, configtest.Write(t, t.TempDir(), configtest.Base(t)), WatcherOptions{}).start()
	h.save("limits.yaml", "replicas: 4\n# end\n")
	h.await("the change is served", func() bool { return h.current.Load().Limits.Replicas == 4 })
	h.finish()
	if n := len(slices.Collect(maps.Keys(h.fingerprint.cache))); n > 0 {
		t.Errorf("the bytes of %d files are kept", n)
	}
}

// TestFirstLook: a configuration that Load has read is not loaded again, unless a file of it, or what a
// pattern matches, has changed since; any other configuration is.
func TestFirstLook(t *testing.T) {
	for name, c := range map[string]struct {
		load   func(string) (*configs.Config, error)
		change func(t *testing.T, dir string)
		loads  int64
		swaps  bool
	}{
		"nothing has changed":     {Load, func(*testing.T, string) {}, 0, false},
		"it is not known":         {configs.Load, func(*testing.T, string) {}, 1, false},
		"a file has changed":      {Load, func(t *testing.T, dir string) { write(t, dir, "limits.yaml", "replicas: 4\n# end\n") }, 1, true},
		"a file has come":         {Load, func(t *testing.T, dir string) { write(t, dir, "tools/more.yaml", "tools: []\n# end\n") }, 1, true},
		"a file has another name": {Load, func(t *testing.T, dir string) { rename(t, dir, "tools/web.yaml", "tools/net.yaml") }, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				path := configtest.Write(t, dir, configtest.Base(t))
				first, err := c.load(path)
				if err != nil {
					t.Fatal(err)
				}
				c.change(t, dir)
				var loads, swaps int64
				w := NewWatcher(path, first, WatcherOptions{Swap: func(context.Context, *configs.Config) error { swaps++; return nil }})
				whole := w.load
				w.load = func(s *fingerprint) (*configs.Config, error) { loads++; return whole(s) }
				ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
				defer cancel()
				if err := w.Run(ctx); err != nil {
					t.Error(err)
				}
				if loads != c.loads || (swaps > 0) != c.swaps {
					t.Errorf("%d loads, %d swaps; expected %d, %v", loads, swaps, c.loads, c.swaps)
				}
			})
		})
	}
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}
