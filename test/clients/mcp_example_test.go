package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMCPExample runs the lines of docs/mcp.md that put a server from npm behind
// Callgate, in a copy of what they need.
func TestMCPExample(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs a server from npm, which it fetches")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			leaveOut(t, program+" is not installed")
		}
	}
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## A server from npm behind Callgate\n")
	section, _, _ = strings.Cut(section, "\n## ")
	root := t.TempDir()
	for _, folder := range []string{"deploy/mcp", "configs"} {
		if err := os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join("../..", folder))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(root, "deploy/mcp/node_modules")); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{} // by the line
	for line := range strings.Lines(section) {
		line, code := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    ")
		switch {
		case !code:
		case strings.HasPrefix(line, "go build "):
			command(t, "../..", nil, "go", "build", "-o", filepath.Join(root, "callgate"), "./cmd/callgate")
		default:
			out, err := run(t, root, os.Environ(), "sh", "-c", line)
			if err != nil && strings.Contains(line, "npm ci") {
				leaveOut(t, "the server cannot be fetched: "+out)
			}
			said[line] = out
			if refused := strings.Contains(line, "search_files"); (err != nil) != refused {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
		}
	}
	expect := func(part, answer string) {
		t.Helper()
		for line, out := range said {
			if strings.Contains(line, part) {
				if !strings.Contains(out, answer) {
					t.Errorf("%s\nsaid %s\nexpected %s", line, out, answer)
				}
				return
			}
		}
		t.Errorf("docs/mcp.md has no line with %s", part)
	}
	expect("servers list", "files.read_text_file")
	expect("servers accept", "accepted\tfiles.read_text_file")
	expect("hello.txt", `{"tool_result":{"tool":"files.read_text_file","output":{"content":"The gateway stands between.\n"}}}`)
	expect(`"files.search_files"`, `"code":"permission_denied"`)
}
