// Package clients_test runs real clients of chat completions, Messages and Responses
// against the sample model, and against gateways in front of it: npm packages of chat
// completions in node, those of Messages and Responses in faces,
// the shapes of requests of eight packages in shapes, openai-go and anthropic-sdk-go in go, a module of its own, and the coding agents Claude Code and
// Codex. For ACP it runs the SDK and acpx in acp, and coding agents behind the proxy in acpagents (those of a gigabyte in acpagents-large, by make acp-agents). For MCP it runs the official conformance suite, the inspector and servers from
// npm. It is what `make test-clients` runs.
//
// A client that is not installed, or cannot be fetched, is left out and named; where CI is
// true, that is a failure.
package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestClients(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs the real clients, which it fetches")
	}
	programs := t.TempDir()
	command(t, "../..", nil, "go", "build", "-o", programs, "./cmd/callgate")
	command(t, "../../tools", nil, "go", "build", "-o", programs, "./samplemodel")
	model := sampleModel(t, filepath.Join(programs, "samplemodel"))
	gateway := filepath.Join(programs, "callgate")
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -trimpath", "NO_COLOR=1",
		"CLIENTS_MODEL="+model, "CLIENTS_CALLGATE="+gateway, "CLIENTS_TESTDATA="+absolute(t, "../../testdata"),
		"CLIENTS_ENFORCE="+serve(t, gateway, "enforce", model),
		"CLIENTS_ORCHESTRATE="+serve(t, gateway, "orchestrate", model),
		"CLIENTS_ASKING="+serve(t, gateway, "orchestrate", model, "math.evaluate"))
	t.Run("node", func(t *testing.T) { inNode(t, "node", env) })
	t.Run("faces", func(t *testing.T) { inNode(t, "faces", env) })
	t.Run("go", func(t *testing.T) { golang(t, env) })
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// passed is the line of a TAP report that counts the tests that passed.
var passed = regexp.MustCompile(`(?m)^# pass ([1-9][0-9]*)$`)

// inNode runs the tests of a folder in node, in a copy that is removed. The tests of
// chat completions, and what all tests share, are in the folder node.
func inNode(t *testing.T, folder string, env []string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if folder == "faces" {
		for _, file := range []string{"places.mjs", "openai.test.mjs"} {
			data, err := os.ReadFile(filepath.Join("node", file))
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, file, string(data))
		}
	}
	installed(t, dir)
	node := "node"
	if folder == "faces" || folder == "acp" {
		node = nodeOf(t, dir)
	}
	report := command(t, dir, env, node, "--test", "--test-reporter=tap")
	count := passed.FindString(report)
	if count == "" {
		t.Fatalf("no test of %s passed:\n%s", folder, report)
	}
	t.Logf("%s: %s", folder, count)
}

func golang(t *testing.T, env []string) {
	if out, err := run(t, "go", env, "go", "mod", "download"); err != nil {
		leaveOut(t, "the module cannot be fetched: "+out)
	}
	report := command(t, "go", env, "go", "test", "-count=1", "-v", "./...")
	count := strings.Count(report, "--- PASS")
	if count == 0 {
		t.Fatalf("no test of the Go client passed:\n%s", report)
	}
	t.Logf("openai-go and anthropic-sdk-go: %d tests passed", count)
}

// leaveOut ends a test that cannot be run here.
func leaveOut(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("left out: %s", why)
	}
	t.Skipf("left out: %s", why)
}

const longest = 5 * time.Minute

// run returns what a program said.
func run(t *testing.T, dir string, env []string, program string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env = dir, env
	c.WaitDelay = 10 * time.Second
	out, err := c.CombinedOutput()
	return string(out), err
}

// command is run for a program that has to succeed.
func command(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	out, err := run(t, dir, env, program, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return out
}

// begin starts a program, which ends with the test, and returns what found makes
// of its first line that means something.
func begin(t *testing.T, c *exec.Cmd, toStdout bool, found func(line []byte) string) string {
	t.Helper()
	pipe := c.StderrPipe
	if toStdout {
		pipe = c.StdoutPipe
	}
	out, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := &bytes.Buffer{}
	address, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			said.Write(append(lines.Bytes(), '\n'))
			if a := found(lines.Bytes()); a != "" && len(address) == 0 {
				address <- a
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		stuck := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
		defer stuck.Stop()
		<-ended
		if err := c.Wait(); err != nil || t.Failed() {
			t.Logf("%s: %v\n%s", filepath.Base(c.Path), err, said)
		}
	})
	select {
	case a := <-address:
		return "http://" + a
	case <-ended:
		t.Fatalf("%s ended: %s", filepath.Base(c.Path), said)
	case <-time.After(time.Minute):
		t.Fatalf("%s does not say where it listens", filepath.Base(c.Path))
	}
	return ""
}

// dataDir is a folder of a gateway's own, in memory where the system has a place for
// that: a disk that others keep busy would refuse calls here, which is not what these
// tests are about.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "callgate-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// listening reads where a gateway listens from a line of its log.
func listening(line []byte) string {
	var entry struct {
		Message string `json:"msg"`
		Listen  string `json:"listen"`
	}
	if err := json.Unmarshal(line, &entry); err != nil || entry.Message != "serving" {
		return ""
	}
	return entry.Listen
}

func sampleModel(t *testing.T, program string, args ...string) string {
	return begin(t, exec.Command(program, append([]string{"--listen", "127.0.0.1:0"}, args...)...), true, func(line []byte) string {
		address, ok := strings.CutPrefix(string(line), "samplemodel listening on ")
		if !ok {
			return ""
		}
		return address
	})
}

// serve starts a gateway in one mode: the tools, agents and projects of the
// built-in configuration, wide limits, and the model as an upstream that speaks every
// API, and as one with calls as text. It asks its caller about the calls of some tools first.
func serve(t *testing.T, program, mode, model string, asks ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []string{"policy.csv", "workspaces.yaml", "tools/demo.yaml"} {
		data, err := os.ReadFile(filepath.Join("../../configs", file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, file, string(data))
	}
	if len(asks) > 0 {
		rows := "# end"
		for _, tool := range asks {
			rows = "p, Analyst, acme/alpha, " + tool + ", , ask:mine\n" + rows
		}
		policy, err := os.ReadFile(filepath.Join(dir, "policy.csv"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "policy.csv", strings.Replace(string(policy), "# end", rows, 1))
	}
	write(t, dir, "approvals.yaml", "rules: {mine: {by: caller}}\nwait: 0s\n# end\n")
	if err := os.CopyFS(filepath.Join(dir, "projects/alpha"), os.DirFS("../../engine/demo/project")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "limits.yaml", "caller: {rate: 10000/s, burst: 10000}\ndefault: {rate: 10000/s, burst: 10000, concurrency: 100}\n# end\n")
	write(t, dir, "callgate.yaml", "server: {listen: \"127.0.0.1:0\", admin_listen: \"127.0.0.1:0\"}\nregistry: {files: [tools/*.yaml]}\nupstreams: upstreams.yaml\napprovals: approvals.yaml\ndata_dir: "+dataDir(t)+"\n# end\n")
	var native, text []string
	for _, scenario := range strings.Fields("agent broken busy bytes call cut hosted loop near-name parallel prose rejected repair shell stall structured stubborn text thinking") {
		native = append(native, scenario)
		text = append(text, fmt.Sprintf("{id: text/%s, upstream_model: %s}", scenario, scenario))
	}
	write(t, dir, "upstreams.yaml", fmt.Sprintf(`upstreams:
  - name: native
    base_url: %[1]s/v1
    speaks: [chat, messages, responses]
    modes: [%[2]s]
    models: [%[3]s]
  - name: text
    base_url: %[1]s/v1
    protocol: text
    modes: [%[2]s]
    models: [%[4]s]
# end
`, model, mode, strings.Join(native, ", "), strings.Join(text, ", ")))
	return begin(t, exec.Command(program, "serve", "--config", filepath.Join(dir, "callgate.yaml")), false, listening)
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	path := filepath.Join(dir, file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
