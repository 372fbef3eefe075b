package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// openIdle is open with workers that stay.
func openIdle(t testing.TB, e *engine, idle int) *calls.Executor {
	t.Helper()
	s := state(t, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	return kernelOf(t, s, calls.Deps{
		Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: discard{}}, Engine: e, IdleWorkers: idle, Store: store.NewMemory(time.Now),
	})
}

// TestWorkersMixNothing: many calls share few workers, while some panic and some end their
// goroutine. Each gets the answer of its own call, and its context ends with it.
func TestWorkersMixNothing(t *testing.T) {
	var left sync.Map
	e := &engine{answer: func(ctx context.Context, task tool.Call) (tool.Result, error) {
		left.Store(task.ID, ctx)
		switch task.ID[len(task.ID)-1] {
		case 'A', 'B', 'C':
			panic("at " + task.ID)
		case 'D', 'E', 'F':
			runtime.Goexit()
		case 'G', 'H':
			return tool.Result{}, errors.New("failed")
		}
		return tool.Result{Body: fmt.Appendf(nil, `{"id":%q}`, task.ID), JSON: true}, nil
	}}
	k := openIdle(t, e, 4)
	var wait sync.WaitGroup
	var answered atomic.Int64
	for range 16 {
		wait.Go(func() {
			for range 100 {
				o := k.Handle(context.Background(), completion(search), "")
				want := fmt.Sprintf(`{"tool_result":{"tool":"web.search","output":{"id":%q}}}`, o.CallID)
				switch fails := o.CallID[len(o.CallID)-1] <= 'H' && o.CallID[len(o.CallID)-1] >= 'A'; {
				case fails && (o.Refusal == nil || o.Refusal.Cause == nil):
					t.Errorf("%s failed: %+v", o.CallID, o.Refusal)
				case !fails && string(o.Result) != want:
					t.Errorf("%s: %s, %v", o.CallID, o.Result, o.Refusal)
				case !fails:
					answered.Add(1)
				}
				if ctx, ok := left.Load(o.CallID); !ok || ctx.(context.Context).Err() == nil {
					t.Errorf("%s: its context did not end with it", o.CallID)
				}
			}
		})
	}
	wait.Wait()
	if answered.Load() == 0 || answered.Load() == 1600 {
		t.Errorf("%d calls were answered", answered.Load())
	}
}

// TestHungWorker: an engine that hangs holds its own worker alone. Its caller is answered in
// time, its context ends at the deadline, and its late answer is nobody's.
func TestHungWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, err := make(chan struct{}), make(chan error, 1)
		var runs atomic.Int64
		e := &engine{answer: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			if runs.Add(1) == 1 {
				<-ctx.Done()
				err <- ctx.Err()
				<-release
				return tool.Result{Body: []byte(`{"late":true}`), JSON: true}, nil
			}
			return tool.Result{Body: []byte(`{"ok":true}`), JSON: true}, nil
		}}
		k := openIdle(t, e, 0)
		start := time.Now()
		o := k.Handle(context.Background(), completion(search), "")
		if took := time.Since(start); o.Refusal == nil || o.Refusal.Code != "tool_timeout" || took != 11*time.Second {
			t.Errorf("after %v: %+v", took, o.Refusal)
		}
		if !errors.Is(<-err, context.DeadlineExceeded) {
			t.Error("its context did not end at the deadline")
		}
		if o := k.Handle(context.Background(), completion(search), ""); o.Refusal != nil || string(o.Value.Output) != `{"ok":true}` {
			t.Errorf("the next call: %s", o.Result)
		}
		close(release)
		if o := k.Handle(context.Background(), completion(search), ""); string(o.Value.Output) != `{"ok":true}` {
			t.Errorf("the call after the late answer: %s", o.Result)
		}
	})
}

// TestIdleWorkersAreBounded: no more goroutines stay than the operator's number.
func TestIdleWorkersAreBounded(t *testing.T) {
	const idle, calls = 3, 20
	before := runtime.NumGoroutine()
	var began sync.WaitGroup
	began.Add(calls)
	e := &engine{answer: func(context.Context, tool.Call) (tool.Result, error) {
		began.Done()
		began.Wait()
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}}
	k := openIdle(t, e, idle)
	var wait sync.WaitGroup
	for range calls {
		wait.Go(func() { k.Handle(context.Background(), completion(search), "") })
	}
	wait.Wait()
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before+idle; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines stay", runtime.NumGoroutine()-before)
		}
	}
}
