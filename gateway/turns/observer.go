package turns

import (
	"context"

	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
)

// Observer follows the turns of a run of the mode ModeCall, for a face that shows them while the
// run continues. Its methods are called by the goroutine of the run, in this order for each turn. It
// decides nothing, and must not keep what it is given.
type Observer interface {
	// Judged is told of a turn before people are asked for it, and before any of it is acted on.
	Judged(t *Turn)
	// Running is told that the calls of a turn are executed now.
	Running(t *Turn)
	// Ended is told the outcome of each input of a turn whose calls were executed, or of one that
	// was refused. It is not called for a turn that is the answer.
	Ended(t *Turn, outcomes []calls.Outcome)
}

// Asker asks the user of the application about a call of the run that waits for people. It returns
// the user's ballot, or nil if the user does not decide. Where the question has no Rules, the user
// is only told: approvers decide.
type Asker func(context.Context, approvals.Question) *approvals.Ballot

// askUser returns what calls.Wait has for the asker of the run. A call that approvers decide waits
// for them as the wait says; one that the user did not decide does not wait.
func (r *Run) askUser(wait calls.Wait) func(context.Context, approvals.Question) approvals.CallerAnswer {
	if r.Asker == nil {
		return nil
	}
	return func(ctx context.Context, q approvals.Question) approvals.CallerAnswer {
		ballot := r.Asker(ctx, q)
		if len(q.Rules) > 0 {
			return approvals.CallerAnswer{Ballot: ballot}
		}
		return approvals.CallerAnswer{Wait: wait.For}
	}
}

func (r *Run) observeJudged(t *Turn) {
	if r.Observer != nil {
		r.Observer.Judged(t)
	}
}

func (r *Run) observeRunning(t *Turn) {
	if r.Observer != nil {
		r.Observer.Running(t)
	}
}

func (r *Run) observeEnded(t *Turn, outcomes []calls.Outcome) {
	if r.Observer != nil {
		r.Observer.Ended(t, outcomes)
	}
}
