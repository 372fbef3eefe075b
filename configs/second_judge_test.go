package configs

import (
	"testing"

	"github.com/callgate/callgate/internal/testkit/configtest"
)

// TestSecondJudge: by default a plain schema alone accepts arguments; with all it leaves
// every answer to both evaluators.
func TestSecondJudge(t *testing.T) {
	const tools = "tools:\n  - name: a.tool\n    input_schema: {properties: {a: {type: string}}}\n    run: {type: demo}\n# end\n"
	for registry, want := range map[string]bool{"": true, "registry: {second_judge: plain}\n": true, "registry: {second_judge: all}\n": false} {
		c := loads(t, map[string]configtest.File{
			"callgate.yaml": {Data: registry + "defaults: {agent: Analyst}\n# end\n"}, "tools/a.yaml": {Data: tools}, "policy.csv": {Data: "# end\n"},
			"workspaces.yaml": {Data: "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n# end\n"}, "limits.yaml": {Data: "{}\n# end\n"},
		})
		e, ok := c.Tools.Lookup("a.tool")
		if !ok || e.AcceptsJSON([]byte(`{"a":"x"}`)) != want {
			t.Errorf("%q: found %v, accepted %v", registry, ok, !want)
		}
	}
}
