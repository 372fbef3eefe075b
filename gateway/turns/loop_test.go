package turns_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// script is a source of turns whose model answers with the calls and texts of a list, in turn, and with
// the last from then on. A call is NAME, a text has a space.
type script struct {
	t        *testing.T
	run      *turns.Run
	turns    []string
	final    bool
	fails    error  // of the turn after the last
	asked    func() // with each request, if it is set
	slow     time.Duration
	panics   bool
	tokens   int64
	bare     bool // the turns have no usage beside their tokens
	size     int  // of an appended turn
	requests int
	inputs   []string
	appended []string // of each turn: the results
}

func (s *script) RequestTurn(modelCtx, ctx context.Context) (*turns.Turn, error) {
	if s.panics {
		return nil, s.run.Wait("", func() error { panic("no") })
	}
	if s.fails != nil && s.requests == len(s.turns) {
		return nil, s.fails
	}
	if s.asked != nil {
		s.asked()
	}
	select {
	case <-modelCtx.Done():
		return nil, modelCtx.Err()
	case <-time.After(s.slow):
	}
	s.inputs = strings.Split(s.turns[min(s.requests, len(s.turns)-1)], "+")
	s.requests++
	var inputs []gateway.Input
	for _, in := range s.inputs {
		if strings.Contains(in, " ") {
			inputs = append(inputs, gateway.Input{Completion: []byte(in), TextOnly: true})
			continue
		}
		inputs = append(inputs, gateway.Input{Native: &gateway.NativeCall{Name: s.run.RegistryName(in), Wire: in, Arguments: []byte(`{}`)}})
	}
	d := s.run.Admission.WithConstraints(s.run.Constraints()).Judge(ctx, s.run.Mode, inputs...)
	turn := &turns.Turn{Decisions: []*gateway.Decision{d}, Final: s.final, Tokens: s.tokens}
	if !s.bare {
		turn.Usage = fmt.Appendf(nil, `{"n":%d}`, s.tokens)
	}
	return turn, nil
}

func (s *script) Append(outcomes []calls.Outcome) int {
	if len(outcomes) != len(s.inputs) {
		s.t.Errorf("%d outcomes of %d inputs", len(outcomes), len(s.inputs))
	}
	var all []string
	for i := range outcomes {
		if strings.Contains(s.inputs[i], " ") {
			continue
		}
		all = append(all, string(turns.Feedback(outcomes[i], s.inputs[i])))
	}
	s.appended = append(s.appended, strings.Join(all, "\n"))
	return s.size
}

func (s *script) Input(i int) []byte { return []byte(s.inputs[i]) }

// forgetful is a store that does not take some dispatches.
type forgetful struct {
	calls.Store
	unsaved func(call int) bool
	calls   int
}

func (s *forgetful) Dispatch(ctx context.Context, id string, task store.Task) error {
	if s.calls++; s.unsaved(s.calls) {
		return errors.New("the disk is full")
	}
	return s.Store.Dispatch(ctx, id, task)
}

// ended is what a run came to.
type ended struct {
	*script
	failed *turns.Failure
	beats  []string
	head   http.Header
	run    *runs.Run
}

// plan is one run.
type plan struct {
	script  script
	rules   func(*upstream.Rules)
	names   []string // of the request's tools
	stream  bool
	kept    func() // with each sign of life of a stream, if it is set
	engine  facetest.ToolFunc
	unsaved func(call int) bool // the dispatches that the store does not take, if it is set
	ctx     context.Context
	// observer follows the run, if it is set.
	observer turns.Observer
}

// ends runs a script through a route as a face would.
func ends(t *testing.T, p plan) ended {
	t.Helper()
	if p.engine == nil {
		p.engine = func(tool.Call) (tool.Result, error) { return tool.Result{Body: []byte(`{"ok":true}`), JSON: true}, nil }
	}
	change := func(_ *gateway.Config, d *calls.Deps) {
		if p.unsaved != nil {
			d.Store = &forgetful{Store: d.Store, unsaved: p.unsaved}
		}
	}
	h := facetest.New(t, facetest.Options{Config: facetest.Vectors(t), Engine: p.engine, Change: change})
	d := upstream.Defaults()
	d.Name, d.BaseURL, d.Models = "sample", "http://127.0.0.1:1/v1", []upstream.Model{{ID: "m"}}
	if p.rules != nil {
		p.rules(&d.Rules)
	}
	set, err := upstream.New([]upstream.Definition{d})
	if err != nil {
		t.Fatal(err)
	}
	did := runs.New(runs.Options{})
	options := turns.Options{Executor: h.Executor, Upstreams: func() *upstream.Set { return set }, Runs: did, Heartbeat: time.Millisecond}
	p.script.t = t
	result := ended{script: &p.script}
	serve := func(c *gin.Context, received server.Request) {
		ctx := c.Request.Context()
		if p.ctx != nil {
			ctx = p.ctx
		}
		admission, err := h.Executor.Kernel.Admit(ctx, received.Request)
		if err != nil {
			t.Fatal(err)
		}
		r, err := options.Open(received, admission, upstream.ChatWire, "m")
		if err != nil {
			t.Fatal(err)
		}
		r.MaxAdded, r.Observer = 100, p.observer
		offer := func() error { return r.SetOffer(p.names, func(int) error { return errors.New("unknown") }) }
		if err := errors.Join(r.SetMode(""), offer(), r.NarrowChoice(turns.ToolChoice{}, p.names)); err != nil {
			t.Fatal(err)
		}
		if p.stream {
			r.KeepAlive = func(note string) {
				if result.beats = append(result.beats, note); p.kept != nil {
					p.kept()
				}
			}
		}
		p.script.run = r
		result.failed = r.Turns(ctx, &p.script)
		r.SetHeaders(c)
		c.Status(http.StatusOK)
	}
	h.Mount(server.Route{Method: http.MethodPost, Path: "/run", Refuse: func(*gin.Context, *refusal.Error) {}, Serve: serve})
	w := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/run", strings.NewReader("{}"))
	request.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, request)
	result.head = w.Header()
	result.run = did.Find("", w.Header().Get(server.HeaderRunID))
	if result.run == nil {
		t.Fatal("the run has no record")
	}
	return result
}

func code(f *turns.Failure) refusal.Code {
	switch {
	case f == nil:
		return ""
	case f.Upstream != nil:
		return refusal.Code(fmt.Sprint(f.Upstream.Status))
	}
	return f.Refused.Code
}

func orchestrate(r *upstream.Rules) { r.Modes = []upstream.Mode{upstream.Orchestrate} }

// orchestrating are rules under which Callgate runs the tools, with changes.
func orchestrating(change func(*upstream.Rules)) func(*upstream.Rules) {
	return func(r *upstream.Rules) { orchestrate(r); change(r) }
}

// TestTurns: how runs go on and end.
func TestTurns(t *testing.T) {
	names := []string{"time_now", "files_delete"}
	turned := &upstream.StatusError{Status: 404}
	for name, c := range map[string]struct {
		plan
		code      refusal.Code
		requests  int
		appended  int
		retryable bool
		message   bool
	}{
		"a text": {
			plan:     plan{script: script{turns: []string{"well then"}}},
			requests: 1,
		},
		"a call, handed over": {
			plan:     plan{script: script{turns: []string{"time_now"}}, names: names},
			requests: 1,
		},
		"a call, executed": {
			plan:     plan{script: script{turns: []string{"time_now", "so be it"}}, rules: orchestrate},
			requests: 2, appended: 1,
		},
		"text and calls": {
			plan:     plan{script: script{turns: []string{"let me+time_now+time_now", "so be it"}}, rules: orchestrate},
			requests: 2, appended: 1,
		},
		"repaired": {
			plan:     plan{script: script{turns: []string{"files_delete", "time_now"}}, names: names},
			requests: 2, appended: 1,
		},
		"repairs are used up": {
			plan: plan{script: script{turns: []string{"files_delete"}}, names: names},
			code: refusal.PermissionDenied, requests: 3, appended: 2,
		},
		"a call resets repairs": {
			plan: plan{
				script: script{turns: []string{"files_delete", "time_now", "files_delete", "well then"}},
				rules:  orchestrating(func(r *upstream.Rules) { r.MaxRepairs = 1 }),
			},
			requests: 4, appended: 3,
		},
		"a loop": {
			plan: plan{
				script: script{turns: []string{"files_delete"}},
				rules:  orchestrating(func(r *upstream.Rules) { r.MaxRepairs = 9 }),
			},
			code: refusal.LoopDetected, requests: 3, appended: 2,
		},
		"a final turn": {
			plan: plan{script: script{turns: []string{"files_delete"}, final: true}, names: names},
			code: refusal.PermissionDenied, requests: 1,
		},
		"a message": {
			plan: plan{
				script: script{turns: []string{"files_delete"}, final: true}, names: names,
				rules: func(r *upstream.Rules) { r.Refusals = upstream.AsMessage },
			},
			code: refusal.PermissionDenied, requests: 1, message: true,
		},
		"too many turns": {
			plan: plan{
				script: script{turns: []string{"time_now"}},
				rules:  orchestrating(func(r *upstream.Rules) { r.MaxTurns = 2 }),
			},
			code: refusal.BoundReached, requests: 3, appended: 2,
		},
		"too many bytes": {
			plan: plan{script: script{turns: []string{"time_now"}, size: 60}, rules: orchestrate},
			code: refusal.BoundReached, requests: 2, appended: 2,
		},
		"too many tokens": {
			plan: plan{
				script: script{turns: []string{"time_now"}, tokens: 7},
				rules:  orchestrating(func(r *upstream.Rules) { r.TokenBudget = 14 }),
			},
			code: refusal.BoundReached, requests: 2, appended: 2,
		},
		"too many tokens, without their object": {
			plan: plan{
				script: script{turns: []string{"time_now"}, tokens: 7, bare: true},
				rules:  orchestrating(func(r *upstream.Rules) { r.TokenBudget = 14 }),
			},
			code: refusal.BoundReached, requests: 2, appended: 2,
		},
		"tokens are not known": {
			plan: plan{
				script: script{turns: []string{"time_now"}},
				rules:  orchestrating(func(r *upstream.Rules) { r.TokenBudget = 14 }),
			},
			code: refusal.BoundReached, requests: 1, appended: 1,
		},
		"too long": {
			plan: plan{
				script: script{turns: []string{"time_now"}, slow: time.Hour},
				rules:  orchestrating(func(r *upstream.Rules) { r.RunTimeout = time.Millisecond }),
			},
			code: refusal.BoundReached,
		},
		"the provider refuses": {
			plan: plan{script: script{fails: turned}},
			code: "404", retryable: true,
		},
		"it refuses after a step": {
			plan: plan{script: script{turns: []string{"time_now"}, fails: turned}, rules: orchestrate},
			code: "404", requests: 1, appended: 1,
		},
		"any other error": {
			plan: plan{script: script{fails: errors.New("x")}},
			code: refusal.Internal,
		},
	} {
		got := ends(t, c.plan)
		if code(got.failed) != c.code || got.requests != c.requests || len(got.appended) != c.appended {
			t.Errorf("%s: found %q, %d requests, %d appended; want %q, %d, %d",
				name, code(got.failed), got.requests, len(got.appended), c.code, c.requests, c.appended)
		}
		if got.failed != nil && (got.failed.Retryable != c.retryable || (got.failed.Message != "") != c.message) {
			t.Errorf("%s: retryable %v, the message %q", name, got.failed.Retryable, got.failed.Message)
		}
		want := runs.Answered
		if got.failed != nil {
			want = runs.Failed
		}
		if got.run.State != want || len(got.run.Turns) != c.requests {
			t.Errorf("%s: the record says %s, with %d turns", name, got.run.State, len(got.run.Turns))
		}
		if (got.head.Get(server.HeaderCallID) != "") != (c.requests > 0) {
			t.Errorf("%s: the call id is %q", name, got.head.Get(server.HeaderCallID))
		}
	}
}

// TestEveryCallHasAResult: in a repair each call of the turn has a result, also one that would
// have passed (AM-73, RS-90).
func TestEveryCallHasAResult(t *testing.T) {
	got := ends(t, plan{
		script: script{turns: []string{"let me+time_now+files_delete+nothing_such", "well then"}},
		names:  []string{"time_now", "files_delete"},
	})
	lines := strings.Split(got.appended[0], "\n")
	wants := []string{"This call was not run: another call of the same answer was refused.", "This call was not run", "unknown_tool"}
	if len(lines) != len(wants) {
		t.Fatalf("found the results %q", lines)
	}
	for i, want := range wants {
		if !strings.Contains(lines[i], want) {
			t.Errorf("found %s, want %s", lines[i], want)
		}
	}
}

// TestUnsavedBesideCallsThatRan: where one call of a turn cannot be saved and others run, the model reads of
// each. Where none runs, the run fails.
func TestUnsavedBesideCallsThatRan(t *testing.T) {
	for name, c := range map[string]struct {
		unsaved func(int) bool
		want    refusal.Code
		results []string
	}{
		"the second": {func(n int) bool { return n == 2 }, "", []string{`"ok":true`, "could not be saved and was not executed", `"ok":true`}},
		"the first":  {func(n int) bool { return n == 1 }, "", []string{"could not be saved and was not executed", `"ok":true`, `"ok":true`}},
		"all":        {func(int) bool { return true }, refusal.StoreUnavailable, nil},
	} {
		got := ends(t, plan{
			script: script{turns: []string{"time_now+time_now+time_now", "well then"}}, rules: orchestrate, names: []string{"time_now"},
			unsaved: c.unsaved,
		})
		if code(got.failed) != c.want || len(got.appended) != min(len(c.results), 1) {
			t.Errorf("%s: the run ended with %q, with results of %d turns", name, code(got.failed), len(got.appended))
			continue
		}
		if c.results == nil {
			continue
		}
		lines := strings.Split(got.appended[0], "\n")
		for i, want := range c.results {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s: found %s, want %s", name, lines[i], want)
			}
		}
	}
}
