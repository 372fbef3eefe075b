package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
)

// hits is a tool that notes the id of every call that reaches it.
type hits struct {
	mu  sync.Mutex
	ids []string
}

func (h *hits) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.ids = append(h.ids, r.Header.Get("Callgate-Call-Id"))
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"ok":true}`)
}

func (h *hits) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.ids...)
}

// hitConfig is a configuration with one http tool, hit, without limits. Its
// data is in the folder data beside it.
func hitConfig(t testing.TB, url string) (config, data string) {
	t.Helper()
	dir := t.TempDir()
	config = permitAll(t, dir)
	data = filepath.Join(dir, "data")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("callgate.yaml", "registry: {files: [tools/*.yaml]}\ndata_dir: "+data+"\n# end\n")
	write("tools/hit.yaml", `tools:
  - name: hit
    effect: once
    input_schema: {type: object}
    run: {type: http, url: "`+url+`", timeout: 20s, addresses: [127.0.0.1/32]}
# end
`)
	return config, data
}

const hitCall = `{"tool":{"name":"hit","arguments":{}}}`

// hitLines are n lines of calls for call --jsonl.
func hitLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":%d,\"completion\":%q}\n", i, hitCall)
	}
	return b.String()
}

// process runs the program in a process of its own.
func process(ctx context.Context, before []string, args ...string) *exec.Cmd {
	line := append(append([]string(nil), before...), os.Args[0])
	line = append(line, args...)
	c := exec.CommandContext(ctx, line[0], line[1:]...)
	c.Env = append(os.Environ(), asProgram+"=1")
	return c
}

// TestKilled kills the program 50 times while it calls: the log verifies each
// time, the next program calls at once, and no call reached the tool without its
// decision in the log.
func TestKilled(t *testing.T) {
	t.Parallel()
	tool := &hits{}
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := hitConfig(t, server.URL)
	rounds := 50
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		c := process(ctx, nil, "call", "--jsonl", "--config", config)
		var said strings.Builder
		c.Stdin, c.Stderr = strings.NewReader(hitLines(100_000)), &said
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// Let it get to work, then kill it at any moment.
		answers := bufio.NewReader(out)
		if answer, err := answers.ReadString('\n'); err != nil || !strings.Contains(answer, `"ok":true`) {
			t.Fatalf("round %d: answered %q: %v; ended with %v, and said %s", round, answer, err, c.Wait(), &said)
		}
		go io.Copy(io.Discard, answers)
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		c.Process.Kill()
		c.Wait()
		cancel()
		if code, stdout, _ := command(t, nil, "audit", "verify", filepath.Join(data, "audit.jsonl")); code != exitAccepted {
			t.Fatalf("round %d: %s", round, stdout)
		}
	}
	if code, stdout, stderr := command(t, strings.NewReader(hitCall), "call", "--config", config); code != exitAccepted {
		t.Fatalf("after the last kill: %d %s %s", code, stdout, stderr)
	}
	decided := map[string]bool{}
	outcomes := map[string]int{}
	if _, err := audit.Read(func(r audit.Record) error {
		if r.Event == audit.Decision {
			decided[r.CallID] = true
		} else {
			outcomes[r.CallID]++
		}
		return nil
	}, filepath.Join(data, "audit.jsonl")); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, id := range tool.all() {
		if !decided[id] {
			t.Errorf("the call %s reached the tool without its decision", id)
		}
		if seen[id] {
			t.Errorf("the call %s reached the tool twice", id)
		}
		seen[id] = true
	}
	for id, n := range outcomes {
		if n != 1 {
			t.Errorf("the call %s has %d outcomes", id, n)
		}
	}
	if len(seen) < rounds {
		t.Errorf("only %d calls reached the tool in %d rounds", len(seen), rounds)
	}
	t.Logf("%d rounds: %d calls reached the tool, %d decisions, %d outcomes", rounds, len(seen), len(decided), len(outcomes))
}

// asking starts a process that reads calls, line by line, has it run one, and returns how
// to ask for one more.
func asking(ctx context.Context, t *testing.T, config string) (c *exec.Cmd, lines io.Closer, ask func() string) {
	t.Helper()
	in, to := io.Pipe()
	c = process(ctx, nil, "call", "--jsonl", "--config", config)
	c.Stdin = in
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(out)
	ask = func() string {
		t.Helper()
		io.WriteString(to, hitLines(1))
		answer, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if answer := ask(); !strings.Contains(answer, `"ok":true`) {
		t.Fatal(answer)
	}
	return c, to, ask
}

// TestFullDisk: while the log's disk is full nothing is dispatched, and service
// resumes by itself when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("skipped: mounting a small tmpfs needs root")
	}
	tool := &hits{}
	server := httptest.NewServer(tool)
	defer server.Close()
	config, data := hitConfig(t, server.URL)
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("skipped: a tmpfs cannot be mounted here: %v", err)
	}
	defer syscall.Unmount(data, 0)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, lines, ask := asking(ctx, t, config)
	filler := filepath.Join(data, "filler")
	fill, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = fill.Write(make([]byte, 4096))
	}
	fill.Close()
	refused := 0
	for range 200 { // until the page that is half written is full
		if strings.Contains(ask(), `"code":"audit_unavailable"`) {
			refused++
			before := len(tool.all())
			for range 5 {
				if answer := ask(); !strings.Contains(answer, `"code":"audit_unavailable"`) {
					t.Fatal(answer)
				}
			}
			if after := len(tool.all()); after != before {
				t.Fatalf("%d calls ran while the disk was full", after-before)
			}
			break
		}
	}
	if refused == 0 {
		t.Fatal("the disk never was full")
	}
	os.Remove(filler)
	resumed := false
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && !resumed; time.Sleep(50 * time.Millisecond) {
		resumed = strings.Contains(ask(), `"ok":true`)
	}
	lines.Close()
	c.Wait()
	if !resumed {
		t.Fatal("service did not resume")
	}
	if code, stdout, _ := command(t, nil, "audit", "verify", filepath.Join(data, "audit.jsonl")); code != exitAccepted {
		t.Error(stdout)
	}
}

// TestSyncFails: a disk that reports errors when it is asked to sync refuses
// every call.
func TestSyncFails(t *testing.T) {
	tool := &hits{}
	server := httptest.NewServer(tool)
	defer server.Close()
	config, _ := hitConfig(t, server.URL)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, lines, ask := asking(ctx, t, config)
	// From here on every sync fails, in every thread.
	end := traced(t, c.Process, logSyncs+","+storeSyncs, "error=EIO")
	for range 20 {
		if answer := ask(); !strings.Contains(answer, `"code":"audit_unavailable"`) {
			t.Error(answer)
		}
	}
	if n := len(tool.all()); n != 1 {
		t.Errorf("the tool saw %d calls; expected that before the disk failed", n)
	}
	lines.Close()
	_ = c.Wait() // what it owes it cannot write
	end()
}

// TestLogCannotBeOpened: what is no file that can be written is one clear line.
func TestLogCannotBeOpened(t *testing.T) {
	tool := &hits{}
	server := httptest.NewServer(tool)
	defer server.Close()
	for name, spoil := range map[string]func(log string) error{
		"a pipe":      func(log string) error { return syscall.Mkfifo(log, 0o600) },
		"a directory": func(log string) error { return os.Mkdir(log, 0o700) },
		"/dev/full":   func(log string) error { return os.Symlink("/dev/full", log) },
	} {
		config, data := hitConfig(t, server.URL)
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := spoil(filepath.Join(data, "audit.jsonl")); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := command(t, strings.NewReader(hitCall), "call", "--config", config)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "audit") {
			t.Errorf("%s: exit code %d: %q %q", name, code, stdout, stderr)
		}
	}
	if n := len(tool.all()); n != 0 {
		t.Errorf("%d calls ran", n)
	}
}

// TestOneProcessAFolder: a second process is told who has the folder.
func TestOneProcessAFolder(t *testing.T) {
	server := httptest.NewServer(&hits{})
	defer server.Close()
	config, data := hitConfig(t, server.URL)
	log, err := audit.Open(data, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := process(ctx, nil, "call", "--config", config)
	c.Stdin = strings.NewReader(hitCall)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Run(); c.ProcessState.ExitCode() != exitUsage {
		t.Errorf("ended with %v", err)
	}
	if want := fmt.Sprintf("in use by process %d", os.Getpid()); !strings.Contains(stderr.String(), want) {
		t.Errorf("said %q, want %q", stderr.String(), want)
	}
}
