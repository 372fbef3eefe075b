package deploy_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/callgate/callgate/toolimport"
)

// TestACPLoads: the sample for an editor loads, with the tools that the command prints.
func TestACPLoads(t *testing.T) {
	loads(t, absolute(t, "acp/callgate.yaml"))
	data, err := os.ReadFile(absolute(t, "acp/tools.yaml"))
	if err != nil || !bytes.Equal(data, toolimport.ACP()) {
		t.Errorf("acp/tools.yaml is not what callgate tools import acp prints: %v", err)
	}
}

// TestACPPolicy judges by the names of OpenAI's alphabet, which all faces in front of a model have.
func TestACPPolicy(t *testing.T) {
	a, project := agentsKernel(t, "acp", nil)
	const asks = "approval_required"
	read := func(path, code string) judgedCall { return judgedCall{"acp_fs_read", argument("path", path), code} }
	write := func(path, code string) judgedCall {
		return judgedCall{"acp_fs_write", `{"path":"` + path + `","content":"x"}`, code}
	}
	run := func(rest, code string) judgedCall {
		return judgedCall{"acp_terminal_create", `{"command":` + rest + `}`, code}
	}
	permission := func(kind, rest, code string) judgedCall {
		return judgedCall{"acp_permission_" + kind, `{"title":"t"` + rest + `}`, code}
	}
	judgeCalls(t, a, []judgedCall{
		read(project+"/main.go", ""), read("main.go", ""), read("/etc/passwd", outside), read(project+"/../x", outside), read(project+"/.env", denied),
		read(project+"/a/.ssh/id", denied), read(project+"/environment.go", ""),
		{"acp_fs_read", `{"path":"a","line":0}`, "invalid_value"}, {"acp_fs_read", `{"path":"a","encoding":"x"}`, "unexpected_argument"},
		write(project+"/a.go", asks), write("/etc/passwd", outside), write(project+"/.git/hooks/pre-commit", denied), write(project+"/.gitignore", asks),
		{"acp_fs_write", `{"path":"a"}`, "missing_argument"},
		run(`"ls"`, ""), run(`"cat","args":["a.go"]`, ""), run(`"cat","args":["/etc/passwd"]`, denied), run(`"cat","args":["../x"]`, denied), run(`"rg","args":["--pre=sh"]`, denied),
		run(`"go","args":["test","./..."]`, asks), run(`"go","args":["run","."]`, denied), run(`"go"`, denied), run(`"sh","args":["-c","ls"]`, denied), run(`"/bin/ls"`, denied),
		run(`"ls","env":{"LD_PRELOAD":"/tmp/x"}`, denied), run(`"go","args":["test"],"env":{"GOFLAGS":"-toolexec=x"}`, denied), run(`"ls","cwd":"/etc"`, outside), run(`"ls","cwd":"`+project+`"`, ""),
		permission("read", "", ""), permission("read", `,"paths":["/etc/passwd"]`, outside), permission("edit", `,"paths":["`+project+`/a"],"input":{"any":[1]}`, asks),
		permission("execute", `,"input":"rm -rf /"`, asks), permission("switch_mode", "", denied), permission("read", `,"more":1`, "unexpected_argument"),
	})
}
