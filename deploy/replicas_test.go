package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// replicas is the command that make replicas runs, on a folder of the test's own.
func replicas(t *testing.T, args ...string) (c *exec.Cmd, folder string) {
	t.Helper()
	for _, program := range []string{"redis-server", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("skipped: %s is not installed", program)
		}
	}
	folder = filepath.Join(t.TempDir(), "it's a folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	args = append(args, "-source", ".", "-folder", folder)
	return exec.CommandContext(t.Context(), filepath.Join(programs, "replicas"), args...), folder
}

// gone holds that nothing of a run is left.
func gone(t *testing.T, folder string) {
	t.Helper()
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// TestReplicasCheck runs what make replicas prints, and wants each command to do
// what is promised.
func TestReplicasCheck(t *testing.T) {
	c, folder := replicas(t, "-check")
	output, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	printed, proved := strings.Count(string(output), "\n    "), strings.Count(string(output), "\nproved: ")
	if printed < 7 || proved != printed+1 {
		t.Errorf("%d commands are printed, and %d things proved:\n%s", printed, proved, output)
	}
	gone(t, folder)
}

// written is what a process has written so far.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// TestReplicasEnd: when it is asked to end, everything that it started has ended,
// and its folder is gone.
func TestReplicasEnd(t *testing.T) {
	c, folder := replicas(t)
	var response written
	c.Stdout, c.Stderr = &response, &response
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	within(t, 5*time.Minute, "it does not come up", func() bool { return strings.Contains(response.String(), "Ctrl-C ends everything") })
	var pids []int
	for _, term := range strings.Split(response.String(), "process ")[1:] {
		pid, err := strconv.Atoi(strings.Fields(term)[0])
		if err != nil {
			t.Fatalf("%v: %s", err, response.String())
		}
		pids = append(pids, pid)
	}
	if len(pids) != 4 {
		t.Fatalf("it names the processes %v; want three gateways and Redis\n%s", pids, response.String())
	}
	// One gateway that ends is told, and ends nothing else.
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "the end of a gateway is not told", func() bool { return strings.Contains(response.String(), "gateway-a has ended; 2 are still running") })
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, response.String())
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("the process %d still runs", pid)
		}
	}
	gone(t, folder)
}

// TestReplicasConfiguration loads what the three gateways would read, where no
// Redis is installed too.
func TestReplicasConfiguration(t *testing.T) {
	dir := copyTree(t, "quickstart")
	for _, name := range []string{"callgate.yaml", "limits.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text(t, "replicas/"+name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loads(t, filepath.Join(dir, "callgate.yaml"))
}

func TestReplicasRefuseWords(t *testing.T) {
	c := exec.CommandContext(t.Context(), filepath.Join(programs, "replicas"), "now")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Run(); err == nil || c.ProcessState.ExitCode() != 2 || !strings.Contains(stderr.String(), "expected only flags") {
		t.Errorf("%v: %s", err, stderr.String())
	}
}
