package clients_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// editorPolicy is what an agent may do in the tests of ACP: it reads and writes files, counts
// bytes, and asks a person before it labels a note or removes a file.
const editorPolicy = `p, Analyst, acme/alpha, math.*, , allow
p, Analyst, acme/alpha, notes.label, , ask:person
p, Analyst, acme/alpha, acp.fs.*, , allow
p, Analyst, acme/alpha, acp.terminal.create, "args.command == 'wc'", allow
p, Analyst, acme/alpha, acp.permission.delete, , ask:person
# end
`

// play is a scenario of the sample model that ends with a text, and says another after a refusal.
func play(text, refused string, calls ...call) map[string]any {
	var turns []turn
	for _, c := range calls {
		t := turn{Calls: []call{c}}
		if refused != "" {
			t.AfterRefusal = &turn{Text: refused}
		}
		turns = append(turns, t)
	}
	return map[string]any{"about": text, "turns": append(turns, turn{Text: text})}
}

// TestACP runs an editor of the ACP SDK and acpx before `callgate acp`, and an agent of the SDK
// behind it.
func TestACP(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs the real clients, which it fetches")
	}
	programs := t.TempDir()
	command(t, "../..", nil, "go", "build", "-o", programs, "./cmd/callgate")
	command(t, "../../tools", nil, "go", "build", "-o", programs, "./samplemodel")
	gateway, model := filepath.Join(programs, "callgate"), filepath.Join(programs, "samplemodel")
	upstreams := "upstreams:\n" + fmt.Sprintf("  - {name: builtin, base_url: %s/v1, modes: [orchestrate], models: [text, call]}\n", sampleModel(t, model))
	for name, scenario := range map[string]map[string]any{
		"refused": play("It is gone.", "I may not delete it.", call{"files.delete", map[string]any{"path": "notes.md"}}),
		"asked":   play("The note has its label.", "The person said no.", call{"notes.label", map[string]any{"note": "a", "labels": map[string]any{"b": "c"}}}),
		"task": play("It has {{/output}}", "",
			call{"acp.fs.read", map[string]any{"path": "notes.md"}},
			call{"acp.fs.write", map[string]any{"path": "notes.md", "content": final}},
			call{"acp.terminal.create", map[string]any{"command": "wc", "args": []string{"-c", "notes.md"}}}),
	} {
		upstreams += fmt.Sprintf("  - {name: %[1]s, base_url: %[2]s/v1, modes: [orchestrate], models: [%[1]s]}\n", name, playing(t, model, scenario))
	}
	dir := editorConfig(t, gateway, upstreams, editorPolicy, "tools/demo.yaml")
	inNode(t, "acp", append(os.Environ(), "NO_COLOR=1", "CLIENTS_CALLGATE="+gateway, "CLIENTS_ACP="+dir))
}

// playing starts a sample model that plays a scenario.
func playing(t *testing.T, program string, scenario any) string {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(scenario)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "scenario.json", string(text))
	return sampleModel(t, program, "--scenario", filepath.Join(dir, "scenario.json"))
}

// editorConfig is a configuration of `callgate acp`, whose project is in the folder project
// beside it: with the tools of an editor, and with other files of configs.
func editorConfig(t *testing.T, gateway, upstreams, policy string, tools ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range tools {
		data, err := os.ReadFile(filepath.Join("../../configs", file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, file, string(data))
	}
	write(t, dir, "tools/acp.yaml", command(t, dir, nil, gateway, "tools", "import", "acp"))
	write(t, dir, "policy.csv", policy)
	write(t, dir, "approvals.yaml", "rules: {person: {by: caller}}\nwait: 60s\n# end\n")
	write(t, dir, "workspaces.yaml", "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [../project]}}}}\n# end\n")
	write(t, dir, "limits.yaml", "caller: {rate: 10000/s, burst: 10000}\ndefault: {rate: 10000/s, burst: 10000, concurrency: 100}\n# end\n")
	keys := ""
	if upstreams != "" {
		write(t, dir, "upstreams.yaml", upstreams+"# end\n")
		keys = "upstreams: upstreams.yaml\n"
	}
	write(t, dir, "callgate.yaml", keys+"registry: {files: [tools/*.yaml]}\napprovals: approvals.yaml\naudit: {record: arguments}\ndata_dir: data\n# end\n")
	return dir
}
