package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// engine counts what it is asked to run, and answers as it is told to.
type engine struct {
	runs   atomic.Int64
	answer func(context.Context, tool.Call) (tool.Result, error)
}

func (e *engine) Run(ctx context.Context, task tool.Call) (tool.Result, error) {
	e.runs.Add(1)
	if e.answer == nil {
		return tool.Result{Body: []byte(`{"ok":true}`), JSON: true, Attempts: 1}, nil
	}
	return e.answer(ctx, task)
}

// open is the vectors' configuration without limits, with an engine and a journal.
func open(t testing.TB, e *engine, j *journal) *calls.Executor {
	t.Helper()
	s := state(t, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	return kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e, Store: store.NewMemory(time.Now)})
}

// spoiled are the vectors and, for each that is a call, what must not run.
func spoiled(t testing.TB, v corpora.Vector) []gateway.Input {
	in := v.Bytes(t)
	inputs := []gateway.Input{{Completion: in, Truncated: parser.Truncates(v.FinishReason)}}
	for _, s := range []string{"Sure: " + string(in), string(in) + " ok", "```json\n" + string(in) + "\n```", string(in) + string(in), "[" + string(in) + "]"} {
		inputs = append(inputs, gateway.Input{Completion: []byte(s)})
	}
	for i := range in {
		inputs = append(inputs, gateway.Input{Completion: in[:i]})
	}
	return inputs
}

// TestRefusedIsNotExecuted: what is refused, and what is text, reaches the
// engine 0 times; what passes, once.
func TestRefusedIsNotExecuted(t *testing.T) {
	e, j := &engine{}, &journal{}
	k := open(t, e, j)
	refused, calls := 0, 0
	for _, v := range corpora.Vectors(t) {
		for _, in := range spoiled(t, v) {
			before := e.runs.Load()
			d := k.Kernel.Judge(context.Background(), gateway.Request{Subject: subjectOf(v), Inputs: []gateway.Input{in}})
			k.Execute(context.Background(), d)
			ran := e.runs.Load() - before
			if d.Reports[0].Verdict == gateway.VerdictCall {
				calls++
				if ran != 1 {
					t.Errorf("%s: ran %d times", v.ID, ran)
				}
				continue
			}
			refused++
			if ran != 0 {
				t.Errorf("%s: %q ran %d times, but is %s", v.ID, in.Completion, ran, d.Reports[0].Verdict)
			}
		}
	}
	t.Logf("%d refused or text, %d calls", refused, calls)
	decisions, outcomes := map[string]int{}, map[string]int{}
	for _, r := range j.all() {
		if r.Event == audit.Decision {
			decisions[r.CallID]++
		} else {
			outcomes[r.CallID]++
			if decisions[r.CallID] != 1 {
				t.Fatalf("%s has an outcome before its decision", r.CallID)
			}
		}
	}
	if len(decisions) != refused+calls || len(outcomes) != calls {
		t.Errorf("%d decisions and %d outcomes for %d judgements and %d calls", len(decisions), len(outcomes), refused+calls, calls)
	}
}

func FuzzRefusedIsNotExecuted(f *testing.F) {
	for _, v := range corpora.Vectors(f) {
		f.Add(v.Bytes(f), v.Agent)
	}
	e := &engine{}
	k := open(f, e, &journal{})
	f.Fuzz(func(t *testing.T, in []byte, agent string) {
		before := e.runs.Load()
		d := k.Kernel.Judge(context.Background(), gateway.Request{Subject: gateway.Subject{Agent: agent}, Inputs: []gateway.Input{{Completion: in}}})
		outcomes := k.Execute(context.Background(), d)
		ran := e.runs.Load() - before
		want := int64(0)
		if d.Reports[0].Verdict == gateway.VerdictCall {
			want = 1
			if !json.Valid(in) {
				t.Errorf("%q is no JSON and ran", in)
			}
		}
		if ran != want {
			t.Errorf("%q is %s and ran %d times", in, d.Reports[0].Verdict, ran)
		}
		if d.Reports[0].Verdict != gateway.VerdictText && !json.Valid(outcomes[0].Result) {
			t.Errorf("%q: the result is %s", in, outcomes[0].Result)
		}
	})
}

// TestCheckedBytesAreExecuted: the engine gets the model's bytes.
func TestCheckedBytesAreExecuted(t *testing.T) {
	var got string
	e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
		got = string(task.Arguments)
		return tool.Result{Body: []byte("done")}, nil
	}}
	k := open(t, e, &journal{})
	const arguments = `{ "top_k" : 1.0 , "embedding":[ 9007199254740993, 1E2 ] }`
	d := k.Kernel.Judge(context.Background(), completion(`{"tool":{"name":"data.vector_search","arguments":`+arguments+`}}`))
	o := k.Execute(context.Background(), d)
	if got != arguments {
		t.Errorf("the engine got %q (%v)", got, d.Refusal())
	}
	if want := `{"tool_result":{"tool":"data.vector_search","output":{"value":"done"}}}`; string(o[0].Result) != want {
		t.Errorf("result %s", o[0].Result)
	}
}

func TestOutcomes(t *testing.T) {
	const once = `{"tool":{"name":"payments.refund","arguments":{"payment_id":"pay_abc123","amount":1}}}`
	for _, c := range []struct {
		name    string
		call    string
		answer  func(context.Context, tool.Call) (tool.Result, error)
		code    refusal.Code
		outcome audit.Outcome
	}{
		{"result", search, nil, "", audit.Result},
		{"refused by the tool", search, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, refusal.New(refusal.ToolFailed, "m")
		}, refusal.ToolFailed, audit.Failed},
		{"foreign error", search, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, errors.New("password hunter2")
		}, refusal.Internal, audit.Unknown},
		{"panic", search, func(context.Context, tool.Call) (tool.Result, error) { panic("password hunter2") }, refusal.Internal, audit.Unknown},
		{"not JSON", search, body(`{"a":`, true), refusal.InvalidResult, audit.Failed},
		{"duplicate names", search, body(`{"a":1,"a":2}`, true), refusal.InvalidResult, audit.Failed},
		{"not UTF-8", search, body("\xff", false), refusal.InvalidResult, audit.Failed},
		{"too deep", search, body(strings.Repeat("[", 600)+strings.Repeat("]", 600), true), refusal.InvalidResult, audit.Failed},
		{"too large", search, body(strings.Repeat("a", 1<<20+1), false), refusal.ResultTooLarge, audit.Failed},
		{"hangs, reads", search, hang, refusal.ToolTimeout, audit.Timeout},
		{"hangs, once", once, hang, refusal.OutcomeUnknown, audit.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, j := &engine{answer: c.answer}, &journal{}
				k := open(t, e, j)
				ctx, disconnect := context.WithCancel(context.Background())
				d := k.Kernel.Judge(ctx, completion(c.call))
				disconnect() // a caller that leaves after the decision stops nothing
				o := k.Execute(ctx, d)[0]
				if c.code == "" && o.Refusal != nil || c.code != "" && (o.Refusal == nil || o.Refusal.Code != c.code) {
					t.Errorf("got %+v", o.Refusal)
				}
				if !json.Valid(o.Result) || strings.Contains(string(o.Result), "hunter2") {
					t.Errorf("result %s", o.Result)
				}
				records := j.all()
				if len(records) != 2 || records[1].Outcome != c.outcome || records[1].CallID != records[0].CallID || records[1].Code != c.code {
					t.Errorf("records %+v", records)
				}
				// A second execution runs nothing.
				if o := k.Execute(context.Background(), d)[0]; o.Refusal == nil || e.runs.Load() != 1 {
					t.Errorf("executed twice: %+v", o)
				}
				time.Sleep(2 * time.Hour) // until the engine that hangs has ended
			})
		})
	}
}

func body(s string, isJSON bool) func(context.Context, tool.Call) (tool.Result, error) {
	return func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Body: []byte(s), JSON: isJSON, Attempts: 1}, nil
	}
}

// hang is an engine that does not answer, whatever its context says, for long
// after it should have.
func hang(context.Context, tool.Call) (tool.Result, error) {
	time.Sleep(time.Hour)
	return tool.Result{}, nil
}

// TestNoLogNoAct: while the journal refuses, nothing is dispatched; once it
// takes records again, calls run again. An outcome that it refuses is owed.
func TestNoLogNoAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, j := &engine{}, &journal{}
		k := open(t, e, j)
		j.fail(true)
		for range 10 {
			d := k.Kernel.Judge(context.Background(), completion(search))
			if code := codeOf(d); code != refusal.AuditUnavailable {
				t.Fatalf("got %s", code)
			}
			k.Execute(context.Background(), d)
		}
		if e.runs.Load() != 0 {
			t.Fatalf("ran %d times", e.runs.Load())
		}
		if d := k.Kernel.Judge(context.Background(), completion("It is noon.")); codeOf(d) != refusal.AuditUnavailable {
			t.Error("text was released without its record")
		}
		j.fail(false)
		d := k.Kernel.Judge(context.Background(), completion(search))
		j.fail(true) // between the decision and the outcome
		o := k.Execute(context.Background(), d)[0]
		if o.Refusal != nil || e.runs.Load() != 1 {
			t.Fatalf("got %+v", o.Refusal)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if k.Kernel.Flush(ctx) == nil {
			t.Error("settled while an outcome is owed")
		}
		cancel()
		j.fail(false)
		if err := k.Kernel.Flush(context.Background()); err != nil {
			t.Error(err)
		}
		records := j.all()
		if len(records) != 2 || records[1].Event != audit.Ending || records[1].Outcome != audit.Result {
			t.Errorf("records %+v", records)
		}
	})
}

// TestAnswer: a tool that answers later ends its call once.
func TestAnswer(t *testing.T) {
	e, j := &engine{answer: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Pending: true}, nil }}, &journal{}
	k := open(t, e, j)
	o := k.Execute(context.Background(), k.Kernel.Judge(context.Background(), completion(search)))[0]
	if !o.Pending || o.Result != nil || len(j.all()) != 1 {
		t.Fatalf("got %+v", o)
	}
	if err := answer(k, "call_other", `{}`); refusedAs(err) != "request not_found" {
		t.Errorf("a call that does not exist: %v", err)
	}
	const body = `{"results":[]}`
	for range 2 { // the same again changes nothing
		if err := answer(k, o.CallID, body); err != nil {
			t.Error(err)
		}
	}
	done, err := k.Lookup(context.Background(), gateway.Request{}, o.CallID)
	if err != nil || string(done.Result.Line) != `{"tool_result":{"tool":"web.search","output":{"results":[]}}}` {
		t.Errorf("got %s, %v", done.Result.Line, err)
	}
	if len(j.all()) != 2 {
		t.Errorf("%d records", len(j.all()))
	}
	if err := answer(k, o.CallID, `{}`); refusedAs(err) != "execute idempotency_conflict" {
		t.Errorf("answered twice: %v", err)
	}
	if len(j.all()) != 3 || len(j.outcomes(o.CallID)) != 1 {
		t.Errorf("records %+v", j.all())
	}
}

// answer is what the tool of a call without a thread says to it, in JSON.
func answer(k *calls.Executor, id, body string) error {
	post := calls.CallbackMessage{CallID: id, ID: id, Group: id, Digest: body}
	return k.Complete(context.Background(), post, calls.CallbackResult{Output: tool.Result{Body: []byte(body), JSON: true}})
}

// TestRecords: what is written down, and what is not.
func TestRecords(t *testing.T) {
	s := state(t, vectorConfig)
	j := &journal{}
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j, Replica: "r1"}, Engine: &engine{}, Store: store.NewMemory(time.Now)})
	request := completion(`{"tool":{"name":"web.search","arguments":{"query":"secret words"}}}`)
	request.ID, request.Thread, request.TraceID = "req-1", "thread-1", "0123"
	k.Execute(context.Background(), k.Kernel.Judge(context.Background(), request))
	k.Kernel.Judge(context.Background(), completion("plain secret words"))
	k.Kernel.Judge(context.Background(), completion(`{"secret words`))
	records := j.all()
	if len(records) != 4 {
		t.Fatalf("%d records", len(records))
	}
	first := records[0]
	if first.RequestID != "req-1" || first.Thread != "thread-1" || first.TraceID != "0123" || first.Replica != "r1" || first.Agent != "Analyst" ||
		first.Workspace != "acme" || first.Project != "alpha" || first.Tool != "web.search" || first.ToolVersion != "1.0.0" || first.ConfigDigest != s.Digest ||
		len(first.InputSHA256) != 64 || len(first.ArgumentsSHA256) != 64 || first.Verdict != audit.ToolCall {
		t.Errorf("got %+v", first)
	}
	if records[2].Verdict != audit.Text || records[3].Verdict != audit.Refused || records[3].Code != refusal.MalformedJSON || records[3].Stage != refusal.Parse {
		t.Errorf("got %+v and %+v", records[2], records[3])
	}
	for _, r := range records {
		if b, _ := json.Marshal(r); strings.Contains(string(b), "secret words") {
			t.Errorf("content was written down: %s", b)
		}
	}
}

// TestSecretsAreRedacted: what the schema marks is not written down, whatever
// the call is refused for.
func TestSecretsAreRedacted(t *testing.T) {
	s := state(t, vectorConfig)
	tools, err := registry.New([]registry.Tool{{
		Name: "login", Run: tool.Run{Type: "demo"},
		InputSchema: json.RawMessage(`{"type":"object","properties":{"user":{"type":"string"},"password":{"type":"string","x-secret":true}}}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Tools = tools
	for _, keep := range []audit.Content{audit.Arguments, audit.Completion} {
		j := &journal{}
		k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j, RecordContent: keep}, Engine: &engine{}, Store: store.NewMemory(time.Now)})
		const call = `{"tool":{"name":"login","arguments":{"user":"ann","password":"HUNTER2"}}}`
		for _, in := range []gateway.Input{
			{Completion: []byte(call)},
			{Completion: []byte(call), Truncated: true},
			{Completion: []byte(call + " thanks")},
			{Completion: []byte(strings.Replace(call, `{"tool"`, `{"agent":"Intern","tool"`, 1))},
			{Completion: []byte(strings.Replace(call, `"name"`, `"id":"1","name"`, 1))},
			{Completion: []byte(strings.Replace(call, `"ann"`, `1`, 1))},
			{Completion: []byte(call[:len(call)-3])},
			{Completion: []byte(strings.Replace(call, "login", "log_in", 1))},
			{Native: &gateway.NativeCall{Name: "login", Arguments: []byte(`{"user":"ann","password":"HUNTER2"}`)}},
		} {
			k.Execute(context.Background(), k.Kernel.Judge(context.Background(), gateway.Request{Inputs: []gateway.Input{in}}))
		}
		request := completion(call)
		request.Agent = "Nobody"
		k.Kernel.Judge(context.Background(), request)
		for _, r := range j.all() {
			if strings.Contains(string(r.Arguments)+r.Completion, "HUNTER2") {
				t.Errorf("%s: %s %s was written with its secret: %s %s", keep, r.Verdict, r.Code, r.Arguments, r.Completion)
			}
		}
		if first := j.all()[0]; keep == audit.Arguments && string(first.Arguments) != `{"user":"ann","password":"[redacted]"}` {
			t.Errorf("kept %s", first.Arguments)
		}
	}
}

// TestSecondDecisionFails: of several calls whose decisions cannot all be
// written, none runs, and those that were written end.
func TestSecondDecisionFails(t *testing.T) {
	e, j := &engine{}, &journal{}
	s := state(t, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &failsAt{journal: j, at: 2}}, Engine: e})
	native := gateway.Input{Native: &gateway.NativeCall{Name: "time.now", Arguments: []byte("{}")}}
	d := k.Kernel.Judge(context.Background(), gateway.Request{Inputs: []gateway.Input{native, native}})
	for _, o := range k.Execute(context.Background(), d) {
		if o.Refusal == nil || o.Refusal.Code != refusal.AuditUnavailable {
			t.Errorf("got %+v", o.Refusal)
		}
	}
	open := map[string]bool{}
	for _, r := range j.all() {
		open[r.CallID] = r.Event == audit.Decision && r.Verdict == audit.ToolCall
	}
	for id, is := range open {
		if is {
			t.Errorf("the decision of %s has no outcome, and nothing ran", id)
		}
	}
	if e.runs.Load() != 0 || len(open) == 0 {
		t.Errorf("%d calls ran; %v", e.runs.Load(), j.all())
	}
}

// failsAt is a journal that fails once.
type failsAt struct {
	*journal
	at, seen int
}

func (f *failsAt) Append(ctx context.Context, r audit.Record) error {
	if f.seen++; f.seen == f.at {
		return refusal.New(refusal.AuditUnavailable, "m")
	}
	return f.journal.Append(ctx, r)
}
