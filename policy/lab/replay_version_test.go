package lab_test

import (
	"encoding/json"
	"github.com/callgate/callgate/policy/lab"
	"os"
	"path/filepath"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
)

// A call that asked for a lower version is not judged by the schema of the highest: the log
// says which version ran, not which was asked for.
func TestLowerVersion(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"callgate.yaml":   "defaults: {agent: A, workspace: w, project: p}\nregistry: {files: [tools.yaml]}\n# end\n",
		"workspaces.yaml": "workspaces: {w: {projects: {p: {agents: [A]}}}}\n# end\n",
		"limits.yaml":     "{}\n# end\n",
		"policy.csv":      "p, A, *, *, , allow\n# end\n",
		"tools.yaml": `tools:
- {name: a.b, version: 1.0.0, run: {type: demo}, input_schema: {type: object, required: [x], properties: {x: {type: string}}}}
- {name: a.b, version: 2.0.0, run: {type: demo}, input_schema: {type: object, required: [y], properties: {x: {type: string}, y: {type: string}}}}
# end
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		version, arguments string
		decided            int
	}{
		{"1.0.0", `{"x":"1"}`, 0},
		{"2.0.0", `{"y":"1"}`, 1},
		{"0.9.0", `{"y":"1"}`, 1}, // is not there any more
		{"1.0.0", `{"z":"1"}`, 1}, // refused by both
	} {
		r, err := lab.NewReplay(c.Rules(), c.Rules(), nil, lab.Log{})
		if err != nil {
			t.Fatal(err)
		}
		record := &audit.Record{
			Event: audit.Decision, Verdict: audit.ToolCall, Agent: "A", Workspace: "w", Project: "p",
			Tool: "a.b", ToolVersion: of.version, Arguments: json.RawMessage(of.arguments), ConfigDigest: c.Digest,
		}
		if err := r.Add(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		if s := r.Summary(); s.Decided != of.decided || s.Undecided[lab.Versions] != 1-of.decided {
			t.Errorf("%+v: found %+v", of, s)
		}
	}
}
