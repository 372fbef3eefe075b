package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// NoteDisputes notes something once of each of so many calls, then as much of the first
// as is told to be written down, and tells that and of how many calls it is counted.
func NoteDisputes(calls int) (written, counted int) {
	var d disputeCounter
	for i := range calls {
		d.add(fmt.Sprint(i))
	}
	for written = 1; written < 2*maxDisputes && d.add("0"); written++ {
	}
	return written, len(d.byID)
}

// Times judges a completion and returns how long each stage took.
func (k *Kernel) Times(ctx context.Context, request Request) map[refusal.Stage]time.Duration {
	d := k.open(request, ModeCall, nil)
	if !d.run(ctx, identify, true) {
		d.run(ctx, judge, true)
	}
	times := map[refusal.Stage]time.Duration{}
	for _, t := range d.calls[0].times {
		times[t.stage] = t.took
	}
	return times
}

// MetadataOf is what a store keeps of a call beside its result.
func MetadataOf(call *store.Call) Metadata { return decodeMetadata(call.Metadata) }
