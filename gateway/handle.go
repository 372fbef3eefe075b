package gateway

import (
	"context"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// Handle judges one completion and executes its call. A call whose idempotency key was
// used before is not started again: Handle returns the first outcome, or says that it is
// not there yet. Refusals before dispatch are not stored. A call that answers the
// questions of its tool has the questions' own key, whatever key the caller sends, so
// that the first answer stands. The id of a call is always a key of that call, too.
//
// Where the tool answers later, Handle waits for that as long as the tool may
// take, or until ctx ends.
func (k *Kernel) Handle(ctx context.Context, request Request, key string) Outcome {
	return k.handle(ctx, k.open(request, ModeCall, nil), key)
}

// handle is Handle for a decision that was opened: identify, then idempotency, then
// judge, then execute.
func (k *Kernel) handle(ctx context.Context, d *Decision, key string) Outcome {
	executions := d.executions()
	c := executions[0]
	if d.run(ctx, identify, false) {
		return k.refuse(ctx, d)
	}
	if strings.HasPrefix(key, answerKeyPrefix) {
		c.refused = refusal.New(refusal.BadRequest, "This idempotency key is not one that a caller may choose.")
		return k.refuse(ctx, d)
	}
	if state := c.answerKey(); state != "" {
		key = state // instead of the caller's key: only the first answer counts
	}
	if key != "" && len(d.calls) > 1 {
		c.refused = refusal.New(refusal.BadRequest, "An idempotency key is for one call.")
		return k.refuse(ctx, d)
	}
	if key != "" {
		prior, err := k.claimKey(ctx, c, key)
		if err != nil {
			c.nameTool(ctx)
			c.refused = refusal.From(refusal.Execute, err)
			return k.refuse(ctx, d)
		}
		if prior != nil {
			return *prior
		}
		// A call that was not dispatched must not hold its key.
		defer c.forget(ctx)
	}
	d.run(ctx, judge, false)
	d.recordRest(ctx)
	d.report()
	defer d.Release()
	o := d.execute(ctx, executions)[0]
	if !o.deadline.IsZero() {
		return k.awaitEnd(ctx, c.call, o)
	}
	return o
}

// nameTool reads the tool of a completion that is refused before it is judged, so that
// the refusal can name it.
func (c *call) nameTool(ctx context.Context) {
	if guarded(ctx, check{stage: refusal.Parse, run: readInput}, c) != nil || c.parsed.Kind != parser.Call {
		c.parsed = parser.Result{}
	}
}

// refuse records a decision whose call is refused, and returns its outcome.
func (k *Kernel) refuse(ctx context.Context, d *Decision) Outcome {
	d.recordRest(ctx)
	return k.Execute(ctx, d.report())[0]
}
