package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/callgate/callgate/configs/toolimport"
)

// TestACPLoads: the sample for an editor loads, with the tools that the command prints. The words of commands are
// paths besides, since its policy allows programs that read.
func TestACPLoads(t *testing.T) {
	loads(t, absolute(t, "acp/callgate.yaml"))
	data, err := os.ReadFile(absolute(t, "acp/tools.yaml"))
	const words = "args: {type: array, maxItems: 1024, items: {type: string}, "
	expected := bytes.Replace(toolimport.ACP(), []byte(words), []byte(words+"x-boundary: path, "), 1)
	if err != nil || !bytes.Equal(data, expected) {
		t.Errorf("acp/tools.yaml is not what callgate tools import acp prints, with the words of commands marked: %v", err)
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
	link(t, "/etc", filepath.Join(project, "link"))
	if err := os.Mkdir(filepath.Join(project, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	link(t, "/etc", filepath.Join(project, "sub", "out"))
	for _, word := range []string{"$(sh a)", "`a`", ";a", "a|sh", "a&b", ">a", "a b", "~/x", "*", ".en?", "a\\nb", "'a'", "(a)"} {
		judgeCalls(t, a, []judgedCall{run(`"cat","args":["`+word+`"]`, denied), run(`"rg","args":["x","`+word+`"]`, denied)})
	}
	for _, path := range []string{"sub/HEAD/.", "sub/HEAD/", "sub/HEAD//", "sub/HEAD/x/..", "sub/HEAD/x/../../config", "sub/HEAD ", "sub/HEAD\u00a0"} {
		judgeCalls(t, a, []judgedCall{write(path, denied), write(project+"/"+path, denied)})
	}
	for _, path := range settingsOfPrograms {
		judgeCalls(t, a, []judgedCall{write(path, denied), write(project+"/"+path, denied)})
	}
	judgeSecrets(t, a, func(path string) []judgedCall {
		return []judgedCall{
			read(path, denied), run(`"cat","args":["`+path+`"]`, denied), run(`"rg","args":["x","`+path+`"]`, denied),
			permission("read", `,"paths":["a","`+path+`"]`, denied), permission("search", `,"input":{"path":"`+path+`"}`, denied),
		}
	})
	judgeCalls(t, a, []judgedCall{
		read(project+"/main.go", ""), read("main.go", ""), read("/etc/passwd", outside), read(project+"/../x", outside), read(project+"/.env", denied),
		read(project+"/a/.ssh/id", denied), read(project+"/environment.go", ""),
		{"acp_fs_read", `{"path":"a","line":0}`, "invalid_value"}, {"acp_fs_read", `{"path":"a","encoding":"x"}`, "unexpected_argument"},
		write(project+"/a.go", asks), write("/etc/passwd", outside), write(project+"/.git/hooks/pre-commit", denied), write(project+"/.gitignore", asks), write(project+"/sub/HEAD", denied), write(project+"/.gitattributes", denied), write(project+"/.npmrc", denied),
		{"acp_fs_write", `{"path":"a"}`, "missing_argument"},
		run(`"ls"`, ""), run(`"cat","args":["a.go"]`, ""), run(`"cat","args":["/etc/passwd"]`, outside), run(`"cat","args":["../x"]`, outside), run(`"cat","args":["link/passwd"]`, outside), run(`"rg","args":["--pre=sh"]`, denied),
		run(`"go","args":["test","./..."]`, asks), run(`"go","args":["run","."]`, denied), run(`"go"`, denied), run(`"sh","args":["-c","ls"]`, denied), run(`"/bin/ls"`, denied),
		run(`"ls","env":{"LD_PRELOAD":"/tmp/x"}`, denied), run(`"go","args":["test"],"env":{"GOFLAGS":"-toolexec=x"}`, denied), run(`"ls","cwd":"/etc"`, outside), run(`"ls","cwd":"`+project+`"`, ""),
		run(`"cat","args":["out/passwd"],"cwd":"`+project+`/sub"`, denied), run(`"cat","args":["out/passwd"],"cwd":"sub"`, denied), run(`"cat","args":["a"],"cwd":"`+project+`"`, denied), run(`"ls","args":[],"cwd":"sub"`, ""),
		permission("read", `,"input":{"command":["bash","-lc","rm a"]}`, asks), permission("think", `,"input":{"command":"rm a"}`, asks), permission("search", `,"input":"rm a"`, asks), permission("search", `,"input":["rm"]`, asks), permission("read", `,"input":null`, ""),
		permission("read", `,"input":{"file_path":"a.go"}`, ""),
		permission("read", "", ""), permission("read", `,"paths":["/etc/passwd"]`, outside), permission("edit", `,"paths":["`+project+`/a"],"input":{"any":[1]}`, asks),
		permission("execute", `,"input":"rm -rf /"`, asks), permission("switch_mode", "", denied), permission("read", `,"paths":["a","a","a","a","a","a","a","a",".env"]`, denied), run(`"cat","args":["a","a","a","a","a","a","a","a",".env"]`, denied),
		permission("read", `,"more":1`, "unexpected_argument"),
	})
}
