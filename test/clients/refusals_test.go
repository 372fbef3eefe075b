package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// accepted is what Claude's clients ask of the name of a tool; they drop a whole server
// for one of another form.
var accepted = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// refused are calls of tools of real servers, and what a client shows of what becomes of
// each.
var refused = []struct{ name, arguments, shows string }{
	{"files_read_text_file", `{"path":7}`, `"code":"wrong_type"`},
	{"files_read_text_file", `{}`, `"code":"missing_argument"`},
	{"files_read_text_file", `{"path":"hello.txt","extra":1}`, `Argument \"extra\" is not part of files_read_text_file.`},
	{"files_read_text_file", `{"path":"secret.txt"}`, `You may use files_read_text_file here, but not with these arguments.`},
	{"files_read_text_file", `{"path":"absent.txt"}`, `The tool failed. It says: `},
	{"files_read_text_file", `{"path":"absent.txt"}`, `ENOENT`},
	{"memory_open_nodes", `{"names":"x"}`, `"code":"wrong_type"`},
	{"memory_add_observations", `{"observations":[{"entityName":"nobody","contents":["x"]}]}`, `The tool failed. It says: `},
}

// TestRealServers puts three servers from npm, with what they state of their results,
// behind a gateway. Every tool has a name that clients take, and every refusal is shown.
func TestRealServers(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs the real servers, which it fetches")
	}
	dir, inspector := t.TempDir(), t.TempDir()
	for to, from := range map[string]string{dir: "servers", inspector: "mcp"} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		installed(t, to)
	}
	programs := t.TempDir()
	command(t, "../..", nil, "go", "build", "-o", programs, "./cmd/callgate")
	program := filepath.Join(programs, "callgate")
	config := realServers(t, dir)
	for _, server := range []string{"files", "memory", "every"} {
		command(t, "/", os.Environ(), program, "servers", "accept", server, "--config", config)
	}
	address := begin(t, exec.Command(program, "serve", "--config", config), false, listening)
	awaitTools(t, address, serverTools)
	url := address + "/mcp"
	for name, args := range map[string][]string{
		"SDK 1 over HTTP":    {"1", url},
		"SDK 1 as a program": {"1", program, "mcp", "--config", config, "--agent", "Analyst"},
		"SDK 2 over HTTP":    {"2", url},
	} {
		t.Run(name, func(t *testing.T) { showsRefusals(t, dir, args) })
	}
	t.Run("inspector", func(t *testing.T) { inspectsRefusals(t, inspector, url) })
	if _, err := os.Stat(filepath.Join(dir, "data", "audit.jsonl")); err != nil {
		t.Errorf("the data is not beside the configuration: %v", err)
	}
	graph, err := os.ReadFile(filepath.Join(dir, "graph.jsonl"))
	if err != nil || !bytes.Contains(graph, []byte("Callgate")) {
		t.Errorf("the server was not told where its memory is: %s, %v", graph, err)
	}
}

// serverTools is how many tools the three servers have.
const serverTools = 36

// awaitTools waits until a gateway lists as many tools: it serves from its start on, and
// each tool server's list joins when that server has sent it.
func awaitTools(t *testing.T, address string, n int) {
	t.Helper()
	last := ""
	for end := time.Now().Add(longest); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		response, err := http.Get(address + "/v1/tools")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		var list struct{ Tools []json.RawMessage }
		if err == nil && json.Unmarshal(body, &list) == nil && len(list.Tools) == n {
			return
		}
		last = fmt.Sprintf("%s, %v: %.300s", response.Status, err, body)
	}
	t.Fatalf("the gateway does not list %d tools: %s", n, last)
}

// realServers is a configuration with three servers, beside their packages.
func realServers(t *testing.T, dir string) (config string) {
	t.Helper()
	write(t, dir, "notes/hello.txt", "The gateway stands between.\n")
	write(t, dir, "tools/none.yaml", "tools: []\n# end\n")
	write(t, dir, "policy.csv", "p, Analyst, acme/alpha, *, , allow\np, Analyst, acme/alpha, files.read_text_file, \"args.path == 'secret.txt'\", deny\n# end\n")
	write(t, dir, "workspaces.yaml", "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n# end\n")
	write(t, dir, "limits.yaml", "caller: {rate: 10000/s, burst: 10000}\ndefault: {rate: 10000/s, burst: 10000, concurrency: 100}\n# end\n")
	servers := "servers:\n"
	for name, more := range map[string]string{
		"files":  "server-filesystem/dist/index.js, notes]",
		"memory": "server-memory/dist/index.js]\n    env: {MEMORY_FILE_PATH: " + filepath.Join(dir, "graph.jsonl") + "}",
		"every":  "server-everything/dist/index.js, stdio]",
	} {
		servers += fmt.Sprintf("  - name: %s\n    type: mcp\n    timeout: 1m\n    command: [node, node_modules/@modelcontextprotocol/%s\n", name, more)
	}
	write(t, dir, "servers.yaml", servers+"# end\n")
	write(t, dir, "callgate.yaml", "server: {listen: \"127.0.0.1:0\", admin_listen: \"127.0.0.1:0\"}\nservers: servers.yaml\ndata_dir: data\n# end\n")
	return filepath.Join(dir, "callgate.yaml")
}

// showsRefusals has a client of the TypeScript SDK list the tools and make the calls.
func showsRefusals(t *testing.T, dir string, args []string) {
	const graph = `{"entities":[{"name":"Callgate","entityType":"gateway","observations":["It stands between."]}]}`
	calls := append(refused[:len(refused):len(refused)], []struct{ name, arguments, shows string }{
		{"files_read_text_file", `{"path":"hello.txt"}`, "The gateway stands between."},
		{"memory_create_entities", graph, ""},
		{"files.read_text_file", `{"path":"hello.txt"}`, "Did you mean files_read_text_file"},
	}...)
	var in bytes.Buffer
	for _, c := range calls {
		fmt.Fprintf(&in, "{\"name\":%q,\"arguments\":%s}\n", c.name, c.arguments)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	c := exec.CommandContext(ctx, "node", append([]string{filepath.Join(dir, "refusals.mjs")}, args...)...)
	var problems bytes.Buffer
	c.Dir, c.Stdin, c.Stderr = dir, &in, &problems
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 1+len(calls) {
		t.Fatalf("%d lines: %s", len(lines), out)
	}
	var list struct {
		Tools []struct {
			Name  string
			Typed bool
		}
	}
	if err := json.Unmarshal([]byte(lines[0]), &list); err != nil || len(list.Tools) != serverTools {
		t.Fatalf("%d tools, %v: %s", len(list.Tools), err, lines[0])
	}
	typed := 0
	for _, tool := range list.Tools {
		if !accepted.MatchString(tool.Name) {
			t.Errorf("the name %q", tool.Name)
		}
		if tool.Typed {
			typed++
		}
	}
	if typed < 20 {
		t.Errorf("%d tools state what their results are, so that little is shown here", typed)
	}
	for i, c := range calls {
		var said struct {
			Failed       bool
			Text, Thrown string
		}
		if err := json.Unmarshal([]byte(lines[1+i]), &said); err != nil {
			t.Fatal(err)
		}
		if thrown := i == len(calls)-1; thrown != (said.Thrown != "") || said.Failed != (i < len(refused)) || !strings.Contains(said.Text+said.Thrown, c.shows) {
			t.Errorf("%s %s: %s, want %s", c.name, c.arguments, lines[1+i], c.shows)
		}
	}
}

// inspectsRefusals has the official inspector make the calls whose arguments are texts.
func inspectsRefusals(t *testing.T, dir, url string) {
	node := nodeOf(t, dir)
	program := filepath.Join(dir, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	for _, c := range refused {
		var arguments map[string]any
		if err := json.Unmarshal([]byte(c.arguments), &arguments); err != nil {
			t.Fatal(err)
		}
		args := []string{program, "--cli", url, "--transport", "http", "--method", "tools/call", "--tool-name", c.name}
		for name, value := range arguments {
			encoded, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, "--tool-arg", name+"="+strings.Trim(string(encoded), `"`))
		}
		// How it ends where a result says that it failed is the inspector's own matter.
		out, _ := run(t, dir, os.Environ(), node, args...)
		if shown := strings.ReplaceAll(out, `\"`, `"`); !strings.Contains(shown, strings.ReplaceAll(c.shows, `\"`, `"`)) && !strings.Contains(strings.ReplaceAll(shown, `\\"`, `"`), strings.ReplaceAll(c.shows, `\"`, `"`)) {
			t.Errorf("%s %s: it shows\n%s\nwant %s", c.name, c.arguments, out, c.shows)
		}
	}
}
