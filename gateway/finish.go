package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// finishWait is how long a call that has ended waits for the store to take that in, before
// the caller is told that it is pending.
const finishWait = 2 * time.Second

// commit ends a call: in the store, where of several that end it one is told so,
// and then, by that one, in the journal. Where the store does not take it in,
// nobody is given the result, since it may not stand: the call is pending, and
// the rest is owed.
func (c *execution) commit(ctx context.Context, o Outcome, r audit.Record) Outcome {
	ending := store.Ending{
		State: store.Done, Answer: store.Answer{Result: o.Result, Status: o.Status},
		Attempt: c.kernel.newAttempt(), Deliver: ctx.Err() == nil && c.stored == nil, Metadata: c.metadata.encodeEnding(),
	}
	if r.Outcome == audit.Unknown || o.Refusal != nil && o.Refusal.Code == refusal.OutcomeUnknown {
		ending.State = store.Unknown
	}
	ctx = context.WithoutCancel(ctx)
	late := time.NewTimer(finishWait)
	defer late.Stop()
	for {
		prior, told := c.tryFinish(ctx, ending, r)
		switch {
		case told && prior == nil:
			c.finishTrace(VerdictCall, o.Refusal, r.Outcome, r.Attempt, o.Result)
			return o
		case told:
			c.endedByOther = true
			return c.priorOutcome(ctx, prior)
		}
		select {
		case <-time.After(journal.RetryInterval / 5):
			continue
		case <-late.C:
		}
		break
	}
	ending.Deliver = false
	c.finishTrace(VerdictCall, nil, "", 0, nil)
	c.kernel.journal.Go(func() {
		for {
			if _, told := c.tryFinish(ctx, ending, r); told {
				return
			}
			time.Sleep(journal.RetryInterval)
		}
	})
	return Outcome{CallID: c.id, Pending: true, Status: http.StatusAccepted}
}

// newAttempt names one try to end a call, and whose it is.
func (k *Kernel) newAttempt() string { return k.deps.Node + "/" + rand.Text() }

// endedHere tells whether a call was ended by a process that writes this journal.
func (k *Kernel) endedHere(call *storedCall) bool {
	return call.Step == store.Ended && k.deps.Node != "" && strings.HasPrefix(call.FinishedBy, k.deps.Node+"/")
}

// tryFinish asks the store once to end a call. Where it has said how that stands, it
// has told; prior is the call where another has ended it before, whose the
// outcome is then.
func (c *execution) tryFinish(ctx context.Context, ending store.Ending, r audit.Record) (prior *storedCall, told bool) {
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	k := c.kernel
	defer func() {
		if told && c.onEnded != nil {
			c.onEnded()
		}
	}()
	start := c.trace.start()
	found, err := ask(k.deps.Store, func(s Store) (store.Call, error) { return s.Finish(ctx, c.id, ending) })
	switch {
	case errors.Is(err, store.ErrEnded):
		c.trace.storeStep(ctx, start, nil)
		return newStoredCall(found), true
	case err != nil && !errors.Is(err, store.ErrNotFound): // what the store does not have, nobody else ends
		c.trace.storeStep(ctx, start, err)
		return nil, false
	}
	c.trace.storeStep(ctx, start, nil)
	if k.deps.Observer != nil {
		k.deps.Observer.Ended(string(r.Outcome), time.Duration(r.Micros)*time.Microsecond)
	}
	written := c.trace.start()
	k.journal.Outcome(r, func() { k.settle(c.id) })
	c.trace.step(string(refusal.Log), written, nil)
	return nil, true
}

// priorOutcome is the outcome of a call that another has ended.
func (c *execution) priorOutcome(ctx context.Context, prior *storedCall) Outcome {
	if c.stored == nil && c.kernel.markDelivered(ctx, prior) != nil {
		c.finishTrace(VerdictCall, nil, "", 0, nil)
		return Outcome{CallID: c.id, Pending: true, Status: http.StatusAccepted}
	}
	c.finishTrace(VerdictCall, nil, "", 0, nil)
	return outcomeOf(prior, c.input.Dialogue)
}
