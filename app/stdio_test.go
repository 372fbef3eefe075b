package app

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
)

// TestStdioWithoutApprovers: a gateway of one client and a store of its own asks nobody where
// approvers would have to decide, and says why; its client's user is asked.
func TestStdioWithoutApprovers(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(vectorConfig))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "callgate.yaml")
	main, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"callgate.yaml":  strings.Replace(string(main), "output:", "approvals: approvals.yaml\noutput:", 1),
		"approvals.yaml": "rules: {mine: {by: caller}, theirs: {}}\n# end\n",
		"policy.csv":     "p, Analyst, acme/alpha, time.now, , ask:theirs\np, Analyst, acme/alpha, web.search, , ask:mine\n# end\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := configs.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}}}`
	in := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now",` + meta + `}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"web_search","arguments":{"query":"x"},` + meta + `}}` + "\n"
	var out strings.Builder
	if err := ServeStdio(t.Context(), path, loaded, gateway.Subject{}, strings.NewReader(in), &out, Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	answers := map[int]string{}
	for line := range strings.Lines(out.String()) {
		var r struct{ ID int }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		answers[r.ID] = line
	}
	if r := answers[1]; !strings.Contains(r, "approval_required") || !strings.Contains(r, "no listener where people approve") {
		t.Errorf("%s", r)
	}
	if r := answers[2]; !strings.Contains(r, `"input_required"`) || !strings.Contains(r, `"allow once"`) {
		t.Errorf("%s", r)
	}
}
