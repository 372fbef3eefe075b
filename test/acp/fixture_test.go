package acp_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/callgate/callgate/engine/acp"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/tool"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// editorsEngine runs the tools of type acp by the editor, and all others with an empty result.
type editorsEngine struct{}

func (editorsEngine) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if c.Run.Type == "acp" {
		return new(acp.Client).Run(ctx, c)
	}
	return tool.Result{Body: []byte(`{}`), JSON: true}, nil
}

// editorTools is a configuration with the tools that callgate tools import acp prints, whose
// commands have a second, and one with a secret. The first root of the project is /w.
func editorTools(t *testing.T) map[string]string {
	t.Helper()
	printed, err := os.ReadFile("../../configs/toolimport/acp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tools := strings.TrimSuffix(string(printed), "# end\n")
	if strings.Count(tools, "timeout: 10m") != 1 {
		t.Fatal("commands have another time")
	}
	tools = strings.Replace(tools, "timeout: 10m", "timeout: 1s", 1)
	tools += "  - {name: login, description: Logs in., kind: other, effect: once, run: {type: demo}, input_schema: {type: object, required: [password], properties: {password: {type: string, x-secret: true}}}}\n"
	return map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\nworkspaces: workspaces.yaml\npolicy: policy.csv\napprovals: approvals.yaml\ndefaults: {agent: Analyst, workspace: acme, project: alpha}\n",
		"tools.yaml":      tools,
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [/w, /x]}}}}\n",
		"approvals.yaml":  "rules: {mine: {by: caller, remember: {same: 1h}}, people: {}}\nwait: 0s\n",
		"policy.csv": "p, Analyst, *, acp.fs.*, , allow\n" +
			"p, Analyst, *, acp.fs.read, \"args.path == '/w/secret'\", deny\n" +
			"p, Analyst, *, acp.permission.edit, , allow\n" +
			"p, Analyst, *, acp.permission.fetch, , deny\n" +
			"p, Analyst, *, acp.permission.delete, , ask:mine\n" +
			"p, Analyst, *, acp.terminal.create, , allow\n" +
			"p, Analyst, *, acp.terminal.create, \"args.command == 'rm'\", ask:mine\n" +
			"p, Analyst, *, acp.terminal.create, \"args.command == 'deploy'\", ask:people\n" +
			"p, Analyst, *, login, , allow\n",
	}
}

// newFixture is a kernel with its native face.
func newFixture(t *testing.T, o facetest.Options) *facetest.Fixture {
	t.Helper()
	f := facetest.New(t, o)
	native.New(native.Options{Executor: f.Executor, Log: f.Logger}).Mount(f.Server)
	return f
}
