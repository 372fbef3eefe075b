package execution

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// finishWait is how long an ended call waits for the store to accept its end, before the
// caller gets a pending outcome.
const finishWait = 2 * time.Second

// Finish wraps the tool's output and ends the call. The caller gets the result unless ctx
// has ended.
func (c *Call) Finish(ctx context.Context, output tool.Result, err error, start time.Time) Outcome {
	return c.finish(ctx, context.WithoutCancel(ctx), output, err, start)
}

// finish is Finish with the context of what does not end with ctx.
func (c *Call) finish(ctx, acting context.Context, output tool.Result, err error, start time.Time) Outcome {
	o := Outcome{CallID: c.ID()}
	returned := c.Trace().Start()
	c.Trace().Add(string(refusal.Execute), start, returned, refusal.From(refusal.Execute, err))
	if err == nil {
		var result wrapper.ToolResult
		result, err = c.wrapGuarded(ctx, output)
		o.SetResult(result)
		c.Trace().Step(string(refusal.Wrap), returned, err)
	}
	if err == nil {
		err = c.hookBeside(ctx, &output)
	}
	if err != nil {
		o.Refusal = c.hookFailure(ctx, &output, afterDispatch(err))
		o.SetResult(RefusedResult(gateway.Report{Tool: c.ToolName(), HasTool: true}, o.Refusal))
	}
	c.result = output.Body
	o.Status = httpStatus(o.Refusal)
	if o.Refusal != nil && len(output.Challenges) > 0 {
		c.Metadata.Challenges = output.Challenges
	}
	if o.Refusal != nil && output.InputRequired != nil && c.stored == nil {
		c.Metadata.Questions, c.Metadata.QuestionDigest = output.InputRequired, c.QuestionDigest()
	}
	o.applyMetadata(c.Metadata, c.Dialogue())
	r := c.Outcome(audit.ToolCall)
	r.Outcome, r.Attempt = audit.Result, c.priorAttempts+max(output.Attempts, 1)
	if o.Refusal != nil {
		r.Outcome, r.Stage, r.Code = AuditOutcome(o.Refusal.Code), o.Refusal.Stage, o.Refusal.Code
		if c.expired {
			r.Outcome = audit.Expired
		}
	}
	r.Micros = c.runtime.now().Sub(start).Microseconds()
	return c.commit(acting, ctx.Err() == nil && c.stored == nil, o, r)
}

// afterDispatch returns the refusal for an error of a dispatched call: if the error is no
// refusal itself, the call may have had an effect.
func afterDispatch(err error) *refusal.Error {
	var refused *refusal.Error
	if errors.As(err, &refused) && refused != nil {
		return refused
	}
	return refuse.AfterDispatch(refusal.Execute, err)
}

// AuditOutcome names the outcome of a call that has no result.
func AuditOutcome(code refusal.Code) audit.Outcome {
	switch code {
	case refusal.ToolTimeout:
		return audit.Timeout
	case refusal.OutcomeUnknown, refusal.Internal:
		return audit.Unknown
	}
	return audit.Failed
}

// commit ends a call in the store, and then in the journal. If several processes end a
// call, the store accepts one of them, and that one writes the journal. If the store does
// not answer in time, commit does not return the result, since another may stand: the
// outcome is pending, and commit retries in the background.
func (c *Call) commit(ctx context.Context, deliver bool, o Outcome, r audit.Record) Outcome {
	ending := store.Ending{
		State: store.Done, Answer: store.Answer{Result: o.Result, Status: o.Status},
		Attempt: c.runtime.newAttempt(), Deliver: deliver,
		Awaited: c.Metadata.Questions != nil, Metadata: c.Metadata.EncodeEnding(),
	}
	if r.Outcome == audit.Unknown || o.Refusal != nil && o.Refusal.Code == refusal.OutcomeUnknown {
		ending.State = store.Unknown
	}
	prior, err := c.tryFinish(ctx, &ending, &r)
	if err != nil {
		prior, ending, err = c.retryFinish(ctx, ending, r)
	}
	switch {
	case err == nil && prior == nil:
		c.FinishTrace(gateway.VerdictCall, o.Refusal, r.Outcome, r.Attempt, o.Result)
		return o
	case err == nil:
		c.endedByOther = true
		return c.priorOutcome(ctx, prior)
	}
	c.FinishTrace(gateway.VerdictCall, nil, "", 0, nil)
	c.finishLater(ctx, ending, r)
	return Outcome{CallID: c.ID(), Pending: true, Status: http.StatusAccepted}
}

// retryFinish repeats tryFinish, for as long as the caller waits for it. It returns the ending as that has left it.
func (c *Call) retryFinish(ctx context.Context, ending store.Ending, r audit.Record) (prior *stored.Call, tried store.Ending, err error) {
	waiting, cancel := context.WithTimeout(ctx, finishWait)
	defer cancel()
	err = journal.Retry(waiting, journal.RetryInterval/5, func() (err error) {
		prior, err = c.tryFinish(ctx, &ending, &r)
		return err
	})
	return prior, ending, err
}

// finishLater repeats tryFinish in the background. The caller does not get the result.
func (c *Call) finishLater(ctx context.Context, ending store.Ending, r audit.Record) {
	ending.Deliver = false
	c.runtime.journal.Go(func() {
		_ = journal.Retry(ctx, journal.RetryInterval, func() error {
			_, err := c.tryFinish(ctx, &ending, &r)
			return err
		})
	})
}

// newAttempt returns a unique name for one attempt to end a call, beginning with this
// process's.
func (r *Runtime) newAttempt() string {
	var room [128]byte
	return string(strconv.AppendUint(append(room[:0], r.process...), r.attempts.Add(1), 10))
}

// EndedBefore reports whether a call was ended by an earlier process that wrote this journal.
func (r *Runtime) EndedBefore(call *stored.Call) bool {
	return call.Step == store.Ended && r.node != "/" && strings.HasPrefix(call.FinishedBy, r.node) &&
		!strings.HasPrefix(call.FinishedBy, r.process)
}

// tryFinish asks the store once to end a call. Its error is that the store did not reply; prior
// is the call if another process has ended it before, whose outcome applies then.
func (c *Call) tryFinish(ctx context.Context, ending *store.Ending, r *audit.Record) (prior *stored.Call, unanswered error) {
	bounded := c.ending.WithTimeout(ctx, gateway.StoreWait)
	defer bounded.Cancel()
	defer func() {
		if unanswered == nil && c.onEnded != nil {
			c.onEnded()
		}
	}()
	if err := c.AddResult(bounded, r.Outcome, ending, c.result); err != nil {
		return nil, err
	}
	start := c.Trace().Start()
	found, err := c.runtime.calls.Finish(bounded, c.ID(), *ending)
	switch {
	case errors.Is(err, store.ErrEnded):
		c.Trace().StoreStep(ctx, start, nil)
		c.TakeBackResult(ending)
		return found, nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		c.Trace().StoreStep(ctx, start, err)
		return nil, err
	case err != nil: // no other process can end a call that the store does not have
		if err := c.EndResult(bounded, ending); err != nil {
			c.Trace().StoreStep(ctx, start, err)
			return nil, err
		}
	case found != nil:
		ending.Counted = found.Counted
	}
	c.Trace().StoreStep(ctx, start, nil)
	c.RecordResult(r, ending.Counted)
	if c.runtime.observer != nil {
		agent, tool := c.KnownNames()
		c.runtime.observer.Ended(string(r.Outcome), time.Duration(r.Micros)*time.Microsecond, agent, tool)
	}
	written := c.Trace().Start()
	c.runtime.journal.Outcome(*r, c.runtime.Acquit(found))
	c.Trace().Step(string(refusal.Log), written, nil)
	return nil, nil
}

// Acquit returns what is to be done once the outcome of a call that this node owes is durable; nil: it owes none.
// What the store cannot take then, it forgets with the call: a later process finds the outcome in the log.
func (r *Runtime) Acquit(call *stored.Call) func() {
	if call == nil || !call.Owed() {
		return nil
	}
	return func() {
		r.journal.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), gateway.StoreWait)
			defer cancel()
			_ = r.calls.Update(ctx, call.ID, store.Recorded{})
		})
	}
}

// priorOutcome is the outcome of a call that another process has ended.
func (c *Call) priorOutcome(ctx context.Context, prior *stored.Call) Outcome {
	if c.stored == nil && c.runtime.calls.MarkDelivered(ctx, prior) != nil {
		c.FinishTrace(gateway.VerdictCall, nil, "", 0, nil)
		return Outcome{CallID: c.ID(), Pending: true, Status: http.StatusAccepted}
	}
	c.FinishTrace(gateway.VerdictCall, nil, "", 0, nil)
	return outcomeOf(prior, c.Dialogue())
}

// CloseStored ends a call in the store whose outcome needs no record any more. It returns once
// the store has taken that, or has no such call.
func (r *Runtime) CloseStored(id string, answer store.Answer) {
	ending := store.Ending{State: store.Done, Attempt: r.newAttempt(), Answer: answer}
	_ = journal.Retry(context.Background(), journal.RetryInterval, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), gateway.StoreWait)
		defer cancel()
		call, err := r.calls.Finish(ctx, id, ending)
		if acquit := r.Acquit(call); err == nil && acquit != nil {
			acquit() // with ErrEnded, another owes it
		}
		if errors.Is(err, store.ErrEnded) || errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
}
