package calls

import (
	"context"
	"sync"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
)

// recordDispute writes down what a tool has said of a call beside its one answer, and
// returns how that is refused. Only its digest is kept.
func (e *Executor) recordDispute(ctx context.Context, call *storedCall, p CallbackMessage, refused *refusal.Error) error {
	ctx = context.WithoutCancel(ctx)
	if !e.disputes.add(call.ID) {
		return refused
	}
	r := e.restore(call).Outcome()
	r.Event, r.Verdict, r.Stage, r.Code = audit.Decision, audit.Refused, refused.Stage, refused.Code
	r.InputSHA256, r.ArgumentsSHA256, r.Arguments, r.Completion = p.Digest, "", nil, ""
	if err := e.journal.Write(ctx, r); err != nil {
		e.disputes.remove(call.ID)
		return err
	}
	return refused
}

const (
	// maxDisputes is how much of what is said of one call is written down: a tool
	// must not fill the journal.
	maxDisputes = 8
	// maxDisputedCalls is of how many calls that is counted.
	maxDisputedCalls = 4096
)

// disputeCounter counts, by call. The zero value has counted nothing.
type disputeCounter struct {
	mu   sync.Mutex
	byID map[string]int
}

// add tells whether one more is to be written down.
func (d *disputeCounter) add(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID == nil {
		d.byID = map[string]int{}
	}
	noted, known := d.byID[id]
	if noted >= maxDisputes {
		return false
	}
	for other := range d.byID {
		if known || len(d.byID) < maxDisputedCalls {
			break
		}
		delete(d.byID, other) // whose comes first
	}
	d.byID[id]++
	return true
}

// remove takes back what was noted and could not be written down: it comes again.
func (d *disputeCounter) remove(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID[id]--; d.byID[id] <= 0 {
		delete(d.byID, id)
	}
}
