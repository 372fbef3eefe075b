package workers_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/workers"
	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/tool"
)

type hangingEngine struct{ release chan struct{} }

func (e hangingEngine) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	if call.ID == "hangs" {
		<-e.release
	}
	return tool.Result{}, nil
}

// TestHungWorkerAfterAnother: the call that used a worker before does not stop the timer of
// the one that hangs on it.
func TestHungWorkerAfterAnother(t *testing.T) {
	e := hangingEngine{make(chan struct{})}
	defer close(e.release)
	p := workers.New(e, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var calling sync.WaitGroup
		for range 16 {
			calling.Go(func() {
				for i := range 10000 {
					var task tool.Call
					if i%20 == 0 {
						task.ID = "hangs"
					}
					p.Run(context.Background(), task, time.Millisecond, new(deadline.Context))
				}
			})
		}
		calling.Wait()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a call waits for an engine that hangs, for longer than its time")
	}
}
