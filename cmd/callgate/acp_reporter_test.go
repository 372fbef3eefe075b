package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/internal/testkit/acptest"
)

// reporterConfig is a configuration for callgate acp: a scripted model, the tools of an editor, and
// one that is served here.
func reporterConfig(t *testing.T, tool http.Handler, replies ...acptest.Reply) (config, data, project string) {
	t.Helper()
	model := &acptest.Model{}
	model.Say(replies...)
	upstream, tools := httptest.NewServer(model), httptest.NewServer(tool)
	t.Cleanup(upstream.Close)
	t.Cleanup(tools.Close)
	project = t.TempDir()
	config, data = layout(t, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml, acp.yaml]}\nupstreams: upstreams.yaml\nworkspaces: workspaces.yaml\ndefaults: {agent: Analyst, workspace: acme, project: alpha}\n",
		"acp.yaml":      strings.TrimSuffix(string(toolimport.ACP()), "# end\n"),
		"tools.yaml": fmt.Sprintf("tools:\n  - {name: steady, effect: once, input_schema: {type: object, properties: {n: {type: integer}}}, "+
			"run: {type: http, url: %q, addresses: [127.0.0.1/32], timeout: 60s}}\n", tools.URL),
		"upstreams.yaml": fmt.Sprintf("upstreams:\n  - {name: one, base_url: %q, models: [m], protocol: text, modes: [orchestrate]}\n"+
			"  - {name: two, base_url: %[1]q, models: [enforced], modes: [enforce]}\n  - {name: three, base_url: %[1]q, models: [other], speaks: [messages]}\n", upstream.URL+"/v1"),
		"workspaces.yaml": fmt.Sprintf("workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [%q]}}}}\n", project),
	})
	return config, data, project
}

// TestACPReporterProcess: an editor works with a process of callgate acp; a new one finds the session,
// and the logs verify.
func TestACPReporterProcess(t *testing.T) {
	t.Parallel()
	config, data, project := reporterConfig(t, http.NotFoundHandler(),
		acptest.Calling("acp.fs.write", `{"path":"a.txt","content":"text"}`), acptest.Calling("acp.terminal.create", `{"command":"go"}`), acptest.Reply{Content: "It is done."}, acptest.Reply{Content: "As before."})
	p := startACP(t, "--config", config, "--model", "m")
	p.Initialize(nil)
	s := p.Session(project)
	if stop := p.Prompt(s, "Work."); stop != "end_turn" {
		t.Errorf("stopped by %q: %s", stop, p.Log())
	}
	if text, _ := p.File(filepath.Join(project, "a.txt")); text != "text" || len(p.Commands()) != 1 || p.Text(s) != "It is done." {
		t.Errorf("the file is %q, %q were run, and the answer is %q", text, p.Commands(), p.Text(s))
	}
	if err := p.Stop(); err != nil {
		t.Errorf("%v: %s", err, p.Log())
	}
	p = startACP(t, "--config", config, "--model", "m")
	p.Initialize(nil)
	p.Call("session/load", map[string]any{"sessionId": s, "cwd": project, "mcpServers": []any{}}, &struct{}{})
	if calls := p.Calls(s); len(calls) != 2 || p.Text(s) != "It is done." {
		t.Errorf("found %+v, %q", calls, p.Text(s))
	}
	if stop := p.Prompt(s, "And?"); stop != "end_turn" {
		t.Errorf("stopped by %q: %s", stop, p.Log())
	}
	if err := p.Stop(); err != nil {
		t.Errorf("%v: %s", err, p.Log())
	}
	outcomes := 0
	for _, r := range verified(t, filepath.Join(data, "acp", "1")) {
		if r["event"] == "outcome" {
			outcomes++
		}
	}
	if outcomes != 2 {
		t.Errorf("the log has %d outcomes", outcomes)
	}
}

// TestACPReporterKilled: a process that is killed in the middle of a call leaves a log that verifies;
// the next one gives the call its one outcome, and the tool is not called again.
func TestACPReporterKilled(t *testing.T) {
	t.Parallel()
	called, release := make(chan struct{}, 1), make(chan struct{})
	var times atomic.Int32
	tool := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		times.Add(1)
		called <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	config, data, project := reporterConfig(t, tool, acptest.Calling("steady", `{"n":1}`))
	first := process(t.Context(), nil, "acp", "--config", config, "--model", "m")
	in, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out, log syncBuffer
	first.Stdout, first.Stderr = &out, &log
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	p := &raw{Cmd: first, in: in}
	p.says(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	p.says(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, project))
	eventually(t, "there is a session: "+log.String(), func() bool { return strings.Contains(out.String(), `"sessionId":"`) })
	_, rest, _ := strings.Cut(out.String(), `"sessionId":"`)
	session, _, _ := strings.Cut(rest, `"`)
	p.says(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"Go."}]}}`, session))
	<-called
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Error("a killed process ended well")
	}
	folder := filepath.Join(data, "acp", "1")
	second := startACP(t, "--config", config, "--model", "m")
	second.Initialize(nil)
	second.Session(project)
	if err := second.Stop(); err != nil {
		t.Errorf("%v: %s", err, second.Log())
	}
	var outcomes []any
	for _, r := range verified(t, folder) {
		if r["event"] == "outcome" {
			outcomes = append(outcomes, r["outcome"])
		}
	}
	if len(outcomes) != 1 || outcomes[0] != "unknown" || times.Load() != 1 {
		t.Errorf("the log has the outcomes %v, and the tool was called %d times", outcomes, times.Load())
	}
}

// TestACPReporterTerm: a signal ends the process as the end of its input does.
func TestACPReporterTerm(t *testing.T) {
	t.Parallel()
	config, _, project := reporterConfig(t, http.NotFoundHandler(), acptest.Reply{Hang: true})
	c := process(context.Background(), nil, "acp", "--config", config, "--model", "m")
	p := acptest.Start(t, c, acptest.Client, acptest.Agent)
	p.Initialize(nil)
	s := p.Session(project)
	id := p.Begin("session/prompt", acptest.TextPrompt(s, "Think."))
	if _, ok := p.Await(func(m acptest.Message) bool { return m.Method == "session/update" }); !ok {
		t.Fatalf("nothing came: %s", p.Log())
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if result, err := p.End(id); err != nil || !strings.Contains(string(result), "cancelled") {
		t.Errorf("the prompt was answered %s, %v: %s", result, err, p.Log())
	}
	if err := p.Stop(); err != nil {
		t.Errorf("%v: %s", err, p.Log())
	}
}

// TestACPReporterUsage: what the command cannot serve is an error of usage that says what to change.
func TestACPReporterUsage(t *testing.T) {
	t.Parallel()
	config, _, _ := reporterConfig(t, http.NotFoundHandler())
	for want, args := range map[string][]string{
		"say which one by --model":                   nil,
		"no upstream has the model":                  {"--model", "nobody"},
		"add orchestrate to its key modes":           {"--model", "enforced"},
		"add chat to its key speaks":                 {"--model", "other"},
		"--agent is longer than":                     {"--model", "m", "--agent", strings.Repeat("a", 5000)},
		"agent_unknown":                              {"--model", "m", "--agent", "Nobody"},
		"stands behind --":                           {"agent"},
		"--model, --images and --context-tokens are": {"--model", "m", "--", "agent"},
		"--unjudged is for the agent of a command":   {"--model", "m", "--unjudged", "kill"},
		"--allow-mode is for the agent of a command": {"--model", "m", "--allow-mode", "x"},
	} {
		code, _, stderr := command(t, nil, append([]string{"acp", "--config", config}, args...)...)
		if code != exitUsage && want != "agent_unknown" || code == exitAccepted || !strings.Contains(stderr, want) {
			t.Errorf("%q: %d: %s", args, code, stderr)
		}
	}
}
