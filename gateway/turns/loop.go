package turns

import (
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/gateway"
)

// errWallTime is the cause of a run that took longer than its wall time.
var errWallTime = errors.New("the run has reached its time limit")

// Turns requests turns from the model until one is the answer: the last one that the source
// returned, whose decisions are handed over or executed by then.
func (r *Run) Turns(ctx context.Context, from Source) *Failure {
	defer r.heartbeat.stop()
	r.begin()
	failed := r.requestTurns(ctx, from)
	r.end(failed)
	return failed
}

func (r *Run) requestTurns(ctx context.Context, from Source) *Failure {
	modelCtx := ctx
	if r.Mode == gateway.ModeCall {
		var cancel context.CancelFunc
		modelCtx, cancel = context.WithTimeoutCause(ctx, r.Route.Rules.RunTimeout, errWallTime)
		defer cancel()
	}
	for {
		requested := time.Now()
		t, err := from.RequestTurn(modelCtx, ctx)
		r.endSpending()
		if err != nil {
			return r.turnFailure(modelCtx, err)
		}
		r.observeJudged(t)
		if r.asksLater(ctx, t) {
			r.recordTurn(t, requested)
			r.endAsking(t)
			return nil
		}
		r.awaitApproval(ctx, t)
		answered, failed := r.take(ctx, from, t, r.recordTurn(t, requested))
		if answered || failed != nil {
			return failed
		}
		if failed := r.checkBounds(t); failed != nil {
			return failed
		}
	}
}

// take acts on a turn, and reports whether it is the answer. number is the turn's in the record.
func (r *Run) take(ctx context.Context, from Source, t *Turn, number int) (answered bool, _ *Failure) {
	r.usage.add(t.Tokens, t.Usage)
	r.noteCallID(t)
	refused := t.refusal()
	switch {
	case refused != nil:
		return false, r.repair(from, t, refused)
	case r.Mode == gateway.ModeEnforce || !t.hasCalls():
		return true, r.complete(ctx, t, number)
	}
	if ctx.Err() != nil {
		return false, r.callOff(t, number, context.Cause(ctx))
	}
	r.repairs = 0
	return false, r.execute(ctx, from, t, number)
}

// noteCallID remembers the judgement that the answer's head names.
func (r *Run) noteCallID(t *Turn) {
	first := t.Decisions[0]
	reports := first.Reports
	if passed := Passed(first); len(passed) > 0 {
		reports = passed
	}
	r.callID = reports[0].CallID
}

// complete ends a turn that is the answer.
func (r *Run) complete(ctx context.Context, t *Turn, number int) *Failure {
	end := r.options.Executor.HandOver
	if r.Mode == gateway.ModeCall {
		end = r.options.Executor.Execute // of text alone
	}
	first := 0 // of the choice, in the record
	for i, d := range t.Decisions {
		outcomes := end(ctx, d)
		r.recordOutcomes(number, first, t, i, outcomes)
		first += len(outcomes)
		for _, o := range outcomes {
			if o.Refusal != nil {
				t.release()
				return &Failure{Refused: o.Refusal, Result: o.Result}
			}
		}
	}
	return nil
}

// callOff ends a turn whose application left before its calls were executed.
func (r *Run) callOff(t *Turn, number int, cause error) *Failure {
	f := FailureOf(clientLeft(cause))
	outcomes := r.options.Executor.CallOff(t.Decisions[0], gateway.ModeCall, f.Refused)
	r.recordOutcomes(number, 0, t, 0, outcomes)
	r.observeEnded(t, outcomes)
	return f
}

// turnFailure is the failure of a turn without an answer of the model.
func (r *Run) turnFailure(modelCtx context.Context, err error) *Failure {
	if errors.Is(context.Cause(modelCtx), errWallTime) {
		return boundReached("The run has taken the time that it may take.")
	}
	if errors.Is(err, context.Canceled) && modelCtx.Err() != nil {
		err = clientLeft(err)
	}
	f := FailureOf(err)
	f.Retryable = f.Retryable && r.steps == 0
	return f
}

// checkBounds fails a run that may not request another turn.
func (r *Run) checkBounds(t *Turn) *Failure {
	rules := &r.Route.Rules
	switch {
	case r.added > r.MaxAdded:
		return boundReached("The results of the run are longer than a conversation may be.")
	case r.Mode == gateway.ModeEnforce:
		return nil
	case rules.TokenBudget > 0 && t.Tokens == 0:
		return boundReached("The run has a bound of tokens, and the model's provider does not say how many it took.")
	case rules.TokenBudget > 0 && r.usage.tokens >= rules.TokenBudget:
		return boundReached("The run has taken the tokens that it may take.")
	}
	return nil
}
