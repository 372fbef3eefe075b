package turns

import (
	"context"

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
	wait := calls.Wait{Park: r.place.Park}
	if !r.awaited {
		wait.For = r.options.Executor.ApprovalWait()
	}
	r.awaited = true
	wait.Caller = r.askUser(wait)
	_ = r.Wait("waiting for the approval of a person", func() error { // a decision that broke off is refused
		r.options.Executor.AwaitApproval(ctx, wait, asking...)
		return nil
	})
}
