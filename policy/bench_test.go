package policy

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/callgate/callgate/policy/condition"
)

// benchRows writes a file of n rows over some agents and tools, one role, and no
// condition but where asked.
func benchRows(n, tools int, when string) []byte {
	var b strings.Builder
	b.WriteString("g, agent0, role:r, w0/*\np, role:r, w0/*, shared.*, , allow\n")
	for i := range n - 2 {
		effect := "allow"
		if i%50 == 49 {
			effect = "deny"
		}
		condition := ""
		if when != "" && i%10 == 0 {
			condition = `"` + when + `"`
		}
		fmt.Fprintf(&b, "p, agent%d, w%d/p%d, t%d.call, %s, %s\n", i/tools, i%7, i%3, i%tools, condition, effect)
	}
	b.WriteString("# end\n")
	return []byte(b.String())
}

// requestOf is what row i of the first agent is for.
func requestOf(i int) Request {
	return Request{Agent: "agent0", Workspace: fmt.Sprintf("w%d", i%7), Project: fmt.Sprintf("p%d", i%3), Tool: fmt.Sprintf("t%d.call", i)}
}

func benchTools(n int) []condition.Tool {
	tools := make([]condition.Tool, n)
	for i := range tools {
		tools[i] = condition.Tool{Name: fmt.Sprintf("t%d.call", i), InputSchema: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"number"},"currency":{"enum":["EUR","USD"]}}}`)}
	}
	return tools
}

// BenchmarkPermit asks for one tool (hot) or for each in turn (all), over rows
// without conditions.
func BenchmarkPermit(b *testing.B) {
	for _, size := range []struct{ rows, tools int }{{10, 10}, {1_000, 10}, {1_000, 1_000}, {100_000, 10}, {100_000, 10_000}} {
		p, _, err := Load(Source{File: "bench.csv", Data: benchRows(size.rows, size.tools, "")}, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		requests := make([]Request, size.tools)
		for i := range requests {
			requests[i] = requestOf(i)
			if _, err := p.Permit(b.Context(), requests[i]); err != nil {
				b.Fatal(err)
			}
		}
		for name, of := range map[string]int{"hot": 1, "all": len(requests)} {
			b.Run(fmt.Sprintf("rows=%d/tools=%d/%s", size.rows, size.tools, name), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, err := p.Permit(b.Context(), requests[i%of]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// refund is a request that a condition of its policy allows.
func refund(t testing.TB) (*Policy, Request) {
	p := mustLoad(t, `p, Analyst, acme/alpha, payments.refund, "args.currency == 'EUR' && args.amount <= 100", allow`)
	return p, Request{"Analyst", "acme", "alpha", "payments.refund", map[string]any{"currency": "EUR", "amount": json.Number("99.5")}, nil}
}

// A condition takes 19 allocations, and some more where the race detector empties pools.
func TestAllocationsOfACondition(t *testing.T) {
	p, r := refund(t)
	n := testing.AllocsPerRun(100, func() {
		if d, err := p.Permit(t.Context(), r); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	})
	if n > 28 {
		t.Errorf("%v allocations, want at most 28", n)
	}
}

// BenchmarkPermitOnCondition evaluates one condition for each request.
func BenchmarkPermitOnCondition(b *testing.B) {
	p, r := refund(b)
	b.ReportAllocs()
	for b.Loop() {
		if d, err := p.Permit(b.Context(), r); err != nil || !d.Allowed {
			b.Fatal(d, err)
		}
	}
}

// BenchmarkFirstPermit is the first request of a class: its enforcer is built and
// asked.
func BenchmarkFirstPermit(b *testing.B) {
	p, _, err := Load(Source{File: "bench.csv", Data: benchRows(100_000, 10_000, "")}, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		clear(p.settled.verdicts)
		if _, err := p.Permit(b.Context(), requestOf(i%9_000)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReach is what a list of tools asks, once for each of them.
func BenchmarkReach(b *testing.B) {
	p := mustLoad(b, "p, Analyst, acme/*, web.*, , allow\n")
	b.ReportAllocs()
	for b.Loop() {
		if reach, err := p.Reach("Analyst", "acme", "alpha", "web.search"); reach != Always || err != nil {
			b.Fatal(reach, err)
		}
	}
}

// BenchmarkLoad reads 100,000 rows over 1,000 tools, a tenth of them with a
// condition; live-MiB is what stays, total-MiB what was allocated on the way.
func BenchmarkLoad(b *testing.B) {
	data, tools := benchRows(100_000, 1_000, "args.currency == 'EUR' && args.amount <= 100"), benchTools(1_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var kept *Policy
	b.ReportAllocs()
	for b.Loop() {
		p, _, err := Load(Source{File: "bench.csv", Data: data}, tools, nil)
		if err != nil {
			b.Fatal(err)
		}
		kept = p
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "total-MiB")
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "live-MiB")
	runtime.KeepAlive(kept)
}
