package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/callgate/callgate/refusal"
)

// HearEvents hears events of active subscriptions, then each of so many that have
// ended, and tells what is known of then.
func HearEvents(active, ended int) (known, ofActive int) {
	f := feeds{byCall: map[string]*feed{}}
	for i := range active {
		id := fmt.Sprint("active ", i)
		f.byCall[id] = &feed{}
		f.hear(id, "x")
	}
	for i := range ended {
		f.hear(fmt.Sprint("ended ", i), "x")
	}
	for id := range f.byCall {
		if f.again(id, "x") {
			ofActive++
		}
	}
	return len(f.heard), ofActive
}

// Times judges a completion and returns how long each stage took.
func (k *Kernel) Times(ctx context.Context, request Request) map[refusal.Stage]time.Duration {
	d := k.open(request, ModeCall, nil)
	d.run(ctx, pipeline, true)
	times := map[refusal.Stage]time.Duration{}
	for _, t := range d.calls[0].times {
		times[t.stage] = t.took
	}
	return times
}
