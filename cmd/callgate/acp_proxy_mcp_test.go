package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/testkit/acptest"
)

// TestACPProxyMCPServer starts the server that an agent is given, as the agent would: beside the
// proxy, with the agent's environment and in another folder, although --config is relative. An
// agent that may use none of its tools is given none.
func TestACPProxyMCPServer(t *testing.T) {
	t.Parallel()
	config, project := acpConfig(t)
	if got := givenServers(t, config, project, nil); len(got) != 0 {
		t.Errorf("a server without tools: %+v", got)
	}
	dir := filepath.Dir(config)
	const demo = "tools:\n  - {name: time.now, effect: read, input_schema: {type: object}, run: {type: demo}}\n# end\n"
	if err := os.WriteFile(filepath.Join(dir, "demo.yaml"), []byte(demo), 0o600); err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	main = []byte(strings.Replace(string(main), "[acp.yaml]", "[acp.yaml, demo.yaml]", 1))
	if err := os.WriteFile(config, main, 0o600); err != nil {
		t.Fatal(err)
	}
	called := false
	servers := givenServers(t, config, project, func(server wire.MCPServer) {
		c := process(context.Background(), nil, server.Args...)
		c.Path, c.Dir = server.Command, t.TempDir()
		c.Env = []string{"PATH=" + os.Getenv("PATH"), asProgram + "=1"}
		s := connected(t, c)
		if got := lists(t, s); got != "time_now" {
			t.Errorf("it lists %s", got)
		}
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "time_now"})
		if err != nil || r.IsError {
			t.Errorf("%+v: %v", r, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		called = true
	})
	if len(servers) != 1 || !called {
		t.Fatalf("%+v", servers)
	}
	if n := len(verified(t, filepath.Join(dir, "data", "mcp", "1"))); n != 2 {
		t.Errorf("%d records of the call", n)
	}
}

// givenServers are the MCP servers that an agent behind the proxy is given, which is told of each
// while the proxy runs.
func givenServers(t *testing.T, config, project string, each func(wire.MCPServer)) []wire.MCPServer {
	t.Helper()
	command := acpAgent(t, acptest.Script{})
	c := process(t.Context(), nil, append([]string{"acp", "--config", filepath.Base(config), "--"}, command...)...)
	c.Dir = filepath.Dir(config)
	p := acptest.Start(t, c, acptest.Agent)
	p.Initialize(nil)
	p.Session(project)
	lines, err := os.ReadFile(command[len(command)-1] + ".lines")
	if err != nil {
		t.Fatal(err)
	}
	var servers []wire.MCPServer
	for line := range strings.Lines(string(lines)) {
		_, text, _ := strings.Cut(line, " ")
		var m struct {
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal([]byte(text), &m) != nil || m.Method != wire.MethodSessionNew {
			continue
		}
		r, err := wire.Read[wire.NewSessionRequest](m.Params)
		if err != nil {
			t.Fatal(err)
		}
		servers = r.MCPServers
	}
	for _, server := range servers {
		each(server)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("it ended with %v: %s", err, p.Log())
	}
	return servers
}
