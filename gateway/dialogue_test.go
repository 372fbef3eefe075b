package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/tool"
)

// everything is what a caller can answer that can answer everything.
var everything = []string{"form", "url", "sampling", "roots"}

const (
	mail   = `{"message":"Your\u200b mail?","requestedSchema":{"type":"object","properties":{"mail":{"type":"string","format":"email"}},"required":["mail"]}}`
	mailed = `{"action":"accept","content":{"mail":"a@b.example"}}`
	within = `{"roots":[{"uri":"file:///srv/acme/alpha/x"}]}`
)

// curious are the vectors' tools, of which web.search and time.now may ask.
func curious(t testing.TB) *gateway.Config {
	t.Helper()
	s := loose(t)
	tool := func(name, version, effect, address string, asks ...string) registry.Tool {
		return registry.Tool{
			Name: name, Version: version, Effect: effect, InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{},"n":{}}}`),
			Run: tool.Run{Type: "mcp", URL: address, Tool: name, Timeout: time.Second, InputRequests: asks},
		}
	}
	tools, err := registry.New([]registry.Tool{
		tool("web.search", "1.0.0", "read", "https://a.example/", everything...), tool("web.search", "0.9.0", "read", "https://a.example/", everything...),
		tool("time.now", "1.0.0", "read", "https://a.example/", "form"), tool("data.plain", "1.0.0", "read", "https://a.example/"),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Tools = tools
	return s
}

// want is what a tool asks.
func want(state *string, questions ...tool.Question) *tool.InputRequired {
	return &tool.InputRequired{State: state, Questions: questions}
}

func question(name, kind, params string) tool.Question {
	method := map[string]string{"form": "elicitation/create", "url": "elicitation/create", "sampling": "sampling/createMessage", "roots": "roots/list"}[kind]
	return tool.Question{Name: name, Kind: kind, Method: method, Params: json.RawMessage(params)}
}

func failed() error { return refusal.New(refusal.ToolFailed, "The tool wants to know more.") }

// inquirer is an engine whose tool asks until it is answered.
type inquirer struct {
	mu        sync.Mutex
	requested *tool.InputRequired
	err       error
	tasks     []tool.Call
}

func (e *inquirer) Run(_ context.Context, task tool.Call) (tool.Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tasks = append(e.tasks, task)
	if e.requested != nil && task.Answers == nil && task.State == nil {
		err := e.err
		if err == nil {
			err = failed()
		}
		return tool.Result{Attempts: 1, InputRequired: e.requested}, err
	}
	return tool.Result{Body: []byte(`{"ok":true}`), JSON: true, Attempts: 1}, nil
}

func (e *inquirer) all() []tool.Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.tasks)
}

func inquiring(t testing.TB, asked *tool.InputRequired) (*calls.Executor, *inquirer, *store.Memory, *journal) {
	t.Helper()
	e, s, j := &inquirer{requested: asked}, store.NewMemory(time.Now), &journal{}
	return kernelOf(t, curious(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e, Store: s}), e, s, j
}

// asks is a call of a tool by a caller that can answer everything.
func asks(tool, state string, answers map[string]string) gateway.Request {
	d := &elicit.Dialogue{QuestionKinds: everything, RequestState: state}
	for name, answer := range answers {
		if d.Answers == nil {
			d.Answers = map[string]json.RawMessage{}
		}
		d.Answers[name] = json.RawMessage(answer)
	}
	return gateway.Request{Inputs: []gateway.Input{{Native: &gateway.NativeCall{Name: tool, Arguments: []byte(`{"query":"x","n":1.0}`)}, Dialogue: d}}}
}

func handle(k *calls.Executor, r gateway.Request, key string) calls.Outcome {
	return k.Handle(context.Background(), r, key)
}

func names(a *tool.InputRequired) (list []string) {
	if a != nil {
		for _, q := range a.Questions {
			list = append(list, q.Name)
		}
	}
	return list
}

// TestTaskAsks: a tool may ask what it may ever, of what its caller can answer.
func TestTaskAsks(t *testing.T) {
	k, e, _, _ := inquiring(t, nil)
	for i, c := range []struct {
		tool   string
		caller []string
		want   []string
	}{
		{"web.search", everything, everything},
		{"web.search", []string{"roots", "form", "tasks", "form"}, []string{"form", "roots"}},
		{"web.search", nil, nil},
		{"time.now", everything, []string{"form"}},
		{"time.now", []string{"url"}, nil},
		{"data.plain", everything, nil},
	} {
		r := asks(c.tool, "", nil)
		if r.Inputs[0].Dialogue.QuestionKinds = c.caller; c.caller == nil {
			r.Inputs[0].Dialogue = nil
		}
		if o := handle(k, r, ""); o.Refusal != nil {
			t.Fatal(o.Refusal)
		}
		if got := e.all()[i].QuestionKinds; !slices.Equal(got, c.want) {
			t.Errorf("%s with %v may ask %v, expected %v", c.tool, c.caller, got, c.want)
		}
	}
}

// TestAskedAndAnswered: a question goes to the caller, its answer to the tool, once.
func TestAskedAndAnswered(t *testing.T) {
	secret := "the server's own \u202e state"
	k, e, s, j := inquiring(t, want(&secret, question("z", "roots", `{}`), question("a", "form", mail)))
	o := handle(k, asks("web.search", "", nil), "")
	if o.Refusal == nil || o.Refusal.Code != refusal.ToolFailed || !slices.Equal(names(o.InputRequest), []string{"a", "z"}) || o.InputRequest.State != nil || o.RequestState != o.CallID {
		t.Fatalf("asked: %+v, %+v", o, o.InputRequest)
	}
	if params := string(o.InputRequest.Questions[0].Params); params != `{"mode":"form",`+strings.Replace(mail[1:], `\u200b`, `\\u200b`, 1) {
		t.Errorf("the caller is asked %s", params)
	}
	if strings.Contains(string(o.Result), "own") {
		t.Errorf("the state is shown: %s", o.Result)
	}
	const precise = `{"roots":[{"uri":"file:///srv/acme/alpha","name":"1.0"}]}`
	answers := map[string]string{"a": ` {"content":{"mail":"a@b.example"}, "action":"accept","_meta":{}}`, "z": precise, "other": `17`}
	done := handle(k, asks("web.search", o.RequestState, answers), "")
	if done.Refusal != nil || done.InputRequest != nil || done.RequestState != "" || done.CallID == o.CallID {
		t.Fatalf("answered: %+v", done)
	}
	task := e.all()[1]
	if task.State == nil || *task.State != secret || len(task.Answers) != 2 || string(task.Answers["a"]) != mailed || string(task.Answers["z"]) != precise || task.ID != done.CallID {
		t.Errorf("the tool is given %q", task.Answers)
	}
	if kept, err := s.Get(context.Background(), done.CallID, store.OfAnyone()); err != nil || kept.Task.Effect != "once" {
		t.Errorf("kept as %+v, %v", kept.Task, err)
	}

	// The same once more is the same answer, however it is spaced and ordered.
	second := handle(k, asks("web.search", o.RequestState, map[string]string{"a": `{"_meta":{},"action":"accept","content":{ "mail":"a@b.example"}}`, "z": precise, "other": "17"}), "")
	if !second.Replayed || second.CallID != done.CallID || string(second.Result) != string(done.Result) {
		t.Errorf("once more: %+v", second)
	}
	// Other answers are a conflict, and so is the same state for another call.
	for _, other := range []gateway.Request{
		asks("web.search", o.RequestState, map[string]string{"a": `{"action":"decline"}`, "z": precise}),
		asks("time.now", o.RequestState, answers),
	} {
		if o := handle(k, other, ""); o.Refusal == nil || o.Refusal.Code != refusal.IdempotencyConflict {
			t.Errorf("another answer: %+v", o)
		}
	}
	if len(e.all()) != 2 {
		t.Errorf("ran %d times", len(e.all()))
	}
	inputs := map[string]bool{}
	for _, r := range j.all() {
		if r.Event == audit.Decision {
			inputs[r.InputSHA256] = true
		}
		if r.ArgumentsSHA256 != "" && r.ArgumentsSHA256 != j.all()[0].ArgumentsSHA256 {
			t.Errorf("the arguments differ: %+v", r)
		}
	}
	if len(inputs) < 2 {
		t.Errorf("%d different inputs are recorded", len(inputs))
	}
}

// TestAnswersAreToldApart: two answers to one question are two inputs in the records.
func TestAnswersAreToldApart(t *testing.T) {
	k, _, _, j := inquiring(t, want(nil, question("a", "form", mail)))
	seen := map[string]string{}
	for i, d := range []*elicit.Dialogue{
		nil, {QuestionKinds: everything},
		{QuestionKinds: everything, Answers: map[string]json.RawMessage{"a": json.RawMessage(mailed)}},
		{QuestionKinds: everything, Answers: map[string]json.RawMessage{"a": json.RawMessage(`{"action":"decline"}`)}},
		{QuestionKinds: everything, Answers: map[string]json.RawMessage{"b": json.RawMessage(mailed)}},
		{QuestionKinds: everything, RequestState: "call_x", Answers: map[string]json.RawMessage{"a": json.RawMessage(mailed)}},
		{QuestionKinds: everything, RequestState: "call_y", Answers: map[string]json.RawMessage{"a": json.RawMessage(mailed)}},
		{QuestionKinds: everything, RequestState: "call_x"},
	} {
		r := asks("web.search", "", nil)
		r.Inputs[0].Dialogue = d
		before := len(j.all())
		handle(k, r, "")
		input := j.all()[before].InputSHA256
		if prior, known := seen[input]; known && prior != "0" {
			t.Errorf("%d has the input of %s", i, prior)
		}
		seen[input] = fmt.Sprint(i)
	}
	if len(seen) != 7 { // what brings nothing is one
		t.Errorf("%d inputs", len(seen))
	}
}

// TestStates: a state is of the same call and the same caller, or it is refused, with
// the same words each time.
func TestStates(t *testing.T) {
	s := curious(t)
	s.Identity = knows{
		"one":   {Name: "one", Agents: []string{"Analyst", "Intern"}, Workspace: "acme", Projects: []string{"alpha", "beta"}},
		"other": {Name: "other", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}},
	}
	e, kept := &inquirer{requested: want(nil, question("a", "form", mail))}, store.NewMemory(time.Now)
	parts := calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: kept}
	k := kernelOf(t, s, parts)
	subject := gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}
	request := func(tool, state string) gateway.Request {
		r := asks(tool, state, map[string]string{"a": mailed})
		if state == "" {
			r.Inputs[0].Dialogue.Answers = nil
		}
		r.Subject, r.Credential, r.User = subject, "one", "ann"
		return r
	}
	o := handle(k, request("web.search", ""), "")
	if o.InputRequest == nil {
		t.Fatalf("not asked: %+v", o)
	}
	plain := handle(k, request("data.plain", ""), "") // asks, and may not
	if plain.InputRequest != nil || plain.Refusal == nil {
		t.Fatalf("asked: %+v", plain)
	}
	ctx := context.Background()
	if _, err := kept.Open(ctx, store.Call{ID: "call_running", Scope: store.Scope{Principal: "one", Workspace: "acme", Project: "alpha"}}); err != nil {
		t.Fatal(err)
	}
	moved := curious(t)
	moved.Identity, moved.Tools = s.Identity, elsewhere(t)
	for _, c := range []struct {
		why    string
		state  string
		change func(*gateway.Request)
		by     *calls.Executor
	}{
		{"unknown", "call_unknown", nil, k},
		{"empty of sense", " ", nil, k},
		{"hides", "call_\u200b", nil, k},
		{"too long", strings.Repeat("a", 129), nil, k},
		{"a path", "../../x\x00", nil, k},
		{"of a call that runs", "call_running", nil, k},
		{"of a call that may not ask", plain.CallID, nil, k},
		{"of another principal", o.RequestState, func(r *gateway.Request) { r.Credential = "other" }, k},
		{"of another agent", o.RequestState, func(r *gateway.Request) { r.Agent = "Intern" }, k},
		{"of another project", o.RequestState, func(r *gateway.Request) { r.Project = "beta" }, k},
		{"of another user", o.RequestState, func(r *gateway.Request) { r.User = "bob" }, k},
		{"of another tool", o.RequestState, func(r *gateway.Request) { r.Inputs[0].Native.Name = "time.now" }, k},
		{"of another version", o.RequestState, func(r *gateway.Request) { r.Inputs[0].Native.Version = "0.9.0" }, k},
		{"of other arguments", o.RequestState, func(r *gateway.Request) { r.Inputs[0].Native.Arguments = []byte(`{"query":"x","n":2}`) }, k},
		{"of a number written otherwise", o.RequestState, func(r *gateway.Request) { r.Inputs[0].Native.Arguments = []byte(`{"query":"x","n":1}`) }, k},
		{"of a tool that stands elsewhere now", o.RequestState, nil, kernelOf(t, moved, parts)},
		{"forgotten", o.RequestState, nil, kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: parts.Limiter, Journal: parts.Journal}, Engine: e, Store: store.NewMemory(time.Now)})},
	} {
		t.Run(c.why, func(t *testing.T) {
			before := len(e.all())
			r := request("web.search", c.state)
			if c.change != nil {
				c.change(&r)
			}
			for _, key := range []string{"", "key-of-" + strings.ReplaceAll(c.why, " ", "-")} {
				o := handle(c.by, r, key)
				const say = "This state names nothing that was asked of this call, or no longer. Send the call again without it, unchanged or as a new call."
				if o.Refusal == nil || refusedAs(o.Refusal) != "schema invalid_value" || o.Refusal.Message != say || o.InputRequest != nil || o.RequestState != "" {
					t.Fatalf("got %+v", o.Refusal)
				}
				if v := o.Refusal.Violations; len(v) != 1 || v[0].Path != "/requestState" || v[0].Offset != -1 || v[0].Code != refusal.InvalidValue {
					t.Errorf("violations %+v", v)
				}
			}
			if len(e.all()) != before {
				t.Error("it ran")
			}
		})
	}
	// The order of members, and how the call is spaced, are no other call.
	r := request("web.search", o.RequestState)
	r.Inputs[0].Native.Arguments = []byte(` {"n":1.0,"query":"\u0078"} `)
	if o := handle(k, r, ""); o.Refusal != nil {
		t.Errorf("the same call: %+v", o.Refusal)
	}
}

// elsewhere is web.search at another address.
func elsewhere(t testing.TB) *registry.Registry {
	t.Helper()
	tools, err := registry.New([]registry.Tool{{
		Name: "web.search", Version: "1.0.0", Effect: "read", InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{},"n":{}}}`),
		Run: tool.Run{Type: "mcp", URL: "https://b.example/", Tool: "web.search", Timeout: time.Second, InputRequests: everything},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// TestSweptState: what the store has forgotten is no state any more.
func TestSweptState(t *testing.T) {
	c := newClock()
	kept, e := store.NewMemory(c.now), &inquirer{requested: want(nil, question("a", "form", mail))}
	k := kernelOf(t, curious(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(c.now), Journal: &journal{}, Now: c.now}, Engine: e, Store: kept})
	o := handle(k, asks("web.search", "", nil), "")
	c.advance(store.Retention + time.Minute)
	if _, err := kept.Sweep(context.Background(), 100); err != nil {
		t.Fatal(err)
	}
	if o := handle(k, asks("web.search", o.RequestState, map[string]string{"a": mailed}), ""); o.Refusal == nil || len(o.Refusal.Violations) != 1 || o.Refusal.Violations[0].Path != "/requestState" {
		t.Errorf("got %+v", o)
	}
	if len(e.all()) != 1 {
		t.Error("it ran")
	}
}

// TestAnswerFaults: answers that do not fit their questions are refused with what to
// change, and where one is only missing, the questions are asked again.
func TestAnswerFaults(t *testing.T) {
	k, e, _, _ := inquiring(t, want(nil, question("a/b~", "form", mail), question("r", "roots", `{}`)))
	o := handle(k, asks("web.search", "", nil), "")
	if o.InputRequest == nil {
		t.Fatalf("got %+v", o)
	}
	for _, c := range []struct {
		why     string
		answers map[string]string
		want    string   // the stage and the code
		paths   []string // of its violations
		retry   bool     // the questions are asked again
	}{
		{"none", nil, "schema missing_argument", []string{"/inputResponses/a~1b~0", "/inputResponses/r"}, true},
		{"another", map[string]string{"x": mailed}, "schema missing_argument", []string{"/inputResponses/a~1b~0", "/inputResponses/r"}, true},
		{"one", map[string]string{"r": within}, "schema missing_argument", []string{"/inputResponses/a~1b~0"}, true},
		{"a part is missing", map[string]string{"a/b~": `{"action":"accept","content":{}}`, "r": within}, "schema missing_argument", []string{"/inputResponses/a~1b~0/content/mail"}, false},
		{"a fault and none", map[string]string{"r": `{"roots":[1]}`}, "schema missing_argument", []string{"/inputResponses/a~1b~0", "/inputResponses/r/roots/0"}, false},
		{"no answer", map[string]string{"a/b~": `17`, "r": within}, "schema wrong_type", []string{"/inputResponses/a~1b~0"}, false},
		{"a stranger", map[string]string{"a/b~": `{"action":"decline","x":1}`, "r": within}, "schema unexpected_argument", []string{"/inputResponses/a~1b~0/x"}, false},
		{"of another kind", map[string]string{"a/b~": within, "r": mailed}, "schema missing_argument",
			[]string{"/inputResponses/a~1b~0/action", "/inputResponses/a~1b~0/roots", "/inputResponses/r/action", "/inputResponses/r/content", "/inputResponses/r/roots"}, false},
		{"no URI", map[string]string{"a/b~": mailed, "r": `{"roots":[{"uri":"https://x.example/"}]}`}, "schema invalid_value", []string{"/inputResponses/r/roots/0/uri"}, false},
		{"outside", map[string]string{"a/b~": mailed, "r": `{"roots":[{"uri":"file:///srv/acme/alpha"},{"uri":"file:///etc"},{"uri":"file:///srv/acme/alpha/%2e%2e/beta"}]}`},
			"project boundary_violation", []string{"/inputResponses/r/roots/1/uri", "/inputResponses/r/roots/2/uri"}, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			got := handle(k, asks("web.search", o.RequestState, c.answers), "")
			if refusedAs(got.Refusal) != c.want {
				t.Fatalf("got %+v", got.Refusal)
			}
			var paths []string
			for _, v := range got.Refusal.Violations {
				if paths = append(paths, v.Path); v.Offset != -1 {
					t.Errorf("offset %d", v.Offset)
				}
			}
			if !slices.Equal(paths, c.paths) {
				t.Errorf("at %q, expected %q", paths, c.paths)
			}
			if requested := slices.Equal(names(got.InputRequest), []string{"a/b~", "r"}) && got.RequestState == o.RequestState && got.CallID != o.CallID; requested != c.retry || !c.retry && got.InputRequest != nil {
				t.Errorf("asked again: %v by %q", names(got.InputRequest), got.RequestState)
			}
		})
	}
	if len(e.all()) != 1 {
		t.Errorf("ran %d times", len(e.all()))
	}
	// A caller that cannot answer all that was asked is not asked.
	r := asks("web.search", o.RequestState, nil)
	r.Inputs[0].Dialogue.QuestionKinds = []string{"form"}
	if o := handle(k, r, ""); o.InputRequest != nil || refusedAs(o.Refusal) != "schema missing_argument" {
		t.Errorf("got %+v", o)
	}
	// None of that has used the question up.
	if o := handle(k, asks("web.search", o.RequestState, map[string]string{"a/b~": mailed, "r": within}), ""); o.Refusal != nil {
		t.Errorf("the right answers: %+v", o.Refusal)
	}
}

// TestForeseenAnswers: answers without a state are used where they are what the tool
// asks, in one more round, and else not at all.
func TestForeseenAnswers(t *testing.T) {
	questions := want(new(string), question("a", "form", mail), question("r", "roots", `{}`))
	for _, c := range []struct {
		why     string
		answers map[string]string
		used    bool
	}{
		{"right", map[string]string{"a": mailed, "r": within, "x": `5`}, true},
		{"one is missing", map[string]string{"a": mailed}, false},
		{"one has a fault", map[string]string{"a": `12345`, "r": within}, false},
		{"one is no JSON", map[string]string{"a": `{`, "r": within}, false},
		{"outside", map[string]string{"a": mailed, "r": `{"roots":[{"uri":"file:///etc"}]}`}, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			k, e, s, j := inquiring(t, questions)
			o := handle(k, asks("web.search", "", c.answers), "")
			if c.used != (o.Refusal == nil) || c.used == (o.InputRequest != nil) {
				t.Fatalf("got %+v", o)
			}
			tasks := e.all()
			if tasks[0].Answers != nil || tasks[0].State != nil {
				t.Errorf("first with %v", tasks[0].Answers)
			}
			if !c.used {
				if len(tasks) != 1 || !slices.Equal(names(o.InputRequest), []string{"a", "r"}) {
					t.Errorf("%d runs, asked %v", len(tasks), names(o.InputRequest))
				}
				return
			}
			if len(tasks) != 2 || tasks[1].ID != tasks[0].ID || len(tasks[1].Answers) != 2 || tasks[1].State == nil {
				t.Fatalf("runs %+v", tasks)
			}
			if r := j.outcomes(o.CallID); len(r) != 1 || r[0].Attempt != 2 || r[0].Outcome != audit.Result {
				t.Errorf("outcomes %+v", r)
			}
			if kept, err := s.Get(context.Background(), o.CallID, store.OfAnyone()); err != nil || kept.Task.Effect != "once" {
				t.Errorf("kept as %+v, %v", kept.Task, err)
			}
		})
	}
	t.Run("asks again", func(t *testing.T) {
		e := &engine{}
		e.answer = func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Attempts: 1, InputRequired: want(nil, question("a", "form", mail))}, failed()
		}
		k := kernelOf(t, curious(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: store.NewMemory(time.Now)})
		o := handle(k, asks("web.search", "", map[string]string{"a": mailed}), "")
		if e.runs.Load() != 2 || !slices.Equal(names(o.InputRequest), []string{"a"}) {
			t.Fatalf("ran %d times: %+v", e.runs.Load(), o)
		}
		// A round that is answered may ask anew: then the state is another.
		next := handle(k, asks("web.search", o.RequestState, map[string]string{"a": mailed}), "")
		if e.runs.Load() != 3 || next.InputRequest == nil || next.RequestState == o.RequestState || next.RequestState != next.CallID {
			t.Errorf("ran %d times: %+v", e.runs.Load(), next)
		}
	})
}

// TestUnusableQuestions: what may not be asked ends as a failure without questions, and
// the operator reads why in no words of the tool's.
func TestUnusableQuestions(t *testing.T) {
	many := func(n int, params string) (list []tool.Question) {
		for i := range n {
			list = append(list, question(fmt.Sprintf("q%02d", i), "form", params))
		}
		return list
	}
	long, broken, other := strings.Repeat("a", 300<<10), "\xff", question("a", "form", mail)
	other.Method = "roots/list"
	big := `{"message":"` + strings.Repeat("a", 60<<10) + `","requestedSchema":{"type":"object","properties":{}}}`
	for _, c := range []struct {
		why       string
		tool      string
		requested *tool.InputRequired
		err       error
		code      refusal.Code
	}{
		{"nothing", "web.search", want(nil), nil, refusal.ToolFailed},
		{"a tool that may not", "data.plain", want(nil, question("a", "form", mail)), nil, refusal.ToolFailed},
		{"a state of a tool that may not", "data.plain", want(new(string)), nil, refusal.ToolFailed},
		{"a kind that it may not", "time.now", want(nil, question("a", "form", mail), question("hunter2", "roots", `{}`)), nil, refusal.ToolFailed},
		{"no kind", "web.search", want(nil, question("hunter2", "", `{}`)), nil, refusal.ToolFailed},
		{"another method", "web.search", want(nil, other), nil, refusal.ToolFailed},
		{"one that is none", "web.search", want(nil, question("a", "form", mail), question("b", "form", `{"message":"hunter2"}`)), nil, refusal.ToolFailed},
		{"a name that hides", "web.search", want(nil, question("hunter2\u200b", "form", mail)), nil, refusal.ToolFailed},
		{"two of one name", "web.search", want(nil, question("a", "form", mail), question("b", "form", mail), question("a", "form", mail)), nil, refusal.ToolFailed},
		{"too many", "web.search", want(nil, many(17, mail)...), nil, refusal.ToolFailed},
		{"too much", "web.search", want(nil, many(5, big)...), nil, refusal.ToolFailed},
		{"a state too long", "web.search", want(&long, question("a", "form", mail)), nil, refusal.ToolFailed},
		{"a state alone too long", "web.search", want(&long), nil, refusal.ToolFailed},
		{"a state that is no text", "web.search", want(&broken, question("a", "form", mail)), nil, refusal.ToolFailed},
		{"beside a call whose outcome is not known", "web.search", want(nil, question("a", "form", mail)), refusal.New(refusal.OutcomeUnknown, "m"), refusal.OutcomeUnknown},
		{"beside an error of no code", "web.search", want(nil, question("a", "form", mail)), errors.New("x"), refusal.Internal},
	} {
		t.Run(c.why, func(t *testing.T) {
			k, e, s, _ := inquiring(t, c.requested)
			e.err = c.err
			o := handle(k, asks(c.tool, "", map[string]string{"a": mailed, "b": mailed}), "")
			if o.Refusal == nil || o.Refusal.Code != c.code || o.InputRequest != nil || o.RequestState != "" || strings.Contains(string(o.Result), "hunter2") {
				t.Fatalf("got %+v, %s", o, o.Result)
			}
			if c.err == nil {
				if cause := errors.Unwrap(o.Refusal); cause == nil || strings.Contains(cause.Error(), "hunter2") {
					t.Errorf("the cause is %v", cause)
				}
			}
			if kept, err := s.Get(context.Background(), o.CallID, store.OfAnyone()); err != nil || metadataOf(t, kept).Questions != nil {
				t.Errorf("kept: %+v, %v", metadataOf(t, kept), err)
			}
			if len(e.all()) != 1 {
				t.Errorf("ran %d times", len(e.all()))
			}
		})
	}
	t.Run("in an answer that is posted", func(t *testing.T) {
		e := &engine{answer: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Pending: true}, nil }}
		s, ctx := store.NewMemory(time.Now), context.Background()
		k := kernelOf(t, curious(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: s})
		o := k.Execute(ctx, k.Kernel.Judge(ctx, asks("web.search", "", nil)))[0]
		post := calls.CallbackMessage{CallID: o.CallID, ID: o.CallID, Group: o.CallID, Digest: "x"}
		if err := k.Complete(ctx, post, calls.CallbackResult{Failure: "no", Output: tool.Result{InputRequired: want(nil, question("a", "form", mail))}}); err != nil {
			t.Fatal(err)
		}
		if kept, err := s.Get(ctx, o.CallID, store.OfAnyone()); err != nil || kept.Step != store.Ended || metadataOf(t, kept).Questions != nil {
			t.Errorf("kept: %+v, %v", kept, err)
		}
	})
	t.Run("beside a result", func(t *testing.T) {
		e := &engine{answer: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Body: []byte(`{}`), JSON: true, InputRequired: want(nil, question("a", "form", mail))}, nil
		}}
		k := kernelOf(t, curious(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: store.NewMemory(time.Now)})
		if o := handle(k, asks("web.search", "", nil), ""); o.Refusal != nil || o.InputRequest != nil {
			t.Errorf("got %+v", o)
		}
	})
}

// TestStateWithoutQuestions: a tool that only wants to be asked again is.
func TestStateWithoutQuestions(t *testing.T) {
	state := "s"
	k, e, _, _ := inquiring(t, want(&state))
	o := handle(k, asks("web.search", "", map[string]string{"a": mailed}), "")
	if o.InputRequest == nil || len(o.InputRequest.Questions) != 0 || len(e.all()) != 1 {
		t.Fatalf("got %+v", o)
	}
	if o := handle(k, asks("web.search", o.RequestState, nil), ""); o.Refusal != nil {
		t.Errorf("got %+v", o.Refusal)
	}
	if task := e.all()[1]; task.State == nil || *task.State != state || len(task.Answers) != 0 {
		t.Errorf("the tool is given %+v", task)
	}
}

// TestReplayedQuestions: a question is asked again of a caller that repeats its key,
// where it can answer.
func TestReplayedQuestions(t *testing.T) {
	k, e, _, _ := inquiring(t, want(nil, question("a", "form", mail)))
	first := handle(k, asks("web.search", "", nil), "key")
	for _, can := range [][]string{everything, {"form"}, {"url"}, nil} {
		r := asks("web.search", "", nil)
		r.Inputs[0].Dialogue.QuestionKinds = can
		o := handle(k, r, "key")
		if requested := slices.Contains(can, "form"); !o.Replayed || o.CallID != first.CallID || requested != (o.InputRequest != nil) || requested != (o.RequestState == first.CallID) {
			t.Errorf("%v: %+v", can, o)
		}
	}
	r := asks("web.search", "", nil)
	r.Inputs[0].Dialogue = nil
	if o := handle(k, r, "key"); !o.Replayed || o.InputRequest != nil || len(o.Result) == 0 {
		t.Errorf("got %+v", o)
	}
	if len(e.all()) != 1 {
		t.Errorf("ran %d times", len(e.all()))
	}
	// One answer counts, whatever keys come with it.
	o := handle(k, asks("web.search", first.RequestState, map[string]string{"a": mailed}), "key")
	if o.Refusal != nil || o.Replayed {
		t.Errorf("got %+v", o)
	}
	if second := handle(k, asks("web.search", first.RequestState, map[string]string{"a": mailed}), "key2"); !second.Replayed || second.CallID != o.CallID {
		t.Errorf("got %+v", second)
	}
	if o := handle(k, asks("web.search", first.RequestState, map[string]string{"a": `{"action":"decline"}`}), "key3"); refusedAs(o.Refusal) != "execute idempotency_conflict" {
		t.Errorf("got %+v", o)
	}
	if len(e.all()) != 2 {
		t.Errorf("ran %d times", len(e.all()))
	}
}

// TestStateKeys: no caller can take the key of an answer.
func TestStateKeys(t *testing.T) {
	k, e, _, _ := inquiring(t, nil)
	for _, key := range []string{"asked by call_x", "asked by "} {
		if o := handle(k, asks("web.search", "", nil), key); refusedAs(o.Refusal) != "request bad_request" {
			t.Errorf("%q: %+v", key, o)
		}
	}
	if len(e.all()) != 0 {
		t.Error("it ran")
	}
	if o := handle(k, asks("web.search", "", nil), "asked-by-call_x"); o.Refusal != nil {
		t.Error(o.Refusal)
	}
}

// TestTwoKernels: what one kernel asked, another is answered, and of two at once that
// are, one runs.
func TestTwoKernels(t *testing.T) {
	e, s, j := &inquirer{requested: want(nil, question("a", "form", mail))}, store.NewMemory(time.Now), &journal{}
	parts := calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e, Store: s}
	kernels := []*calls.Executor{kernelOf(t, curious(t), parts), kernelOf(t, curious(t), parts)}
	o := handle(kernels[0], asks("web.search", "", nil), "")
	var all sync.WaitGroup
	outcomes := make([]calls.Outcome, 8)
	for i := range outcomes {
		all.Go(func() {
			outcomes[i] = handle(kernels[i%2], asks("web.search", o.RequestState, map[string]string{"a": mailed}), "")
		})
	}
	all.Wait()
	for _, o := range outcomes {
		if o.Refusal != nil && o.Refusal.Code != refusal.CallInProgress {
			t.Errorf("got %+v", o.Refusal)
		}
	}
	if len(e.all()) != 2 {
		t.Errorf("ran %d times", len(e.all()))
	}
	if o := handle(kernels[1], asks("web.search", o.RequestState, map[string]string{"a": mailed}), ""); !o.Replayed || o.Refusal != nil {
		t.Errorf("got %+v", o)
	}
}

// TestQuestionsOfMarkup: what is asked is kept as it was read, so that it can be answered
// however much of it JSON could escape.
func TestQuestionsOfMarkup(t *testing.T) {
	params := strings.Replace(mail, "Your", strings.Repeat("<&>", 10<<10)+"Your", 1)
	k, e, s, _ := inquiring(t, want(nil, question("a", "form", params)))
	o := handle(k, asks("web.search", "", nil), "")
	if o.InputRequest == nil {
		t.Fatalf("got %+v", o)
	}
	if kept, err := s.Get(context.Background(), o.CallID, store.OfAnyone()); err != nil || len(kept.Metadata) > len(params)+1<<10 {
		t.Errorf("%d bytes are kept as %d: %v", len(params), len(kept.Metadata), err)
	}
	if o := handle(k, asks("web.search", o.RequestState, map[string]string{"a": mailed}), ""); o.Refusal != nil || len(e.all()) != 2 {
		t.Errorf("ran %d times: %+v", len(e.all()), o.Refusal)
	}
}

// TestAsksTakenAway: what a tool has asked is not answered once it may not ask it.
func TestAsksTakenAway(t *testing.T) {
	now := func(asks ...string) *gateway.Config {
		s := curious(t)
		tools, err := registry.New([]registry.Tool{{
			Name: "web.search", Version: "1.0.0", Effect: "read", InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{},"n":{}}}`),
			Run: tool.Run{Type: "mcp", URL: "https://a.example/", Tool: "web.search", Timeout: time.Second, InputRequests: asks},
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.Tools = tools
		return s
	}
	for _, c := range []struct {
		why       string
		requested *tool.InputRequired
		now       []string
		received  bool
	}{
		{"all", want(nil, question("a", "form", mail)), nil, false},
		{"one", want(nil, question("a", "form", mail), question("r", "roots", `{}`)), []string{"form", "url", "sampling"}, false},
		{"others", want(nil, question("a", "form", mail), question("r", "roots", `{}`)), []string{"roots", "form"}, true},
		{"all, with nothing asked", want(new(string)), nil, false},
		{"others, with nothing asked", want(new(string)), []string{"url"}, true},
	} {
		t.Run(c.why, func(t *testing.T) {
			k, e, _, _ := inquiring(t, c.requested)
			o := handle(k, asks("web.search", "", nil), "")
			if o.InputRequest == nil {
				t.Fatalf("got %+v", o)
			}
			if err := k.Kernel.Swap(now(c.now...)); err != nil {
				t.Fatal(err)
			}
			answers := map[string]string{"a": mailed, "r": within}
			done := handle(k, asks("web.search", o.RequestState, answers), "")
			if c.received {
				if done.Refusal != nil || len(e.all()) != 2 {
					t.Errorf("ran %d times: %+v", len(e.all()), done.Refusal)
				}
				return
			}
			if refusedAs(done.Refusal) != "schema invalid_value" || done.Refusal.Violations[0].Path != "/requestState" || done.InputRequest != nil || len(e.all()) != 1 {
				t.Errorf("ran %d times: %+v", len(e.all()), done)
			}
			// Nor are questions shown again that are not answered.
			if done = handle(k, asks("web.search", o.RequestState, nil), ""); done.InputRequest != nil || refusedAs(done.Refusal) != "schema invalid_value" {
				t.Errorf("without answers: %+v", done)
			}
		})
	}
}

// TestAnswerWhileAnotherIsJudged: an answer is no conflict with one that may still be
// refused, and a conflict says what stands.
func TestAnswerWhileAnotherIsJudged(t *testing.T) {
	k, e, s, _ := inquiring(t, want(nil, question("a", "form", mail)))
	o := handle(k, asks("web.search", "", nil), "")
	ctx := context.Background()
	first, err := s.Get(ctx, o.CallID, store.OfAnyone())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(ctx, store.Call{ID: "call_judged", Scope: first.Scope, Key: "asked by " + o.RequestState, Digest: "other"}); err != nil {
		t.Fatal(err)
	}
	answer := asks("web.search", o.RequestState, map[string]string{"a": mailed})
	if got := handle(k, answer, ""); refusedAs(got.Refusal) != "execute call_in_progress" || strings.Contains(got.Refusal.Message, "key") {
		t.Errorf("meanwhile: %+v", got.Refusal)
	}
	if err := s.Settle(ctx, "call_judged"); err != nil {
		t.Fatal(err)
	}
	if got := handle(k, answer, ""); got.Refusal != nil || len(e.all()) != 2 {
		t.Errorf("then: %+v", got.Refusal)
	}
	if got := handle(k, asks("web.search", o.RequestState, map[string]string{"a": `{"action":"decline"}`}), ""); refusedAs(got.Refusal) != "execute idempotency_conflict" || strings.Contains(got.Refusal.Message, "key") {
		t.Errorf("another: %+v", got.Refusal)
	}
}

// TestManyFoldersOutside: what one refusal lists is bounded.
func TestManyFoldersOutside(t *testing.T) {
	k, e, _, _ := inquiring(t, want(nil, question("a", "roots", `{}`), question("b", "roots", `{}`)))
	o := handle(k, asks("web.search", "", nil), "")
	roots := `{"roots":[{"uri":"file:///etc"}` + strings.Repeat(`,{"uri":"file:///etc"}`, 63) + `]}`
	got := handle(k, asks("web.search", o.RequestState, map[string]string{"a": roots, "b": roots}), "")
	if refusedAs(got.Refusal) != "project boundary_violation" || len(got.Refusal.Violations) != 100 || len(e.all()) != 1 {
		t.Errorf("%d violations: %+v", len(got.Refusal.Violations), got.Refusal.Message)
	}
}

// TestStateOutlastsOtherCalls: what a tool asks is known after more calls of the same caller than a
// gateway without Redis keeps of those that were answered.
func TestStateOutlastsOtherCalls(t *testing.T) {
	file, err := boltstore.Open(t.TempDir(), boltstore.Options{UnkeyedInMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	e := &inquirer{requested: want(nil, question("a", "form", mail))}
	k := kernelOf(t, curious(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: discard{}}, Engine: e, Store: file})
	asked := handle(k, asks("web.search", "", nil), "")
	e.requested = nil
	first := handle(k, asks("web.search", "", nil), "")
	for range 7000 {
		if o := handle(k, asks("web.search", "", nil), ""); o.Refusal != nil {
			t.Fatal(o.Refusal)
		}
	}
	if _, err := file.Get(t.Context(), first.CallID, store.OfAnyone()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("all calls are kept: %v", err)
	}
	if o := handle(k, asks("web.search", asked.RequestState, map[string]string{"a": mailed}), ""); o.Refusal != nil {
		t.Errorf("the state %q is forgotten: %v", asked.RequestState, o.Refusal)
	}
}

// amnesiac is a store that cannot be asked for calls.
type amnesiac struct {
	*store.Memory
	how func() error
}

func (s amnesiac) Get(context.Context, string, store.Whose) (store.Call, error) {
	return store.Call{}, s.how()
}

// TestStateThatCannotBeLookedUp: nothing is executed, and no key is held.
func TestStateThatCannotBeLookedUp(t *testing.T) {
	for _, how := range []func() error{func() error { return store.ErrUnavailable }, func() error { panic("secret of the store") }} {
		e, s := &inquirer{requested: want(nil, question("a", "form", mail))}, store.NewMemory(time.Now)
		parts := calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: s}
		k := kernelOf(t, curious(t), parts)
		parts.Store = amnesiac{s, how}
		o := handle(k, asks("web.search", "", nil), "")
		answer := asks("web.search", o.RequestState, map[string]string{"a": mailed})
		if o := handle(kernelOf(t, curious(t), parts), answer, ""); refusedAs(o.Refusal) != "execute store_unavailable" || strings.Contains(string(o.Result), "secret") {
			t.Errorf("got %+v", o.Refusal)
		}
		for _, none := range []string{" ", strings.Repeat("a", 129)} { // it is not asked for what is no id
			if o := handle(kernelOf(t, curious(t), parts), asks("web.search", none, nil), ""); refusedAs(o.Refusal) != "schema invalid_value" {
				t.Errorf("%q: %+v", none, o.Refusal)
			}
		}
		if len(e.all()) != 1 {
			t.Error("it ran")
		}
		if o := handle(k, answer, ""); o.Refusal != nil || o.Replayed {
			t.Errorf("later: %+v", o)
		}
	}
}

// TestAnswersElsewhere: answers are for calls that are executed here, and under a key.
func TestAnswersElsewhere(t *testing.T) {
	k, e, s, j := inquiring(t, want(nil, question("a", "form", mail)))
	o := handle(k, asks("web.search", "", nil), "")
	answer := asks("web.search", o.RequestState, map[string]string{"a": mailed})
	ctx := context.Background()
	if got := k.Execute(ctx, k.Kernel.Judge(ctx, answer))[0]; refusedAs(got.Refusal) != "execute internal" || len(e.all()) != 1 {
		t.Errorf("without a key: %+v", got)
	}
	for _, d := range []*elicit.Dialogue{answer.Inputs[0].Dialogue, {QuestionKinds: everything, Answers: map[string]json.RawMessage{"a": json.RawMessage(mailed)}}} {
		in := answer
		in.Inputs = []gateway.Input{answer.Inputs[0]}
		in.Inputs[0].Dialogue = d
		a := admit(t, k, gateway.Request{})
		if got := refusedBy(a.Judge(ctx, gateway.ModeEnforce, in.Inputs...)); got != "schema internal" {
			t.Errorf("handed over: %s", got)
		}
	}
	two := answer
	two.Inputs = append(slices.Clone(answer.Inputs), timeNow())
	if got := handle(k, two, ""); refusedAs(got.Refusal) != "request bad_request" {
		t.Errorf("beside another: %+v", got)
	}
	// Check writes nothing, and uses up nothing.
	records := len(j.all())
	if r := k.Kernel.Check(ctx, answer); r.Verdict != gateway.VerdictCall || len(j.all()) != records || len(e.all()) != 1 {
		t.Errorf("checked: %+v", r)
	}
	if r := k.Kernel.Check(ctx, asks("web.search", "call_x", nil)); refusedAs(r.Refusal) != "schema invalid_value" {
		t.Errorf("checked: %+v", r)
	}
	if kept, err := s.Get(ctx, o.CallID, store.OfAnyone()); err != nil || kept.Delivered != true {
		t.Errorf("kept %+v, %v", kept, err)
	}
	if o := handle(k, answer, ""); o.Refusal != nil || o.Replayed {
		t.Errorf("then: %+v", o)
	}
}

// TestAnswersAreNotRepeated: a call that brought answers, which is kept as one that acts
// once, is not dispatched again by who comes after a crash.
func TestAnswersAreNotRepeated(t *testing.T) {
	dir, j, e := t.TempDir(), &journal{}, &inquirer{}
	before := j.node(t, dir, curious(t), nil, time.Now)
	task := store.Task{Tool: "web.search", Version: "1.0.0", Effect: "read", Arguments: []byte(`{}`)}
	before.leave(t, j, "call_plain", task, store.Dispatched)
	task.Effect = "once"
	before.leave(t, j, "call_answer", task, store.Dispatched)
	if err := before.store.Close(); err != nil {
		t.Fatal(err)
	}
	n := j.node(t, dir, curious(t), e, time.Now)
	n.reconcile(t, j.past())
	if tasks := e.all(); len(tasks) != 1 || tasks[0].ID != "call_plain" || tasks[0].QuestionKinds != nil || tasks[0].Progress != nil {
		t.Errorf("ran %+v", tasks)
	}
	if r := j.outcomes("call_answer"); len(r) != 1 || r[0].Code != refusal.OutcomeUnknown {
		t.Errorf("outcomes %+v", r)
	}
}

// TestProgressIsTold: what is progress is told in its order, and nothing else is.
func TestProgressIsTold(t *testing.T) {
	nan, inf := nothing(), 1/zero
	e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
		for _, p := range []tool.Progress{
			{Done: 0, Total: 2, Message: "a\u202eb"}, {Done: 0}, {Done: -1}, {Done: nan}, {Done: inf}, {Done: 0.5, Total: nan}, {Done: 0.25}, {Done: 0.6, Total: -1}, {Done: 0.7, Total: inf},
			{Done: 1, Message: strings.Repeat("é", 600)}, {Done: 2, Message: strings.Repeat("\x01", 1000)}, {Done: 3, Message: "\xff"},
		} {
			task.Progress(p)
		}
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}}
	k := open(t, e, &journal{})
	var received []tool.Progress
	r := completion(search)
	r.Inputs[0].Dialogue = &elicit.Dialogue{Progress: func(p tool.Progress) { received = append(received, p) }}
	if o := handle(k, r, ""); o.Refusal != nil {
		t.Fatal(o.Refusal)
	}
	want := []tool.Progress{
		{Done: 0, Total: 2, Message: `a\u202eb`}, {Done: 0.5}, {Done: 0.6}, {Done: 0.7}, {Done: 1, Message: strings.Repeat("é", 512)},
		{Done: 2, Message: strings.Repeat(`\u0001`, 171)[:1024]}, {Done: 3, Message: "\uFFFD"},
	}
	if !slices.Equal(received, want) {
		t.Errorf("told %+v\nexpected %+v", received, want)
	}
	r.Inputs[0].Dialogue = nil
	e.answer = func(_ context.Context, task tool.Call) (tool.Result, error) {
		if task.Progress != nil {
			t.Error("nobody asked for progress")
		}
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}
	handle(k, r, "")
}

var zero float64

func nothing() float64 { return zero / zero }

// TestProgressEnds: nothing is told once there is an outcome, also where the engine was
// not waited for, and one that panics is told no more and ends no call.
func TestProgressEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
			task.Progress(tool.Progress{Done: 1})
			time.Sleep(task.Run.Timeout + time.Minute) // which nobody waits for
			task.Progress(tool.Progress{Done: 2})
			close(late)
			return tool.Result{}, nil
		}}
		k := open(t, e, &journal{})
		reports := 0
		r := completion(search)
		r.Inputs[0].Dialogue = &elicit.Dialogue{Progress: func(tool.Progress) { reports++ }}
		if o := handle(k, r, ""); refusedAs(o.Refusal) != "execute tool_timeout" || reports != 1 {
			t.Errorf("told %d times: %+v", reports, o.Refusal)
		}
		<-late
		if reports != 1 {
			t.Error("told after the outcome")
		}
	})
	var kept func(tool.Progress)
	e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
		kept = task.Progress
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() { task.Progress(tool.Progress{Done: float64(i)}) })
		}
		all.Wait()
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}}
	k := open(t, e, &journal{})
	notified := 0 // not guarded: it is told by one at a time
	r := completion(search)
	r.Inputs[0].Dialogue = &elicit.Dialogue{Progress: func(tool.Progress) { notified++; panic("secret") }}
	if o := handle(k, r, ""); o.Refusal != nil || notified != 1 {
		t.Errorf("told %d times: %+v", notified, o.Refusal)
	}
	kept(tool.Progress{Done: 100})
	if notified != 1 {
		t.Error("told after the outcome")
	}
	var last []float64
	r.Inputs[0].Dialogue = &elicit.Dialogue{Progress: func(p tool.Progress) { last = append(last, p.Done) }}
	if o := handle(k, r, ""); o.Refusal != nil || !slices.IsSorted(last) || last[len(last)-1] != 7 {
		t.Errorf("told %v: %+v", last, o.Refusal)
	}
}

// TestProgressOfTwoRounds: it grows across both.
func TestProgressOfTwoRounds(t *testing.T) {
	e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
		for done := range 3 {
			task.Progress(tool.Progress{Done: float64(done + len(task.Answers))})
		}
		if task.Answers == nil {
			return tool.Result{InputRequired: want(nil, question("a", "form", mail))}, failed()
		}
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}}
	k := kernelOf(t, curious(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: store.NewMemory(time.Now)})
	var received []float64
	r := asks("web.search", "", map[string]string{"a": mailed})
	r.Inputs[0].Dialogue.Progress = func(p tool.Progress) { received = append(received, p.Done) }
	if o := handle(k, r, ""); o.Refusal != nil || !slices.Equal(received, []float64{0, 1, 2, 3}) {
		t.Errorf("told %v: %+v", received, o.Refusal)
	}
}

// metadataOf is what a store keeps of a call beside its result.
func metadataOf(t *testing.T, call store.Call) (m calls.Metadata) {
	t.Helper()
	if call.Metadata == nil {
		return m
	}
	if err := json.Unmarshal(call.Metadata, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
