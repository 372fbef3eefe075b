package openai

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// execute runs the calls of a turn, and adds their results to the conversation. From
// here on they do not end with the caller.
func (r *run) execute(ctx context.Context, t *turn) *failure {
	j := &t.choices[0]
	outcomes, err := r.dispatch(ctx, j)
	if err != nil {
		return &failure{refused: refusal.From(refusal.Execute, err)}
	}
	r.steps++
	for i := range outcomes {
		if refused := outcomes[i].Refusal; refused != nil && !isToolOutcome(refused) {
			return &failure{refused: refused, result: outcomes[i].Result}
		}
	}
	r.choice.satisfied()
	r.appendTurn(j, outcomes)
	return nil
}

// isToolOutcome reports whether a refusal is the outcome of a call, which the model reads,
// and the run continues. Any other refusal means that nothing could be dispatched.
func isToolOutcome(refused *refusal.Error) bool {
	return (refused.Stage == refusal.Execute || refused.Stage == refusal.Wrap) && refused.Code != refusal.StoreUnavailable
}

// dispatch executes the calls of a decision. A stream is kept alive meanwhile,
// and says which tools run.
func (r *run) dispatch(ctx context.Context, j *judgedChoice) ([]calls.Outcome, error) {
	kernel := r.face.options.Executor
	if r.stream == nil {
		return kernel.Execute(ctx, j.decision), nil
	}
	note := "running"
	for _, report := range j.passed() {
		note += " " + report.Tool
	}
	r.stream.comment(note)
	var outcomes []calls.Outcome
	err := r.stream.withHeartbeat(note, func() error {
		outcomes = kernel.Execute(ctx, j.decision)
		return nil
	})
	return outcomes, err
}

// appendTurn adds a turn to the conversation: the model's message and the results of its
// calls.
func (r *run) appendTurn(j *judgedChoice, outcomes []calls.Outcome) {
	m := &j.Message
	if len(m.ToolCalls) == 0 || !r.canReplayCalls(m) {
		// An empty message adds nothing to the conversation.
		if m.Content != nil && !isBlank(*m.Content) {
			r.conversation.add(chatMessage("assistant", *m.Content))
		}
		first := max(0, slices.IndexFunc(j.decision.Reports, func(r gateway.Report) bool { return r.Refusal != nil }))
		r.conversation.add(chatMessage("user", string(outcomeText(outcomes[first], j.decision.Reports[first].Tool))))
		return
	}
	calls := []byte{'['}
	var results [][]byte
	for i := range m.ToolCalls {
		report, outcome := &j.decision.Reports[j.textInputs+i], outcomes[j.textInputs+i]
		call := m.ToolCalls[i]
		if len(call.Arguments) == 0 || report.Refusal != nil && report.Refusal.Stage == refusal.Parse {
			// Other readers of the history do not accept arguments that are not strict
			// JSON.
			call.Arguments = []byte("{}")
		}
		if i > 0 {
			calls = append(calls, ',')
		}
		calls = append(calls, encodeToolCall(-1, call.ID, call.Name, call.Arguments, call.Extra)...)
		results = append(results, object{
			{"role", quote(nil, "tool")}, {"tool_call_id", quote(nil, call.ID)},
			{"content", quote(nil, string(outcomeText(outcome, report.Tool)))},
		}.bytes())
	}
	content := []byte("null")
	if m.Content != nil && !isBlank(*m.Content) {
		content = quote(nil, *m.Content)
	}
	r.conversation.add(object{{"role", quote(nil, "assistant")}, {"content", content}, {"tool_calls", append(calls, ']')}}.bytes())
	r.conversation.add(results...)
}

// canReplayCalls reports whether calls can be in a history unchanged. Calls that passed
// can; for others, a provider would refuse the whole request if a name is not of its
// alphabet.
func (r *run) canReplayCalls(m *upstream.Message) bool {
	if r.route.Rules.Protocol == upstream.Text || m.FunctionCall {
		return false
	}
	for i := range m.ToolCalls {
		if kind := m.ToolCalls[i].Type; kind != "" && kind != "function" || !isFunctionName(m.ToolCalls[i].Name) {
			return false
		}
	}
	return true
}

// isFunctionName reports whether a name is one that OpenAI lets a function have.
func isFunctionName(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return name != "" && len(name) <= 64 && strings.Trim(name, letters) == ""
}

// outcomeText is the text of an outcome for the model.
func outcomeText(o calls.Outcome, tool string) []byte {
	if o.Result != nil {
		return o.Result
	}
	// The tool has accepted the call, and answers later, outside this run.
	refused := refusal.New(refusal.OutcomeUnknown, fmt.Sprintf("%s has taken the call and has not answered yet. Do not send the call again.", tool))
	result, _ := wrapper.Refusal(&tool, refused) // it holds text
	return result.Line
}
