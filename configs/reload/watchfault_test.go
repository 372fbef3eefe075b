package reload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// overlay brings a folder to exactly these files, in place.
func overlay(t testing.TB, dir string, files map[string]configtest.File) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	configtest.Write(t, dir, files)
}

// TestFaultySaves saves every configuration of testdata/faulty over one that is
// served: it stays served, and the failure is that of Load, once.
func TestFaultySaves(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(configtest.Testdata(), "faulty", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < configtest.LeastCases {
		t.Fatalf("found %d cases; expected at least %d", len(cases), configtest.LeastCases)
	}
	if testing.Short() {
		cases = slices.DeleteFunc(cases, func(path string) bool { return !strings.HasPrefix(filepath.Base(path), "policy-") })
	}
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		first := h.current.Load()
		h.start()
		time.Sleep(bound)
		for _, path := range cases {
			name := strings.TrimSuffix(filepath.Base(path), ".txtar")
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			before := len(h.received())
			overlay(t, h.dir, configtest.Override(t, a))
			failing := time.Now()
			time.Sleep(bound)
			events := h.received()[before:]
			if len(events) != 1 || events[0].Kind != Failed || events[0].Digest != first.Digest {
				t.Fatalf("%s: found the events %v; expected one failure", name, events)
			}
			if found, want := strings.ReplaceAll(events[0].Faults.Error(), h.dir+"/", ""), strings.TrimSuffix(string(a.Comment), "\n"); found != want {
				t.Errorf("%s: found    %s\nexpected %s", name, found, want)
			}
			if s := h.State(); s.Faults.Error() != events[0].Faults.Error() || s.Digest != first.Digest || s.FailingSince.Before(failing) {
				t.Errorf("%s: found the state %+v", name, s)
			}
			time.Sleep(5 * time.Second)
			overlay(t, h.dir, configtest.Base(t))
			time.Sleep(bound)
			events = h.received()[before+1:]
			if len(events) != 1 || events[0].Kind != Recovered {
				t.Fatalf("%s: found the events %v; expected one failure and then the recovery", name, events)
			}
			if s := h.State(); s.Faults != nil || !s.FailingSince.IsZero() {
				t.Errorf("%s: found the state %+v after the recovery", name, s)
			}
		}
		if n := h.swaps.Load(); n != 0 || h.current.Load() != first {
			t.Errorf("found %d swaps; expected the first configuration all along", n)
		}
		if found, most := int(h.loads.Load()), 1+2*len(cases); found != most {
			t.Errorf("found %d loads for %d faulty saves; expected %d", found, len(cases), most)
		}
	})
}

// TestFailures reports another failure, and none twice in a row.
func TestFailures(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		h.start()
		h.save("limits.yaml", "replicas: no\n# end\n")
		time.Sleep(bound)
		h.expect("failed")
		if f := h.last().Faults[0]; f.File != filepath.Join(h.dir, "limits.yaml") || f.Line != 1 {
			t.Errorf("found the fault %v", f)
		}
		failing := h.State().FailingSince
		h.save("limits.yaml", "replicas: no\n# other bytes\n# end\n")
		time.Sleep(bound)
		h.expect("failed")
		h.save("limits.yaml", "\nreplicas: no\n# end\n")
		time.Sleep(bound)
		h.expect("failed failed")
		if s := h.State(); s.Faults[0].Line != 2 || s.FailingSince != failing {
			t.Errorf("found the state %+v; expected line 2 and failing since %v", s, failing)
		}
		h.save("limits.yaml", "replicas: 5\n# end\n")
		time.Sleep(bound)
		h.expect("failed failed reloaded recovered")
		h.save("limits.yaml", "\nreplicas: no\n# end\n")
		time.Sleep(bound)
		h.expect("failed failed reloaded recovered failed")
	})
}

// TestUnreadable takes files away in every way: what is served stays.
func TestUnreadable(t *testing.T) {
	type way struct {
		name    string
		do      func(path string) error
		message string
	}
	ways := []way{
		{"deleted", os.Remove, "found no such file"},
		{"a directory", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "found a directory"},
		{"a link to itself", func(path string) error { return errors.Join(os.Remove(path), os.Symlink(path, path)) }, "cannot be read"},
		{"a link to nothing", func(path string) error { return errors.Join(os.Remove(path), os.Symlink("nowhere", path)) }, "found no such file"},
		{"mode 000", func(path string) error { return os.Chmod(path, 0) }, "permission denied"},
	}
	for _, way := range ways {
		for _, name := range []string{"callgate.yaml", "policy.csv", "tools/web.yaml", "principals.yaml"} {
			t.Run(way.name+"/"+name, func(t *testing.T) {
				if way.name == "mode 000" && os.Geteuid() == 0 {
					t.Skip("mode 000: root reads such a file")
				}
				if way.name == "deleted" && name == "tools/web.yaml" {
					t.Skip("a tool file that a pattern no longer matches is no fault: the tool is gone")
				}
				slow(t, nil, func(t *testing.T, h *servedFiles) {
					first := h.current.Load()
					h.start()
					time.Sleep(bound)
					path := filepath.Join(h.dir, name)
					if err := way.do(path); err != nil {
						t.Fatal(err)
					}
					time.Sleep(bound)
					h.expect("failed")
					if e := h.last(); !strings.Contains(e.Faults.Error(), way.message) || !strings.Contains(e.Faults.Error(), path) {
						t.Errorf("found the faults %v; expected %q of %s", e.Faults, way.message, path)
					}
					time.Sleep(5 * time.Minute)
					if n := h.loads.Load(); n != 2 {
						t.Errorf("found %d loads in five minutes; expected 2", n)
					}
					if err := os.RemoveAll(path); err != nil {
						t.Fatal(err)
					}
					h.save(name, configtest.Base(t)[name].Data)
					time.Sleep(bound)
					h.expect("failed recovered")
					if h.current.Load() != first {
						t.Error("another configuration is served")
					}
				})
			})
		}
	}
}

// TestPanicWhileLoading makes every load of a change panic.
func TestPanicWhileLoading(t *testing.T) {
	var none *configs.Config
	for why, broken := range map[string]func(){
		"its own":       func() { panic("hunter2") },
		"an error":      func() { panic(errors.New("hunter2")) },
		"the runtime's": func() { _ = none.Digest },
		"nil":           func() { panic(nil) },
	} {
		t.Run(why, func(t *testing.T) {
			slow(t, nil, func(t *testing.T, h *servedFiles) {
				loadValid := h.load
				h.load = func(s *fingerprint) (*configs.Config, error) {
					c, err := loadValid(s)
					if err == nil && c.Limits.Replicas == 4 {
						broken()
					}
					return c, err
				}
				h.start()
				time.Sleep(bound)
				h.save("limits.yaml", "replicas: 4\n# end\n")
				time.Sleep(5 * time.Minute)
				h.expect("failed")
				text := h.last().Faults.Error()
				if configtest.Secrets.MatchString(text) || strings.Contains(text, "goroutine") || strings.Contains(text, "\n") || !strings.HasPrefix(text, h.dir) {
					t.Errorf("found the fault %q", text)
				}
				if n := h.loads.Load(); n != 2 {
					t.Errorf("found %d loads; expected no second attempt at the same bytes", n)
				}
				h.save("limits.yaml", "replicas: 5\n# end\n")
				time.Sleep(bound)
				h.expect("failed reloaded recovered")
			})
		})
	}
}

// TestPanicElsewhere breaks the watch itself: the process lives on.
func TestPanicElsewhere(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		h.fingerprint = nil
		h.start()
		time.Sleep(time.Minute)
		h.expect("failed")
		h.finish()
	})
}

// TestPanicOnce breaks the watch in the middle of a swap, and never again: the
// change is made all the same.
func TestPanicOnce(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		calls := 0
		h.opts.Now = func() time.Time {
			if calls++; calls == 1 {
				panic("hunter2")
			}
			return time.Now()
		}
		h.save("limits.yaml", "replicas: 4\n# end\n")
		h.start()
		time.Sleep(2 * bound)
		h.expect("failed reloaded recovered")
		if s := h.State(); s.Faults != nil || s.Digest != h.current.Load().Digest {
			t.Errorf("found the state %+v", s)
		}
	})
}

// TestSwapFails refuses a configuration, by an error and by a panic, and takes
// it later: it is offered again without a new load.
func TestSwapFails(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		var panics atomic.Bool
		swap := h.opts.Swap
		h.opts.Swap = func(ctx context.Context, c *configs.Config) error {
			if panics.Load() {
				panic("hunter2")
			}
			return swap(ctx, c)
		}
		first := h.current.Load()
		h.start()
		time.Sleep(bound)
		refusal := errors.New("the engine is full")
		h.refuse.Store(&refusal)
		h.save("callgate.yaml", strings.ReplaceAll(configtest.Base(t)["callgate.yaml"].Data, "data_dir: data", "data_dir: other"))
		time.Sleep(time.Minute)
		h.expect("failed")
		if s := h.State(); len(s.Faults) != 1 || s.Faults[0].File != h.path || s.Faults[0].Message != refusal.Error() || s.Digest != first.Digest || s.RestartKeys != nil {
			t.Errorf("found the state %+v", s)
		}
		if n := h.swaps.Load(); n < 55 || n > 65 {
			t.Errorf("found %d attempts in a minute; expected one a second", n)
		}
		panics.Store(true)
		time.Sleep(bound)
		h.expect("failed failed")
		if text := h.last().Faults.Error(); configtest.Secrets.MatchString(text) {
			t.Errorf("found the fault %q", text)
		}
		panics.Store(false)
		h.refuse.Store(nil)
		time.Sleep(bound)
		h.expect("failed failed reloaded recovered restart")
		if n := h.loads.Load(); n != 2 {
			t.Errorf("found %d loads; expected 2", n)
		}
		if c := h.current.Load(); c.DataDir != first.DataDir || !slices.Equal(h.State().RestartKeys, []string{"data_dir"}) {
			t.Errorf("found data_dir %s, and %v waiting", c.DataDir, h.State().RestartKeys)
		}
	})
}

// TestSwapIsBrokenOff ends a watch while a configuration waits to be taken: the
// wait ends with it, and nothing is told of a failure that is none.
func TestSwapIsBrokenOff(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		waits := make(chan struct{})
		h.opts.Swap = func(ctx context.Context, _ *configs.Config) error {
			close(waits)
			<-ctx.Done()
			return ctx.Err()
		}
		h.start()
		h.save("limits.yaml", "replicas: 4\n# end\n")
		<-waits
		h.finish()
		h.expect("")
		if s := h.State(); s.Faults != nil {
			t.Errorf("found the state %+v", s)
		}
	})
}

// TestSwapPanics lets the first attempt panic: it is an attempt like another.
func TestSwapPanics(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		swap, attempts := h.opts.Swap, 0
		h.opts.Swap = func(ctx context.Context, c *configs.Config) error {
			if attempts++; attempts == 1 {
				panic("hunter2")
			}
			return swap(ctx, c)
		}
		h.start()
		h.save("limits.yaml", "replicas: 4\n# end\n")
		time.Sleep(2 * bound)
		h.expect("failed reloaded recovered")
	})
}

// TestRefusedIsDropped refuses a configuration and brings back the files of the
// one that is served: the refused one is not offered again.
func TestRefusedIsDropped(t *testing.T) {
	for why, data := range map[string]string{"the old files": configtest.Base(t)["limits.yaml"].Data, "bad files": "x"} {
		t.Run(why, func(t *testing.T) {
			slow(t, nil, func(t *testing.T, h *servedFiles) {
				h.start()
				refusal := errors.New("no")
				h.refuse.Store(&refusal)
				h.save("limits.yaml", "replicas: 4\n# end\n")
				time.Sleep(bound)
				h.save("limits.yaml", data)
				time.Sleep(bound)
				before := h.swaps.Load()
				h.refuse.Store(nil)
				time.Sleep(time.Minute)
				if h.swaps.Load() != before {
					t.Error("it is offered after the files have changed")
				}
			})
		})
	}
}

// TestReportPanics breaks the one that is told: what it is told of happens.
func TestReportPanics(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		h.opts.Report = func(Event) { panic("no") }
		h.start()
		h.save("limits.yaml", "replicas: no\n# end\n")
		time.Sleep(bound)
		if h.State().Faults == nil {
			t.Error("the failure is not known")
		}
		h.save("limits.yaml", "replicas: 4\n# end\n")
		time.Sleep(bound)
		if h.State().Faults != nil || h.current.Load().Limits.Replicas != 4 {
			t.Errorf("found the state %+v", h.State())
		}
	})
}
