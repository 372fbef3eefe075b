package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/acptest"
)

// acpConfig is a configuration with the tools of ACP, whose project is a folder.
func acpConfig(t *testing.T) (config, project string) {
	t.Helper()
	requires(t, configs.ACPProxy)
	var tools bytes.Buffer
	if code := run(t.Context(), env{Stdin: strings.NewReader(""), Stdout: &tools, Stderr: os.Stderr}, []string{"tools", "import", "acp"}); code != exitAccepted {
		t.Fatalf("tools import acp: %d", code)
	}
	dir := t.TempDir()
	project = filepath.Join(dir, "project")
	for name, text := range map[string]string{
		"acp.yaml":        tools.String(),
		"callgate.yaml":   "data_dir: data\nauth: {mode: none}\ndefaults: {agent: Analyst, workspace: acme, project: alpha}\nregistry: {files: [acp.yaml]}\npolicy: policy.csv\nworkspaces: workspaces.yaml\napprovals: approvals.yaml\n# end\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [" + project + "]}}}}\n# end\n",
		"limits.yaml":     "{}\n# end\n",
		"approvals.yaml":  "rules: {edits: {by: caller}}\n# end\n",
		"policy.csv": "p, Analyst, *, *, , allow\np, Analyst, *, acp.permission.execute, , deny\n" +
			"p, Analyst, *, acp.fs.write, , ask:edits\n# end\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "callgate.yaml"), project
}

// proxiedAgent is callgate acp in front of a scripted agent, as processes.
func proxiedAgent(t *testing.T, config string, script acptest.Script, flags ...string) (p *acptest.Process, scriptFile string) {
	t.Helper()
	scriptFile = filepath.Join(t.TempDir(), "script.json")
	data, err := json.Marshal(script)
	if err == nil {
		err = os.WriteFile(scriptFile, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"acp", "--config", config}, flags...)
	c := process(t.Context(), nil, append(args, "--", os.Args[0], asACPAgent, scriptFile)...)
	return acptest.Start(t, c, acptest.Agent), scriptFile
}

// steps are the steps of an agent, as JSON.
func steps(t *testing.T, text string) (all []acptest.Step) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestACPProxyProcess: an editor, callgate acp and an agent as processes: a file that is read, one
// that the user is asked for before it is written, one outside of the project, a command that the
// policy denies, and a log that verifies.
func TestACPProxyProcess(t *testing.T) {
	t.Parallel()
	config, project := acpConfig(t)
	script := acptest.Script{Prompts: [][]acptest.Step{steps(t, `[
		{"ask":"fs/read_text_file","params":{"sessionId":"$session","path":"`+project+`/a.txt"}},
		{"ask":"fs/read_text_file","params":{"sessionId":"$session","path":"/etc/passwd"}},
		{"ask":"fs/write_text_file","params":{"sessionId":"$session","path":"`+project+`/b.txt","content":"new"}},
		{"ask":"session/request_permission","params":{"sessionId":"$session","toolCall":{"toolCallId":"c1","title":"rm -rf","kind":"execute"},
			"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]},
			"allowed":[{"fail":"it was allowed"}]},
		{"stderr":"a line of \u001b[31mthe agent\n"}
	]`)}}
	p, scriptFile := proxiedAgent(t, config, script)
	p.Put(project+"/a.txt", "text")
	p.Initialize(nil)
	session := p.Session(project)
	if stop := p.Prompt(session, "go"); stop != "end_turn" {
		t.Errorf("the turn ended with %s", stop)
	}
	if content, _ := p.File(project + "/b.txt"); content != "new" {
		t.Errorf("the file that was allowed: %q", content)
	}
	if asked := p.Got("session/request_permission"); len(asked) != 1 || !strings.Contains(string(asked[0].Params), "b.txt") {
		t.Errorf("the user was asked %d times", len(asked))
	}
	// The file that the agent reads, and what the user's question shows as the text before the edit.
	if read := p.Got("fs/read_text_file"); len(read) != 2 || !strings.Contains(string(read[0].Params), "/a.txt") || !strings.Contains(string(read[1].Params), "/b.txt") {
		t.Errorf("the editor was asked to read %v", read)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("it ended with %v: %s", err, p.Log())
	}
	if log := p.Log(); !strings.Contains(log, `agent: a line of \u001b[31mthe agent`) {
		t.Errorf("its standard error: %q", log)
	}
	acptest.Replay(t, scriptFile, acptest.Client)
	records := verified(t, filepath.Join(filepath.Dir(config), "data", "acp", "1"))
	if len(records) < 6 {
		t.Errorf("%d records", len(records))
	}
}

// TestACPProxyAgentDies: an agent that ends is the end of the command, which says so.
func TestACPProxyAgentDies(t *testing.T) {
	t.Parallel()
	config, project := acpConfig(t)
	p, _ := proxiedAgent(t, config, acptest.Script{Prompts: [][]acptest.Step{{{Exit: 7}}}})
	p.Initialize(nil)
	session := p.Session(project)
	if _, err := p.Ask("session/prompt", acptest.TextPrompt(session, "go")); err == nil || !strings.Contains(err.Error(), "tool_unavailable") {
		t.Errorf("the prompt: %v", err)
	}
	err := p.Stop()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitRefused || !strings.Contains(p.Log(), "the agent has ended: exit status 7") {
		t.Errorf("%v: %s", err, p.Log())
	}
}

// TestACPProxyEnvironment: an agent gets no variable that was not named.
func TestACPProxyEnvironment(t *testing.T) {
	t.Parallel()
	config, _ := acpConfig(t)
	c := process(t.Context(), nil, "acp", "--config", config, "--env", "CALLGATE_TEST_SHOWN", "--", "sh", "-c", "env >&2")
	c.Env = append(c.Env, "CALLGATE_TEST_SHOWN=shown", "CALLGATE_TEST_HIDDEN=hidden")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	var exit *exec.ExitError
	if err := c.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitRefused {
		t.Errorf("%v", err)
	}
	if log := stderr.String(); !strings.Contains(log, "agent: CALLGATE_TEST_SHOWN=shown") || !strings.Contains(log, "agent: PATH=") || strings.Contains(log, "hidden") {
		t.Errorf("the agent's environment: %s", log)
	}
}

// TestACPProxyUsage: what cannot be started is a fault of the command line.
func TestACPProxyUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"acp", "--"}, {"acp", "--unjudged", "ask", "--", "true"}, {"acp", "--env", "CALLGATE_NO_SUCH", "--", "true"}, {"acp", "--env", "A=b", "--", "true"}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), env{Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &stderr}, args); code != exitUsage || stderr.Len() == 0 {
			t.Errorf("%q: %d, %s", args, code, stderr.String())
		}
	}
}
