package turns

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// maxEqualRefusals is how many equal refusals end a run.
const maxEqualRefusals = 3

// repair sends a refused turn back to the model, or returns the failure that ends the run.
func (r *Run) repair(from Source, t *Turn, refused *refusal.Error) *Failure {
	outcomes := r.endDecisions(t)
	if r.Observer != nil {
		r.observeEnded(t, notRun(t.Decisions[0], refused, slices.Clone(outcomes[0])))
	}
	failed := &Failure{Refused: refused, Retryable: refused.RetryAfterMS > 0 && r.steps == 0}
	for i := range outcomes {
		for _, o := range outcomes[i] {
			if o.Refusal == refused {
				failed.Result = o.Result
			}
		}
	}
	r.repairs++
	if !r.RepairableRefusal(refused) {
		return failed
	}
	failed.Message = r.finalMessage(t, refused)
	if r.repairs > r.Route.Rules.MaxRepairs {
		return failed
	}
	if t.Final {
		if t.Shown && r.Answers < 2 { // of several answers none is repaired
			failed.Refused = r.shownAlready(refused)
		}
		return failed
	}
	if r.Mode == gateway.ModeCall && r.isLoop(from, t) {
		failed.Refused = refusal.New(refusal.LoopDetected,
			fmt.Sprintf("The model has sent the same refused call %d times. The refusal was: %s", maxEqualRefusals, refused.Message))
		return failed
	}
	r.added += from.Append(notRun(t.Decisions[0], refused, outcomes[0]))
	return nil
}

// shownAlready is a refusal that went back to nobody, since the application had some of the turn's text: it
// names the key by which the next one does.
func (r *Run) shownAlready(refused *refusal.Error) *refusal.Error {
	told := *refused
	told.Message += fmt.Sprintf(" The model was not asked again, since text before it had been sent. With stream_buffer: whole at the upstream %s, a stream waits for the verdict, and the model can correct its answer.", r.Route.Upstream)
	if told.Cause == nil {
		told.Cause = errors.New("not repaired, since text of the answer had been sent (stream_buffer: parser)")
	}
	return &told
}

// notRun returns the outcomes of a refused decision for the model: calls without a fault of
// their own are told so, and not another's.
func notRun(d *gateway.Decision, refused *refusal.Error, outcomes []calls.Outcome) []calls.Outcome {
	for i := range d.Reports {
		if d.Reports[i].Refusal != nil || !d.Reports[i].HasTool {
			continue
		}
		why := refusal.At(refused.Stage, refused.Code,
			"This call was not run: another call of the same answer was refused. Send it again with the other one corrected.")
		if result, err := wrapper.Refusal(&d.Reports[i].Tool, why); err == nil { // it holds text
			outcomes[i].Result, outcomes[i].Value = result.Line, result
		}
	}
	return outcomes
}

// finalMessage is the text of a final answer that says what was refused, where the upstream's
// entry wants one; else it is empty.
func (r *Run) finalMessage(t *Turn, refused *refusal.Error) string {
	if r.Route.Rules.Refusals != upstream.AsMessage {
		return ""
	}
	var tools []string
	for _, d := range t.Decisions {
		for i := range d.Reports {
			if p := &d.Reports[i]; p.Refusal != nil && p.HasTool && !slices.Contains(tools, p.Tool) && len(tools) < maxNamedTools {
				tools = append(tools, p.Tool)
			}
		}
	}
	const refusedAnswer = "Callgate has refused %s. The model did not correct it, and nothing of that answer was executed.\n\n%s"
	what := "what the model answered"
	text := fmt.Sprintf(refusedAnswer, what, string(refused.Code)+": "+refused.Message)
	if len(tools) > 0 {
		text = fmt.Sprintf(refusedAnswer, "a call of "+strings.Join(tools, ", "), string(refused.Code)+": "+refused.Message)
	}
	// The names, which the model chose, must not look like a call to a reader of this text.
	if !rawjson.IsProse([]byte(text)) || len(text) > maxFinalMessage {
		text = fmt.Sprintf(refusedAnswer, what, refused.Code)
	}
	return text
}

// maxFinalMessage bounds the text of finalMessage, in bytes.
const maxFinalMessage = 4 << 10

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
	case refusal.Unauthenticated, refusal.AgentUnknown, refusal.ProjectRequired, refusal.WorkspaceMismatch, refusal.ProjectMismatch,
		refusal.BoundReached, refusal.Canceled:
		return false
	case refusal.ApprovalRequired, refusal.ApprovalDenied, refusal.ApprovalExpired:
		// A model that calls tools here is told, and says so in its answer. An application that
		// runs them itself gets the error: no other answer of the model would be approved.
		return r.Mode == gateway.ModeCall
	}
	return refused.Status() < 500 && refused.Stage != refusal.Rate // waiting helps, another answer does not
}

// isLoop counts the refused calls of a turn, and reports whether one reached
// maxEqualRefusals.
func (r *Run) isLoop(from Source, t *Turn) bool {
	if r.refusedCalls == nil {
		r.refusedCalls = map[refusedCall]int{}
	}
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
			key.arguments = sha256.Sum256(from.Input(i))
		}
		r.refusedCalls[key]++
		looped = looped || r.refusedCalls[key] >= maxEqualRefusals
	}
	return looped
}
