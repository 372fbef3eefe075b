package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connected is a client of the official SDK on a process that it has started.
func connected(t *testing.T, c *exec.Cmd) *mcp.ClientSession {
	t.Helper()
	var log syncBuffer
	c.Stderr = &log
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: c, TerminateDuration: patience}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%v: %s", err, log.String())
		}
		if state := c.ProcessState; state != nil && state.ExitCode() != exitAccepted {
			t.Errorf("it ended with %s: %s", state, log.String())
		}
	})
	return s
}

// lists are the names of the tools that a client is shown.
func lists(t *testing.T, s *mcp.ClientSession) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	list, err := s.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, tool := range list.Tools {
		names += " " + tool.Name
	}
	return strings.TrimPrefix(names, " ")
}

// TestMCPBesideServe: a client of its own runs beside the gateway, and another beside
// that, each with an audit log of its own; and what the operator takes away is gone
// while they run.
func TestMCPBesideServe(t *testing.T) {
	t.Parallel()
	config, data := unlimitedVectors(t)
	g := serveGate(t, config)
	first := connected(t, process(context.Background(), nil, "mcp", "--config", config))
	second := connected(t, process(context.Background(), nil, "mcp", "--config", config, "--agent", "Intern"))
	if got := lists(t, first); got != "data_vector_search files_read notes_label payments_refund time_now web_search" {
		t.Errorf("%s", got)
	}
	if got := lists(t, second); strings.Contains(got, "payments") {
		t.Errorf("%s", got)
	}
	for _, s := range []*mcp.ClientSession{first, second} {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "time_now"})
		if err != nil || r.IsError {
			t.Errorf("%+v: %v", r, err)
		}
	}
	policy := filepath.Join(filepath.Dir(config), "policy.csv")
	if err := os.WriteFile(policy, []byte("p, Analyst, acme/alpha, time.now, , allow\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); lists(t, first) != "time_now"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still %s", lists(t, first))
		}
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	for _, dir := range []string{"1", "2"} {
		if n := len(verified(t, filepath.Join(data, "mcp", dir))); n != 2 {
			t.Errorf("%s: %d records", dir, n)
		}
	}
}

// TestMCPTerm: a signal ends it as the end of its input does, once what runs has
// ended.
func TestMCPTerm(t *testing.T) {
	config, _ := unlimitedVectors(t)
	c := process(t.Context(), nil, "mcp", "--config", config)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out, log syncBuffer
	c.Stdout, c.Stderr = &out, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); !strings.Contains(out.String(), `"id":1`); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no answer: %s", log.String())
		}
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v: %s", err, log.String())
	}
	if got := out.String(); got != `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n" {
		t.Errorf("%q", got)
	}
}

// TestMCPSnippet runs the command that docs/mcp.md, and the help, give to a client's
// configuration.
func TestMCPSnippet(t *testing.T) {
	docs, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(docs, []byte("```json\n"))
	snippet, _, _ := bytes.Cut(rest, []byte("```\n"))
	var client struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(snippet, &client); err != nil {
		t.Fatalf("%s: %v", snippet, err)
	}
	server := client.Servers["callgate"]
	if server.Command != "callgate" || len(server.Args) == 0 {
		t.Fatalf("%s", snippet)
	}
	c := process(context.Background(), nil, server.Args...)
	c.Dir = t.TempDir()
	s := connected(t, c)
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "math_evaluate", Arguments: map[string]any{"expression": "2*(3+4)"}})
	if err != nil || r.IsError || r.Content[0].(*mcp.TextContent).Text != `{"value":14}` {
		t.Errorf("%+v: %v", r, err)
	}
}

// raw is a process that serves MCP, spoken to line by line.
type raw struct {
	*exec.Cmd
	in       io.WriteCloser
	out, log syncBuffer
}

// begin starts one, which greets before it is sent anything else.
func begin(t *testing.T, args ...string) *raw {
	t.Helper()
	p := &raw{Cmd: process(t.Context(), nil, args...)}
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.Stdout, p.Stderr = &p.out, &p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.says(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	p.says(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p
}

func (p *raw) says(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		t.Fatalf("%v: %s", err, p.log.String())
	}
}

// answer waits for what is answered to an id.
func (p *raw) answer(t *testing.T, id string) string {
	t.Helper()
	var found string
	eventually(t, "there is an answer", func() bool {
		for line := range strings.Lines(p.out.String()) {
			if strings.Contains(line, `"id":`+id+`,`) && strings.HasSuffix(line, "\n") {
				found = line
			}
		}
		return found != ""
	})
	return found
}

// TestMCPStartedAnew: a client that starts its server anew while calls of the old one
// still run gets the same folder, and with it the answers of its keys.
func TestMCPStartedAnew(t *testing.T) {
	t.Parallel()
	config, dir, _ := toolsConfig(t, "hub")
	folder := filepath.Join(filepath.Dir(config), "data", "mcp")
	const waits = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hub_wait","arguments":{},"_meta":{"callgate/idempotencyKey":"k"}}}`
	first := begin(t, "mcp", "--config", config)
	first.says(t, waits)
	begun := filepath.Join(dir, "begun")
	eventually(t, "the call is with its tool: "+first.log.String(), func() bool { return os.Remove(begun) == nil })
	if err := first.in.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it says that it is ending", func() bool {
		lock, err := os.ReadFile(filepath.Join(folder, "1", "lock"))
		return err == nil && bytes.Contains(lock, []byte(`"ending":true`))
	})
	second := begin(t, "mcp", "--config", config)
	eventually(t, "the second waits for it", func() bool {
		return strings.Contains(second.log.String(), "waiting for another process to exit")
	})
	if got := second.out.String(); got != "" {
		t.Errorf("it has answered without its folder: %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil || !strings.Contains(first.out.String(), "went on") {
		t.Errorf("%v: %s%s", err, first.out.String(), first.log.String())
	}
	second.says(t, waits)
	if got := second.answer(t, "2"); !strings.Contains(got, "went on") {
		t.Errorf("%s", got)
	}
	if _, err := os.Stat(begun); err == nil {
		t.Error("its tool was called a second time")
	}
	// One that stays is not waited for.
	third := begin(t, "mcp", "--config", config)
	third.answer(t, "1")
	for _, p := range []*raw{second, third} {
		if err := p.in.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Wait(); err != nil {
			t.Errorf("%v: %s", err, p.log.String())
		}
	}
	found, err := os.ReadDir(folder)
	if err != nil || len(found) != 2 || strings.Contains(third.log.String(), "waiting") {
		t.Errorf("%d folders, %v: %s", len(found), err, third.log.String())
	}
}
