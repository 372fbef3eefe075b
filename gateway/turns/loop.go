package turns

import (
	"context"
	"errors"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
)

// Dialect is what a face adds to the loop. The package comment states its contract.
type Dialect interface {
	// RequestTurn requests the next turn from the model, and judges it. ctx is the
	// application's request; modelCtx may end before it, with the run.
	RequestTurn(modelCtx, ctx context.Context) (*Turn, error)
	// Append adds the turn that RequestTurn returned last to the conversation, with the
	// outcomes of the inputs of its first decision, and returns how many bytes it added.
	Append(outcomes []calls.Outcome) (added int)
	// Input is one input of the first decision of that turn, by its index, as the model
	// wrote it: arguments or text. Equal inputs that are refused equally end a run.
	Input(i int) []byte
}

// Turn is one answer of the model, judged.
type Turn struct {
	// Decisions has one decision for each choice; there is at least one, with at least one
	// report. More than one is for the mode ModeEnforce, and for turns that are Final.
	Decisions []*gateway.Decision
	// Final says that the turn cannot be repaired: the application was sent some of it, or
	// has asked for several choices.
	Final bool
	// Tokens is how many tokens the turn has taken; 0 where the provider does not say.
	Tokens int64
	// Usage is the provider's object of them, in which no call can be found; nil: none.
	Usage []byte
}

// refusal is the first refusal of the turn, or nil.
func (t *Turn) refusal() *refusal.Error {
	for _, d := range t.Decisions {
		if refused := d.Refusal(); refused != nil {
			return refused
		}
	}
	return nil
}

// hasCalls reports whether the turn has calls that passed.
func (t *Turn) hasCalls() bool {
	for _, d := range t.Decisions {
		if len(Passed(d)) > 0 {
			return true
		}
	}
	return false
}

// release gives back what the decisions hold.
func (t *Turn) release() {
	for _, d := range t.Decisions {
		d.Release()
	}
}

// Passed are the reports of a decision from the first call that passed. Calls come behind the
// texts of a decision, so these are its calls.
func Passed(d *gateway.Decision) []gateway.Report {
	for i := range d.Reports {
		if d.Reports[i].Verdict == gateway.VerdictCall {
			return d.Reports[i:]
		}
	}
	return nil
}

// errWallTime is the cause of a run that took longer than its wall time.
var errWallTime = errors.New("the run has taken its time")

// Turns requests turns from the model until one is the answer: the last one that the dialect
// returned, whose decisions are handed over or executed by then.
func (r *Run) Turns(ctx context.Context, d Dialect) *Failure {
	r.begin()
	failed := r.requestTurns(ctx, d)
	r.end(failed)
	return failed
}

func (r *Run) requestTurns(ctx context.Context, d Dialect) *Failure {
	modelCtx := ctx
	if r.Mode == gateway.ModeCall {
		var cancel context.CancelFunc
		modelCtx, cancel = context.WithTimeoutCause(ctx, r.Route.Rules.RunTimeout, errWallTime)
		defer cancel()
	}
	for {
		requested := time.Now()
		t, err := d.RequestTurn(modelCtx, ctx)
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
		answered, failed := r.take(ctx, d, t, r.recordTurn(t, requested))
		if answered || failed != nil {
			return failed
		}
		if failed := r.checkBounds(t); failed != nil {
			return failed
		}
	}
}

// take acts on a turn, and reports whether it is the answer. number is the turn's in the record.
func (r *Run) take(ctx context.Context, d Dialect, t *Turn, number int) (answered bool, _ *Failure) {
	r.usage.add(t.Tokens, t.Usage)
	r.noteCallID(t)
	refused := t.refusal()
	switch {
	case refused != nil:
		return false, r.repair(d, t, refused)
	case r.Mode == gateway.ModeEnforce || !t.hasCalls():
		return true, r.complete(ctx, t, number)
	}
	if ctx.Err() != nil {
		return false, r.callOff(t, number, context.Cause(ctx))
	}
	r.repairs = 0
	return false, r.execute(ctx, d, t, number)
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
	outcomes := r.options.Executor.CallOff(t.Decisions[0], f.Refused)
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

// boundReached ends a run that has reached a bound.
func boundReached(message string) *Failure {
	return &Failure{Refused: refusal.New(refusal.BoundReached, message)}
}
