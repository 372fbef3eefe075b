package gateway_test

import (
	"context"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// TestRunnerRunsOnlyApproved: the one Approved that another package can make is the zero
// value, and it approves nothing. A decision gives its calls once, and in its mode.
func TestRunnerRunsOnlyApproved(t *testing.T) {
	ctx, e, j := context.Background(), &engine{}, &journal{}
	runner := gateway.NewRunner(e, 0)
	if _, err := runner.Run(ctx, gateway.Approved{}, nil); refusedAs(err) != "execute internal" || e.runs.Load() != 0 {
		t.Errorf("the zero value: %v, %d runs", err, e.runs.Load())
	}
	k := open(t, e, j)
	d := k.Kernel.Judge(ctx, completion(search))
	defer d.Release()
	if calls, refused := gateway.DoorOf(k.Kernel).Approve(d, gateway.ModeEnforce); calls != nil || refused == nil {
		t.Errorf("in another mode: %v, %v", calls, refused)
	}
	calls, refused := gateway.DoorOf(k.Kernel).Approve(d, gateway.ModeCall)
	if refused != nil || len(calls) != 1 || calls[0].Call() == nil {
		t.Fatalf("%v, %v", calls, refused)
	}
	if again, refused := gateway.DoorOf(k.Kernel).Approve(d, gateway.ModeCall); again != nil || refused == nil {
		t.Errorf("a second time: %v, %v", again, refused)
	}
	if _, err := runner.Run(ctx, calls[0], nil); err != nil || e.runs.Load() != 1 {
		t.Errorf("%v, %d runs", err, e.runs.Load())
	}
}

// TestForeignDecision: an executor acts on the decisions of its own kernel alone. Another
// kernel has other checks, another journal, and its calls are not in the executor's store.
func TestForeignDecision(t *testing.T) {
	ctx, engines := context.Background(), [2]*engine{{}, {}}
	judging, other := open(t, engines[0], &journal{}), open(t, engines[1], &journal{})
	d := judging.Kernel.Judge(ctx, completion(search))
	o := other.Execute(ctx, d)
	if len(o) != 1 || o[0].Refusal == nil || o[0].Refusal.Code != refusal.Internal {
		t.Errorf("%+v", o)
	}
	if runs := [2]int64{engines[0].runs.Load(), engines[1].runs.Load()}; runs != [2]int64{} {
		t.Errorf("the engines ran %v calls", runs)
	}
}

// TestReapproveNeedsADispatchedCall: a call that was stored before its judgement, that
// waits for its tool, or that has ended is not run again.
func TestReapproveNeedsADispatchedCall(t *testing.T) {
	e := open(t, &engine{}, &journal{})
	d := e.Kernel.Judge(context.Background(), completion(search))
	defer d.Release()
	approved, refused := gateway.DoorOf(e.Kernel).Approve(d, gateway.ModeCall)
	if refused != nil {
		t.Fatal(refused)
	}
	c := approved[0].Call()
	stored := c.StoreCall("")
	stored.Task, stored.Attempts = c.StoreTask(), 1
	for _, step := range []store.Step{"", store.Opened, store.Dispatched, store.Waiting, store.Ended} {
		stored.Step = step
		if a, err := gateway.DoorOf(e.Kernel).Reapprove(gateway.DoorOf(e.Kernel).Restore(stored)); (err == nil) != (step == store.Dispatched) || (a.Call() != nil) != (err == nil) {
			t.Errorf("a call that is %q: %v", step, err)
		}
	}
}
