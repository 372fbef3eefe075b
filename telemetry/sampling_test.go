package telemetry_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/tool"
)

// TestParentDecides, and where there is none, the share.
func TestParentDecides(t *testing.T) {
	for _, c := range []struct {
		parent  string
		sampled bool
		share   float64
		want    bool
	}{
		{parentID, true, 0, true},
		{parentID, true, 1, true},
		{parentID, false, 1, false},
		{"", false, 1, true},
		{"", true, 0, false}, // without a parent there is nobody who decided
		{strings.Repeat("0", 16), false, 1, true},
		{"not a span", true, 0, false},
	} {
		collector := collectorStub(t, nil)
		traces := tracesTo(t, collector.URL, func(o *telemetry.TraceOptions) { o.SampleRatio, o.Content = c.share, true })
		if traced, content := traces.Wants(traceID, c.parent, c.sampled); traced != c.want || content != c.want {
			t.Errorf("%+v: wants %t, with content %t", c, traced, content)
		}
		request := ask(say)
		request.ParentID, request.Sampled = c.parent, c.sampled
		handle(kernel(t, traces, nil), request)
		flushed(t, traces)
		if got := len(collector.calls()); (got == 1) != c.want {
			t.Errorf("%+v: %d spans", c, got)
		}
	}
	var none *telemetry.Traces
	if traced, _ := none.Wants(traceID, parentID, true); traced || none.Close(context.Background()) != nil {
		t.Error("no traces want something")
	}
	none.Trace(tool.Span{})
}

// TestShare: replicas that are given the same trace decide alike, and about as
// many are taken as is said.
func TestShare(t *testing.T) {
	half := func(o *telemetry.TraceOptions) { o.SampleRatio = 0.5 }
	one, other := tracesTo(t, "http://127.0.0.1:1", half), tracesTo(t, "http://127.0.0.1:1", half)
	taken := 0
	for i := range 256 {
		id := fmt.Sprintf("0af7651916cd43dd%02x48eb211c80319c", i)
		a, _ := one.Wants(id, "", false)
		if b, _ := other.Wants(id, "", false); a != b {
			t.Fatalf("%s: %t and %t", id, a, b)
		}
		if a {
			taken++
		}
	}
	if taken != 128 {
		t.Errorf("%d of 256 evenly spread traces are taken", taken)
	}
}

// TestTraceContinues from the header of a request to the spans of its call.
func TestTraceContinues(t *testing.T) {
	collector := collectorStub(t, nil)
	traces := tracesTo(t, collector.URL, nil)
	logger := slog.New(slog.NewJSONHandler(io.Discard, nil))
	k := kernel(t, traces, nil)
	d := server.New(server.Options{Metrics: telemetry.New(), Log: logger, Refuse: native.Refuse, Identify: k.Kernel.Identify})
	native.New(native.Options{Executor: k, Log: logger}).Mount(d)
	answers := map[string]string{}
	for _, header := range []string{
		"00-" + traceID + "-" + parentID + "-01", "00-" + strings.Replace(traceID, "0a", "0b", 1) + "-" + parentID + "-00", "",
		"cc-" + traceID + "-" + parentID + "-01", "00-" + traceID + "-" + parentID + "-0x", "00-" + strings.Replace(traceID, "0a", "0c", 1) + "-" + parentID + "-03",
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/calls", strings.NewReader(say))
		r.Header.Set("Content-Type", "text/plain")
		if header != "" {
			r.Header.Set("traceparent", header)
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		answers[w.Header().Get("Callgate-Call-Id")] = header + " " + w.Header().Get("traceparent")
	}
	flushed(t, traces)
	if n := len(collector.calls()); n != 5 {
		t.Errorf("%d calls are traced, want all but the one whose caller does not", n)
	}
	for _, s := range collector.calls() {
		question, answered, _ := strings.Cut(answers[s.attributes["callgate.call_id"]], " ")
		below := strings.HasPrefix(question, "00-") && (strings.HasSuffix(question, "-01") || strings.HasSuffix(question, "-03"))
		if below != (s.parent == parentID) || !below && s.parent != "" || answered[3:35] != s.trace {
			t.Errorf("asked %q, answered %q: trace %s, parent %q", question, answered, s.trace, s.parent)
		}
	}
}

// mute is a tracer that wants nothing, and one that breaks.
type mute struct{ breaks bool }

func (m mute) Wants(string, string, bool) (traced, content bool) {
	if m.breaks {
		panic("broken")
	}
	return false, false
}

func (mute) Trace(tool.Span) { panic("nothing was wanted") }

// greedy wants everything, and breaks when it gets it.
type greedy struct{}

func (greedy) Wants(string, string, bool) (traced, content bool) { return true, true }
func (greedy) Trace(tool.Span)                                   { panic("broken") }

// plain wants everything but content.
type plain struct{ spans chan tool.Span }

func (plain) Wants(string, string, bool) (traced, content bool) { return true, false }
func (p plain) Trace(s tool.Span)                               { p.spans <- s }

// TestContentStaysInside: where no content is wanted, none leaves the kernel.
func TestContentStaysInside(t *testing.T) {
	p := plain{make(chan tool.Span, 1)}
	handle(kernel(t, p, nil), ask(say))
	if s := <-p.spans; s.Arguments != nil || s.Result != nil || s.Tool != "echo.say" {
		t.Errorf("%+v", s)
	}
}

// TestBrokenTracer: a call is the same with it and without.
func TestBrokenTracer(t *testing.T) {
	for _, tracer := range []trace.Tracer{nil, mute{}, mute{true}, greedy{}, (*telemetry.Traces)(nil)} {
		if o := handle(kernel(t, tracer, nil), ask(say)); o.Refusal != nil || !strings.Contains(string(o.Result), `"hello"`) {
			t.Errorf("%T: %+v", tracer, o)
		}
	}
}

// paper is a journal that forgets.
type paper struct{}

func (paper) Append(context.Context, audit.Record) error { return nil }

// TestNotTracedCostsNothing: a call whose trace is not wanted takes no memory
// more than one that nobody asks about.
func TestNotTracedCostsNothing(t *testing.T) {
	cost := func(tracer trace.Tracer) float64 {
		k := kernel(t, tracer, func(p *calls.Deps, e tools) {
			p.Journal, p.Store = paper{}, nil
			p.Now = func() time.Time { return time.Unix(1_700_000_000, 0) }
			e.answers["echo.say"] = func() (tool.Result, error) { return tool.Result{Body: []byte(`{}`), JSON: true}, nil }
		})
		request := ask(say)
		request.ParentID = ""
		return testing.AllocsPerRun(200, func() { handle(k, request) })
	}
	none := cost(nil)
	unwanted := cost(tracesTo(t, "http://127.0.0.1:1", func(o *telemetry.TraceOptions) { o.SampleRatio = 0 }))
	t.Logf("%v allocations, and %v without traces", unwanted, none)
	if unwanted > none+2 {
		t.Errorf("%v allocations, and %v without traces", unwanted, none)
	}
}
