package clients_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// coder is a coding agent: a program that leads a conversation with a model, and runs the
// tools that it offers.
type coder struct {
	name string
	// scenario is what the model plays in a project: judged, it also makes a call that the
	// policy denies.
	scenario func(project string, judged bool) []turn
	// deployed is the folder of its configuration in deploy.
	deployed string
	// command runs the program in a project, against a base URL.
	command func(dir, project, home, baseURL string) *exec.Cmd
}

// turn and call are those of a scenario of the sample model.
type turn struct {
	Text         string            `json:"text,omitempty"`
	Calls        []call            `json:"calls,omitempty"`
	Items        []json.RawMessage `json:"items,omitempty"`
	AfterRefusal *turn             `json:"after_refusal,omitempty"`
}

type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

func calling(name string, arguments map[string]any) turn {
	return turn{Calls: []call{{name, arguments}}}
}

const (
	draft = "This is a draft.\n"
	final = "This is the final text.\n"
)

// coders are the agents, each with a session that reads, edits and runs a command. The
// first call has an argument too many; after its refusal it is right.
func coders() []coder {
	claude := func(project string, judged bool) []turn {
		notes := filepath.Join(project, "notes.md")
		return []turn{
			repaired(calling("Read", map[string]any{"file_path": notes, "encoding": "utf-8"}), calling("Read", map[string]any{"file_path": notes})),
			calling("Edit", map[string]any{"file_path": notes, "old_string": "a draft", "new_string": "the final text"}),
			denied(judged, calling("Bash", map[string]any{"command": "rm -rf .", "description": "Remove all"}),
				calling("Bash", map[string]any{"command": "wc -c notes.md", "description": "Count the bytes"})),
			{Text: ending},
		}
	}
	patches := func(_ string, judged bool) []turn {
		// A model whose custom tool is apply_patch: its calls are items, not functions.
		patch := `{"type":"custom_tool_call","status":"completed","name":"apply_patch","input":"*** Begin Patch\n*** Update File: notes.md\n@@\n-This is a draft.\n+This is the final text.\n*** End Patch\n"}`
		outside := strings.ReplaceAll(patch, "notes.md", "/etc/notes.md")
		return []turn{
			repaired(calling("exec_command", map[string]any{"cmd": "cat notes.md", "encoding": "utf-8"}), calling("exec_command", map[string]any{"cmd": "cat notes.md"})),
			denied(judged, turn{Items: []json.RawMessage{json.RawMessage(outside)}}, turn{Items: []json.RawMessage{json.RawMessage(patch)}}),
			calling("exec_command", map[string]any{"cmd": "wc -c notes.md"}),
			{Text: ending},
		}
	}
	return []coder{
		{"Claude Code", claude, "claude-code", func(dir, _, _, baseURL string) *exec.Cmd {
			return runClaude(dir, baseURL, "claude-coder", "--allowedTools", "Read,Edit,Bash")
		}},
		{"Claude Code in auto mode", claude, "claude-code", func(dir, _, _, baseURL string) *exec.Cmd {
			return runClaude(dir, baseURL, "claude-opus-4-8", "--permission-mode", "auto")
		}},
		{"Claude Code 2.1.197", claude, "claude-code", func(dir, _, _, baseURL string) *exec.Cmd {
			return runClaude(filepath.Join(dir, "node_modules/claude-code-2.1.197"), baseURL, "claude-coder", "--allowedTools", "Read,Edit,Bash")
		}},
		{"Codex", patches, "codex", func(dir, _, home, baseURL string) *exec.Cmd {
			return codex(dir, home, baseURL, "gpt-5.5")
		}},
		{"Codex that asks for a WebSocket", patches, "codex", func(dir, _, home, baseURL string) *exec.Cmd {
			return codex(dir, home, baseURL, "gpt-5.5", "-c", "model_providers.callgate.supports_websockets=true")
		}},
		{"Codex with a catalog of plain tools", patches, "codex", func(dir, _, home, baseURL string) *exec.Cmd {
			return codex(dir, home, baseURL, "gpt-6-sol", "-c", fmt.Sprintf("model_catalog_json=%q", plainCatalog(dir, home)))
		}},
	}
}

// runClaude runs the Claude Code of a folder.
func runClaude(dir, baseURL, model string, more ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(dir, "node_modules/@anthropic-ai/claude-code-linux-x64/claude"),
		append([]string{"-p", "Finish notes.md", "--model", model}, more...)...)
	c.Env = []string{"ANTHROPIC_BASE_URL=" + strings.TrimSuffix(baseURL, "/v1"), "ANTHROPIC_API_KEY=made-up", "DISABLE_AUTOUPDATER=1"}
	return c
}

// plainCatalog writes Codex's own catalog of models without code mode, and returns its file, which is
// empty where there is none.
func plainCatalog(dir, home string) string {
	file := filepath.Join(home, "catalog.json")
	list := exec.Command(filepath.Join(dir, codexProgram), "debug", "models")
	list.Env = []string{"CODEX_HOME=" + home, "HOME=" + home}
	out, _ := list.Output()
	var catalog struct {
		Models []map[string]any `json:"models"`
	}
	_ = json.Unmarshal(out, &catalog)
	for _, m := range catalog.Models {
		m["tool_mode"], m["use_responses_lite"], m["supports_search_tool"] = nil, false, false
		delete(m, "multi_agent_version")
	}
	text, _ := json.Marshal(catalog)
	_ = os.WriteFile(file, text, 0o600)
	return file
}

// ending is the last answer, with what the last command said.
const ending = "The notes are final: {{}}"

// repaired is a wrong call, and after its refusal another.
func repaired(wrong, right turn) turn {
	wrong.AfterRefusal = &right
	return wrong
}

// denied is a call that the policy denies, and then another; or the other alone.
func denied(judged bool, wrong, right turn) turn {
	if !judged {
		return right
	}
	return repaired(wrong, right)
}

const codexProgram = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"

// codex runs Codex without a sandbox of its own, which a container may not allow.
func codex(dir, home, baseURL, model string, more ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(dir, codexProgram), append([]string{
		"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "--model", model,
		"-c", `model_provider="callgate"`, "-c", `model_providers.callgate.name="callgate"`, "-c", `model_providers.callgate.wire_api="responses"`,
		"-c", `model_providers.callgate.env_key="CALLGATE_KEY"`, "-c", fmt.Sprintf(`model_providers.callgate.base_url=%q`, baseURL),
		// It would ask for a search of the provider, and for tools that come with it.
		"-c", `web_search="disabled"`, "-c", "agents.enabled=false"}, append(more, "Finish notes.md")...)...)
	c.Env = []string{"CALLGATE_KEY=made-up", "CODEX_HOME=" + home}
	return c
}

// TestCodingAgents runs the programs themselves, with a made-up key and a scripted model.
func TestCodingAgents(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs the real clients, which it fetches")
	}
	dir, programs := t.TempDir(), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("agents")); err != nil {
		t.Fatal(err)
	}
	installed(t, dir)
	command(t, "../..", nil, "go", "build", "-o", programs, "./cmd/callgate")
	command(t, "../../tools", nil, "go", "build", "-o", programs, "./samplemodel")
	for _, c := range coders() {
		t.Run(c.name, func(t *testing.T) {
			t.Run("the model itself", func(t *testing.T) { session(t, dir, programs, c, false) })
			t.Run("behind the gateway", func(t *testing.T) { session(t, dir, programs, c, true) })
		})
	}
	for _, h := range hooked() {
		t.Run(h.name, func(t *testing.T) { h.session(t, dir, programs) })
	}
}

// session has an agent finish a file of a project of its own, in front of the model or of
// a gateway, which lets no call pass that it refuses.
func session(t *testing.T, dir, programs string, c coder, judged bool) {
	t.Helper()
	project, home := t.TempDir(), t.TempDir()
	write(t, project, "notes.md", draft)
	script, err := json.Marshal(map[string]any{"about": c.name, "turns": c.scenario(project, judged)})
	if err != nil {
		t.Fatal(err)
	}
	write(t, home, "session.json", string(script))
	address := sampleModel(t, filepath.Join(programs, "samplemodel"), "--scenario", filepath.Join(home, "session.json"))
	data := ""
	if judged {
		data = dataDir(t)
		address = front(t, filepath.Join(programs, "callgate"), deployment{c.deployed, "callgate.yaml", ""}, address, project, data)
	}
	p := c.command(dir, project, home, address+"/v1")
	p.Dir, p.Env = project, append(p.Env, "PATH="+os.Getenv("PATH"), "HOME="+home)
	out, err := p.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "The notes are final: ") || !strings.Contains(string(out), fmt.Sprintf("%d notes.md", len(final))) {
		t.Errorf("%s: %v\n%s", c.name, err, out)
	}
	if got, err := os.ReadFile(filepath.Join(project, "notes.md")); err != nil || string(got) != final {
		t.Errorf("notes.md: %q, %v; want %q", got, err, final)
	}
	if judged {
		wantRefusals(t, filepath.Join(data, "audit.jsonl"))
	}
}

// wantRefusals wants the two refusals of a session in an audit log.
func wantRefusals(t *testing.T, file string) {
	t.Helper()
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"unexpected_argument", "permission_denied"} {
		if !strings.Contains(string(log), fmt.Sprintf("%q", code)) {
			t.Errorf("the audit log has no %s:\n%s", code, log)
		}
	}
}

// deployment is a main file of a folder of deploy, with rows that the policy has besides.
type deployment struct{ folder, main, rows string }

// front starts a gateway with a configuration of deploy, for a project and, where it has upstreams, in front of a model.
func front(t *testing.T, program string, of deployment, model, project, data string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../deploy", of.folder))); err != nil {
		t.Fatal(err)
	}
	for file, changes := range map[string][]string{
		of.main:           {"127.0.0.1:8080", "127.0.0.1:0", "127.0.0.1:9090", "127.0.0.1:0", "callgate-data", data, "#upstreams:", "approvals: approvals.yaml\nupstreams:"},
		"policy.csv":      {"# end", of.rows + "# end"},
		"workspaces.yaml": {"/home/me/project", project},
		"upstreams.yaml":  {"https://api.anthropic.com", model, "https://api.openai.com", model},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, file, strings.NewReplacer(changes...).Replace(string(text)))
	}
	write(t, dir, "approvals.yaml", "rules: {mine: {by: caller}}\nwait: 0s\n# end\n")
	c := exec.Command(program, "serve", "--config", filepath.Join(dir, of.main))
	c.Env = append(os.Environ(), "ANTHROPIC_API_KEY=made-up", "OPENAI_API_KEY=made-up")
	return begin(t, c, false, listening)
}
