package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// A stop covers what agrees with it, and ends by the clock; the model reads neither its reason nor its id.
func TestStop(t *testing.T) {
	clock, e, j := newClock(), &engine{}, &journal{}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(clock.now), Journal: j, Now: clock.now}, Engine: e, Store: newShelf()})
	call := completion(search)
	call.Thread, call.Ancestors = "child", []string{"root"}
	run := func() calls.Outcome { return k.Execute(t.Context(), k.Kernel.Judge(t.Context(), call))[0] }
	until := clock.now().Add(time.Hour)
	for name, c := range map[string]struct {
		stop  store.Stop
		stops bool
	}{
		"everything":  {store.Stop{ID: "stop_1", Reason: "canary"}, true},
		"the agent":   {store.Stop{ID: "stop_1", Agent: "Analyst"}, true},
		"the tool":    {store.Stop{ID: "stop_1", Tool: "web.*"}, true},
		"the project": {store.Stop{ID: "stop_1", Workspace: "acme", Project: "alpha"}, true},
		"an ancestor": {store.Stop{ID: "stop_1", Thread: "root"}, true},
		"for an hour": {store.Stop{ID: "stop_1", Until: until}, true},
		"another":     {store.Stop{ID: "stop_1", Agent: "Intern"}, false},
		"ended":       {store.Stop{ID: "stop_1", Until: clock.now()}, false},
	} {
		ran := e.runs.Load()
		k.Kernel.Stop([]store.Stop{c.stop}, true)
		o := run()
		if stopped := o.Refusal != nil && o.Refusal.Code == refusal.Stopped; stopped != c.stops || (e.runs.Load() == ran) != c.stops {
			t.Errorf("%s: %+v, ran %d times", name, o.Refusal, e.runs.Load()-ran)
		}
		if c.stops && (o.Status != 403 || strings.Contains(string(o.Result), "canary") || strings.Contains(string(o.Result), "stop_1") || !strings.Contains(string(o.Result), `"retryable":false`)) {
			t.Errorf("%s: %d %s", name, o.Status, o.Result)
		}
		if report := k.Kernel.Check(t.Context(), call); (report.Refusal != nil) != c.stops {
			t.Errorf("%s: checked: %+v", name, report.Refusal)
		}
	}
	k.Kernel.Stop([]store.Stop{{ID: "stop_1", Until: until}}, true)
	clock.advance(time.Hour)
	if o := run(); o.Refusal != nil {
		t.Errorf("after its time: %v", o.Refusal)
	}
	k.Kernel.Stop(nil, false)
	if o := run(); o.Refusal == nil || o.Refusal.Code != refusal.StoreUnavailable || o.Status != 503 {
		t.Errorf("nobody knows what is stopped: %+v", o)
	}
	k.Kernel.Stop([]store.Stop{{ID: "stop_1", Agent: "Analyst"}}, false)
	if o := run(); o.Refusal == nil || o.Refusal.Code != refusal.Stopped {
		t.Errorf("stopped, and nobody knows what else: %+v", o)
	}
	k.Kernel.Stop(nil, true)
	if o := run(); o.Refusal != nil {
		t.Errorf("resumed: %v", o.Refusal)
	}
}

// stopping is a store that stops everything at one of its transitions.
type stopping struct {
	calls.Store
	before, after func() // of Dispatch
	opened        func()
	dispatched    int
}

func (s *stopping) Open(ctx context.Context, c store.Call) (*store.Call, error) {
	prior, err := s.Store.Open(ctx, c)
	if s.opened != nil {
		s.opened()
	}
	return prior, err
}

func (s *stopping) Dispatch(ctx context.Context, id string, task store.Task) error {
	if s.before != nil {
		s.before()
	}
	err := s.Store.Dispatch(ctx, id, task)
	s.dispatched++
	if s.after != nil {
		s.after()
	}
	return err
}

// A call that passed every check is not run where it is stopped before its tool is called, however late.
func TestStoppedBeforeItRuns(t *testing.T) {
	for name, at := range map[string]func(s *stopping, stop func()){
		"before its dispatch":    func(s *stopping, stop func()) { s.opened = stop },
		"while it is dispatched": func(s *stopping, stop func()) { s.before = stop },
		"once it was dispatched": func(s *stopping, stop func()) { s.after = stop },
	} {
		t.Run(name, func(t *testing.T) {
			e, j, kept := &engine{}, &journal{}, &stopping{Store: newShelf()}
			k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e, Store: kept})
			at(kept, func() { k.Kernel.Stop([]store.Stop{{ID: "stop_1"}}, true) })
			d := k.Kernel.Judge(t.Context(), completion(search))
			if d.Refusal() != nil {
				t.Fatal(d.Refusal())
			}
			o := k.Execute(t.Context(), d)[0]
			if o.Refusal == nil || o.Refusal.Code != refusal.Stopped || o.Status != 403 || e.runs.Load() != 0 {
				t.Errorf("%+v, ran %d times", o, e.runs.Load())
			}
			if name == "before its dispatch" && kept.dispatched > 0 { // which would use up its approvals
				t.Error("it was dispatched")
			}
			settle(t, k)
			ended := j.outcomes(o.CallID)
			if len(ended) != 1 || ended[0].Outcome != audit.Failed || ended[0].Code != refusal.Stopped {
				t.Errorf("ended as %+v", ended)
			}
		})
	}
}

// A call that runs learns of a stop that covers it, so that it is not sent again.
func TestStoppedWhileItRuns(t *testing.T) {
	var k *calls.Executor
	var stopped []bool
	e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
		for _, agent := range []string{"Intern", "Analyst"} {
			k.Kernel.Stop([]store.Stop{{ID: "stop_1", Agent: agent}}, true)
			stopped = append(stopped, task.IsStopped())
		}
		return tool.Result{Body: []byte(`{"results":[]}`), JSON: true, Attempts: 1}, nil
	}}
	k = kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: newShelf()})
	if o := k.Execute(t.Context(), k.Kernel.Judge(t.Context(), completion(search)))[0]; o.Refusal != nil || !slices.Equal(stopped, []bool{false, true}) {
		t.Errorf("%v; stopped: %v", o.Refusal, stopped)
	}
}

// A tool that asks what its caller has answered in advance is not called again with the answers once that is stopped.
func TestStoppedBeforeItIsAnswered(t *testing.T) {
	for _, stop := range []bool{false, true} {
		var k *calls.Executor
		e := &engine{answer: func(_ context.Context, task tool.Call) (tool.Result, error) {
			if stop {
				k.Kernel.Stop([]store.Stop{{ID: "stop_1"}}, true)
			}
			if task.Answers == nil {
				return tool.Result{Attempts: 1, InputRequired: want(nil, question("a", "form", mail))}, failed()
			}
			return tool.Result{Body: []byte(`{"ok":true}`), JSON: true, Attempts: 1}, nil
		}}
		k = kernelOf(t, curious(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: newShelf()})
		o := handle(k, asks("web.search", "", map[string]string{"a": mailed}), "")
		if runs := e.runs.Load(); (o.Refusal != nil) != stop || (runs == 1) != stop {
			t.Errorf("stopped %v: %+v, ran %d times", stop, o.Refusal, runs)
		}
	}
}

// What is handed over is stopped as what is run.
func TestStoppedBeforeItIsHandedOver(t *testing.T) {
	j := &journal{}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Store: newShelf()})
	d := admit(t, k, gateway.Request{}).Judge(t.Context(), gateway.ModeEnforce, timeNow(), timeNow())
	k.Kernel.Stop([]store.Stop{{ID: "stop_1", Tool: "time.now"}}, true)
	for _, o := range k.HandOver(t.Context(), d) {
		if o.Refusal == nil || o.Refusal.Code != refusal.Stopped {
			t.Errorf("handed over: %+v", o)
		}
	}
	settle(t, k)
	for _, r := range j.all() {
		if r.Event == audit.Ending && (r.Outcome != audit.Failed || r.Code != refusal.Stopped) {
			t.Errorf("ended as %+v", r)
		}
	}
}

// A request to a model is stopped by what covers it without a tool, and that is written down.
func TestStoppedRequestToAModel(t *testing.T) {
	j := &journal{}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Store: newShelf()})
	a := admit(t, k, gateway.Request{Thread: "t"})
	for name, c := range map[string]struct {
		stop  *store.Stop
		stops bool
	}{
		"nothing": {nil, false}, "the agent": {&store.Stop{Agent: "Analyst"}, true}, "the thread": {&store.Stop{Thread: "t"}, true}, "a tool": {&store.Stop{Tool: "*"}, false},
	} {
		k.Kernel.Stop(nil, true)
		if c.stop != nil {
			k.Kernel.Stop([]store.Stop{*c.stop}, true)
		}
		before := len(j.all())
		err := a.Stopped(t.Context())
		if stopped := refusedAs(err) == "permission stopped"; stopped != c.stops || (len(j.all()) == before+1) != c.stops {
			t.Errorf("%s: %v, %d records", name, err, len(j.all())-before)
		}
	}
}

// While stops come and go, a call runs or is stopped, and no call runs that was begun after a stop had
// returned and before it ended.
func TestStopsUnderLoad(t *testing.T) {
	e := &engine{answer: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Body: []byte(`{"results":[]}`), JSON: true, Attempts: 1}, nil
	}}
	k := kernelOf(t, loose(t), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: newShelf()})
	var running sync.WaitGroup
	end := make(chan struct{})
	for range 4 {
		running.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				if o := k.Execute(context.Background(), k.Kernel.Judge(context.Background(), completion(search)))[0]; o.Refusal != nil && o.Refusal.Code != refusal.Stopped {
					t.Errorf("%v", o.Refusal)
					return
				}
			}
		})
	}
	for i := range 300 {
		k.Kernel.Stop([]store.Stop{{ID: fmt.Sprint("stop_", i), Agent: "Analyst"}}, true)
		if o := k.Execute(t.Context(), k.Kernel.Judge(t.Context(), completion(search)))[0]; o.Refusal == nil || o.Refusal.Code != refusal.Stopped {
			t.Fatalf("stopped, and it ran: %+v", o)
		}
		k.Kernel.Stop(nil, true)
		if o := k.Execute(t.Context(), k.Kernel.Judge(t.Context(), completion(search)))[0]; o.Refusal != nil {
			t.Fatalf("resumed: %v", o.Refusal)
		}
	}
	close(end)
	running.Wait()
}
