package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

func natively(name, arguments string) gateway.Input {
	return gateway.Input{Native: &gateway.NativeCall{Name: name, Arguments: []byte(arguments)}}
}

// TestTextWithCalls: the text of an answer and its native calls are judged all
// or none, streamed and whole.
func TestTextWithCalls(t *testing.T) {
	ctx := context.Background()
	good, bad := natively("time.now", "{}"), natively("time.now", `{"x":1}`)
	for _, c := range []struct {
		name      string
		text      string
		truncated bool
		calls     []gateway.Input
		want      string   // the first refusal
		verdicts  []string // of the reports
		released  string   // while it streams
	}{
		{"text and a call", "I will look.", false, []gateway.Input{good}, "", []string{"text", "tool_call"}, "I will look."},
		{"text and two", "Both.", false, []gateway.Input{good, good}, "", []string{"text", "tool_call", "tool_call"}, "Both."},
		{"JSON and a call", `{"a":1}`, false, []gateway.Input{good}, "", []string{"text", "tool_call"}, `{"a":1}`},
		{"an array and a call", `[{"name":1}]`, false, []gateway.Input{good}, "", []string{"text", "tool_call"}, `[{"name":1}]`},
		{"text alone", "Noon.", false, nil, "", []string{"text"}, "Noon."},
		{"text that was cut", "No", true, nil, "", []string{"text"}, "No"},
		{"no text", "", false, []gateway.Input{good}, "", []string{"tool_call"}, ""},
		{"nothing", "", false, nil, "parse empty_output", []string{"refused"}, ""},
		{"blank", " \n", false, []gateway.Input{good}, "", []string{"tool_call"}, ""},
		{"blank alone", " \n", false, nil, "parse empty_output", []string{"refused"}, ""},
		{"a bad call", "I will look.", false, []gateway.Input{good, bad}, "schema unexpected_argument", []string{"text", "refused", "refused"}, "I will look."},
		{"a bad text", `So: {"tool":{}}`, false, []gateway.Input{good}, "parse mixed_output", []string{"refused", "refused"}, "So: "},
		{"a quoted result and a call", `So: {"tool_result":{"tool":"x","output":{"arguments":{}}}}`, false, []gateway.Input{good}, "", []string{"text", "tool_call"}, `So: {"tool_result":{"tool":"x","output":{"arguments":{}}}}`},
		{"a foreign call", "<tool_call>", false, []gateway.Input{good}, "parse foreign_call_syntax", []string{"refused", "refused"}, ""},
		{"a call that was cut", "I will", true, []gateway.Input{good}, "parse truncated_output", []string{"text", "refused"}, "I will"},
		{"no text, a call that was cut", "", true, []gateway.Input{good}, "parse truncated_output", []string{"refused"}, ""},
	} {
		e, j := &engine{}, &journal{}
		k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e, Store: newShelf()})
		a := admit(t, k, gateway.Request{})
		check := func(how string, d *gateway.Decision, released string) {
			if got := refusedBy(d); got != c.want || len(d.Reports) != len(c.verdicts) {
				t.Errorf("%s, %s: %q with %d reports, want %q", c.name, how, got, len(d.Reports), c.want)
				return
			}
			runs, calls := e.runs.Load(), int64(0)
			for i, o := range k.Execute(ctx, d) {
				r := d.Reports[i]
				if string(r.Verdict) != c.verdicts[i] {
					t.Errorf("%s, %s: report %d is %s", c.name, how, i, r.Verdict)
				}
				if (o.Refusal != nil) != (c.want != "") {
					t.Errorf("%s, %s: outcome %d %+v", c.name, how, i, o.Refusal)
				}
				if r.Verdict == gateway.VerdictCall && c.want == "" {
					calls++
				}
				if r.Verdict == gateway.VerdictText && c.want == "" && released+string(o.Text) != c.text {
					t.Errorf("%s, %s: text came out as %q", c.name, how, released+string(o.Text))
				}
			}
			if e.runs.Load()-runs != calls {
				t.Errorf("%s, %s: ran %d of %d", c.name, how, e.runs.Load()-runs, calls)
			}
		}
		cuts([]byte(c.text), func(pieces [][]byte) {
			s, err := a.Stream(ctx, gateway.ModeCall, true)
			if err != nil {
				t.Fatal(err)
			}
			released := ""
			for _, p := range pieces {
				released += string(s.Write(p))
			}
			if released != c.released {
				t.Errorf("%s: released %q, want %q", c.name, released, c.released)
			}
			d := s.Close(ctx, c.truncated, c.calls...)
			if second := s.Close(ctx, c.truncated, c.calls...); second != d || len(second.Reports) != len(c.verdicts) {
				t.Errorf("%s: closed twice: %d reports", c.name, len(second.Reports))
			}
			check("streamed", d, released)
		})
		if strings.TrimSpace(c.text) == "" && len(c.calls) > 0 {
			continue // whole, the caller leaves the text out
		}
		inputs := []gateway.Input{{Completion: []byte(c.text), TextOnly: true, Truncated: c.truncated}}
		for _, in := range c.calls {
			in.Truncated = c.truncated
			inputs = append(inputs, in)
		}
		check("whole", a.Judge(ctx, gateway.ModeCall, inputs...), "")
		// Each decision that was made has one record, and each call that was decided
		// and not dispatched ends.
		ends := map[string]int{}
		decided := map[string]audit.Verdict{}
		for _, r := range j.all() {
			if r.Event == audit.Decision {
				if decided[r.CallID] != "" {
					t.Errorf("%s: %s was decided twice", c.name, r.CallID)
				}
				decided[r.CallID] = r.Verdict
			} else {
				ends[r.CallID]++
			}
		}
		for id, verdict := range decided {
			if want := map[bool]int{true: 1}[verdict == audit.ToolCall]; ends[id] != want {
				t.Errorf("%s: a %s has %d outcomes", c.name, verdict, ends[id])
			}
			if (verdict == audit.Refused) != (c.want != "") {
				t.Errorf("%s: written as %s", c.name, verdict)
			}
		}
	}
}

// TestTextIsNoProse: without being told so, a stream is read as a call may be,
// and empty text counts.
func TestTextIsNoProse(t *testing.T) {
	ctx := context.Background()
	k := unlimited(t)
	a := admit(t, k, gateway.Request{})
	for in, want := range map[string]string{`{"a":1}`: "parse not_a_tool_call", "": "parse empty_output"} {
		s, err := a.Stream(ctx, gateway.ModeCall, false)
		if err != nil {
			t.Fatal(err)
		}
		s.Write([]byte(in))
		if got := refusedBy(s.Close(ctx, false, natively("time.now", "{}"))); got != want {
			t.Errorf("%q streamed: %q", in, got)
		}
		if got := refusedBy(a.Judge(ctx, gateway.ModeCall, gateway.Input{Completion: []byte(in)})); got != want {
			t.Errorf("%q whole: %q", in, got)
		}
	}
	// A configuration cannot make all text prose.
	s := state(t, vectorConfig)
	s.Output.TextOnly = true
	if got := refusedBy(kernelWith(t, s, ratelimit.NewLocal(time.Now)).Kernel.Judge(ctx, completion(`{"a":1}`))); got != "parse not_a_tool_call" {
		t.Errorf("under a configuration of prose: %q", got)
	}
}

// TestCallsWaitForTheText: where the record of the text fails, its calls end
// although they were decided.
func TestCallsWaitForTheText(t *testing.T) {
	ctx := context.Background()
	e, j := &engine{}, &journal{}
	k := kernelOf(t, loose(t), calls.Deps{
		Deps:   gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &failsAt{journal: j, at: 3}},
		Engine: e, Store: newShelf(),
	})
	a := admit(t, k, gateway.Request{})
	d := a.Judge(ctx, gateway.ModeCall, gateway.Input{Completion: []byte("Noon."), TextOnly: true}, timeNow(), timeNow())
	for _, o := range k.Execute(ctx, d) {
		if o.Refusal == nil || o.Refusal.Code != refusal.AuditUnavailable {
			t.Errorf("got %+v", o.Refusal)
		}
	}
	ended := 0
	for _, r := range j.all() {
		if r.Event == audit.Ending && r.Outcome == audit.Failed && r.Code == refusal.AuditUnavailable {
			ended++
		}
	}
	if e.runs.Load() != 0 || ended != 2 || len(j.all()) != 4 {
		t.Errorf("ran %d times; %d of two calls ended; %+v", e.runs.Load(), ended, j.all())
	}
}

// shelf is a store in memory. It fails in the way it is told to, at one call.
type shelf struct {
	*store.Memory
	at      int
	mu      sync.Mutex
	how     string
	opened  []string
	dropped []string
}

func newShelf() *shelf { return &shelf{Memory: store.NewMemory(time.Now)} }

func (s *shelf) fail(how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.how = how
}

func (s *shelf) Open(ctx context.Context, c store.Call) (*store.Call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened = append(s.opened, c.ID); len(s.opened) == s.at {
		switch s.how {
		case "error":
			return nil, errors.New("secret of the store")
		case "panic", "panic, and at dropping":
			panic("secret of the store")
		case "a prior call":
			return &store.Call{ID: "other", State: store.Done}, nil
		case "hangs":
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	return s.Memory.Open(ctx, c)
}

func (s *shelf) Dispatch(ctx context.Context, id string, task store.Task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.how {
	case "error at dispatch":
		return errors.New("secret of the store")
	case "panic at dispatch":
		panic("secret of the store")
	}
	return s.Memory.Dispatch(ctx, id, task)
}

func (s *shelf) Settle(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = append(s.dropped, id)
	if s.how == "panic, and at dropping" {
		panic("secret of the store")
	}
	return s.Memory.Settle(ctx, id)
}

func (s *shelf) Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.how {
	case "panic at the end":
		panic("secret of the store")
	case "unheard at the end": // it is done, and not told
		s.how = ""
		_, _ = s.Memory.Finish(ctx, id, ending)
		return store.Call{}, store.ErrUnavailable
	}
	return s.Memory.Finish(ctx, id, ending)
}

// TestNoStoreNoAct: a call of an admission that cannot be kept is not executed,
// and none beside it.
func TestNoStoreNoAct(t *testing.T) {
	for _, how := range []string{"none", "error", "panic", "panic, and at dropping", "a prior call", "hangs"} {
		t.Run(how, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { noStoreNoAct(t, how) }) })
	}
}

func noStoreNoAct(t *testing.T, how string) {
	e, j := &engine{}, &journal{}
	parts := calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e}
	s := newShelf()
	s.how, s.at = how, 2
	if how != "none" {
		parts.Store = s
	}
	ctx := context.Background()
	if how == "hangs" {
		short, cancel := context.WithCancel(ctx)
		cancel() // a caller that has left does not keep the store from being asked
		ctx = short
	}
	k := kernelOf(t, loose(t), parts)
	a := admit(t, k, gateway.Request{})
	d := a.Judge(context.Background(), gateway.ModeCall, timeNow(), timeNow(), timeNow())
	for _, o := range k.Execute(ctx, d) {
		if o.Refusal == nil || o.Refusal.Code != refusal.StoreUnavailable || o.Status != 503 || strings.Contains(string(o.Result), "secret") {
			t.Errorf("%s: %+v", how, o)
		}
	}
	ended := 0
	for _, r := range j.all() {
		if r.Event == audit.Ending && r.Outcome == audit.Failed && r.Code == refusal.StoreUnavailable && r.Stage == refusal.Execute {
			ended++
		}
	}
	if e.runs.Load() != 0 || ended != 3 || len(j.all()) != 6 {
		t.Errorf("%s: ran %d times, %d of %d records are ends", how, e.runs.Load(), ended, len(j.all()))
	}
	if how != "none" && (len(s.opened) != 2 || !slices.Equal(s.opened, s.dropped)) {
		t.Errorf("%s: opened %v, dropped %v", how, s.opened, s.dropped)
	}
}

// TestExecutedCallsAreKept: who is given a call id can ask for it, from before
// its dispatch on.
func TestExecutedCallsAreKept(t *testing.T) {
	ctx := context.Background()
	var k *calls.Executor
	during := map[string]store.State{}
	e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
		call, err := k.Lookup(ctx, gateway.Request{}, task.ID)
		if err != nil {
			t.Errorf("while it runs: %v", err)
		}
		during[task.ID] = call.State
		return tool.Result{Body: []byte(`{"now":"noon"}`), JSON: true}, nil
	}}
	s := newShelf()
	k = kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: s})
	a := admit(t, k, gateway.Request{})
	d := a.Judge(ctx, gateway.ModeCall, gateway.Input{Completion: []byte("Looking."), TextOnly: true}, timeNow(), timeNow())
	o := k.Execute(ctx, d)
	if len(s.opened) != 2 || during[o[1].CallID] != store.Pending || during[o[2].CallID] != store.Pending {
		t.Errorf("kept %v, while they ran %v", s.opened, during)
	}
	for _, o := range o[1:] {
		call, err := k.Lookup(ctx, gateway.Request{}, o.CallID)
		if err != nil || call.State != store.Done || string(call.Result.Line) != string(o.Result) || call.HTTPStatus != 200 {
			t.Errorf("afterwards: %+v, %v", call, err)
		}
	}
	// So is what is judged without an admission.
	before := len(s.opened)
	e.answer = nil
	if o := k.Execute(ctx, k.Kernel.Judge(ctx, completion(search))); o[0].Refusal != nil || len(s.opened) != before+1 {
		t.Errorf("kept %d, %+v", len(s.opened)-before, o)
	}
}

// TestKeysAreForOneTool: one key is not the same request for another tool.
func TestKeysAreForOneTool(t *testing.T) {
	ctx := context.Background()
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: &engine{}, Store: newShelf()})
	request := func(name string) gateway.Request {
		return gateway.Request{Inputs: []gateway.Input{natively(name, `{}`)}}
	}
	if o := k.Handle(ctx, request("time.now"), "key"); o.Refusal != nil {
		t.Fatal(o.Refusal)
	}
	if o := k.Handle(ctx, request("time.now"), "key"); o.Refusal != nil {
		t.Errorf("a repeat: %v", o.Refusal)
	}
	if o := k.Handle(ctx, request("web.search"), "key"); o.Refusal == nil || o.Refusal.Code != refusal.IdempotencyConflict {
		t.Errorf("another tool: %+v", o)
	}
}

// TestConflictsNameTheTool where the completion does, and are written down.
func TestConflictsNameTheTool(t *testing.T) {
	ctx := context.Background()
	j := &journal{}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: &engine{}, Store: newShelf()})
	if o := k.Handle(ctx, completion(`{"tool":{"name":"time.now","arguments":{}}}`), "key"); o.Refusal != nil {
		t.Fatal(o.Refusal)
	}
	settle(t, k)
	for in, tool := range map[string]string{
		`{"tool":{"name":"web.search","arguments":{}}}`: `"web.search"`,
		`{"tool":{"name":"no.such","arguments":{}}}`:    `"no.such"`,
		`{"tool":{"name":"time.now","name":"x"}}`:       "null",
		"some text": "null",
		`see {"tool":{"name":"time.now","arguments":{}}} there`: "null",
	} {
		before := len(j.all())
		o := k.Handle(ctx, completion(in), "key")
		if refusedAs(o.Refusal) != "execute idempotency_conflict" || !strings.HasPrefix(string(o.Result), `{"tool_result":{"tool":`+tool+`,`) {
			t.Errorf("%s: %s", in, o.Result)
		}
		settle(t, k)
		if all := j.all(); len(all) != before+1 || all[before].Verdict != audit.Refused || all[before].Code != refusal.IdempotencyConflict {
			t.Errorf("%s: records %+v", in, all[before:])
		}
	}
}

// TestProseIsRecorded as the text that it is.
func TestProseIsRecorded(t *testing.T) {
	ctx := context.Background()
	j := &journal{}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j, RecordContent: audit.Completion}})
	s, err := admit(t, k, gateway.Request{}).Stream(ctx, gateway.ModeEnforce, true)
	if err != nil {
		t.Fatal(err)
	}
	const in = `{"a":1}, I think`
	s.Write([]byte(in[:3]))
	s.Write([]byte(in[3:]))
	d := s.Close(ctx, false)
	if o := k.HandOver(ctx, d); o[0].Refusal != nil {
		t.Fatal(o[0].Refusal)
	}
	settle(t, k)
	want := parser.Parse([]byte(in), false, parser.Options{TextOnly: true})
	if r := j.all(); len(r) != 1 || r[0].Verdict != audit.Text || r[0].Completion != in || want.Kind != parser.Text {
		t.Errorf("records %+v", r)
	}
}
