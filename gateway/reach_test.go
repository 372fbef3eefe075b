package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// TestKeptReaches: for every agent, project and tool, whether a call is denied is what the
// policy says, the first time and when the answer was kept; also while many ask.
func TestKeptReaches(t *testing.T) {
	const tools = 40 // more than one word of answers
	var file, rows, spaces strings.Builder
	for i := range tools {
		fmt.Fprintf(&file, "  - {name: t%d.call, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: demo}}\n", i)
	}
	agents := []string{"A", "B", "C"}
	for i, agent := range agents {
		for k := range tools {
			switch (i + k) % 4 {
			case 0:
				fmt.Fprintf(&rows, "p, %s, acme/*, t%d.call, , allow\n", agent, k)
			case 1:
				fmt.Fprintf(&rows, "p, %s, acme/p1, t%d.call, args.n > 3, allow\n", agent, k)
			case 2:
				fmt.Fprintf(&rows, "p, %s, *, t%d.call, , allow\np, %s, acme/p0, t%d.call, , deny\n", agent, k, agent, k)
			}
		}
	}
	for p := range 2 {
		fmt.Fprintf(&spaces, " p%d: {agents: [A, B]},", p)
	}
	c := facetest.Config(t, map[string]string{
		"tools.yaml": "tools:\n" + file.String(), "policy.csv": rows.String(),
		"workspaces.yaml": "workspaces: {acme: {projects: {" + spaces.String() + " own: {agents: [C]}}}}\n",
	})
	k := kernelWith(t, &gateway.Config{Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: c.Limits}, ratelimit.NewLocal(time.Now))
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 2 {
				for _, agent := range agents {
					for _, project := range []string{"p0", "p1", "own", "none"} {
						for i := range tools {
							tool := fmt.Sprintf("t%d.call", i)
							request := completion(`{"tool":{"name":"` + tool + `","arguments":{"n":7}}}`)
							request.Subject = gateway.Subject{Agent: agent, Workspace: "acme", Project: project}
							r := k.Kernel.Check(context.Background(), request)
							reach, err := c.Policy.Reach(agent, "acme", project, tool)
							if denied := r.Refusal != nil && r.Refusal.Code == refusal.PermissionDenied; err != nil || denied != (reach == policy.Never) {
								t.Errorf("%s, %s, %s: %v, and the policy says %v", agent, project, tool, r.Refusal, reach)
							}
						}
					}
				}
			}
		})
	}
	wait.Wait()
}
