package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

const (
	// finishWait is how long a call that has ended waits for the store to take that
	// in, before who asked is told that it is pending.
	finishWait = 2 * time.Second
	// again is how often what is owed is tried again.
	again = 250 * time.Millisecond
)

// conclude ends a call: in the store, where of several that end it one is told so,
// and then, by that one, in the journal. Where the store does not take it in,
// nobody is given the result, since it may not stand: the call is pending, and
// the rest is owed.
func (c *call) conclude(ctx context.Context, o Outcome, r audit.Record) Outcome {
	ending := store.Ending{
		State: store.Done, Answer: store.Answer{Result: o.Result, Status: o.Status},
		Attempt: c.kernel.attempt(), Deliver: ctx.Err() == nil && c.stored == nil, Metadata: c.note,
	}
	if r.Outcome == audit.Unknown || o.Refusal != nil && o.Refusal.Code == refusal.OutcomeUnknown {
		ending.State = store.Unknown
	}
	ctx = context.WithoutCancel(ctx)
	late := time.NewTimer(finishWait)
	defer late.Stop()
	for {
		prior, told := c.end(ctx, ending, r)
		switch {
		case told && prior == nil:
			c.ended(VerdictCall, o.Refusal, r.Outcome, r.Attempt, o.Result)
			return o
		case told:
			c.late = true
			return c.endedBefore(ctx, prior)
		}
		select {
		case <-time.After(again / 5):
			continue
		case <-late.C:
		}
		break
	}
	ending.Deliver = false
	c.ended(VerdictCall, nil, "", 0, nil)
	c.kernel.owed.owe(func() {
		for {
			if _, told := c.end(ctx, ending, r); told {
				return
			}
			time.Sleep(again)
		}
	})
	return Outcome{CallID: c.id, Pending: true, Status: http.StatusAccepted}
}

// attempt names one try to end a call, and whose it is.
func (k *Kernel) attempt() string { return k.parts.Node + "/" + rand.Text() }

// hasEnded tells whether a call was ended by a process that writes this journal.
func (k *Kernel) hasEnded(call *store.Call) bool {
	return call.Step == store.Ended && k.parts.Node != "" && strings.HasPrefix(call.FinishedBy(), k.parts.Node+"/")
}

// end asks the store once to end a call. Where it has said how that stands, it
// has told; prior is the call where another has ended it before, whose the
// outcome is then.
func (c *call) end(ctx context.Context, ending store.Ending, r audit.Record) (prior *store.Call, told bool) {
	ctx, cancel := context.WithTimeout(ctx, keepWait)
	defer cancel()
	k := c.kernel
	defer func() {
		if told && c.told != nil {
			c.told()
		}
	}()
	start := c.trace.start()
	found, err := k.store.Finish(ctx, c.id, ending)
	switch {
	case errors.Is(err, store.ErrEnded):
		c.trace.stored(ctx, start, nil)
		return &found, true
	case err != nil && !errors.Is(err, store.ErrNotFound): // what the store does not have, nobody else ends
		c.trace.stored(ctx, start, err)
		return nil, false
	}
	c.trace.stored(ctx, start, nil)
	if k.parts.Observer != nil {
		k.parts.Observer.Ended(string(r.Outcome), time.Duration(r.Micros)*time.Microsecond)
	}
	written := c.trace.start()
	k.pay(r, func() { k.store.Settle(c.id) })
	c.trace.step(string(refusal.Log), written, nil)
	return nil, true
}

// endedBefore is the outcome of a call that another has ended.
func (c *call) endedBefore(ctx context.Context, prior *store.Call) Outcome {
	if c.stored == nil && c.kernel.deliver(ctx, prior) != nil {
		c.ended(VerdictCall, nil, "", 0, nil)
		return Outcome{CallID: c.id, Pending: true, Status: http.StatusAccepted}
	}
	c.ended(VerdictCall, nil, "", 0, nil)
	return answered(prior, c.input.Dialogue)
}
