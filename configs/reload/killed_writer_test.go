package reload

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// TestRelativeMain names the main file from the working directory.
func TestRelativeMain(t *testing.T) {
	configtest.Write(t, t.TempDir(), configtest.Base(t))
	dir := t.TempDir()
	configtest.Write(t, dir, configtest.Base(t))
	t.Chdir(dir)
	h := open(t, "callgate.yaml", WatcherOptions{}).start()
	h.save("limits.yaml", "replicas: 4\n# end\n")
	h.await("the change is live", func() bool { return h.current.Load().Limits.Replicas == 4 })
	h.finish()
}

// TestRoundsArePaced counts the rounds that the shortest interval can bring about.
func TestRoundsArePaced(t *testing.T) {
	slow(t, nil, func(t *testing.T, h *servedFiles) {
		looks := 0
		swap := h.opts.Swap
		refusal := errors.New("no")
		h.refuse.Store(&refusal)
		h.opts.Swap = func(ctx context.Context, c *configs.Config) error { looks++; return swap(ctx, c) } // one a look
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
	data := generationOf(t, 2)["policy.csv"].Data
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
	t.Parallel()
	h := open(t, configtest.Write(t, t.TempDir(), generationOf(t, 1)), WatcherOptions{}).start()
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
	must(t, os.WriteFile(path, []byte(generationOf(t, 3)["policy.csv"].Data), 0o600))
	h.await("the next save is live", func() bool { return h.State().Faults == nil })
	if c := h.current.Load(); numbers(c, 3) != [4]int{1, 1, 1, 3} {
		t.Errorf("found the numbers %v", numbers(c, 3))
	}
}
