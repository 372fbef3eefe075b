package gateway_test

import (
	"context"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// boundedEngine bounds the calls of tools of one type itself.
type boundedEngine struct {
	*engine
	bounds bool
}

func (e *boundedEngine) Bounded(tool.Run) bool { return e.bounds }

// TestBoundedCallsNeedNoWorker: a call that its engine bounds runs on the goroutine of its
// request, any other on one of its own. A panic is contained on both.
func TestBoundedCallsNeedNoWorker(t *testing.T) {
	for _, bounds := range []bool{true, false} {
		var stack string
		fails := false
		e := &boundedEngine{engine: &engine{answer: func(context.Context, tool.Call) (tool.Result, error) {
			stack = string(debug.Stack())
			if fails {
				panic("at the tool")
			}
			return tool.Result{Body: []byte(`{}`), JSON: true}, nil
		}}, bounds: bounds}
		s := state(t, vectorConfig)
		s.Limits = &ratelimit.Limits{Replicas: 1}
		k := kernelOf(t, s, calls.Deps{
			Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: discard{}}, Engine: e, IdleWorkers: 1, Store: store.NewMemory(time.Now),
		})
		if o := k.Handle(t.Context(), completion(search), ""); o.Refusal != nil {
			t.Fatalf("bounded %t: %v", bounds, o.Refusal)
		}
		if got := strings.Contains(stack, "TestBoundedCallsNeedNoWorker("); got != bounds {
			t.Errorf("bounded %t: on the goroutine of the request: %t\n%s", bounds, got, stack)
		}
		fails = true
		if o := k.Handle(t.Context(), completion(search), ""); o.Refusal == nil || o.Refusal.Code != refusal.Internal || o.Refusal.Cause == nil {
			t.Errorf("bounded %t: %+v", bounds, o.Refusal)
		}
	}
}
