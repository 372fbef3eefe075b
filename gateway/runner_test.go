package gateway_test

import (
	"context"
	"testing"

	"github.com/callgate/callgate/gateway"
)

// TestRunnerRunsOnlyApproved: the one Approved that another package can make is the zero
// value, and it approves nothing. A decision gives its calls once, and in its mode.
func TestRunnerRunsOnlyApproved(t *testing.T) {
	ctx, e, j := context.Background(), &engine{}, &journal{}
	runner := gateway.NewRunner(e)
	if _, err := runner.Run(ctx, gateway.Approved{}, nil); refusedAs(err) != "execute internal" || e.runs.Load() != 0 {
		t.Errorf("the zero value: %v, %d runs", err, e.runs.Load())
	}
	d := open(t, e, j).Judge(ctx, completion(search))
	defer d.Release()
	if calls, refused := d.Approve(gateway.ModeEnforce); calls != nil || refused == nil {
		t.Errorf("in another mode: %v, %v", calls, refused)
	}
	calls, refused := d.Approve(gateway.ModeCall)
	if refused != nil || len(calls) != 1 || calls[0].Call() == nil {
		t.Fatalf("%v, %v", calls, refused)
	}
	if again, refused := d.Approve(gateway.ModeCall); again != nil || refused == nil {
		t.Errorf("a second time: %v, %v", again, refused)
	}
	if _, err := runner.Run(ctx, calls[0], nil); err != nil || e.runs.Load() != 1 {
		t.Errorf("%v, %d runs", err, e.runs.Load())
	}
}
