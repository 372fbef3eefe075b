package telemetry_test

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/telemetry"
)

// scrape returns the series of callgate's counters of calls as they are served.
func scrape(m *telemetry.Metrics) []string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return slices.DeleteFunc(strings.Split(w.Body.String(), "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "callgate_verdicts_total") && !strings.HasPrefix(line, "callgate_outcomes_total")
	})
}

// The counters of calls have the labels that the configuration asks for, and no others.
func TestCallLabels(t *testing.T) {
	denied := refusal.New(refusal.PermissionDenied, "no")
	for _, c := range []struct {
		labels telemetry.CallLabels
		want   []string
	}{
		{telemetry.CallLabels{MaxSeries: 10}, []string{
			`callgate_outcomes_total{outcome="result"} 1`,
			`callgate_verdicts_total{code="",stage="",verdict="tool_call"} 2`,
			`callgate_verdicts_total{code="permission_denied",stage="permission",verdict="refused"} 1`,
		}},
		{telemetry.CallLabels{Agent: true, MaxSeries: 10}, []string{
			`callgate_outcomes_total{agent="Analyst",outcome="result"} 1`,
			`callgate_verdicts_total{agent="Analyst",code="",stage="",verdict="tool_call"} 2`,
			`callgate_verdicts_total{agent="Intern",code="permission_denied",stage="permission",verdict="refused"} 1`,
		}},
		{telemetry.CallLabels{Agent: true, Tool: true, MaxSeries: 10}, []string{
			`callgate_outcomes_total{agent="Analyst",outcome="result",tool="web.search"} 1`,
			`callgate_verdicts_total{agent="Analyst",code="",stage="",tool="time.now",verdict="tool_call"} 1`,
			`callgate_verdicts_total{agent="Analyst",code="",stage="",tool="web.search",verdict="tool_call"} 1`,
			`callgate_verdicts_total{agent="Intern",code="permission_denied",stage="permission",tool="",verdict="refused"} 1`,
		}},
	} {
		m := telemetry.NewLabelled(c.labels)
		m.Judged("tool_call", nil, "Analyst", "web.search")
		m.Judged("tool_call", nil, "Analyst", "time.now")
		m.Judged("refused", denied, "Intern", "")
		m.Ended("result", time.Second, "Analyst", "web.search")
		if got := scrape(m); !slices.Equal(got, c.want) {
			t.Errorf("%+v:\n%s\nwant\n%s", c.labels, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// The series with names are as many as there may be, however many callers count at once; calls
// beyond them are counted too.
func TestCallLabelsAreBounded(t *testing.T) {
	const bound, names, each = 20, 50, 4
	m := telemetry.NewLabelled(telemetry.CallLabels{Agent: true, Tool: true, MaxSeries: bound})
	var done sync.WaitGroup
	for range each {
		done.Go(func() {
			for i := range names {
				m.Judged("tool_call", nil, fmt.Sprint("agent-", i), "tool")
				m.Ended("result", time.Second, fmt.Sprint("agent-", i), "tool")
				m.Judged("refused", refusal.New(refusal.AgentUnknown, "who?"), "", "")
			}
		})
	}
	done.Wait()
	named, calls := 0, 0
	for _, line := range scrape(m) {
		var n int
		series, count, _ := strings.Cut(line, " ")
		if _, err := fmt.Sscan(count, &n); err != nil {
			t.Fatal(line)
		}
		calls += n
		if strings.Contains(series, `agent="agent-`) {
			named++
		}
	}
	if named != bound || calls != 3*each*names {
		t.Errorf("%d series have names, and %d calls were counted; want %d and %d", named, calls, bound, 3*each*names)
	}
	lines := strings.Join(scrape(m), "\n")
	for _, want := range []string{`callgate_verdicts_total{agent="other",code="",stage="",tool="other",verdict="tool_call"}`, `callgate_verdicts_total{agent="",code="agent_unknown",stage="identity",tool="",verdict="refused"} 200`} {
		if !strings.Contains(lines, want) {
			t.Errorf("lacks %s:\n%s", want, lines)
		}
	}
}

// Counting a call allocates nothing once its series is there, with names, without, and beyond
// the bound.
func TestCountingAllocatesNothing(t *testing.T) {
	denied := refusal.New(refusal.PermissionDenied, "no")
	for _, labels := range []telemetry.CallLabels{{}, {Agent: true, Tool: true, MaxSeries: 100}, {Agent: true, Tool: true, MaxSeries: 1}} {
		m := telemetry.NewLabelled(labels)
		count := func() {
			m.Judged("tool_call", nil, "Analyst", "web.search")
			m.Judged("refused", denied, "Intern", "web.search")
			m.Ended("result", time.Millisecond, "Analyst", "web.search")
		}
		if n := testing.AllocsPerRun(1000, count); n != 0 {
			t.Errorf("%+v: %v allocations", labels, n)
		}
	}
}

func BenchmarkCountCall(b *testing.B) {
	for _, labels := range []telemetry.CallLabels{{}, {Agent: true, Tool: true, MaxSeries: 100}, {Agent: true, Tool: true, MaxSeries: 1}} {
		b.Run(fmt.Sprintf("%+v", labels), func(b *testing.B) {
			m := telemetry.NewLabelled(labels)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					m.Judged("tool_call", nil, "Analyst", "web.search")
					m.Ended("result", time.Millisecond, "Analyst", "web.search")
				}
			})
		})
	}
}

// The version is a series of its own, with the build in its labels.
func TestBuildInfo(t *testing.T) {
	m := telemetry.New()
	m.Built("v1.2.3", "abc")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	want := `callgate_build_info{goversion="` + runtime.Version() + `",revision="abc",version="v1.2.3"} 1`
	if !strings.Contains(w.Body.String(), want) {
		t.Errorf("lacks %s", want)
	}
}
