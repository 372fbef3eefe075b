package reload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/policy"
)

// saveCount is how many saves TestSaves makes, from CALLGATE_SAVES. Beyond the
// default, which takes seconds, it also holds each to the bound in real time.
func saveCount(t testing.TB) (count int, long bool) {
	t.Helper()
	text := os.Getenv("CALLGATE_SAVES")
	if text == "" {
		return 50, false
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 {
		t.Fatalf("found CALLGATE_SAVES=%s; expected a number of saves", text)
	}
	return count, true
}

// generationOf is a configuration in which four files bear a number, and whose
// policy, its last row above all, is long enough to be seen half-written.
func generationOf(t testing.TB, n int) map[string]configtest.File {
	t.Helper()
	var rows strings.Builder
	fmt.Fprintf(&rows, "p, Analyst, acme/alpha, notes.add, \"args.text != 'secret %d'\", allow\n", n)
	fmt.Fprintf(&rows, "p, Analyst, acme/alpha, web.*, , allow\n")
	for rows.Len() < 64<<10 {
		rows.WriteString("# p, Nobody, acme/alpha, notes.add, , allow, and what else a long policy says\n")
	}
	rows.WriteString("p, Intern, acme/alpha, notes.add, , allow\np, Intern, *, notes.*, , deny\n# end\n")
	return configtest.With(t, map[string]string{
		"policy.csv":     rows.String(),
		"callgate.yaml":  fmt.Sprintf("output: {max_bytes: %d}\n", 1000+n) + configtest.Base(t)["callgate.yaml"].Data,
		"limits.yaml":    fmt.Sprintf("replicas: %d\n# end\n", n),
		"tools/web.yaml": strings.Replace(configtest.Base(t)["tools/web.yaml"].Data, "version: 1.0.0", fmt.Sprintf("version: 1.0.%d", n), 1),
	})
}

// numbers are those that a configuration bears: in its main file, its limits, its
// tools, and in its policy, where it is guess or, as for a policy in which a row
// is missing, -1.
func numbers(c *configs.Config, guess int) [4]int {
	main, limits, tools, access := c.Output.MaxBytes-1000, c.Limits.Replicas, -1, -1
	if web, ok := c.Tools.Lookup("web.search"); ok {
		if _, err := fmt.Sscanf(web.Version(), "1.0.%d", &tools); err != nil {
			tools = -1
		}
	}
	permits := func(agent, text string) bool {
		d, err := c.Policy.Permit(context.Background(), policy.Request{
			Agent: agent, Workspace: "acme", Project: "alpha", Tool: "notes.add", Arguments: map[string]any{"text": text},
		})
		return err == nil && d.Allowed
	}
	if !permits("Intern", "x") && permits("Analyst", "x") && !permits("Analyst", fmt.Sprintf("secret %d", guess)) {
		access = guess
	}
	return [4]int{main, limits, tools, access}
}

// whole tells whether all files that bear a number bear the same.
func whole(c *configs.Config) bool {
	n := c.Limits.Replicas
	return numbers(c, n) == [4]int{n, n, n, n}
}

// style is one way in which people and programs save.
type style struct {
	name string
	// alone: only the policy changes; else every file that bears a number.
	alone bool
	// lay puts the first files into a root and returns the main file.
	lay func(t testing.TB, root string, files map[string]configtest.File) string
	// save brings new files where lay has put the old ones.
	save func(t testing.TB, root string, files map[string]configtest.File)
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func flat(t testing.TB, root string, files map[string]configtest.File) string {
	return configtest.Write(t, root, files)
}

// linked lays files as Kubernetes does: the files are links through ..data, which
// is a link to the folder of a version.
func linked(t testing.TB, root string, files map[string]configtest.File) string {
	relink(t, root, "..data", files)
	must(t, os.Mkdir(filepath.Join(root, "tools"), 0o700))
	for name := range files {
		up := strings.Repeat("../", strings.Count(name, "/"))
		must(t, os.Symlink(up+"..data/"+name, filepath.Join(root, name)))
	}
	return filepath.Join(root, "callgate.yaml")
}

// relink writes a version and makes a link lead to it, in one step, and removes
// the version before.
func relink(t testing.TB, root, link string, files map[string]configtest.File) {
	old, _ := os.Readlink(filepath.Join(root, link))
	version := fmt.Sprintf("..%d", rand.Uint64())
	configtest.Write(t, filepath.Join(root, version), files)
	must(t, os.Symlink(version, filepath.Join(root, "next")), os.Rename(filepath.Join(root, "next"), filepath.Join(root, link)))
	if old != "" {
		must(t, os.RemoveAll(filepath.Join(root, old)))
	}
}

// pieces writes a file in place, 8 KiB at a time.
func pieces(t testing.TB, path, data string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for len(data) > 0 {
		n := min(len(data), 8<<10)
		_, err := f.WriteString(data[:n])
		must(t, err)
		data = data[n:]
		time.Sleep(5 * time.Millisecond)
	}
}

// beside writes a file and renames it into its place.
func beside(t testing.TB, path, data string) {
	t.Helper()
	must(t, os.WriteFile(path+".new", []byte(data), 0o600), os.Rename(path+".new", path))
}

var styles = []style{
	{"in place", true, flat, func(t testing.TB, root string, files map[string]configtest.File) {
		must(t, os.WriteFile(filepath.Join(root, "policy.csv"), []byte(files["policy.csv"].Data), 0o600))
	}},
	{"in pieces", true, flat, func(t testing.TB, root string, files map[string]configtest.File) {
		pieces(t, filepath.Join(root, "policy.csv"), files["policy.csv"].Data)
	}},
	{"cut for a while", true, flat, func(t testing.TB, root string, files map[string]configtest.File) {
		path, data := filepath.Join(root, "policy.csv"), files["policy.csv"].Data
		must(t, os.WriteFile(path, []byte(data[:rand.IntN(len(data)-2)]), 0o600))
		time.Sleep(1200 * time.Millisecond)
		must(t, os.WriteFile(path, []byte(data), 0o600))
	}},
	{"renamed over", true, flat, func(t testing.TB, root string, files map[string]configtest.File) {
		beside(t, filepath.Join(root, "policy.csv"), files["policy.csv"].Data)
	}},
	{"moved aside first", true, flat, func(t testing.TB, root string, files map[string]configtest.File) {
		path := filepath.Join(root, "policy.csv")
		must(t, os.Rename(path, path+"~"))
		time.Sleep(5 * time.Millisecond)
		must(t, os.WriteFile(path, []byte(files["policy.csv"].Data), 0o600), os.Remove(path+"~"))
	}},
	{"deleted first", true, flat, func(t testing.TB, root string, files map[string]configtest.File) {
		path := filepath.Join(root, "policy.csv")
		must(t, os.Remove(path))
		time.Sleep(5 * time.Millisecond)
		pieces(t, path, files["policy.csv"].Data)
	}},
	{"ConfigMap", false, linked, func(t testing.TB, root string, files map[string]configtest.File) {
		relink(t, root, "..data", files)
	}},
	{"linked release", false, func(t testing.TB, root string, files map[string]configtest.File) string {
		relink(t, root, "current", files)
		return filepath.Join(root, "current", "callgate.yaml")
	}, func(t testing.TB, root string, files map[string]configtest.File) {
		relink(t, root, "current", files)
	}},
	{"folder replaced", false, func(t testing.TB, root string, files map[string]configtest.File) string {
		return configtest.Write(t, filepath.Join(root, "now"), files)
	}, func(t testing.TB, root string, files map[string]configtest.File) {
		now, next, old := filepath.Join(root, "now"), filepath.Join(root, "next"), filepath.Join(root, "old")
		configtest.Write(t, next, files)
		must(t, os.Rename(now, old), os.Rename(next, now), os.RemoveAll(old))
	}},
	// Several files in place, of which each is complete at every time: the main
	// one is cut while the others change.
	{"main file last", false, flat, func(t testing.TB, root string, files map[string]configtest.File) {
		main := filepath.Join(root, "callgate.yaml")
		must(t, os.Truncate(main, 0))
		for name, f := range files {
			if name != "callgate.yaml" {
				beside(t, filepath.Join(root, name), f.Data)
				time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
			}
		}
		must(t, os.WriteFile(main, []byte(files["callgate.yaml"].Data), 0o600))
	}},
	// A tool file with another name: the pattern finds it.
	{"new tool file", false, flat, func(t testing.TB, root string, files map[string]configtest.File) {
		found, err := filepath.Glob(filepath.Join(root, "tools", "extra*.yaml"))
		must(t, err)
		for name := range files {
			if !strings.HasPrefix(name, "tools/extra") {
				continue
			}
			if len(found) == 0 {
				beside(t, filepath.Join(root, name), files[name].Data)
			} else {
				must(t, os.Rename(found[0], filepath.Join(root, name)))
			}
		}
	}},
}

// filesOf are the files of the n-th save in a style.
func (s style) filesOf(t testing.TB, n int) map[string]configtest.File {
	files := generationOf(t, 1)
	switch {
	case s.name == "new tool file":
		if n > 1 {
			files[fmt.Sprintf("tools/extra%d.yaml", n)] = configtest.File{Data: "tools: [{name: extra, run: {type: client}, effect: read, input_schema: {type: object}}]\n# end\n"}
		}
	case s.alone:
		files["policy.csv"] = generationOf(t, n)["policy.csv"]
	default:
		files = generationOf(t, n)
	}
	return files
}

// saving makes saves one after the other, waits after each until it is live, and
// returns the longest wait. pause is called before each.
func saving(t testing.TB, s style, count int, opts WatcherOptions, pace time.Duration, prepare func(*servedFiles), pause func()) time.Duration {
	root := t.TempDir()
	l := &ledger{kept: map[string]int{}}
	l.enter(t, s.filesOf(t, 1), 1)
	h := open(t, s.lay(t, root, s.filesOf(t, 1)), opts)
	prepare(h)
	h.start()
	defer h.finish()
	defer readers(t, h, l, s, pace)()
	var longest time.Duration
	for n := 2; n < count+2; n++ {
		pause()
		files := s.filesOf(t, n)
		digest := l.enter(t, files, n)
		s.save(t, root, files)
		saved := time.Now()
		for h.current.Load().Digest != digest {
			if time.Since(saved) > time.Minute {
				t.Fatalf("save %d is not live; the state is %+v, the events are %v", n, h.State(), h.received())
			}
			time.Sleep(5 * time.Millisecond)
		}
		longest = max(longest, time.Since(saved))
	}
	h.await("all is well", func() bool { return h.State().Faults == nil })
	if found := h.swaps.Load(); found != int64(count) {
		t.Errorf("found %d swaps for %d saves", found, count)
	}
	return longest
}

// lookPace is how often each of sixteen readers looks at what is served: every save is
// seen, and the machine has time for the saves.
const lookPace = 10 * time.Millisecond

// TestSaves saves in every style with a watch as it is in use, while sixteen
// goroutines read what is served: it is always something that was saved whole.
func TestSaves(t *testing.T) {
	t.Parallel()
	total, long := saveCount(t)
	for _, s := range styles {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			count := (total + len(styles) - 1) / len(styles)
			if testing.Short() && !long {
				count = 1 // TestSavesAreLiveInTime has more, in virtual time
			}
			longest := saving(t, s, count, WatcherOptions{}, lookPace, func(*servedFiles) {}, func() {})
			t.Logf("%d saves, live within %v", count, longest)
			if long && longest > bound {
				t.Errorf("a save took %v to be live; expected at most %v", longest, bound)
			}
		})
	}
}

// TestSavesAreLiveInTime does so in virtual time: the time from the last write until
// it is live is exact, but for that of the reading itself, and never above the bound.
func TestSavesAreLiveInTime(t *testing.T) {
	for _, s := range styles {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				count := 6
				if testing.Short() {
					count = 2
				}
				longest := saving(t, s, count, WatcherOptions{}, 40*time.Millisecond, func(*servedFiles) {}, func() {
					time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
				})
				t.Logf("%d saves, live within %v", count, longest)
				if longest > bound {
					t.Errorf("a save took %v to be live; expected at most %v", longest, bound)
				}
			})
		})
	}
}

// TestBurst swaps whole folders without a pause, faster than they can be loaded:
// what is served is never a mix, and the last one is live in the end.
func TestBurst(t *testing.T) {
	t.Parallel()
	for _, s := range styles {
		if s.name != "ConfigMap" && s.name != "linked release" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			l := &ledger{kept: map[string]int{}}
			l.enter(t, s.filesOf(t, 1), 1)
			h := open(t, s.lay(t, root, s.filesOf(t, 1)), WatcherOptions{Interval: 5 * time.Millisecond, Debounce: time.Millisecond}).start()
			defer readers(t, h, l, s, lookPace)()
			// No save is made twice: bytes that come back would look as if they had
			// been at rest.
			count := 150
			if testing.Short() {
				count = 20
			}
			var digest string
			var versions []map[string]configtest.File
			for n := range count {
				versions = append(versions, s.filesOf(t, n+2))
				digest = l.enter(t, versions[n], n+2)
			}
			for n, files := range versions {
				s.save(t, root, files)
				if n%10 == 9 { // now and then there is time for a load, into which the next saves fall
					time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
				}
			}
			h.await("the last save is live", func() bool { return h.current.Load().Digest == digest })
			t.Logf("%d loads and %d swaps in %d saves", h.loads.Load(), h.swaps.Load(), count)
		})
	}
}
