package configs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestFolders names, for each layout, the folders that notice must come from.
func TestFolders(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, dir := range []string{"conf/tools", "conf/sets/a", "conf/sets/b", "real/v1", "far"} {
		must(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	for _, file := range []string{"conf/plain.yaml", "real/v1/linked.yaml", "far/away.yaml"} {
		must(t, os.WriteFile(filepath.Join(root, file), nil, 0o600))
	}
	for link, target := range map[string]string{
		"conf/..data":      "../real/v1",
		"conf/linked.yaml": "..data/linked.yaml",
		"conf/away.yaml":   filepath.Join(root, "far/away.yaml"),
		"conf/gone.yaml":   "nowhere/gone.yaml",
		"conf/self":        "self",
		"current":          "conf",
	} {
		must(t, os.Symlink(target, filepath.Join(root, link)))
	}
	for _, c := range []struct {
		files, patterns string
		folders         string
	}{
		{"conf/plain.yaml", "", "conf"},
		{"conf/../conf/./plain.yaml", "", "conf"},
		{"conf/linked.yaml", "", "conf real/v1"},
		{"conf/away.yaml", "", "conf far"},
		{"current/plain.yaml", "", ". conf"},
		{"current/linked.yaml", "", ". conf real/v1"},
		{"conf/absent.yaml", "", "conf"},
		{"conf/no/such/folder.yaml", "", "conf"},
		{"conf/gone.yaml", "", "conf"},
		{"conf/self", "", "conf"},
		{"conf/plain.yaml/below", "", "conf/plain.yaml"},
		{"conf/tools", "", "conf"},
		{"", "conf/tools/*.yaml", "conf/tools"},
		{"", "current/tools/*.yaml", ". conf/tools"},
		{"", "conf/sets/*/*.yaml", "conf/sets conf/sets/a conf/sets/b"},
		{"", "conf/s*/*/*.yaml", "conf conf/sets conf/sets/a conf/sets/b"},
		{"", "conf/none/*.yaml", "conf"},
		{"conf/plain.yaml", "conf/tools/*.yaml", "conf conf/tools"},
	} {
		s := newFingerprint(filepath.Join(root, "main"))
		if c.files != "" {
			s.hashes[root+"/"+c.files] = [32]byte{}
		}
		if c.patterns != "" {
			s.globs[root+"/"+c.patterns] = nil
		}
		var found []string
		for _, folder := range s.folders() {
			name, err := filepath.Rel(root, folder)
			must(t, err)
			found = append(found, name)
		}
		if strings.Join(found, " ") != c.folders {
			t.Errorf("%s%s: found the folders %q; expected %q", c.files, c.patterns, found, c.folders)
		}
	}
}

// TestRelativeMain names the main file from the working directory.
func TestRelativeMain(t *testing.T) {
	needsNotice(t)
	write(t, t.TempDir(), base(t))
	dir := t.TempDir()
	write(t, dir, base(t))
	t.Chdir(dir)
	h := open(t, "callgate.yaml", WatcherOptions{Interval: time.Hour}).start()
	h.save("limits.yaml", "replicas: 4\n# end\n")
	h.await("the change is live", func() bool { return h.current.Load().Limits.Replicas == 4 })
	h.finish()
}

// TestPolling takes notice away: it is said once, and changes are live still.
func TestPolling(t *testing.T) {
	for why, open := range map[string]func() (*fsnotify.Watcher, error){
		"none": noNotice,
		"none for a folder": func() (*fsnotify.Watcher, error) {
			w, err := fsnotify.NewWatcher()
			if err == nil {
				err = w.Close()
			}
			return w, err
		},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t)
				h.open = open
				var said []Event
				report := h.opts.Report
				h.opts.Report = func(e Event) {
					if e.Kind == Polling {
						said = append(said, e)
					}
					report(e)
				}
				h.start()
				for n := range 20 {
					h.save("limits.yaml", fmt.Sprintf("replicas: %d\n# end\n", n+3))
					time.Sleep(bound)
					if found := h.current.Load().Limits.Replicas; found != n+3 {
						t.Fatalf("found %d replicas; expected %d", found, n+3)
					}
				}
				h.finish()
				if len(said) != 1 || said[0].Digest == "" || !strings.Contains(said[0].Faults.Error(), "looking every 1s instead") {
					t.Errorf("found the events %v; expected one", said)
				}
			})
		})
	}
}

func openHouse(t testing.TB) *house { return open(t, write(t, t.TempDir(), base(t)), WatcherOptions{}) }

// TestNewFolderRings hangs a bell: it rings for folders that it did not have,
// then for what happens in them, and never for those that it no longer has.
func TestNewFolderRings(t *testing.T) {
	needsNotice(t)
	b := newBell(fsnotify.NewWatcher)
	defer b.stop()
	here, there := t.TempDir(), t.TempDir()
	rung := func(within time.Duration) bool {
		select {
		case <-b.rung:
			return true
		case <-time.After(within):
			return false
		}
	}
	const never = 500 * time.Millisecond
	b.hang([]string{here, filepath.Join(here, "absent")})
	if !rung(time.Minute) {
		t.Fatal("it does not ring for a new folder")
	}
	b.hang([]string{here})
	if rung(never) {
		t.Error("it rings though nothing is new")
	}
	must(t, os.WriteFile(filepath.Join(here, "x"), nil, 0o600))
	if !rung(time.Minute) {
		t.Fatal("it does not ring for a new file")
	}
	b.hang([]string{there})
	for rung(never) {
	}
	must(t, os.WriteFile(filepath.Join(here, "y"), nil, 0o600))
	if rung(never) {
		t.Error("it rings for a folder that it no longer has")
	}
	must(t, os.Rename(there, there+".old"), os.Mkdir(there, 0o700))
	for rung(never) {
	}
	b.hang([]string{there})
	if !rung(time.Minute) {
		t.Error("it does not ring for a folder that was replaced")
	}
	must(t, os.WriteFile(filepath.Join(there, "z"), nil, 0o600))
	if !rung(time.Minute) {
		t.Error("it does not ring for a file in a folder that was replaced")
	}
	select {
	case err := <-b.trouble:
		t.Errorf("found the trouble %v; a folder that is not there is none", err)
	default:
	}
}

// TestOverflow loses notices: it rings, since anything may have moved, and that
// is no trouble, as another error is.
func TestOverflow(t *testing.T) {
	needsNotice(t)
	b := newBell(fsnotify.NewWatcher)
	defer b.stop()
	b.watcher.Errors <- fsnotify.ErrEventOverflow
	<-b.rung
	if len(b.trouble) > 0 {
		t.Errorf("found the trouble %v", <-b.trouble)
	}
	b.watcher.Errors <- errors.New("broken")
	<-b.rung
	if len(b.trouble) != 1 {
		t.Error("the error is no trouble")
	}
}

// TestManyNotices makes notices come all the time: they are not a look each.
func TestManyNotices(t *testing.T) {
	needsNotice(t)
	h := openHouse(t)
	h.opts.Interval = time.Hour
	h.start()
	h.await("the start is over", func() bool { return h.loads.Load() == 1 })
	for n := range 3000 {
		h.save("notes.txt", fmt.Sprint(n))
	}
	beside(t, filepath.Join(h.dir, "limits.yaml"), "replicas: 4\n# end\n") // never empty
	h.await("the change is live", func() bool { return h.current.Load().Limits.Replicas == 4 })
	h.finish()
	if n := h.loads.Load(); n != 2 {
		t.Errorf("found %d loads; expected 2", n)
	}
}

// TestRoundsArePaced counts the rounds that a bell which never stops ringing can
// bring about.
func TestRoundsArePaced(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *house) {
		looks := 0
		swap := h.opts.Swap
		refusal := errors.New("no")
		h.refuse.Store(&refusal)
		h.opts.Swap = func(ctx context.Context, c *Config) error { looks++; return swap(ctx, c) } // one a look
		h.opts.Interval = time.Nanosecond
		h.save("limits.yaml", "replicas: 4\n# end\n")
		h.start()
		time.Sleep(time.Minute)
		h.finish()
		if looks < 1000 || looks > 1200 {
			t.Errorf("found %d looks in a minute; expected one in 50 ms", looks)
		}
	})
}

// writerEnv is set in the process that TestKilledWriter starts and kills; it
// holds the file to write.
const writerEnv = "CALLGATE_TEST_WRITER"

// TestWriter is that process: it saves half a policy, in pieces, and then waits.
func TestWriter(t *testing.T) {
	path := os.Getenv(writerEnv)
	if path == "" {
		t.Skip("this is not the process that is to be killed")
	}
	data := generationOf(t, 2)["policy.csv"].data
	f, err := os.Create(path)
	must(t, err)
	for at := 0; at < len(data)/2; at += 8 << 10 {
		_, err := f.WriteString(data[at : at+8<<10])
		must(t, err)
		time.Sleep(time.Second / 2)
	}
	time.Sleep(time.Hour)
}

// TestKilledWriter kills a process halfway through a save in place.
func TestKilledWriter(t *testing.T) {
	h := open(t, write(t, t.TempDir(), generationOf(t, 1)), WatcherOptions{}).start()
	first := h.current.Load()
	path := filepath.Join(h.dir, "policy.csv")
	program, err := os.Executable()
	must(t, err)
	writer := exec.Command(program, "-test.run=^TestWriter$", "-test.timeout=10m")
	writer.Env = append(os.Environ(), writerEnv+"="+path)
	must(t, writer.Start())
	h.await("the writer is halfway", func() bool {
		data, _ := os.ReadFile(path)
		return len(data) > 20<<10 && len(data) < 60<<10 // and not the one before
	})
	must(t, writer.Process.Kill())
	if err := writer.Wait(); err == nil {
		t.Fatal("the writer ended before it was killed")
	}
	h.await("it is reported", func() bool { return h.State().Faults != nil })
	if e := h.last(); e.Kind != Failed || e.Faults[0].File != path || e.Faults[0].Line == 0 || e.Digest != first.Digest {
		t.Errorf("found the event %+v", e)
	}
	if h.current.Load() != first {
		t.Error("half a save is served")
	}
	must(t, os.WriteFile(path, []byte(generationOf(t, 3)["policy.csv"].data), 0o600))
	h.await("the next save is live", func() bool { return h.State().Faults == nil })
	if c := h.current.Load(); numbers(c, 3) != [4]int{1, 1, 1, 3} {
		t.Errorf("found the numbers %v", numbers(c, 3))
	}
}
