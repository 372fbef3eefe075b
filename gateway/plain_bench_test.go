package gateway_test

import (
	"context"
	"fmt"
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/tool"
)

// plainCall is a call of eight typed arguments by a plain schema, as the benchmark over HTTP
// makes it.
const plainCall = `{"tool":{"name":"bench.echo","arguments":{"query":"agent memory and the audit log of a gateway","limit":5,"sort":"newest","fuzzy":false,` +
	`"weight":0.75,"tags":["memory","gateway","audit"],"filters":{"language":"en","after":"2026-01-01","before":"2026-11-01"}}}}`

// plainOutput is what its tool answers.
const plainOutput = `{"results":[{"title":"AI agent memory issues","url":"https://example.com/agents/memory-issues",` +
	`"snippet":"Agents that run for a long time meet three memory issues."}],"total":1}`

var plainFiles = map[string]string{
	"policy.csv":      "p, role:user, acme/*, bench.*, , allow\ng, Analyst, role:user, acme/alpha\n",
	"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], hosts: [example.com]}}}}\n",
	"limits.yaml": `caller: {rate: 1000000/s, burst: 1000000}
default: {rate: 1000000/s, burst: 1000000, concurrency: 1000}
tools: {bench.echo: {rate: 1000000/s, burst: 1000000}}
projects: {acme/alpha: {rate: 1000000/s, burst: 1000000}}
`,
	"tools.yaml": `tools:
  - name: bench.echo
    effect: read
    input_schema: {type: object, required: [query, filters, limit], properties: {
      query: {type: string, minLength: 1, maxLength: 400}, limit: {type: integer, minimum: 1, maximum: 50},
      sort: {type: string, enum: [relevance, newest, oldest]}, fuzzy: {type: boolean}, weight: {type: number, minimum: 0, maximum: 1},
      tags: {type: array, items: {type: string, maxLength: 40}, maxItems: 8},
      filters: {type: object, required: [language], properties: {language: {type: string, enum: [en, de, fr]}, after: {type: string}, before: {type: string}}}}}
    run: {type: demo}
`,
}

// plainExecutor judges plain calls, takes their records and keeps none. Its store is that of a gateway
// without Redis.
func plainExecutor(t testing.TB) *calls.Executor {
	return plainExecutorOf(t, plainFiles, discard{}, nil)
}

func plainExecutorOf(t testing.TB, files map[string]string, log gateway.Journal, ledger gateway.Ledger) *calls.Executor {
	t.Helper()
	c := facetest.Config(t, files)
	answer := &engine{answer: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Body: []byte(plainOutput), JSON: true, Attempts: 1}, nil
	}}
	s := &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: c.Limits,
		Defaults: gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}, Digest: c.Digest,
	}
	file, err := boltstore.Open(t.TempDir(), boltstore.Options{UnkeyedInMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: log, Ledger: ledger}, Engine: answer, IdleWorkers: 4, Store: file})
}

// BenchmarkPlainCall is the way of one call in process: judged alone, judged and executed,
// and handled, by an engine that answers at once and a journal that takes all.
func BenchmarkPlainCall(b *testing.B) {
	ctx, request := context.Background(), completion(plainCall)
	b.Run("Check", func(b *testing.B) {
		k := plainExecutor(b)
		b.ReportAllocs()
		for b.Loop() {
			if r := k.Kernel.Check(ctx, request); r.Refusal != nil {
				b.Fatal(r.Refusal)
			}
		}
	})
	b.Run("Judge and Execute", func(b *testing.B) {
		k := plainExecutor(b)
		b.ReportAllocs()
		for b.Loop() {
			if o := k.Execute(ctx, k.Kernel.Judge(ctx, request))[0]; o.Refusal != nil {
				b.Fatal(o.Refusal)
			}
		}
	})
	b.Run("Handle", func(b *testing.B) {
		k := plainExecutor(b)
		b.ReportAllocs()
		for b.Loop() {
			if o := k.Handle(ctx, request, ""); o.Refusal != nil {
				b.Fatal(o.Refusal)
			}
		}
	})
}

// BenchmarkThreads is judging and executing a call where nothing asks about threads, where rows ask about other tools, and
// where a row asks about its own arguments, how often it was called, the labels of its thread, and both by sixteen terms. What is
// kept is in memory.
func BenchmarkThreads(b *testing.B) {
	for _, c := range []struct {
		name, rows string
		others     bool
	}{
		{name: "no rows about threads"},
		{name: "rows about other tools", others: true},
		{name: "a row about arguments", rows: "p, role:user, acme/*, bench.echo, \"args.limit > 50\", deny\n"},
		{name: "thread.calls", rows: "p, role:user, acme/*, bench.echo, \"thread.calls('bench.echo') > 1000000000\", deny\n"},
		{name: "labels", rows: "p, role:user, acme/*, bench.echo, \"'untrusted' in thread.labels\", deny\n"},
		{name: "16 terms and labels", rows: "p, role:user, acme/*, bench.echo, \"" + sixteenTerms() + "'untrusted' in thread.labels\", deny\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			files := maps.Clone(plainFiles)
			if c.others || c.rows != "" {
				files = threadsOfOthers()
			}
			files["policy.csv"] += c.rows
			ledger := store.NewThreads(time.Now, store.ThreadBounds{})
			k := plainExecutorOf(b, files, discard{}, ledger)
			terms, _, err := k.Kernel.Config().Terms()
			if err == nil {
				_, err = ledger.KeepTerms(b.Context(), terms, nil)
			}
			if err != nil {
				b.Fatal(err)
			}
			request := completion(plainCall)
			request.Thread = "t"
			used := func() time.Duration {
				var u syscall.Rusage
				if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
					b.Fatal(err)
				}
				return time.Duration(u.Utime.Nano() + u.Stime.Nano())
			}
			before := used()
			b.ReportAllocs()
			for b.Loop() {
				if o := k.Execute(context.Background(), k.Kernel.Judge(context.Background(), request))[0]; o.Refusal != nil {
					b.Fatal(o.Refusal)
				}
			}
			b.ReportMetric(float64((used()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// sixteenTerms are fifteen conditions on counts, each of another term, which do not hold.
func sixteenTerms() (text string) {
	for i := range 15 {
		text += fmt.Sprintf("thread.calls('bench.echo', '%dm') > 1000000000 || ", i+1)
	}
	return text
}
