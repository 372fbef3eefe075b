package turns

import (
	"context"
	"fmt"
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// execute runs the calls of a turn, and adds their results to the conversation. From here on
// they do not end with the caller.
func (r *Run) execute(ctx context.Context, from Source, t *Turn, number int) *Failure {
	r.observeRunning(t)
	outcomes, err := r.dispatch(ctx, t.Decisions[0])
	if err != nil {
		return &Failure{Refused: refusal.From(refusal.Execute, err)}
	}
	r.steps++
	r.recordOutcomes(number, 0, t, 0, outcomes)
	r.observeEnded(t, outcomes)
	acted := slices.ContainsFunc(outcomes, func(o calls.Outcome) bool { return o.Refusal == nil || isToolOutcome(o.Refusal) })
	for i := range outcomes {
		refused := outcomes[i].Refusal
		if refused == nil || isToolOutcome(refused) {
			continue
		}
		// Of a call that alone was not saved the model reads: an error would say of all calls that
		// they can be sent again.
		if refused.Code != refusal.StoreUnavailable || !acted {
			return &Failure{Refused: refused, Result: outcomes[i].Result}
		}
	}
	r.Choice.satisfied()
	r.added += from.Append(outcomes)
	return nil
}

// isToolOutcome reports whether a refusal is the outcome of a call, which the model reads,
// and the run continues. Any other refusal means that the call was not dispatched.
func isToolOutcome(refused *refusal.Error) bool {
	return (refused.Stage == refusal.Execute || refused.Stage == refusal.Wrap) && refused.Code != refusal.StoreUnavailable
}

// dispatch executes the calls of a decision. A stream is kept alive meanwhile, and says which
// tools run.
func (r *Run) dispatch(ctx context.Context, d *gateway.Decision) ([]calls.Outcome, error) {
	if r.KeepAlive == nil {
		return r.options.Executor.Execute(ctx, d), nil
	}
	note := "running"
	for _, report := range Passed(d) {
		note += " " + report.Tool
	}
	r.KeepAlive(note)
	var outcomes []calls.Outcome
	err := r.Wait(note, func() error {
		outcomes = r.options.Executor.Execute(ctx, d)
		return nil
	})
	return outcomes, err
}

// Feedback is the text for the model about the outcome of a call: a tool_result, as one line of
// JSON.
func Feedback(o calls.Outcome, tool string) []byte {
	if o.Result != nil {
		return o.Result
	}
	// The tool has accepted the call, and answers later, outside this run.
	refused := refusal.New(refusal.OutcomeUnknown,
		fmt.Sprintf("%s has taken the call and has not answered yet. Do not send the call again.", tool))
	result, _ := wrapper.Refusal(&tool, refused) // it holds text
	return result.Line
}
