package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
)

// benchSchema is the schema of the tools of a grown configuration, and benchCall a call of
// one of them by one of its agents: the call that the benchmark over HTTP sends.
const (
	benchSchema = `{type: object, required: [query, filters, limit], properties: {query: {type: string, minLength: 1, maxLength: 400}, ` +
		`limit: {type: integer, minimum: 1, maximum: 50}, sort: {type: string, enum: [relevance, newest, oldest]}, fuzzy: {type: boolean}, ` +
		`weight: {type: number, minimum: 0, maximum: 1}, tags: {type: array, items: {type: string, maxLength: 40}, maxItems: 8}, ` +
		`filters: {type: object, required: [language], properties: {language: {type: string, enum: [en, de, fr]}, after: {type: string}, before: {type: string}}}}}`
	benchCall = `{"tool":{"name":"bench.echo%d","arguments":{"query":"agent memory and the audit log of a gateway","limit":5,"sort":"newest","fuzzy":false,` +
		`"weight":0.75,"tags":["memory","gateway","audit"],"filters":{"language":"en","after":"2026-01-01","before":"2026-11-01"}}}}`
)

// grown is the size of a configuration.
type grown struct{ rows, tools, agents int }

// load writes a configuration of that size, and loads it.
func (g grown) load(b *testing.B) *gateway.Config {
	b.Helper()
	var tools, policy, agents strings.Builder
	tools.WriteString("tools:\n")
	for i := range g.tools {
		fmt.Fprintf(&tools, "  - {name: bench.echo%d, effect: read, input_schema: %s, run: {type: http, url: \"https://tool.example/%d\"}}\n", i, benchSchema, i)
	}
	policy.WriteString("p, role:user, acme/*, bench.*, , allow\n")
	for i := range g.agents {
		fmt.Fprintf(&policy, "g, Agent%d, role:user, acme/alpha\n", i)
		fmt.Fprintf(&agents, "Agent%d, ", i)
	}
	for i := range g.rows - g.agents - 1 {
		fmt.Fprintf(&policy, "p, Agent%d, acme/alpha, bench.echo%d, , allow\n", i%g.agents, i%g.tools)
	}
	dir := b.TempDir()
	for name, text := range map[string]string{
		"callgate.yaml":   "defaults: {workspace: acme, project: alpha}\n# end\n",
		"tools/all.yaml":  tools.String() + "# end\n",
		"policy.csv":      policy.String() + "# end\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [" + strings.TrimSuffix(agents.String(), ", ") + "]}}}}\n# end\n",
		"limits.yaml":     "caller: {rate: 1000000/s, burst: 1000000}\ndefault: {rate: 1000000/s, burst: 1000000, concurrency: 1000}\nprojects: {acme/alpha: {rate: 1000000/s, burst: 1000000}}\n# end\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return state(b, filepath.Join(dir, "callgate.yaml"))
}

// BenchmarkGrowth judges and executes calls of all tools and of all agents in turn, under
// configurations that grow in one direction each. None may cost more than 1.2 times the
// first.
func BenchmarkGrowth(b *testing.B) {
	for _, g := range []grown{{10, 10, 1}, {100_000, 10, 1}, {10, 10_000, 1}, {10_010, 10, 10_000}} {
		b.Run(fmt.Sprintf("%d rows, %d tools, %d agents", g.rows, g.tools, g.agents), func(b *testing.B) {
			k := kernelOf(b, g.load(b), calls.Deps{
				Deps:   gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: discard{}},
				Engine: &engine{}, Store: store.NewMemory(time.Now),
			})
			requests := make([]gateway.Request, max(g.tools, g.agents))
			for i := range requests {
				requests[i] = completion(fmt.Sprintf(benchCall, i%g.tools))
				requests[i].Subject.Agent = fmt.Sprintf("Agent%d", i%g.agents)
			}
			run := func(r gateway.Request) {
				if o := k.Execute(context.Background(), k.Kernel.Judge(context.Background(), r))[0]; o.Refusal != nil {
					b.Fatal(o.Refusal)
				}
			}
			for _, r := range requests { // the first call of an agent makes its buckets
				run(r)
			}
			runtime.GC() // of what loading left, which is no call's cost
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				run(requests[n%len(requests)])
			}
		})
	}
}
