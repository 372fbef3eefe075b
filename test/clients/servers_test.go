package clients_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/engine/mcp"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// TestServers uses tools of servers written with the TypeScript SDK, of both of its
// versions, over HTTP and as programs.
func TestServers(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs the real servers, which it fetches")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("servers")); err != nil {
		t.Fatal(err)
	}
	installed(t, dir)
	for _, version := range []string{"modern", "legacy"} {
		script := filepath.Join(dir, version+".mjs")
		t.Run(version+" over HTTP", func(t *testing.T) {
			c := exec.Command("node", script)
			c.Dir = dir
			url := begin(t, c, true, func(line []byte) string {
				address, _ := strings.CutPrefix(string(line), "listening on ")
				return address
			})
			uses(t, tool.Server{URL: url, Addresses: []string{"127.0.0.1/32"}})
		})
		t.Run(version+" as a program", func(t *testing.T) {
			uses(t, tool.Server{Command: []string{"node", script, "stdio"}})
		})
	}
}

func uses(t *testing.T, server tool.Server) {
	server.Name, server.Type, server.Timeout = "sample", "mcp", time.Minute
	outbound := outbound.New(outbound.Options{})
	defer outbound.Close()
	client := mcp.New(mcp.Options{Version: "1", Outbound: outbound})
	defer client.Close()
	e := engine.New(engine.Options{Transports: map[string]engine.Transport{"mcp": client}})
	defer e.Close()
	found, err := e.Discover(t.Context(), server)
	if err != nil || len(found) != 3 || found[0].Name != "add" || found[0].OutputSchema == nil {
		t.Fatalf("found %+v: %v", found, err)
	}
	for _, c := range []struct {
		tool, arguments, body string
		json                  bool
		message               string
	}{
		{"add", `{"a":2,"b":0.5}`, `{"sum":2.5}`, true, ""},
		{"greet", `{"name":"größe"}`, "Hello, größe.", false, ""},
		{"fail", `{}`, "", false, `failed. It says: "it is broken"`},
		{"greet", `{"name":7}`, "", false, "failed. It says: "},
		{"absent", `{}`, "", false, "failed. It says: "},
	} {
		result, err := e.Run(context.Background(), tool.Call{
			Tool: c.tool, Version: "1.0.0", Effect: "once", Arguments: []byte(c.arguments), ID: "call",
			Run: tool.Run{Type: "mcp", Server: server.Name, URL: server.URL, Command: server.Command, Addresses: server.Addresses, Tool: c.tool, Timeout: time.Minute, MaxResultBytes: 1 << 20},
		})
		refused := refusal.From(refusal.Execute, err)
		switch {
		case c.message == "" && (err != nil || string(result.Body) != c.body || result.JSON != c.json):
			t.Errorf("%s: %q %v, %v", c.tool, result.Body, result.JSON, err)
		case c.message != "" && (refused == nil || refused.Code != refusal.ToolFailed || !strings.Contains(refused.Message, c.message)):
			t.Errorf("%s: %v", c.tool, fmt.Sprint(refused))
		}
	}
}
