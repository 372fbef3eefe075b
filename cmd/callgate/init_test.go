package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInit: what init writes works at once, with what config check, call and explain say of it.
func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"path":"` + r.URL.Path + `"}`))
	}))
	defer server.Close()
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("pets.yaml", "openapi: 3.0.3\ninfo: {title: P, version: 1.0.0}\nservers: [{url: \""+server.URL+"\"}]\npaths:\n  /pets:\n    get: {operationId: getPets, responses: {\"200\": {description: Pets.}}}\n    delete: {operationId: deletePets, responses: {\"200\": {description: None.}}}\n")
	write("request.json", `{"tools":[{"type":"function","function":{"name":"act"}},{"type":"custom","custom":{"name":"free"}}]}`)
	client, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"tools": map[string]any{"command": self, "args": []string{asServer, t.TempDir()}, "env": map[string]string{"KEY": "s3cret"}}}})
	if err != nil {
		t.Fatal(err)
	}
	write("client.json", string(client))
	for _, c := range []struct {
		name, folder string
		args         []string
		code         int
		says         string
		passes       string // a tool that is permitted, and what its result has
		result       string
		denied       string // a tool that is not
	}{
		{"example", ".", nil, exitAccepted, "1 of 2 tools are permitted to assistant", `notes.add","arguments":{"text":"tea"}`, `{"echo":{"text":"tea"}}`, "notes.clear"},
		{"openapi", "pets", []string{"pets", "--from", "openapi", "pets.yaml", "--allow", "getPets"}, exitAccepted, "cd pets", `getPets","arguments":{}`, `{"path":"/pets"}`, "deletePets"},
		{"a document", "doc", []string{"doc", "--from", "pets.yaml", "--allow", "getPets"}, exitAccepted, "pets.yaml is an OpenAPI document", `getPets","arguments":{}`, `{"path":"/pets"}`, "deletePets"},
		{"request", "app", []string{"app", "--from", "request", "--allow", "act", "request.json"}, exitRefused, "left out: request.json:1:57", `act","arguments":{}`, "tool_unavailable", ""},
		{"client", "desk", []string{"desk", "--from", "client.json", "--allow", "tools.pid", "--yes"}, exitAccepted, "accepted 2 tools of tools", `tools.pid","arguments":{}`, "process", "tools.wait"},
		{"server", "one", []string{"one", "--from", "mcp", "--name", "t", "--allow", "t.pid", "--yes", "--", self, asServer, t.TempDir()}, exitAccepted, `"args":["mcp","--config"`, `t.pid","arguments":{}`, "process", "t.wait"},
		{"not accepted", "asked", []string{"asked", "--from", "mcp", "--allow", "mcp.pid", "--", self, asServer, t.TempDir()}, exitRefused, "not accepted: no tool of mcp can be called", "", "", "mcp.pid"},
		{"not reached", "away", []string{"away", "--from", "mcp", "http://127.0.0.1:1/mcp", "--yes"}, exitRefused, "callgate servers accept mcp --config away/callgate.yaml", "", "", ""},
	} {
		code, stdout, stderr := command(t, strings.NewReader(""), append([]string{"init"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.says) || strings.Contains(stdout+stderr, "s3cret") {
			t.Errorf("%s: exit code %d: %s%s", c.name, code, stdout, stderr)
			continue
		}
		main := filepath.Join(c.folder, "callgate.yaml")
		if code, stdout, stderr := command(t, nil, "config", "check", main); code != exitAccepted {
			t.Errorf("%s does not load: %s%s", c.name, stdout, stderr)
		}
		if c.passes != "" {
			if _, stdout, stderr := command(t, strings.NewReader(`{"tool":{"name":"`+c.passes+`}}`), "call", "--config", main); !strings.Contains(stdout, c.result) {
				t.Errorf("%s: %s%s; expected %s", c.name, stdout, stderr, c.result)
			}
		}
		if c.denied != "" {
			if code, stdout, stderr := command(t, nil, "policy", "explain", "--config", main, "--agent", "assistant", "--tool", c.denied); c.name != "not accepted" && (code != exitRefused || !strings.Contains(stdout, "denied")) {
				t.Errorf("%s: %s is not denied: %s%s", c.name, c.denied, stdout, stderr)
			}
			if _, stdout, _ := command(t, strings.NewReader(`{"tool":{"name":"`+c.denied+`","arguments":{}}}`), "call", "--config", main); !strings.Contains(stdout, `"permission_denied"`) && !strings.Contains(stdout, `"tool_quarantined"`) {
				t.Errorf("%s: %s", c.name, stdout)
			}
		}
		if code, _, stderr := command(t, strings.NewReader(""), append([]string{"init"}, c.args...)...); code != exitUsage || !strings.Contains(stderr, "nothing was written") {
			t.Errorf("%s, again: exit code %d: %s", c.name, code, stderr)
		}
	}
}

// TestInitStartsPrograms: a program that a client's file names starts only after a yes, and is shown before.
func TestInitStartsPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(".mcp.json", []byte(`{"mcpServers":{"x":{"command":"sh","args":["-c","touch started"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		folder string
		flags  []string
		starts bool
	}{{"a", nil, false}, {"b", []string{"--run"}, true}, {"c", []string{"--yes"}, true}} {
		code, stdout, stderr := command(t, strings.NewReader("y\n"), append([]string{"init", c.folder, "--from", ".mcp.json"}, c.flags...)...)
		if code != exitRefused || !strings.Contains(stderr, ".mcp.json names programs") || !strings.Contains(stderr, `x: sh -c "touch started"`) || strings.Contains(stderr, "nothing was started") == c.starts {
			t.Errorf("%s: exit code %d: %s%s", c.folder, code, stdout, stderr)
		}
		if _, err := os.Stat(filepath.Join(c.folder, "started")); (err == nil) != c.starts {
			t.Errorf("%s: found %v", c.folder, err)
		}
	}
	// Nor does a later command start it that is not about accepting.
	if _, stdout, stderr := command(t, strings.NewReader(`{"tool":{"name":"x.a","arguments":{}}}`), "call", "--config", "a/callgate.yaml"); !strings.Contains(stdout, `"permission_denied"`) || !strings.Contains(stderr, "callgate servers accept x") {
		t.Errorf("%s%s", stdout, stderr)
	}
	if _, err := os.Stat("a/started"); err == nil {
		t.Error("callgate call started a program that nobody has said yes to")
	}
	// servers accept and list show the line too, and ask on a terminal alone.
	if _, _, stderr := command(t, strings.NewReader(""), "servers", "list", "--config", "a/callgate.yaml"); !strings.Contains(stderr, `x: sh -c "touch started"`) {
		t.Errorf("servers list shows %s", stderr)
	}
	if code, _, stderr := command(t, strings.NewReader(""), "servers", "accept", "x", "--config", "a/callgate.yaml"); code != exitUsage || !strings.Contains(stderr, `x: sh -c "touch started"`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestInitArguments: a folder, a source and a command are told apart, or refused.
func TestInitArguments(t *testing.T) {
	t.Chdir(t.TempDir())
	for says, line := range map[string]string{
		"expected the source too":            "--from mcp",
		"expected mcp, openapi, request, or": "--from request2",
		"found no command behind --":         "--from mcp --",
		"only with --from mcp":               "--from openapi a.yaml -- b",
		"found 2 folders":                    "a b",
		"--prefix is for --from openapi":     "--prefix a.",
		"--name is for --from mcp":           "--name a",
		"--url is for --from openapi":        "--from request a.json --url http://a",
		"--upstream-key is the key of":       "--upstream-key env:A",
		"--upstream is empty":                "--upstream=",
		"--url is empty":                     "--from openapi a.yaml --url=",
		"--name is \"a.b\"":                  "--from mcp --name a.b http://127.0.0.1:1/mcp",
		"cannot read absent.json: no such file or directory; expected the file of an MCP client":       "--from absent.json",
		"cannot read absent.yaml: no such file or directory; expected the file of an OpenAPI document": "--from openapi absent.yaml",
		"cannot read absent.json: no such file or directory; expected the file of a request to":        "--from request absent.json",
		`the server "mcp" is "absent.json"; expected its URL, such as`:                                 "--from mcp absent.json",
		`; for the file of an MCP client, write --from absent.json`:                                    "--from mcp absent.json",
		`the server "mcp" is "ftp://a.example/"; expected its URL, such as`:                            "--from mcp ftp://a.example/",
		"--credential is for --from openapi":                                                           "--from request a.json --credential env:A",
	} {
		code, stdout, stderr := command(t, nil, append([]string{"init"}, strings.Fields(line)...)...)
		if code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d: %s%s; expected %s", line, code, stdout, stderr, says)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("something was written: %v (%v)", entries, err)
	}
}
