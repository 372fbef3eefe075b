package turns

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
)

// maxEqualRefusals is how many equal refusals end a run.
const maxEqualRefusals = 3

// repair sends a refused turn back to the model, or returns the failure that ends the run.
func (r *Run) repair(d Dialect, t *Turn, refused *refusal.Error) *Failure {
	outcomes := r.endDecisions(t)
	failed := &Failure{Refused: refused, Retryable: refused.RetryAfterMS > 0 && r.steps == 0}
	for i := range outcomes {
		for _, o := range outcomes[i] {
			if o.Refusal == refused {
				failed.Result = o.Result
			}
		}
	}
	r.repairs++
	if !r.RepairableRefusal(refused) || r.repairs > r.Route.Rules.MaxRepairs || t.Final {
		return failed
	}
	if r.Mode == gateway.ModeCall && r.isLoop(d, t) {
		failed.Refused = refusal.New(refusal.LoopDetected, fmt.Sprintf("The model has sent the same refused call %d times. The refusal was: %s", maxEqualRefusals, refused.Message))
		return failed
	}
	r.added += d.Append(outcomes[0])
	return nil
}

// endDecisions releases or ends the decisions of a turn of which one was refused.
func (r *Run) endDecisions(t *Turn) [][]calls.Outcome {
	all := make([][]calls.Outcome, len(t.Decisions))
	for i, d := range t.Decisions {
		switch {
		case d.Refusal() == nil:
			d.Release() // it passed, and goes nowhere
		case r.Mode == gateway.ModeCall:
			all[i] = r.options.Executor.Execute(context.Background(), d)
		default:
			all[i] = r.options.Executor.HandOver(context.Background(), d)
		}
	}
	return all
}

// RepairableRefusal reports whether another answer of the model could pass. A call that
// states no agent can be sent again with it where the model writes calls as text.
func (r *Run) RepairableRefusal(refused *refusal.Error) bool {
	switch refused.Code {
	case refusal.AgentRequired:
		return r.CallsAreText() && r.StatesAgent()
	case refusal.Unauthenticated, refusal.AgentUnknown, refusal.WorkspaceMismatch, refusal.ProjectMismatch, refusal.BoundReached, refusal.Canceled:
		return false
	}
	return refused.Status() < 500 && refused.Stage != refusal.Rate // waiting helps, another answer does not
}

// isLoop counts the refused calls of a turn, and reports whether one reached
// maxEqualRefusals.
func (r *Run) isLoop(d Dialect, t *Turn) bool {
	looped := false
	reports := t.Decisions[0].Reports
	for i := range reports {
		if reports[i].Refusal == nil {
			continue
		}
		key := refusedCall{tool: reports[i].Tool, code: reports[i].Refusal.Code}
		// The arguments if they were read, else the whole input from the model.
		if digest := reports[i].ArgumentsSHA256; digest != "" {
			key.arguments = sha256.Sum256([]byte(digest))
		} else {
			key.arguments = sha256.Sum256(d.Input(i))
		}
		r.refusedCalls[key]++
		looped = looped || r.refusedCalls[key] >= maxEqualRefusals
	}
	return looped
}
