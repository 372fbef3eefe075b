package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asServer is the first argument of a process that is a server of tools. It is no
// variable: programs are given none.
const asServer = "serve-tools"

// serveTools makes this process a server of two tools: pid says which process it is,
// and wait says that it has begun, by a file in a folder, and ends when there is
// another. With the argument hidden it has a third, whose texts hide characters.
func serveTools(dir string) int {
	textResult := func(text string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "pid"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return textResult(fmt.Sprint("process ", os.Getpid()))
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if err := os.WriteFile(filepath.Join(dir, "begun"), nil, 0o600); err != nil {
			return nil, nil, err
		}
		for {
			if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
				return textResult("went on")
			}
			select {
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	if os.Args[len(os.Args)-1] == "hidden" {
		s.AddTool(&mcp.Tool{
			Name: "hidden", Description: hiddenText,
			InputSchema:  map[string]any{"type": "object", "properties": map[string]any{"q": map[string]any{"type": "string", "description": hiddenText}}},
			OutputSchema: map[string]any{"type": "object", "title": hiddenText, "additionalProperties": false, "properties": map[string]any{"a": map[string]any{"type": "string"}}},
		}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// toolsConfig writes a configuration with servers that are programs, and accepts what
// they have. say writes the servers' file anew: each line is a server's name and the
// arguments of its program.
func toolsConfig(t *testing.T, lines ...string) (config, dir string, say func(lines ...string)) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	config, _ = layout(t, map[string]string{
		"callgate.yaml": "server: {" + anyPort + ", shutdown_timeout: 2m}\nservers: servers.yaml\nregistry: {files: [tools.yaml]}\n",
		"tools.yaml":    "tools: []\n",
		"servers.yaml":  "servers: []\n",
	})
	say = func(lines ...string) {
		t.Helper()
		text := "servers:\n"
		if len(lines) == 0 {
			text = "servers: []\n"
		}
		for _, line := range lines {
			name, rest, _ := strings.Cut(line, " ")
			command, err := json.Marshal(append([]string{self, asServer, dir}, strings.Fields(rest)...))
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("  - {name: %s, type: mcp, command: %s, timeout: %s}\n", name, command, patience)
		}
		// Renamed over, so that no half of it is read.
		file := filepath.Join(filepath.Dir(config), "servers.yaml")
		if err := os.WriteFile(file+".new", []byte(text+"# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	say(lines...)
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		if code, stdout, stderr := command(t, nil, "servers", "accept", name, "--config", config); code != exitAccepted {
			t.Fatalf("%d: %s%s", code, stdout, stderr)
		}
	}
	return config, dir, say
}

// pidOf is the process of a server's program, once its tools may be called.
func pidOf(t *testing.T, g *gate, server string) int {
	t.Helper()
	var r reply
	eventually(t, server+" may be called", func() bool {
		r = g.call(t, `{"tool":{"name":"`+server+`.pid","arguments":{}}}`)
		return r.code() != "tool_starting" && r.code() != "tool_quarantined"
	})
	_, rest, _ := strings.Cut(r.body, "process ")
	digits, _, _ := strings.Cut(rest, `"`)
	pid, err := strconv.Atoi(digits)
	if r.status != http.StatusOK || err != nil {
		t.Fatalf("%d %s", r.status, r.body)
	}
	return pid
}

// runs tells whether there is such a process.
func runs(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// TestProgramsOfServersThatAreGone: the program of a server that was taken out of the
// configuration, or that is another now, ends when the calls that use it have ended.
// That of a server that stays is the same as before.
func TestProgramsOfServersThatAreGone(t *testing.T) {
	t.Parallel()
	config, dir, say := toolsConfig(t, "gone", "stays", "moves")
	g := serveGate(t, config)
	gone, stays, moves := pidOf(t, g, "gone"), pidOf(t, g, "stays"), pidOf(t, g, "moves")
	waited := make(chan reply, 1)
	go func() {
		r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", `{"tool":{"name":"gone.wait","arguments":{}}}`, "Content-Type", "text/plain")
		if err != nil {
			r.body = err.Error()
		}
		waited <- r
	}()
	eventually(t, "the call is with its program", func() bool {
		_, err := os.Stat(filepath.Join(dir, "begun"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	})

	say("stays", "moves elsewhere")
	eventually(t, "its tools are not there any more", func() bool {
		return g.call(t, `{"tool":{"name":"gone.pid","arguments":{}}}`).code() == "unknown_tool"
	})
	eventually(t, "the program of what moved has ended", func() bool { return !runs(moves) })
	if now := pidOf(t, g, "moves"); now == moves {
		t.Errorf("%d still answers for a server that is another", now)
	}
	if !runs(gone) {
		t.Error("a program was ended that a call was using")
	}
	select {
	case r := <-waited:
		t.Fatalf("the call has ended: %d %s", r.status, r.body)
	default:
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := <-waited; r.status != http.StatusOK || !strings.Contains(r.body, "went on") {
		t.Errorf("the call that was in flight: %d %s", r.status, r.body)
	}
	eventually(t, "the program has ended", func() bool { return !runs(gone) })
	if now := pidOf(t, g, "stays"); now != stays {
		t.Errorf("found process %d; expected %d, whose server has not changed", now, stays)
	}
	say()
	eventually(t, "the last program has ended", func() bool { return !runs(stays) })
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
}
