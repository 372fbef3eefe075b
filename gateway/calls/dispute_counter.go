package calls

import (
	"context"
	"sync"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/refusal"
)

// recordDispute records a message of a tool that is not the one answer to its call, and
// returns its refusal. Only the digest of the message is kept.
func (e *Executor) recordDispute(ctx context.Context, call *stored.Call, p CallbackMessage, refused *refusal.Error) error {
	ctx = context.WithoutCancel(ctx)
	if !e.disputes.Add(call.ID) {
		return refused
	}
	r := e.executions.Restore(call).Outcome(audit.Refused)
	r.Event, r.Stage, r.Code = audit.Decision, refused.Stage, refused.Code
	r.InputSHA256, r.ArgumentsSHA256, r.Arguments, r.Completion = p.Digest, "", nil, ""
	if err := e.journal.Write(ctx, r); err != nil {
		e.disputes.Remove(call.ID)
		return err
	}
	return refused
}

const (
	// maxDisputes bounds the recorded messages of one call: a tool must not fill the
	// journal.
	maxDisputes = 8
	// maxDisputedCalls bounds the calls whose messages are counted.
	maxDisputedCalls = 4096
)

// disputeCounter counts recorded messages by call. The zero value is empty.
type disputeCounter struct {
	mu   sync.Mutex
	byID map[string]int
}

// Add counts one more message, and reports whether to record it.
func (d *disputeCounter) Add(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID == nil {
		d.byID = map[string]int{}
	}
	count, known := d.byID[id]
	if count >= maxDisputes {
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

// Remove uncounts a message that could not be recorded: the tool sends it again.
func (d *disputeCounter) Remove(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID[id]--; d.byID[id] <= 0 {
		delete(d.byID, id)
	}
}
