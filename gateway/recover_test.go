package gateway_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/workers"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/redisstore"
	"github.com/callgate/callgate/tool"
)

// past is the content of a journal, as a starting process gets it.
func (j *journal) past() calls.Backlog {
	ended := map[string]audit.Outcome{}
	for _, r := range j.all() {
		if r.Event == audit.Ending {
			ended[r.CallID] = r.Outcome
		}
	}
	p := calls.Backlog{Ended: func([]string) (map[string]audit.Outcome, error) { return ended, nil }}
	for _, r := range j.all() {
		if r.Event == audit.Decision && r.Verdict == audit.ToolCall && ended[r.CallID] == "" {
			p.Open = append(p.Open, r)
		}
	}
	return p
}

// outcomes are those of one call.
func (j *journal) outcomes(id string) (outcomes []audit.Record) {
	for _, r := range j.all() {
		if r.Event == audit.Ending && r.CallID == id {
			outcomes = append(outcomes, r)
		}
	}
	return outcomes
}

// node is a gateway on the files of a folder, without limits.
type node struct {
	*calls.Executor
	store *boltstore.Store
	now   func() time.Time
}

func (j *journal) node(t testing.TB, dir string, s *gateway.Config, e workers.Engine, now func() time.Time) *node {
	t.Helper()
	return j.nodeOn(t, dir, s, e, now, func(f *boltstore.Store) calls.Store { return f })
}

func (j *journal) nodeOn(t testing.TB, dir string, s *gateway.Config, e workers.Engine, now func() time.Time, of func(*boltstore.Store) calls.Store) *node {
	t.Helper()
	f, err := boltstore.Open(dir, boltstore.Options{Wait: time.Minute, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // those that end before have closed it
	return &node{kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j, Now: now, Replica: "b"}, Engine: e, Store: of(f), Node: "node"}), f, now}
}

// reconcile runs the reconciler once, and until nothing unfinished is left.
func (n *node) reconcile(t testing.TB, past calls.Backlog) calls.ReconcileStats {
	t.Helper()
	var mu sync.Mutex
	var all calls.ReconcileStats
	reconciler := n.Reconcile(past, func(done calls.ReconcileStats) {
		mu.Lock()
		defer mu.Unlock()
		all = done
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reconciler.Stop(ctx)
	if err := n.Executor.Kernel.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if all.Err != nil {
		t.Error(all.Err)
	}
	return all
}

// leave is a call that a process has left at a step, with its decision.
func (n *node) leave(t testing.TB, j *journal, id string, task store.Task, step store.Step) {
	t.Helper()
	ctx := context.Background()
	scope := store.Scope{Workspace: "acme", Project: "alpha"}
	task.Agent, task.RequestID, task.Thread, task.Caller, task.Config, task.Input = "Analyst", "req", "thread", "192.0.2.1", "digest", "input"
	r := audit.Record{
		Event: audit.Decision, Mode: audit.Call, Verdict: audit.ToolCall, CallID: id, Replica: "a", Tool: task.Tool, ToolVersion: task.Version,
		Agent: "Analyst", Workspace: "acme", Project: "alpha", RequestID: "req", Thread: "thread", Principal: "192.0.2.1", ConfigDigest: "digest",
		InputSHA256: "input", ArgumentsSHA256: "arguments", Micros: 5, KeySHA256: hex.EncodeToString(store.KeyHash(scope, "key of "+id)), RequestSHA256: "request",
		Approvals: []string{"grant_1"}, Rules: []string{"refunds=1"}, Rows: []string{"policy.csv:1"}, Hooks: []string{"masks"}, Spends: []string{"spent"},
		Ledger: "00ff", Turn: 7, CallerTurn: 8, Adds: []string{"at:2026-11-28T00:00:00Z", "label:untrusted"}, Saw: []string{"thread.labels="},
	}
	if err := j.Append(ctx, r); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := n.store.Open(ctx, store.Call{ID: id, Scope: scope, Key: "key of " + id, Digest: "request"})
	must(err)
	if step == store.Opened {
		return
	}
	must(n.store.Dispatch(ctx, id, task))
	if step == store.Waiting {
		must(n.store.Update(ctx, id, store.Defer{Until: n.now().Add(time.Hour)}))
	}
	if step == store.Ended {
		_, err := n.store.Finish(ctx, id, store.Ending{State: store.Done, Attempt: "node/" + id, Answer: store.Answer{
			Result: []byte(`{"tool_result":{"tool":"web.search","output":{"ok":true}}}`), Status: 200,
		}})
		must(err)
	}
}

var (
	reads    = store.Task{Tool: "web.search", Version: "1.0.0", Effect: "read", Arguments: []byte(`{ "query":"x"}`)}
	actsOnce = store.Task{Tool: "payments.refund", Version: "1.0.0", Effect: "once", Arguments: []byte(`{"payment_id":"pay_abc123","amount":1}`)}
)

// TestRecovery: whatever a process has left ends with one outcome, and nothing acts
// twice that may act once.
func TestRecovery(t *testing.T) {
	changed := func(change func(*store.Task)) store.Task {
		task := reads
		change(&task)
		return task
	}
	type want struct {
		outcome audit.Outcome
		code    refusal.Code
		runs    int64
		state   store.State
	}
	unknown := want{audit.Unknown, refusal.OutcomeUnknown, 0, store.Unknown}
	for name, c := range map[string]struct {
		task store.Task
		step store.Step
		want want
	}{
		"it may have acted":       {actsOnce, store.Dispatched, unknown},
		"it reads":                {reads, store.Dispatched, want{audit.Result, "", 1, store.Done}},
		"another version":         {changed(func(t *store.Task) { t.Version = "0.9.0" }), store.Dispatched, unknown},
		"another effect":          {changed(func(t *store.Task) { t.Effect = "idempotent" }), store.Dispatched, unknown},
		"other arguments now":     {changed(func(t *store.Task) { t.Arguments = []byte(`{"query":1}`) }), store.Dispatched, unknown},
		"no such tool":            {changed(func(t *store.Task) { t.Tool = "web.gone" }), store.Dispatched, unknown},
		"its tool is stopped":     {reads, store.Dispatched, unknown},
		"it ran as its caller":    {reads, store.Dispatched, unknown}, // whose token is not kept
		"it waits":                {actsOnce, store.Waiting, want{state: store.Pending}},
		"it has ended":            {reads, store.Ended, want{audit.Result, "", 0, store.Done}},
		"it was never dispatched": {reads, store.Opened, want{outcome: audit.Unknown, code: refusal.OutcomeUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, s, j := t.TempDir(), loose(t), &journal{}
			if name == "it ran as its caller" {
				s.Tools = asCaller(t)
			}
			before := j.node(t, dir, s, nil, time.Now)
			before.leave(t, j, "call_1", c.task, c.step)
			if err := before.store.Close(); err != nil {
				t.Fatal(err)
			}
			var got tool.Call
			e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
				got = task
				return tool.Result{Body: []byte(`{"results":[]}`), JSON: true, Attempts: 1}, nil
			}}
			for round := range 3 { // as often as it starts
				n := j.node(t, dir, s, e, time.Now)
				if name == "its tool is stopped" {
					n.Executor.Kernel.Stop([]store.Stop{{ID: "stop_1", Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "web.*", Thread: "thread"}}, true)
				}
				n.reconcile(t, j.past())
				outcomes := j.outcomes("call_1")
				if c.want.outcome == "" {
					if len(outcomes) != 0 {
						t.Errorf("start %d: %+v", round, outcomes)
					}
				} else if len(outcomes) != 1 || outcomes[0].Outcome != c.want.outcome || outcomes[0].Code != c.want.code {
					t.Fatalf("start %d: %+v", round, outcomes)
				} else if r := outcomes[0]; r.Replica != "b" || r.Tool != c.task.Tool || r.ToolVersion != c.task.Version || r.Principal != "192.0.2.1" || r.Agent != "Analyst" ||
					r.Workspace != "acme" || r.Project != "alpha" || r.RequestID != "req" || r.Thread != "thread" || r.ConfigDigest != "digest" || r.InputSHA256 != "input" || r.ArgumentsSHA256 == "" ||
					r.KeySHA256 != j.all()[0].KeySHA256 || r.RequestSHA256 != "request" || r.Approvals != nil || r.Rules != nil || r.Rows != nil || r.Hooks != nil || r.Spends != nil ||
					r.Turn != 0 || r.CallerTurn != 0 || r.Adds != nil || r.Saw != nil {
					t.Errorf("start %d: the outcome is %+v", round, r)
				}
				if e.runs.Load() != c.want.runs {
					t.Errorf("start %d: ran %d times", round, e.runs.Load())
				}
				call, err := n.Lookup(context.Background(), gateway.Request{}, "call_1")
				switch {
				case c.want.state == "":
					if err == nil {
						t.Errorf("start %d: it is kept as %s", round, call.State)
					}
				case err != nil || call.State != c.want.state || call.Delivered != (round > 0 && call.Ended):
					t.Errorf("start %d: %+v, %v", round, call, err)
				}
				if err := n.store.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if c.want.runs > 0 && (string(got.Arguments) != string(c.task.Arguments) || got.Run.Type == "" || len(got.Roots) == 0) {
				t.Errorf("ran %+v", got)
			}
			if c.want.runs > 0 && j.outcomes("call_1")[0].Attempt != 2 {
				t.Errorf("the attempt is %d", j.outcomes("call_1")[0].Attempt)
			}
		})
	}
}

// TestAgainAndAgain: a call that no process survives is given up.
func TestAgainAndAgain(t *testing.T) {
	dir, s, j := t.TempDir(), loose(t), &journal{}
	n := j.node(t, dir, s, nil, time.Now)
	n.leave(t, j, "call_1", reads, store.Dispatched)
	for range 2 {
		if err := n.store.Update(context.Background(), "call_1", store.Redispatch{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.store.Close(); err != nil {
		t.Fatal(err)
	}
	e := &engine{}
	j.node(t, dir, s, e, time.Now).reconcile(t, j.past())
	if o := j.outcomes("call_1"); e.runs.Load() != 0 || len(o) != 1 || o[0].Outcome != audit.Unknown {
		t.Errorf("ran %d times: %+v", e.runs.Load(), o)
	}
}

// TestKilledAsItRecovers: a process that dies between the end of a call that it has recovered and the
// outcome leaves that to the next one, which has it from the store.
func TestKilledAsItRecovers(t *testing.T) {
	dir, s, j, dies := t.TempDir(), loose(t), &journal{}, &journal{}
	n := j.node(t, dir, s, nil, time.Now)
	n.leave(t, j, "call_1", reads, store.Dispatched)
	if err := n.store.Close(); err != nil {
		t.Fatal(err)
	}
	dies.fail(true)
	defer dies.fail(false)
	e := &engine{}
	n = dies.node(t, dir, s, e, time.Now)
	n.Reconcile(j.past(), func(calls.ReconcileStats) {}).Stop(context.Background())
	if call, err := n.store.Get(context.Background(), "call_1", store.OfAnyone()); err != nil || call.Step != store.Ended {
		t.Fatalf("%+v, %v", call, err)
	}
	if err := n.store.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n = j.node(t, dir, s, e, time.Now)
		n.reconcile(t, j.past())
		if o := j.outcomes("call_1"); e.runs.Load() != 1 || len(o) != 1 || o[0].Outcome != audit.Result || o[0].Attempt != 2 {
			t.Errorf("ran %d times: %+v", e.runs.Load(), o)
		}
		if err := n.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOutcomeStands: what the journal has the outcome of is not dispatched, and gets
// no other, though the store knows nothing of it.
func TestOutcomeStands(t *testing.T) {
	for _, step := range []store.Step{store.Dispatched, store.Ended} {
		dir, s, j := t.TempDir(), loose(t), &journal{}
		n := j.node(t, dir, s, nil, time.Now)
		n.leave(t, j, "call_1", reads, step)
		if err := j.Append(context.Background(), audit.Record{Event: audit.Ending, Mode: audit.Call, CallID: "call_1", Outcome: audit.Failed}); err != nil {
			t.Fatal(err)
		}
		if err := n.store.Close(); err != nil {
			t.Fatal(err)
		}
		e := &engine{}
		for range 2 {
			n = j.node(t, dir, s, e, time.Now)
			n.reconcile(t, j.past())
			if o := j.outcomes("call_1"); e.runs.Load() != 0 || len(o) != 1 {
				t.Errorf("%s: ran %d times: %+v", step, e.runs.Load(), o)
			}
			if call, err := n.store.Get(context.Background(), "call_1", store.OfAnyone()); err != nil || call.Step != store.Ended {
				t.Errorf("%s: %+v, %v", step, call, err)
			}
			if err := n.store.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestEndedElsewhere: the outcome of a call that has ended is this node's to write where this node has
// ended it, and no other's.
func TestEndedElsewhere(t *testing.T) {
	ctx := context.Background()
	for attempt, outcomes := range map[string]int{"node/1": 1, "other/1": 0} {
		dir, s, j := t.TempDir(), loose(t), &journal{}
		n := j.node(t, dir, s, nil, time.Now)
		n.leave(t, j, "call_1", reads, store.Dispatched)
		if _, err := n.store.Finish(ctx, "call_1", store.Ending{State: store.Done, Attempt: attempt, Answer: store.Answer{
			Result: []byte(`{"tool_result":{"tool":"web.search","output":{"ok":true}}}`), Status: 200,
		}}); err != nil {
			t.Fatal(err)
		}
		if err := n.store.Close(); err != nil {
			t.Fatal(err)
		}
		j.node(t, dir, s, nil, time.Now).reconcile(t, j.past())
		if got := j.outcomes("call_1"); len(got) != outcomes || outcomes > 0 && (got[0].Outcome != audit.Result || got[0].ArgumentsSHA256 != "arguments") {
			t.Errorf("%s: %+v", attempt, got)
		}
	}
}

// restarting is a store that cannot say at first what earlier processes have left.
type restarting struct {
	*boltstore.Store
	away atomic.Bool
}

func (r *restarting) Recover(ctx context.Context, reason store.Reason, limit int) ([]store.Call, error) {
	if reason == store.Abandoned && r.away.Load() {
		return nil, store.ErrUnavailable
	}
	return r.Store.Recover(ctx, reason, limit)
}

// TestEndedBeforeTheStoreIsBack: a call that this process has ended before the store could say what earlier
// ones have left has one outcome.
func TestEndedBeforeTheStoreIsBack(t *testing.T) {
	ctx := context.Background()
	dir, s, j := t.TempDir(), loose(t), &journal{}
	n := j.node(t, dir, s, later(func() time.Time { return time.Now().Add(time.Hour) }), time.Now)
	o := n.Execute(ctx, n.Executor.Kernel.Judge(ctx, completion(search)))[0]
	if err := n.store.Close(); err != nil {
		t.Fatal(err)
	}
	back := &restarting{}
	back.away.Store(true)
	n = j.nodeOn(t, dir, s, nil, time.Now, func(f *boltstore.Store) calls.Store { back.Store = f; return back })
	rounds := make(chan error)
	reconciler := n.Reconcile(j.past(), func(done calls.ReconcileStats) { go func() { rounds <- done.Err }() })
	if <-rounds == nil {
		t.Fatal("the store is there")
	}
	if err := answer(n.Executor, o.CallID, `{"results":[]}`); err != nil {
		t.Fatal(err)
	}
	back.away.Store(false)
	if err := <-rounds; err != nil {
		t.Fatal(err)
	}
	reconciler.Stop(ctx)
	if err := n.Executor.Kernel.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if got := j.outcomes(o.CallID); len(got) != 1 || got[0].Outcome != audit.Result {
		t.Errorf("%+v", got)
	}
}

// TestEndedLongAgo: the outcome of a call that has ended is in the store as long as the call is, also
// where nobody else is given it any more.
func TestEndedLongAgo(t *testing.T) {
	dir, s, j := t.TempDir(), loose(t), &journal{}
	n := j.node(t, dir, s, nil, time.Now)
	n.leave(t, j, "call_1", reads, store.Ended)
	if err := n.store.Close(); err != nil {
		t.Fatal(err)
	}
	j.node(t, dir, s, nil, func() time.Time { return time.Now().Add(2 * store.Retention) }).reconcile(t, j.past())
	if got := j.outcomes("call_1"); len(got) != 1 || got[0].Outcome != audit.Result {
		t.Errorf("%+v", got)
	}
}

// TestPastThatCannotBeRead: while it is not known what the journal holds, nothing
// is dispatched and nothing written.
func TestPastThatCannotBeRead(t *testing.T) {
	dir, s, j := t.TempDir(), loose(t), &journal{}
	n := j.node(t, dir, s, nil, time.Now)
	n.leave(t, j, "call_1", reads, store.Dispatched)
	n.leave(t, j, "call_2", reads, store.Ended)
	if err := n.store.Close(); err != nil {
		t.Fatal(err)
	}
	e := &engine{}
	n = j.node(t, dir, s, e, time.Now)
	past := j.past()
	past.Ended = func([]string) (map[string]audit.Outcome, error) { return nil, errors.New("unreadable") }
	var trouble error
	n.Reconcile(past, func(done calls.ReconcileStats) { trouble = done.Err }).Stop(context.Background())
	if trouble == nil || e.runs.Load() != 0 || len(j.all()) != 2 {
		t.Errorf("ran %d times, %d records, %v", e.runs.Load(), len(j.all()), trouble)
	}
}

// later is an engine whose tools answer later, by the time that it says.
func later(until func() time.Time) *engine {
	return &engine{answer: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Pending: true, Until: until()}, nil
	}}
}

// TestAnswerAcrossARestart: a result that comes after the process that asked for
// it has gone enters its thread once.
func TestAnswerAcrossARestart(t *testing.T) {
	ctx := context.Background()
	dir, s, j := t.TempDir(), loose(t), &journal{}
	n := j.node(t, dir, s, later(func() time.Time { return time.Now().Add(time.Hour) }), time.Now)
	o := n.Execute(ctx, n.Executor.Kernel.Judge(ctx, completion(search)))[0]
	if !o.Pending || o.Status != 202 || len(j.outcomes(o.CallID)) != 0 {
		t.Fatalf("%+v", o)
	}
	if err := n.store.Close(); err != nil {
		t.Fatal(err)
	}
	n = j.node(t, dir, s, nil, time.Now)
	n.reconcile(t, j.past())
	const body = `{"results":[]}`
	if err := answer(n.Executor, "call_other", body); refusedAs(err) != "request not_found" {
		t.Errorf("a call that is not there: %v", err)
	}
	if err := answer(n.Executor, o.CallID, body); err != nil {
		t.Fatal(err)
	}
	if err := answer(n.Executor, o.CallID, body); err != nil {
		t.Errorf("the same a second time: %v", err)
	}
	if err := answer(n.Executor, o.CallID, `{}`); refusedAs(err) != "execute idempotency_conflict" {
		t.Errorf("otherwise: %v", err)
	}
	for i := range 3 {
		call, err := n.Lookup(ctx, gateway.Request{}, o.CallID)
		if err != nil || call.Delivered != (i > 0) || string(call.Result.Line) != `{"tool_result":{"tool":"web.search","output":{"results":[]}}}` {
			t.Errorf("look %d: %+v, %v", i, call, err)
		}
	}
	if got := j.outcomes(o.CallID); len(got) != 1 || got[0].Outcome != audit.Result {
		t.Errorf("%+v", got)
	}
	// Under a configuration that has the tool no more, an answer cannot be judged.
	call := j.node(t, t.TempDir(), s, nil, time.Now).pendThenAnswer(t, func(s *gateway.Config) {
		tools, err := registry.New([]registry.Tool{{Name: "other", InputSchema: json.RawMessage(`{"type":"object"}`), Run: tool.Run{Type: "demo"}}})
		if err != nil {
			t.Fatal(err)
		}
		s.Tools = tools
	}, s)
	if !strings.Contains(string(call.Answer.Result), `"code":"invalid_result"`) {
		t.Errorf("without its tool: %s", call.Answer.Result)
	}
}

// pendThenAnswer answers a call that waits, under another configuration, and returns
// what has become of it.
func (n *node) pendThenAnswer(t testing.TB, change func(*gateway.Config), s *gateway.Config) store.Call {
	t.Helper()
	n.leave(t, &journal{}, "call_9", reads, store.Waiting)
	other := *s
	change(&other)
	if err := n.Executor.Kernel.Swap(&other); err != nil {
		t.Fatal(err)
	}
	post := calls.CallbackMessage{CallID: "call_9", ID: "call_9", Group: "thread", Digest: "d"}
	if err := n.Complete(context.Background(), post, calls.CallbackResult{Output: tool.Result{Body: []byte(`{}`), JSON: true}}); err != nil {
		t.Fatal(err)
	}
	call, err := n.store.Get(context.Background(), "call_9", store.OfAnyone())
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// TestExpiry: a tool that has not answered in time ends its call, with an outcome,
// and what it says afterwards enters nothing.
func TestExpiry(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		call    string
		code    refusal.Code
		state   store.State
		expires func(*node, *testing.T, string)
	}{
		"read, by the round":  {search, refusal.ToolTimeout, store.Done, func(n *node, t *testing.T, _ string) { n.reconcile(t, calls.Backlog{}) }},
		"once, by the round":  {refund, refusal.OutcomeUnknown, store.Unknown, func(n *node, t *testing.T, _ string) { n.reconcile(t, calls.Backlog{}) }},
		"read, by the answer": {search, refusal.ToolTimeout, store.Done, func(*node, *testing.T, string) {}},
	} {
		clock, j := newClock(), &journal{}
		n := j.node(t, t.TempDir(), loose(t), later(func() time.Time { return clock.now().Add(time.Hour) }), clock.now)
		o := n.Execute(ctx, n.Executor.Kernel.Judge(ctx, completion(c.call)))[0]
		clock.advance(time.Hour - time.Millisecond)
		n.reconcile(t, calls.Backlog{})
		if len(j.outcomes(o.CallID)) != 0 {
			t.Errorf("%s: ended too early", name)
		}
		clock.advance(time.Millisecond)
		c.expires(n, t, o.CallID)
		if err := answer(n.Executor, o.CallID, `{}`); refusedAs(err) != "request not_found" {
			t.Errorf("%s: an answer that is late: %v", name, err)
		}
		n.reconcile(t, calls.Backlog{})
		got := j.outcomes(o.CallID)
		if len(got) != 1 || got[0].Outcome != audit.Expired || got[0].Code != c.code {
			t.Errorf("%s: %+v", name, got)
		}
		call, err := n.Lookup(ctx, gateway.Request{}, o.CallID)
		if err != nil || call.State != c.state || !strings.Contains(string(call.Result.Line), string(c.code)) {
			t.Errorf("%s: %+v, %v", name, call, err)
		}
	}
}

const refund = `{"tool":{"name":"payments.refund","arguments":{"payment_id":"pay_abc123","amount":1}}}`

// TestOneEnd: of an answer and its expiry, and of several answers, one ends a call.
func TestOneEnd(t *testing.T) {
	ctx := context.Background()
	clock, j := newClock(), &journal{}
	n := j.node(t, t.TempDir(), loose(t), later(func() time.Time { return clock.now().Add(time.Hour) }), clock.now)
	for round := range 20 {
		o := n.Execute(ctx, n.Executor.Kernel.Judge(ctx, completion(search)))[0]
		var group sync.WaitGroup
		var accepted sync.Map
		for i := range 6 {
			group.Go(func() {
				body := fmt.Sprintf(`{"n":%d}`, i)
				err := answer(n.Executor, o.CallID, body)
				for strings.HasSuffix(refusedAs(err), "store_unavailable") { // it is to be posted again
					err = answer(n.Executor, o.CallID, body)
				}
				if err == nil {
					accepted.Store(i, true)
				}
			})
		}
		if round%2 == 0 {
			group.Go(func() {
				clock.advance(time.Hour)
				n.reconcile(t, calls.Backlog{})
			})
		}
		group.Wait()
		n.reconcile(t, calls.Backlog{})
		taken := 0
		accepted.Range(func(any, any) bool { taken++; return true })
		got := j.outcomes(o.CallID)
		if len(got) != 1 || taken > 1 || (got[0].Outcome == audit.Result) != (taken == 1) {
			t.Fatalf("round %d: %d answers were taken, %+v", round, taken, got)
		}
	}
}

// sharedNode is a gateway on Redis, with the log of its node.
func (j *journal) sharedNode(t testing.TB, address, prefix, name string, e workers.Engine, past *journal) (*node, *redisstore.Store) {
	t.Helper()
	r, err := redisstore.New(context.Background(), redisstore.Options{
		Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: prefix}, Node: name, Wait: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	for ready, cause := r.Ready(); !ready; ready, cause = r.Ready() {
		if time.Sleep(5 * time.Millisecond); cause == nil {
			t.Fatal("it is not ready, and does not say why")
		}
	}
	n := &node{kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j, Replica: name}, Engine: e, Store: r, Node: name}), nil, time.Now}
	n.reconcile(t, past.past())
	return n, r
}

// TestOwedOutcomes: a gateway that dies between the end of another's call and its outcome leaves that to its next
// process, which records it once, also where only the store has not heard of it.
func TestOwedOutcomes(t *testing.T) {
	redistest.Require(t)
	ctx := context.Background()
	for name, lost := range map[string]bool{"before the outcome": true, "after the outcome": false} {
		t.Run(name, func(t *testing.T) {
			address, prefix := redistest.Start(t).Address(), redistest.Prefix()
			logA, logB, dies := &journal{}, &journal{}, &journal{}
			waits := later(func() time.Time { return time.Now().Add(time.Hour) })
			a, kept := logA.sharedNode(t, address, prefix, "a", waits, logA)
			ids := []string{}
			for range 3 {
				ids = append(ids, a.Execute(ctx, a.Executor.Kernel.Judge(ctx, completion(search)))[0].CallID)
			}
			dies.fail(true)
			defer dies.fail(false)
			log := logB
			if lost {
				log = dies
			}
			b, _ := log.sharedNode(t, address, prefix, "b", waits, logB)
			if err := answer(b.Executor, ids[0], `{"results":[]}`); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Cancel(ctx, gateway.Request{}, ids[1]); err != nil {
				t.Fatal(err)
			}
			if err := answer(b.Executor, ids[2], `{"results":5}`); err != nil {
				t.Fatal(err)
			}
			if !lost {
				if err := b.Executor.Kernel.Flush(ctx); err != nil {
					t.Fatal(err)
				}
				for _, id := range ids {
					if call, err := kept.Get(ctx, id, store.OfAnyone()); err != nil || call.Owed() {
						t.Errorf("recorded, and owed: %+v, %v", call, err)
					}
				}
			}
			for range 2 {
				logA.sharedNode(t, address, prefix, "a", waits, logA)
				logB.sharedNode(t, address, prefix, "b", waits, logB)
			}
			for i, want := range []audit.Outcome{audit.Result, audit.Failed, audit.Result} {
				all := append(logA.outcomes(ids[i]), logB.outcomes(ids[i])...)
				if len(all) != 1 || all[0].Outcome != want || all[0].Replica != "b" || all[0].Tool != "web.search" {
					t.Errorf("%s: %+v", ids[i], all)
				}
			}
		})
	}
}

// TestSweepsWhatThereIs: a sweep does not end after some hundred calls.
func TestSweepsWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		kept := store.NewMemory(time.Now)
		const n = 3000
		for i := range n {
			id := fmt.Sprint(i)
			if _, err := kept.Open(ctx, store.Call{ID: id, Key: id}); err != nil {
				t.Fatal(err)
			}
			if err := kept.Dispatch(ctx, id, reads); err != nil {
				t.Fatal(err)
			}
			if _, err := kept.Finish(ctx, id, store.Ending{State: store.Done, Attempt: id}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(store.Retention)
		k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Store: kept})
		r := k.Reconcile(calls.Backlog{}, func(calls.ReconcileStats) {})
		time.Sleep(11 * time.Second)
		r.Stop(ctx)
		left := 0
		for i := range n {
			if _, err := kept.Get(ctx, fmt.Sprint(i), store.OfRecovery()); err == nil {
				left++
			}
		}
		if left > 0 {
			t.Errorf("%d of %d calls are left", left, n)
		}
	})
}
