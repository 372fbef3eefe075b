package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

const (
	// maxHandedOver is how many decisions may be handed over whose outcomes are
	// not written down yet.
	maxHandedOver = 256
	// roomWait is how long the next one waits for one of them.
	roomWait = time.Second
)

// HandOver ends the calls of a decision of ModeEnforce, which the application
// runs, and releases it. One is handed over once. Its outcomes are nothing but
// their call ids, and are written down beside the caller, who does not wait: the
// decision is durable already. Where too many are not written down yet, it is
// refused.
func (k *Kernel) HandOver(ctx context.Context, d *Decision) []Outcome {
	defer d.Release()
	first := d.consume(ModeEnforce)
	if first == nil {
		first = d.handOver(ctx)
	}
	return d.outcomes(first, func(i int) Outcome { return Outcome{CallID: d.calls[i].id, Status: http.StatusOK} })
}

// handOver owes the outcomes of a decision, or says why it cannot.
func (d *Decision) handOver(ctx context.Context) *refusal.Error {
	var records []audit.Record
	for _, c := range d.calls {
		if c.parsed.Kind == parser.Call {
			r := c.record(audit.Ending)
			r.Verdict, r.Outcome = audit.ToolCall, audit.HandedOver
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return nil
	}
	k := d.calls[0].kernel
	if err := k.handOvers.acquire(ctx); err != nil {
		refused := refusal.From(refusal.Log, refusal.AsCanceled(ctx, refusal.Log, refusal.New(refusal.AuditUnavailable, refusedUnrecorded).WithCause(err)))
		d.endAll(refused)
		return refused
	}
	k.journal.Later(k.handOvers.release, records...)
	for _, c := range d.calls {
		if c.parsed.Kind == parser.Call {
			c.finishTrace(VerdictCall, nil, audit.HandedOver, 0, nil)
		}
	}
	return nil
}

// endAll ends the calls of a decision that was to be acted on and cannot be.
func (d *Decision) endAll(refused *refusal.Error) {
	for _, c := range d.calls {
		if c.parsed.Kind == parser.Call {
			c.recordNotRun(refused)
			c.finishTrace(VerdictRefused, refused, audit.Failed, 0, nil)
		}
	}
}

// handOverSlots holds a token for each decision that was handed over and whose outcomes
// are not written down yet.
type handOverSlots chan struct{}

// acquire takes the slot of one decision, and waits a little where there is none.
func (s handOverSlots) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(roomWait)
	defer late.Stop()
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return errors.New("too many outcomes are not written down yet")
	}
}

func (s handOverSlots) release() { <-s }
