package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// gate is a gateway that serves, in a process of its own.
type gate struct {
	cmd           *exec.Cmd
	listen, admin string // host:port
	stdout        syncBuffer
	stderr        syncBuffer // the log
	client        *http.Client
	ended         chan struct{} // closed when the process has ended
}

// syncBuffer holds the output of a process so far. It is safe for concurrent use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// patience is how long a test waits for what has to come.
const patience = time.Minute

// serveGate starts a gateway and waits until it listens. It is killed when the
// test ends, if it still runs.
func serveGate(t testing.TB, config string, environment ...string) *gate {
	t.Helper()
	return serveGateIn(t, "", config, environment...)
}

// serveGateIn is serveGate in a folder of its own, where a relative data_dir starts: one
// that has links to the files of the configuration.
func serveGateIn(t testing.TB, dir, config string, environment ...string) *gate {
	t.Helper()
	if dir != "" && dir != filepath.Dir(config) {
		linked(t, dir, filepath.Dir(config))
		config = filepath.Join(dir, filepath.Base(config))
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &gate{cmd: process(ctx, nil, "serve", "--config", config), ended: make(chan struct{})}
	g.cmd.Dir = dir
	g.cmd.Env = append(g.cmd.Env, environment...)
	g.cmd.Stdout = &g.stdout
	g.client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	log, err := g.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(io.TeeReader(log, &g.stderr))
	serving := make(chan struct{})
	go func() {
		defer close(g.ended)
		for {
			line, err := lines.ReadBytes('\n')
			var l struct{ Msg, Listen, Admin string }
			if json.Unmarshal(line, &l) == nil && l.Msg == "serving" {
				g.listen, g.admin = l.Listen, l.Admin
				close(serving)
			}
			if err != nil {
				break
			}
		}
		g.cmd.Wait()
	}()
	t.Cleanup(func() {
		g.client.CloseIdleConnections()
		cancel()
		<-g.ended
		// The exit code says so too, but not that of a process that is killed.
		if _, race, found := strings.Cut(g.stderr.String(), "WARNING: DATA RACE"); found {
			t.Errorf("the gateway has a data race: %.5000s", race)
		}
		if t.Failed() {
			t.Logf("the log of the gateway ends with: %.3000s", tail(g.stderr.String(), 3000))
		}
	})
	select {
	case <-serving:
	case <-g.ended:
		t.Fatalf("the gateway ended: %s %s", g.stdout.String(), g.stderr.String())
	case <-time.After(patience):
		t.Fatal("the gateway does not serve")
	}
	return g
}

// linked puts links to all that is in one folder into another, but for data.
func linked(t testing.TB, dir, from string) {
	t.Helper()
	from, err := filepath.Abs(from)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name()))
		if err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// stop asks the gateway to end and returns its exit code.
func (g *gate) stop(t testing.TB) int {
	t.Helper()
	g.client.CloseIdleConnections()
	g.cmd.Process.Signal(syscall.SIGTERM)
	return g.code(t)
}

// code waits for the end and returns the exit code.
func (g *gate) code(t testing.TB) int {
	t.Helper()
	select {
	case <-g.ended:
	case <-time.After(patience):
		t.Fatal("the gateway does not end")
	}
	return g.cmd.ProcessState.ExitCode()
}

// reply is an answer over HTTP.
type reply struct {
	status int
	header http.Header
	body   string
}

// code is the code of a refusal, or "".
func (r reply) code() string {
	var b struct {
		Error  struct{ Code string }
		Result struct {
			Output struct{ Error struct{ Code string } }
		} `json:"tool_result"`
	}
	if json.Unmarshal([]byte(r.body), &b) != nil {
		return "no JSON"
	}
	if b.Error.Code != "" {
		return b.Error.Code
	}
	return b.Result.Output.Error.Code
}

// ask sends a request to the public listener. Headers are name and value in
// turn.
func (g *gate) ask(t testing.TB, method, path, body string, headers ...string) reply {
	t.Helper()
	r, err := g.try(method, "http://"+g.listen+path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

// askAdmin is ask for the admin listener.
func (g *gate) askAdmin(t testing.TB, path string) reply {
	t.Helper()
	r, err := g.try(http.MethodGet, "http://"+g.admin+path, "")
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return r
}

// consolePages are the pages of the console that its navigation leads to: none without a console.
func (g *gate) consolePages(t testing.TB) (paths []string) {
	t.Helper()
	if !app.Has(configs.Console) {
		return nil
	}
	nav, _, found := strings.Cut(g.askAdmin(t, "/console").body, "</nav>")
	for _, m := range regexp.MustCompile(`<li><a href="(/console[^"]*)"`).FindAllStringSubmatch(nav, -1) {
		paths = append(paths, m[1])
	}
	if !found || len(paths) == 0 {
		t.Error("the console has no navigation")
	}
	return paths
}

func (g *gate) try(method, url, body string, headers ...string) (reply, error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := g.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(answer)}, err
}

// call sends a completion as it is to /v1/calls.
func (g *gate) call(t testing.TB, completion string, headers ...string) reply {
	t.Helper()
	return g.ask(t, http.MethodPost, "/v1/calls", completion, append([]string{"Content-Type", "text/plain"}, headers...)...)
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	within(t, patience, what, holds)
}

func within(t testing.TB, long time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// anyPort are the listeners of a gateway that a test serves.
const anyPort = "listen: \"127.0.0.1:0\", admin_listen: \"127.0.0.1:0\""

// layout writes the files of a configuration, whose last line it adds, and returns the main
// one and the data folder. Files that are missing come from permitAll.
func layout(t testing.TB, files map[string]string) (config, data string) {
	t.Helper()
	dir := t.TempDir()
	config, data = permitAll(t, dir), filepath.Join(dir, "data")
	for name, text := range files {
		if name == "callgate.yaml" {
			text += "data_dir: " + data + "\n"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config, data
}

// countRecords stops the gateway, and counts what its log holds.
func (g *gate) countRecords(t testing.TB, data string) (decisions, outcomes int) {
	t.Helper()
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	for _, r := range verified(t, data) {
		if r["event"] == "outcome" {
			outcomes++
		} else {
			decisions++
		}
	}
	return decisions, outcomes
}

// unlimitedVectors copies the configuration of the vectors, without its limits,
// and returns it for a gateway that serves.
func unlimitedVectors(t testing.TB) (config, data string) {
	t.Helper()
	return unlimited(t, vectorConfig)
}

// unlimited is a configuration of vectors for a process, without limits.
func unlimited(t testing.TB, of string) (config, data string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(of))); err != nil {
		t.Fatal(err)
	}
	config, data = filepath.Join(dir, "callgate.yaml"), filepath.Join(dir, "data")
	main, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	whole, ended := strings.CutSuffix(string(main), "# end\n")
	if !ended {
		t.Fatalf("%s does not end as expected", config)
	}
	whole += "server: {" + anyPort + "}\ndata_dir: " + data + "\n# end\n"
	for name, text := range map[string]string{config: whole, filepath.Join(dir, "limits.yaml"): "{}\n# end\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config, data
}

// connected opens a connection to the public listener.
func (g *gate) connected(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", g.listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// verified holds the audit log against its chain, and returns its records.
func verified(t testing.TB, data string) []map[string]any {
	t.Helper()
	log := filepath.Join(data, "audit.jsonl")
	if code, stdout, stderr := command(t, nil, "audit", "verify", log); code != exitAccepted {
		t.Fatalf("the log does not verify: %s%s", stdout, stderr)
	}
	return corpora.Lines[map[string]any](t, log)
}
