package openai

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// repair sends a refused completion back to the model, or returns the failure that ends the
// run.
func (r *run) repair(t *turn, refused *refusal.Error) *failure {
	outcomes := r.endDecisions(t)
	failed := &failure{refused: refused, retryable: refused.RetryAfterMS > 0 && r.steps == 0}
	for i := range outcomes {
		for _, o := range outcomes[i] {
			if o.Refusal == refused {
				failed.result = o.Result
			}
		}
	}
	r.repairs++
	if !r.repairable(refused) || r.request.n > 1 || r.repairs > r.route.Rules.MaxRepairs || t.sent() {
		return failed
	}
	if r.mode == gateway.ModeCall && r.isLoop(&t.choices[0]) {
		failed.refused = refusal.New(refusal.LoopDetected, fmt.Sprintf("The model has sent the same refused call %d times. The refusal was: %s", maxEqualRefusals, refused.Message))
		return failed
	}
	r.appendTurn(&t.choices[0], outcomes[0])
	return nil
}

// endDecisions releases or hands over the decisions of a turn of which one was refused.
func (r *run) endDecisions(t *turn) [][]calls.Outcome {
	all := make([][]calls.Outcome, len(t.choices))
	for i := range t.choices {
		j := &t.choices[i]
		switch {
		case j.decision.Refusal() == nil:
			j.decision.Release() // it passed, and goes nowhere
		case r.mode == gateway.ModeCall:
			all[i] = r.face.options.Executor.Execute(context.Background(), j.decision)
		default:
			all[i] = r.face.options.Executor.HandOver(context.Background(), j.decision)
		}
	}
	return all
}

// repairable reports whether another answer of the model could pass. A call that states no
// agent can be sent again with it where the model writes calls as text.
func (r *run) repairable(refused *refusal.Error) bool {
	switch refused.Code {
	case refusal.AgentRequired:
		return r.route.Rules.Protocol == upstream.Text && r.statesAgent()
	case refusal.Unauthenticated, refusal.AgentUnknown, refusal.WorkspaceMismatch, refusal.ProjectMismatch, refusal.BoundReached, refusal.Canceled:
		return false
	}
	return refused.Status() < 500 && refused.Stage != refusal.Rate // waiting helps, another answer does not
}

// isLoop counts the refused calls of a turn, and reports whether one reached
// maxEqualRefusals.
func (r *run) isLoop(j *judgedChoice) bool {
	looped := false
	reports := j.decision.Reports
	for i := range reports {
		if reports[i].Refusal == nil {
			continue
		}
		key := refusedCall{tool: reports[i].Tool, arguments: j.digest(i), code: reports[i].Refusal.Code}
		r.refusedCalls[key]++
		looped = looped || r.refusedCalls[key] >= maxEqualRefusals
	}
	return looped
}

// digest is the digest of a report's input: the arguments if they were read, else the whole
// input from the model.
func (j *judgedChoice) digest(i int) [sha256.Size]byte {
	switch at := i - j.textInputs; {
	case j.decision.Reports[i].ArgumentsSHA256 != "":
		return sha256.Sum256([]byte(j.decision.Reports[i].ArgumentsSHA256))
	case at >= 0:
		return sha256.Sum256(j.Message.ToolCalls[at].Arguments)
	case i == 0 && j.text && j.Message.Content != nil:
		return sha256.Sum256([]byte(*j.Message.Content))
	}
	return sha256.Sum256(nil)
}
