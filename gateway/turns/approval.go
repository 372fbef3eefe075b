package turns

import (
	"context"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
)

// awaitApproval asks people to approve the calls of a turn that was refused for want of that
// alone, and waits for them, as long as the configuration says. Each decision that they
// approve becomes one that passed. Nothing of the turn was acted on before.
func (r *Run) awaitApproval(ctx context.Context, t *Turn) {
	var asking []*gateway.Decision
	for _, d := range t.Decisions {
		switch refused := d.Refusal(); {
		case refused == nil:
		case refused.Code != refusal.ApprovalRequired:
			return // the turn is refused, whatever people say
		default:
			asking = append(asking, d)
		}
	}
	if len(asking) == 0 {
		return
	}
	// A person has been waited for once in this run: the model has been told, and may not
	// hold up the answer with another call.
	wait := calls.Wait{Park: r.slot.Park}
	if !r.awaited {
		wait.For = r.options.Executor.Kernel.ApprovalWait()
	}
	r.awaited = true
	wait.Caller = r.askUser(wait)
	_ = r.Wait("waiting for the approval of a person", func() error { // a decision that broke off is refused
		r.options.Executor.AwaitApproval(ctx, wait, asking...)
		return nil
	})
}

// asksLater asks people to approve the calls of a turn that was refused for want of that alone, and
// reports whether the run ends for its caller to answer.
func (r *Run) asksLater(ctx context.Context, t *Turn) bool {
	if r.AskLater == nil || len(t.Decisions) != 1 {
		return false
	}
	refused := t.refusal()
	if refused == nil || refused.Code != refusal.ApprovalRequired {
		return false
	}
	questions := r.options.Executor.Questions(ctx, t.Decisions[0])
	return questions != nil && r.AskLater(questions)
}

// endAsking ends a turn that is the answer: it asks the caller.
func (r *Run) endAsking(t *Turn) {
	r.usage.add(t.Tokens, t.Usage)
	r.noteCallID(t)
	r.endDecisions(t)
}

// Confirm takes what the caller answers to a question of an earlier run, before the first turn of
// this one, and returns what the model reads of it. Its error is a *Failure: of an answer that does not
// fit, and of a call that cannot be judged or executed now.
func (r *Run) Confirm(ctx context.Context, admission *gateway.Admission, c calls.Confirmation) ([]byte, error) {
	wait := calls.Wait{Park: r.slot.Park}
	if !r.awaited {
		wait.For = r.options.Executor.Kernel.ApprovalWait()
	}
	started := time.Now()
	var o calls.Outcome
	err := r.Wait("running "+c.Tool, func() (err error) {
		o, err = r.options.Executor.Confirm(ctx, admission.Together(r.together), c, wait)
		return err
	})
	if err != nil {
		return nil, FailureOf(err)
	}
	r.awaited = r.awaited || o.ApprovalRequest != nil
	if refused := o.Refusal; refused != nil && !isToolOutcome(refused) && !r.RepairableRefusal(refused) {
		return nil, &Failure{Refused: refused, Result: o.Result, Retryable: refused.RetryAfterMS > 0}
	}
	if !c.Outdated && !o.Replayed {
		r.recordConfirmed(&o, c.Tool, started)
	}
	return Feedback(o, c.Tool), nil
}
