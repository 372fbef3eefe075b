package gateway

import (
	"context"
	"time"

	"github.com/callgate/callgate/refusal"
)

// Times judges a completion and returns how long each stage took.
func (k *Kernel) Times(ctx context.Context, request Request) map[refusal.Stage]time.Duration {
	d := k.open(request, ModeCall, nil)
	if !d.run(ctx, identify, true) {
		d.run(ctx, judge, true)
	}
	times := map[refusal.Stage]time.Duration{}
	for _, t := range d.calls[0].times.Stages() {
		times[t.Stage] = t.Took
	}
	return times
}

// DoorOf is the door of a kernel.
func DoorOf(k *Kernel) Door { return Door{k} }
