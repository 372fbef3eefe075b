package telemetry_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/internal/testkit/parallel"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/tool"
)

func TestMain(m *testing.M) {
	parallel.Waiting()
	leaks.Main(m)
}

var _ trace.Tracer = (*telemetry.Traces)(nil)

// reports keeps what was reported.
type reports struct {
	mu    sync.Mutex
	lines []string
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, err.Error())
}

func (r *reports) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// tracesTo starts traces to a collector, of all that begin here, as they may be
// changed.
func tracesTo(t *testing.T, endpoint string, change func(*telemetry.TraceOptions)) *telemetry.Traces {
	t.Helper()
	o := telemetry.TraceOptions{CollectorOptions: telemetry.CollectorOptions{Endpoint: endpoint, Version: "v1", Replica: "here"}, SampleRatio: 1}
	if change != nil {
		change(&o)
	}
	traces, err := telemetry.NewTraces(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = traces.Close(ctx)
	})
	return traces
}

// flushed closes traces that must all have gone out.
func flushed(t *testing.T, traces *telemetry.Traces) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := traces.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// tools runs the demo tools, but for those that a test answers for.
type tools struct {
	*engine.Engine
	answers map[string]func() (tool.Result, error)
}

func (e tools) Run(ctx context.Context, t tool.Call) (tool.Result, error) {
	if answer := e.answers[t.Tool]; answer != nil {
		return answer()
	}
	result, err := e.Engine.Run(ctx, tool.Call{
		Tool: t.Tool, Version: t.Version, Effect: t.Effect, Run: t.Run, Arguments: t.Arguments, ID: t.ID, Roots: t.Roots,
	})
	return tool.Result{Body: result.Body, JSON: result.JSON, Attempts: result.Attempts}, err
}

// kernel is one with a journal on disk and the demo tools, as it may be changed.
func kernel(t *testing.T, tracer trace.Tracer, change func(*calls.Deps, tools)) *calls.Executor {
	t.Helper()
	c, err := configs.Load(filepath.Join("testdata", "config", "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.TempDir(), audit.Options{Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	e := tools{engine.New(engine.Options{}), map[string]func() (tool.Result, error){}}
	t.Cleanup(e.Close)
	parts := calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: log, Tracer: tracer}, Engine: e, Store: store.NewMemory(time.Now)}
	if change != nil {
		change(&parts, e)
	}
	k, err := calls.New(&gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: c.Limits,
		Defaults: gateway.Subject(c.Defaults), Digest: c.Digest,
	}, parts)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The caller's span.
const (
	traceID  = "0af7651916cd43dd8448eb211c80319c"
	parentID = "b7ad6b7169203331"
)

func ask(completion string) gateway.Request {
	return gateway.Request{
		TraceID: traceID, ParentID: parentID, Sampled: true, CallerAddress: "127.0.0.1", Thread: "thread-7", ID: "request-9",
		Inputs: []gateway.Input{{Completion: []byte(completion)}},
	}
}

const say = `{"tool":{"name":"echo.say","arguments":{"text":"hello"}}}`

func handle(k *calls.Executor, request gateway.Request) calls.Outcome {
	return k.Handle(context.Background(), request, "")
}

func TestSpanOfACall(t *testing.T) {
	c := collectorStub(t, nil)
	traces := tracesTo(t, c.URL, nil)
	k := kernel(t, traces, nil)
	o := handle(k, ask(say))
	if o.Refusal != nil {
		t.Fatal(o.Refusal)
	}
	flushed(t, traces)
	calls := c.calls()
	if len(calls) != 1 {
		t.Fatalf("%d spans without one above", len(calls))
	}
	s := calls[0]
	if got, want := s.tree(), "execute_tool echo.say(identity rate log store store execute wrap store log)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s.trace != traceID || s.parent != parentID {
		t.Errorf("trace %s, parent %s", s.trace, s.parent)
	}
	want := map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "echo.say", "gen_ai.tool.type": "function", "gen_ai.tool.call.id": o.CallID,
		"gen_ai.agent.name": "Analyst", "gen_ai.conversation.id": "thread-7",
		"callgate.call_id": o.CallID, "callgate.mode": "call", "callgate.verdict": "tool_call", "callgate.outcome": "result", "callgate.attempts": "1",
		"callgate.config_digest": k.Kernel.Digest(), "callgate.workspace": "acme", "callgate.project": "alpha", "callgate.tool_version": "1.2.3",
	}
	same(t, "attributes", s.attributes, want)
	version := s.resource["telemetry.sdk.version"]
	same(t, "resource", s.resource, map[string]string{
		"service.name": "callgate", "service.version": "v1", "service.instance.id": "here",
		"telemetry.sdk.name": "opentelemetry", "telemetry.sdk.language": "go", "telemetry.sdk.version": version,
	})
	if s.end.Sub(s.start) <= 0 || time.Since(s.end) > time.Hour {
		t.Errorf("from %v to %v", s.start, s.end)
	}
	before := s.start
	for _, b := range s.below {
		if b.trace != traceID || b.start.Before(before) || b.end.Before(b.start) || b.end.After(s.end) {
			t.Errorf("%s of trace %s from %v to %v, after %v", b.name, b.trace, b.start, b.end, before)
		}
		before = b.end
		same(t, b.name, b.attributes, map[string]string{})
	}
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %s is %q, want %q", what, k, got[k], v)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: %s is %q, want none", what, k, got[k])
		}
	}
}

// failing is a journal, and a store, that fails.
type failing struct{ calls.Store }

func (failing) Append(context.Context, audit.Record) error {
	return refusal.New(refusal.AuditUnavailable, "m")
}

func (failing) Open(context.Context, store.Call) (*store.Call, error) { return nil, errors.New("away") }

func TestSpanOfARefusal(t *testing.T) {
	t.Parallel()
	answer := func(body string, err error) func(*calls.Deps, tools) {
		return func(_ *calls.Deps, e tools) {
			e.answers["echo.say"] = func() (tool.Result, error) {
				return tool.Result{Body: []byte(body), JSON: true, Attempts: 2}, err
			}
		}
	}
	as := func(agent, workspace string) func(*gateway.Request) {
		return func(r *gateway.Request) { r.Subject = gateway.Subject{Agent: agent, Workspace: workspace} }
	}
	rare := `{"tool":{"name":"rare.once","arguments":{}}}`
	for _, c := range []struct {
		name, completion string
		request          func(*gateway.Request)
		change           func(*calls.Deps, tools)
		want             string
	}{
		{name: "identity", completion: say, request: as("Nobody", ""), want: "judge!agent_unknown(identity!agent_unknown log)"},
		{name: "parse", completion: "{", want: "judge!malformed_json(identity log)"},
		{name: "unknown tool", completion: `{"tool":{"name":"drop.tables","arguments":{}}}`, want: "judge!unknown_tool(identity log)"},
		{name: "schema", completion: `{"tool":{"name":"echo.say","arguments":{"text":1}}}`, want: "execute_tool echo.say!wrong_type(identity log)"},
		{name: "permission", completion: rare, request: as("Intern", ""), want: "execute_tool rare.once!permission_denied(identity log)"},
		{name: "rate", completion: rare, change: func(p *calls.Deps, _ tools) { p.Limiter = full{p.Limiter} }, want: "execute_tool rare.once!rate_limited(identity rate!rate_limited log)"},
		{name: "limiter", completion: rare, change: func(p *calls.Deps, _ tools) { p.Limiter = broken{p.Limiter} }, want: "execute_tool rare.once!internal!!(identity rate!internal!! log)"},
		{name: "workspace", completion: say, request: as("", "elsewhere"), want: "execute_tool echo.say!workspace_mismatch(identity rate log)"},
		{name: "project", completion: `{"tool":{"name":"echo.say","arguments":{"text":"x","path":"/etc/passwd"}}}`, want: "execute_tool echo.say!boundary_violation(identity rate log)"},
		{name: "log", completion: say, change: func(p *calls.Deps, _ tools) { p.Journal = failing{} }, want: "execute_tool echo.say!audit_unavailable!!(identity rate log!audit_unavailable!! log!audit_unavailable!!)"},
		{name: "store", completion: say, change: func(p *calls.Deps, _ tools) { p.Store = failing{} }, want: "execute_tool echo.say!store_unavailable!!(identity rate log store!store_unavailable!!)"},
		{name: "execute", completion: say, change: answer("", refusal.New(refusal.ToolFailed, "m")), want: "execute_tool echo.say!tool_failed!!(identity rate log store store execute!tool_failed!! store log)"},
		{name: "timeout", completion: say, change: answer("", refusal.New(refusal.ToolTimeout, "m")), want: "execute_tool echo.say!tool_timeout!!(identity rate log store store execute!tool_timeout!! store log)"},
		{name: "wrap", completion: say, change: answer("no JSON", nil), want: "execute_tool echo.say!invalid_result!!(identity rate log store store execute wrap!invalid_result!! store log)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			collector := collectorStub(t, nil)
			traces := tracesTo(t, collector.URL, nil)
			k := kernel(t, traces, c.change)
			request := ask(c.completion)
			if c.request != nil {
				c.request(&request)
			}
			o := handle(k, request)
			flushed(t, traces)
			calls := collector.calls()
			if len(calls) != 1 || calls[0].tree() != c.want {
				t.Fatalf("%d spans, got\n%s, want\n%s", len(calls), calls[0].tree(), c.want)
			}
			s := calls[0]
			if o.Refusal == nil || s.attributes["callgate.code"] != string(o.Refusal.Code) || s.attributes["callgate.stage"] != string(o.Refusal.Stage) || s.attributes["callgate.call_id"] != o.CallID {
				t.Errorf("%v, of %+v", s.attributes, o)
			}
			verdict, outcome := "refused", ""
			if o.Refusal.Stage == refusal.Execute && c.name != "store" || o.Refusal.Stage == refusal.Wrap {
				verdict, outcome = "tool_call", "error"
			}
			switch o.Refusal.Code {
			case refusal.ToolTimeout:
				outcome = "timeout"
			case refusal.StoreUnavailable: // it was decided, and ends without having been dispatched
				outcome = "error"
			}
			if s.attributes["callgate.verdict"] != verdict || s.attributes["callgate.outcome"] != outcome {
				t.Errorf("%v, want %s and %q", s.attributes, verdict, outcome)
			}
			// A name that nothing here bears is the caller's own word, or the model's.
			for _, foreign := range []string{"Nobody", "elsewhere", "drop", "passwd"} {
				if strings.Contains(collector.everything(), foreign) {
					t.Errorf("%q is told", foreign)
				}
			}
		})
	}
}

// full is a limiter that has nothing left for a call, broken one that breaks.
type full struct{ ratelimit.Limiter }

func (full) Take(context.Context, *ratelimit.Limits, ratelimit.Key) (ratelimit.Lease, error) {
	return ratelimit.Lease{}, refusal.New(refusal.RateLimited, "m")
}

type broken struct{ ratelimit.Limiter }

func (broken) Take(context.Context, *ratelimit.Limits, ratelimit.Key) (ratelimit.Lease, error) {
	panic("broken")
}

func TestSpanOfAText(t *testing.T) {
	c := collectorStub(t, nil)
	traces := tracesTo(t, c.URL, nil)
	k := kernel(t, traces, nil)
	handle(k, ask("A canary sings."))
	// In pieces, and refused before a piece.
	s, err := k.Kernel.Stream(context.Background(), ask(""))
	if err != nil {
		t.Fatal(err)
	}
	s.Write([]byte("A canary "))
	s.Write([]byte("sings."))
	s.Close(context.Background(), false).Release()
	anonymous := ask("")
	anonymous.Agent = "Nobody"
	if _, err := k.Kernel.Stream(context.Background(), anonymous); err == nil {
		t.Fatal("let in")
	}
	flushed(t, traces)
	var got []string
	for _, s := range c.calls() {
		got = append(got, s.tree()+" "+s.attributes["callgate.verdict"])
	}
	want := "judge(identity log) text, judge(identity log) text, judge!agent_unknown(identity!agent_unknown log) refused"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	if strings.Contains(c.everything(), "canary") {
		t.Error("a text is told")
	}
}

// TestSpansOfSeveralCalls: each has its own, all below the caller's.
func TestSpansOfSeveralCalls(t *testing.T) {
	native := func(name, arguments string) gateway.Input {
		return gateway.Input{Native: &gateway.NativeCall{Name: name, Arguments: []byte(arguments)}}
	}
	good, bad := native("echo.say", `{"text":"x"}`), native("vault.put", `{"token":7}`)
	for name, c := range map[string]struct {
		inputs []gateway.Input
		want   string
	}{
		"all pass":    {[]gateway.Input{good, good}, "execute_tool echo.say(identity rate log store store execute wrap store log) tool_call, execute_tool echo.say(identity rate log store store execute wrap store log) tool_call"},
		"one refused": {[]gateway.Input{good, bad}, "execute_tool echo.say!missing_argument(identity log) refused, execute_tool vault.put!missing_argument(identity log) refused"},
	} {
		t.Run(name, func(t *testing.T) {
			collector := collectorStub(t, nil)
			traces := tracesTo(t, collector.URL, nil)
			k := kernel(t, traces, nil)
			request := ask("")
			request.Inputs = c.inputs
			k.Execute(context.Background(), k.Kernel.Judge(context.Background(), request))
			flushed(t, traces)
			var got []string
			ids := map[string]bool{}
			for _, s := range collector.calls() {
				got = append(got, s.tree()+" "+s.attributes["callgate.verdict"])
				ids[s.id], ids[s.attributes["callgate.call_id"]] = true, true
				if s.trace != traceID || s.parent != parentID {
					t.Errorf("trace %s, parent %s", s.trace, s.parent)
				}
			}
			if strings.Join(got, ", ") != c.want || len(ids) != 4 {
				t.Errorf("got  %s\nwant %s\n%v", strings.Join(got, ", "), c.want, ids)
			}
		})
	}
}

// TestSpansOfAConversation: what an application runs itself has a span as what
// runs here, and so has every judgement of one admission.
func TestSpansOfAConversation(t *testing.T) {
	c := collectorStub(t, nil)
	traces := tracesTo(t, c.URL, nil)
	k := kernel(t, traces, nil)
	ctx := context.Background()
	a, err := k.Kernel.Admit(ctx, ask(""))
	if err != nil {
		t.Fatal(err)
	}
	k.HandOver(ctx, a.Judge(ctx, gateway.ModeEnforce, ask(say).Inputs...))
	k.Execute(ctx, a.Judge(ctx, gateway.ModeCall, ask(say).Inputs...))
	k.Execute(ctx, a.Judge(ctx, gateway.ModeCall, ask("Done.").Inputs...))
	anonymous := ask("")
	anonymous.Agent = "Nobody"
	if _, err := k.Kernel.Admit(ctx, anonymous); err == nil {
		t.Fatal("let in")
	}
	if err := k.Kernel.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	flushed(t, traces)
	var got []string
	for _, s := range c.calls() {
		got = append(got, s.tree()+" "+s.attributes["callgate.mode"]+" "+s.attributes["callgate.outcome"])
		if s.trace != traceID || s.parent != parentID {
			t.Errorf("trace %s, parent %s", s.trace, s.parent)
		}
	}
	want := []string{
		"execute_tool echo.say(identity rate log) enforce handed_over", "execute_tool echo.say(identity rate log store store execute wrap store log) call result",
		"judge(identity log) call ", "judge!agent_unknown(identity!agent_unknown log) call ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSpanOfALateAnswer ends when the tool has answered.
func TestSpanOfALateAnswer(t *testing.T) {
	c := collectorStub(t, nil)
	traces := tracesTo(t, c.URL, nil)
	taken := make(chan string, 1)
	k := kernel(t, traces, func(p *calls.Deps, e tools) {
		e.answers["echo.say"] = func() (tool.Result, error) { return tool.Result{Pending: true}, nil }
		p.Store = waits{p.Store, taken}
	})
	var answered time.Time
	completed := make(chan error, 1)
	go func() {
		id := <-taken
		answered = time.Now()
		completed <- k.Complete(context.Background(), calls.CallbackMessage{CallID: id, ID: id, Group: "thread-7", Digest: "d"}, calls.CallbackResult{Output: tool.Result{Body: []byte(`{}`), JSON: true}})
	}()
	o := handle(k, ask(say))
	if err := <-completed; err != nil || o.Pending || string(o.Result) == "" {
		t.Fatalf("%+v, %v", o, err)
	}
	flushed(t, traces)
	calls := c.calls()
	if len(calls) != 1 || calls[0].tree() != "execute_tool echo.say(identity rate log store store execute store wait)" || calls[0].end.Before(answered) {
		t.Errorf("%d: %s", len(calls), calls[0].tree())
	}
}

// waits is a store that tells which call waits for its tool.
type waits struct {
	calls.Store
	taken chan string
}

func (w waits) Update(ctx context.Context, id string, change store.Change) error {
	err := w.Store.Update(ctx, id, change)
	if _, ok := change.(store.Defer); ok {
		w.taken <- id
	}
	return err
}

// TestNoCallNoSpan: what is only checked is no call, nor is what a key has
// started before, nor a list.
func TestNoCallNoSpan(t *testing.T) {
	c := collectorStub(t, nil)
	traces := tracesTo(t, c.URL, nil)
	k := kernel(t, traces, nil)
	for _, completion := range []string{say, "{", "A text."} {
		k.Kernel.Check(context.Background(), ask(completion))
	}
	if _, err := k.Kernel.Tools(context.Background(), ask("")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if o := k.Handle(context.Background(), ask(say), "key"); o.Refusal != nil {
			t.Fatal(o.Refusal)
		}
	}
	flushed(t, traces)
	if n := len(c.calls()); n != 1 {
		t.Errorf("%d spans, want 1", n)
	}
}
