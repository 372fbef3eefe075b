package clients_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// agent is a coding agent that speaks ACP, behind `callgate acp -- COMMAND`.
type agent struct {
	name string
	// command starts it; dir has the packages.
	command func(dir, node string) []string
	// env is what it is told, with a model at an address and a home of its own.
	env func(home, model string) map[string]string
	// files are those of its home.
	files func(model string) map[string]string
	// flags are those of callgate acp.
	flags []string
	// tools are registered beside those of an editor.
	tools string
	// policy is what it may do.
	policy string
	// turns are what the model plays in a project: a read, an edit whose text is not there and one whose text
	// is, a command that a person is asked about, and one that is refused.
	turns func(project string) []turn
	// decided are the decisions in the audit log, in order. A call that a person is asked about is
	// refused first, and judged once more with the answer.
	decided []string
	// failed is how many calls the editor sees fail.
	failed int
	// byEditor says that its changes of files go through the editor.
	byEditor bool
	// unjudged is what the log says of a call that it runs without asking.
	unjudged string
}

// askingPolicy is a policy for the permissions that an agent asks for.
const askingPolicy = `p, Analyst, acme/alpha, acp.fs.*, , allow
p, Analyst, acme/alpha, acp.permission.read, , allow
p, Analyst, acme/alpha, acp.permission.edit, , allow
p, Analyst, acme/alpha, acp.permission.execute, "args.input.command.startsWith('touch ')", ask:person
# end
`

// record is what an editor has seen of an agent.
type record struct {
	Stop, Failure, Text, Said string
	Code                      int
	Asked, Read, Wrote, Ran   []string
	Calls                     []struct{ Title, Kind, Status string }
}

// TestACPAgents runs coding agents behind the proxy, with a made-up key and a scripted model.
func TestACPAgents(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs the real clients, which it fetches")
	}
	playAgents(t, "acpagents", openCode(), qwenCode())
}

// TestLargeACPAgents is the same with agents whose packages take too long to be fetched each time.
func TestLargeACPAgents(t *testing.T) {
	if os.Getenv("CALLGATE_ACP_AGENTS") == "" {
		t.Skip("skipped: make acp-agents runs agents of a gigabyte, which it fetches")
	}
	playAgents(t, "acpagents-large", claudeCode(), codexACP())
}

// playAgents installs the packages of a folder, and plays the task with each of its agents.
func playAgents(t *testing.T, folder string, agents ...agent) {
	t.Helper()
	dir, programs := t.TempDir(), t.TempDir()
	for _, file := range []string{folder + "/package.json", folder + "/package-lock.json", "acpagents/drive.mjs", "acp/editor.mjs"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, filepath.Base(file), string(data))
	}
	installed(t, dir)
	node := nodeOf(t, dir)
	command(t, "../..", nil, "go", "build", "-o", programs, "./cmd/callgate")
	command(t, "../../tools", nil, "go", "build", "-o", programs, "./samplemodel")
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) { behindProxy(t, a, dir, node, programs) })
	}
}

// behindProxy has an agent finish a file, and looks at the files, at what the editor saw, and at
// the audit log.
func behindProxy(t *testing.T, a agent, dir, node, programs string) {
	t.Helper()
	gateway, home := filepath.Join(programs, "callgate"), t.TempDir()
	config := editorConfig(t, gateway, "", a.policy)
	if a.tools != "" {
		write(t, config, "tools/agent.yaml", a.tools)
	}
	project := filepath.Join(filepath.Dir(config), "project")
	write(t, project, "notes.md", draft)
	write(t, project, "other.md", "Other.\n")
	model := playing(t, filepath.Join(programs, "samplemodel"), map[string]any{"about": a.name, "turns": a.turns(project)})
	if a.files != nil {
		for file, text := range a.files(model) {
			write(t, home, file, text)
		}
	}
	r := drive(t, a, dir, node, gateway, config, project, home, model)

	if got, err := os.ReadFile(filepath.Join(project, "notes.md")); err != nil || string(got) != final {
		t.Errorf("notes.md: %q, %v; want %q", got, err, final)
	}
	for _, file := range []string{"made.md", "other.md"} {
		if _, err := os.Stat(filepath.Join(project, file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if len(r.Asked) != 1 || !strings.Contains(r.Asked[0], "touch made.md") {
		t.Errorf("the person was asked %q; want the one command", r.Asked)
	}
	if a.byEditor != slices.Contains(r.Wrote, filepath.Join(project, "notes.md")) {
		t.Errorf("the editor wrote %q", r.Wrote)
	}
	statuses := map[string]int{}
	for _, c := range r.Calls {
		statuses[c.Status]++
	}
	if statuses["completed"] < 3 || statuses["failed"] != a.failed {
		t.Errorf("the editor saw %+v; want three calls completed, and %d failed", r.Calls, a.failed)
	}
	decided, log := decisions(t, filepath.Join(config, "data/acp/1/audit.jsonl"))
	if !slices.Equal(decided, a.decided) {
		t.Errorf("the audit log has %q; want %q", decided, a.decided)
	}
	if got := strings.Contains(log, "unjudged"); got != (a.unjudged != "") || !strings.Contains(r.Said, a.unjudged) {
		t.Errorf("the audit log tells of an unjudged call: %v", got)
	}
	if t.Failed() {
		t.Logf("%+v\n%s", r, log)
	}
}

// drive runs an agent behind the gateway.
func drive(t *testing.T, a agent, dir, node, gateway, config, project, home, model string) record {
	t.Helper()
	line := []string{gateway, "acp", "--config", filepath.Join(config, "callgate.yaml"), "--agent", "Analyst", "--workspace", "acme", "--project", "alpha"}
	line = append(line, a.flags...)
	env := a.env(home, model)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		line = append(line, "--env", name)
	}
	line = append(append(line, "--"), a.command(dir, node)...)
	job, err := json.Marshal(map[string]any{"command": line, "cwd": project, "prompt": "Finish notes.md"})
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ACP_JOB=" + string(job)}
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	out := command(t, dir, all, node, "drive.mjs")
	var r record
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r.Failure != "" || r.Code != 0 {
		t.Errorf("%s ended with %d: %s\n%s", a.name, r.Code, r.Failure, r.Said)
	}
	return r
}

// decisions are those of an audit log, each as its tool and its verdict or code, and the log.
func decisions(t *testing.T, file string) (decided []string, log string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var r struct{ Event, Tool, Verdict, Code string }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		if r.Event == "decision" {
			decided = append(decided, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Tool, r.Verdict, r.Code)))
		}
	}
	return decided, string(data)
}
