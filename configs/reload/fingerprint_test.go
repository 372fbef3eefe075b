package reload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// changing changes files while a load reads: after each read of a file whose
// name ends in after, it writes once.
type changing struct {
	*fingerprint
	after string
	write func()
}

func (c changing) ReadFile(name string) ([]byte, error) {
	data, err := c.fingerprint.ReadFile(name)
	if strings.HasSuffix(name, c.after) {
		c.write()
	}
	return data, err
}

// TestChangedWhileLoading changes two files between the reads of one load, so
// that what was read is a mix that was never on disk: it is not served.
func TestChangedWhileLoading(t *testing.T) {
	for _, after := range []string{"callgate.yaml", "web.yaml", "workspaces.yaml", "limits.yaml", "principals.yaml", "policy.csv"} {
		t.Run(after, func(t *testing.T) {
			slow(t, nil, func(t *testing.T, h *servedFiles) {
				generation := func(n int) map[string]configtest.File { return generationOf(t, n) }
				overlay(t, h.dir, generation(1))
				next, mixed := 2, 0
				h.load = func(s *fingerprint) (*configs.Config, error) {
					h.loads.Add(1)
					c, err := configs.LoadFrom(changing{fingerprint: s, after: after, write: func() {
						if next < 6 {
							configtest.Write(t, h.dir, generation(next))
							next++
						}
					}}, h.path, "")
					if err == nil && !whole(c) {
						mixed++
					}
					return c, err
				}
				swap := h.opts.Swap
				h.opts.Swap = func(ctx context.Context, c *configs.Config) error {
					if !whole(c) {
						t.Errorf("a mix is served: %v", numbers(c, 1))
					}
					return swap(ctx, c)
				}
				h.start()
				time.Sleep(5 * time.Second)
				h.expect("reloaded")
				if c := h.current.Load(); c.Limits.Replicas != 5 || !whole(c) {
					t.Errorf("found %v; expected the last save", numbers(c, 5))
				}
				if mixed == 0 && after != "policy.csv" {
					t.Error("no load saw a mix, so nothing was tested")
				}
			})
		})
	}
}

// TestNewFileAtRest names a new file in the main one and writes it in pieces
// that are valid by themselves: one that was not known before has to be at rest
// as well.
func TestNewFileAtRest(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		h.start()
		time.Sleep(bound)
		h.save("other.yaml", "replicas: 10\n# end\n")
		h.save("callgate.yaml", strings.ReplaceAll(configtest.Base(t)["callgate.yaml"].Data, "limits.yaml", "other.yaml"))
		for n := range 12 {
			h.save("other.yaml", fmt.Sprintf("replicas: %d\n# end\n", 10+n))
			time.Sleep(200 * time.Millisecond)
		}
		h.expect("")
		time.Sleep(bound)
		h.expect("reloaded")
		if n := h.current.Load().Limits.Replicas; n != 21 {
			t.Errorf("found %d replicas; expected those of the last save", n)
		}
	})
}

// TestNewToolFileAtRest writes a tool file that only the pattern knows, again and
// again, each time valid: it is not even loaded in motion.
func TestNewToolFileAtRest(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		h.start()
		time.Sleep(bound)
		for n := range 15 {
			h.save("tools/extra.yaml", fmt.Sprintf("tools: [{name: extra%d, run: {type: client}, input_schema: {type: object}}]\n# end\n", n))
			time.Sleep(200 * time.Millisecond)
		}
		if n := h.loads.Load(); n != 1 {
			t.Errorf("found %d loads of a file in motion", n-1)
		}
		time.Sleep(bound)
		h.expect("reloaded")
		if _, ok := h.current.Load().Tools.Lookup("extra14"); !ok {
			t.Error("the tool of the last save is not there")
		}
	})
}

// TestNewPatternAtRest saves a pattern whose one file is known, and soon after a
// second file for it: both are served together.
func TestNewPatternAtRest(t *testing.T) {
	listed := strings.ReplaceAll(configtest.Base(t)["callgate.yaml"].Data, "tools/*.yaml", "tools/web.yaml")
	slow(t, map[string]string{"callgate.yaml": listed}, func(t *testing.T, h *servedFiles) {
		h.start()
		time.Sleep(bound)
		h.save("callgate.yaml", configtest.Base(t)["callgate.yaml"].Data)
		h.Reload()
		time.Sleep(h.opts.Debounce + h.opts.Debounce/2)
		h.save("tools/extra.yaml", "tools: [{name: extra, run: {type: client}, input_schema: {type: object}}]\n# end\n")
		time.Sleep(bound)
		h.expect("reloaded")
		if _, ok := h.current.Load().Tools.Lookup("extra"); !ok {
			t.Error("the tool of the second file is not there")
		}
	})
}

// TestRestless never lets the files rest: nothing is served of them, and it is
// said, once.
func TestRestless(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		h.start()
		time.Sleep(bound)
		for n := range 600 {
			h.save("limits.yaml", fmt.Sprintf("replicas: %d\n# end\n", 3+n))
			time.Sleep(100 * time.Millisecond)
		}
		h.expect("failed")
		if f := h.last().Faults[0]; f.File != filepath.Join(h.dir, "limits.yaml") {
			t.Errorf("found the fault %v", f)
		}
		if n := h.loads.Load(); n != 1 {
			t.Errorf("found %d loads of files in motion", n-1)
		}
		time.Sleep(bound)
		h.expect("failed reloaded recovered")
		if n := h.current.Load().Limits.Replicas; n != 602 {
			t.Errorf("found %d replicas; expected those of the last save", n)
		}
	})
}

// TestOneReadAFile counts what one load reads: no file twice, though two keys
// name it.
func TestOneReadAFile(t *testing.T) {
	dir := t.TempDir()
	main := configtest.Write(t, dir, configtest.With(t, map[string]string{"callgate.yaml": "workspaces: both.yaml\nlimits: both.yaml\nregistry: {files: [tools/*.yaml, tools/w*.yaml]}\n# end\n"}))
	both := filepath.Join(dir, "both.yaml")
	must(t, os.WriteFile(both, []byte("replicas: 2\n# end\n"), 0o600))
	s := newFingerprint(main)
	data, err := s.ReadFile(both)
	must(t, err)
	must(t, os.WriteFile(both, []byte("replicas: 3\n# end\n"), 0o600))
	second, err := s.ReadFile(both)
	if err != nil || !bytes.Equal(second, data) {
		t.Errorf("the second read gave %q, %v; expected %q", second, err, data)
	}
	if s.changed() != both {
		t.Errorf("found that %q moved; expected %q", s.changed(), both)
	}
}

// TestPrints tells readings apart that look alike.
func TestPrints(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, r := range []fileRead{{}, {data: []byte("x")}, {err: errors.New("x")}, {data: []byte("!x")}, {data: []byte("=x")}, {err: errors.New("")}} {
		what := fmt.Sprintf("%q, %v", r.data, r.err)
		if other, twice := seen[r.hash()]; twice {
			t.Errorf("%s and %s have one print", what, other)
		}
		seen[r.hash()] = what
	}
}
