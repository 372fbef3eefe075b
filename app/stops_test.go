package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/stops"
	"github.com/callgate/callgate/store"
)

// TestStopsBeside: what was stopped at a gateway is stopped for the clients of programs with the same data_dir, which
// have folders of their own, and do not write the list.
func TestStopsBeside(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(vectorConfig))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "callgate.yaml")
	loaded, err := configs.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	loaded.DataDir = filepath.Join(dir, "data")
	o := Options{Logger: slog.New(slog.DiscardHandler)}
	served, err := Open(t.Context(), loaded, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	if _, err := served.stops.Stop(t.Context(), store.Stop{Agent: "Analyst", Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"
	var out strings.Builder
	if err := ServeStdio(t.Context(), path, loaded, gateway.Subject{}, strings.NewReader(call), &out, o); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `stopped`) || !strings.Contains(out.String(), `"isError":true`) {
		t.Errorf("beside it: %s", out.String())
	}
	if _, err := os.Stat(filepath.Join(loaded.DataDir, "mcp", "1", stops.FileName)); !os.IsNotExist(err) {
		t.Errorf("a list of its own: %v", err)
	}
}
