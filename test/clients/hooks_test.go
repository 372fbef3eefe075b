package clients_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hooking is a session of a coding agent whose hook is Callgate.
type hooking struct {
	name string
	// of is the configuration of the hook, and inFront that of a second gateway in front of the model; of no folder: none. both
	// says that the gateway of the hook stands there.
	of, inFront deployment
	both        bool
	away        bool // nobody answers the hook
	turns       func(project string) []turn
	agent       string
	command     func(dir, project, home, baseURL string) *exec.Cmd
	codes       []string // that the audit log of the hook has, and no other
	passed      int      // how many decisions it has on calls that passed
	made, not   []string // files that commands make
}

// changing is another hook of Claude Code, which changes the arguments of a command after the verdict.
const changing = `case "$(cat)" in *"touch before"*) echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"touch after"}}}';; esac`

const gaveUp = "Nothing was done."

// hooked are the sessions with hooks. With -short they are those with the hook alone.
func hooked() []hooking {
	bash := func(command string) turn {
		return calling("Bash", map[string]any{"command": command, "description": "Run it"})
	}
	shell := func(command string) turn { return calling("exec_command", map[string]any{"cmd": command}) }
	edits := func(project string) []turn {
		notes := filepath.Join(project, "notes.md")
		return []turn{
			calling("Read", map[string]any{"file_path": notes}),
			calling("Edit", map[string]any{"file_path": notes, "old_string": "a draft", "new_string": "the final text"}),
			repaired(bash("rm -rf ."), bash("touch before")),
		}
	}
	last := func(turns []turn, more ...turn) []turn { return append(append(turns, more...), turn{Text: ending}) }
	patch := turn{Items: []json.RawMessage{json.RawMessage(`{"type":"custom_tool_call","status":"completed","name":"apply_patch","input":"*** Begin Patch\n*** Update File: notes.md\n@@\n-This is a draft.\n+This is the final text.\n*** End Patch\n"}`)}}
	nested := turn{Items: []json.RawMessage{json.RawMessage(`{"type":"custom_tool_call","status":"completed","name":"exec","input":"const r = await tools.exec_command({cmd: \"touch nested\"}); text(JSON.stringify(r));"}`)}}
	claude := func(dir, _, _, baseURL string) *exec.Cmd {
		return runClaude(dir, baseURL, "claude-coder", "--allowedTools", "Read,Edit,Bash")
	}
	codexOf := func(model string) func(dir, _, home, baseURL string) *exec.Cmd {
		return func(dir, _, home, baseURL string) *exec.Cmd {
			return codex(dir, home, baseURL, model, "--dangerously-bypass-hook-trust")
		}
	}
	claudeHook := deployment{"claude-code", "hook.yaml", `p, Coder, *, Bash, "args.command == 'touch before'", allow` + "\n" + `p, Coder, *, Bash, "args.command == 'touch asked'", ask:mine` + "\n"}
	codexHook := deployment{"codex", "hook.yaml", ""}
	all := []hooking{
		{
			name: "Claude Code with a hook", agent: "claude-code", of: claudeHook, command: claude,
			turns: func(project string) []turn {
				return last(edits(project), repaired(bash("touch asked"), bash("wc -c notes.md"))) // whom it could ask is not there
			},
			codes: []string{"permission_denied", "approval_required", "executed_differs"}, passed: 4, made: []string{"after"}, not: []string{"before", "asked"},
		},
		{
			name: "Codex with a hook", agent: "codex", of: codexHook, command: codexOf("gpt-5.5"),
			turns: func(string) []turn {
				return last(nil, shell("cat notes.md"), shell("touch denied"), patch, shell("wc -c notes.md"))
			},
			codes: []string{"permission_denied"}, passed: 3, not: []string{"denied"},
		},
		{
			name: "Codex with a hook and a program that calls", agent: "codex", of: codexHook, command: codexOf("gpt-6-sol"),
			turns: func(string) []turn { return []turn{nested, {Text: gaveUp}} }, codes: []string{"permission_denied"}, not: []string{"nested"},
		},
		{
			name: "Claude Code with a hook that nobody answers", agent: "claude-code", away: true, command: claude,
			turns: func(string) []turn { return []turn{repaired(bash("touch ran"), turn{Text: gaveUp})} }, not: []string{"ran"},
		},
		{
			name: "Codex with a hook that nobody answers", agent: "codex", away: true, command: codexOf("gpt-5.5"),
			turns: func(string) []turn { return []turn{shell("touch ran"), {Text: gaveUp}} }, not: []string{"ran"},
		},
	}
	if testing.Short() {
		return all
	}
	return append(all,
		hooking{
			name: "Claude Code with a hook behind the same gateway", agent: "claude-code", of: claudeHook, both: true, command: claude,
			turns: func(project string) []turn { return last(edits(project), bash("wc -c notes.md")) },
			codes: []string{"permission_denied", "executed_differs"}, passed: 4, made: []string{"after"}, not: []string{"before"},
		},
		hooking{
			name: "Codex with a hook behind another gateway", agent: "codex", of: codexHook, inFront: deployment{"codex", "callgate.yaml", ""}, command: codexOf("gpt-5.5"),
			turns: func(string) []turn {
				return last(nil, shell("cat notes.md"), repaired(shell("touch denied"), patch), shell("wc -c notes.md"))
			},
			passed: 3, not: []string{"denied"},
		})
}

// session has the agent work in a project of its own.
func (h *hooking) session(t *testing.T, dir, programs string) {
	project, home, data := t.TempDir(), t.TempDir(), dataDir(t)
	write(t, project, "notes.md", draft)
	turns := h.turns(project)
	script, err := json.Marshal(map[string]any{"about": h.name, "turns": turns})
	if err != nil {
		t.Fatal(err)
	}
	write(t, home, "session.json", string(script))
	model := sampleModel(t, filepath.Join(programs, "samplemodel"), "--scenario", filepath.Join(home, "session.json"))
	callgate := filepath.Join(programs, "callgate")
	hook := "http://127.0.0.1:1" // where nothing listens
	if !h.away {
		hook = front(t, callgate, h.of, model, project, data)
	}
	switch {
	case h.both:
		model = hook
	case h.inFront.folder != "":
		model = front(t, callgate, h.inFront, model, project, dataDir(t))
	}
	h.settle(t, callgate, home, hook)
	p := h.command(dir, project, home, model+"/v1")
	p.Dir, p.Env = project, append(p.Env, "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+home)
	out := &bytes.Buffer{}
	p.Stdout, p.Stderr, p.WaitDelay = out, out, 10*time.Second
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(40*time.Second, func() { _ = p.Process.Kill() }) // a model that is refused what it does not expect says it again
	err = p.Wait()
	stuck.Stop()
	finishes := turns[len(turns)-1].Text == ending
	text := draft
	if finishes {
		text = final
	}
	if err != nil || finishes && !strings.Contains(out.String(), fmt.Sprintf("%d notes.md", len(final))) || !finishes && !strings.Contains(out.String(), gaveUp) {
		t.Errorf("%v\n%s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(project, "notes.md")); err != nil || string(got) != text {
		t.Errorf("notes.md: %q, %v; want %q", got, err, text)
	}
	for _, file := range h.made {
		if _, err := os.Stat(filepath.Join(project, file)); err != nil {
			t.Errorf("a command that was allowed did not run: %v", err)
		}
	}
	for _, file := range h.not {
		if _, err := os.Stat(filepath.Join(project, file)); err == nil {
			t.Errorf("a command ran that made %s", file)
		}
	}
	if !h.away {
		wantDecisions(t, filepath.Join(data, "audit.jsonl"), h.codes, h.passed)
	}
}

// settle writes the agent's settings into its home: those that the program prints, and for Claude Code another hook.
func (h *hooking) settle(t *testing.T, callgate, home, hook string) {
	t.Helper()
	install := exec.Command(callgate, "hook", "install", h.agent, "--url", hook)
	install.Dir = home
	printed, err := install.Output()
	if err != nil {
		t.Fatal(err)
	}
	if h.agent == "codex" {
		write(t, home, "config.toml", string(printed))
		return
	}
	var settings struct {
		Hooks map[string][]any `json:"hooks"`
	}
	if err := json.Unmarshal(printed, &settings); err != nil {
		t.Fatal(err)
	}
	settings.Hooks["PreToolUse"] = append(settings.Hooks["PreToolUse"], map[string]any{"hooks": []any{map[string]any{"type": "command", "command": changing}}})
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	write(t, home, ".claude/settings.json", string(text))
}

// wantDecisions wants the codes of refusals in an audit log, and no others, and a decision on each call that passed: one, also where
// it was judged in front of the model and at the hook.
func wantDecisions(t *testing.T, file string, codes []string, passed int) {
	t.Helper()
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found, want := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(log)) {
		var r struct{ Event, Code, Verdict string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Event == "decision" && r.Code != "" {
			found[r.Code] = true
		}
		if r.Event == "decision" && r.Verdict == "tool_call" {
			passed--
		}
	}
	for _, code := range codes {
		want[code] = true
	}
	if fmt.Sprint(found) != fmt.Sprint(want) || passed != 0 {
		t.Errorf("the audit log has the codes %v; want %v, and %d more calls that passed:\n%s", found, want, passed, log)
	}
}
