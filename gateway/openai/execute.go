package openai

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// execute runs the calls of a turn, and shows the model what came of them. From
// here on they do not end with whoever asked.
func (r *run) execute(ctx context.Context, t *turn) *failure {
	j := &t.judged[0]
	outcomes, err := r.dispatch(ctx, j)
	if err != nil {
		return &failure{refused: refusal.From(refusal.Execute, err)}
	}
	r.steps++
	for i := range outcomes {
		if refused := outcomes[i].Refusal; refused != nil && !ofTool(refused) {
			return &failure{refused: refused, result: outcomes[i].Result}
		}
	}
	r.choice.met()
	r.tell(j, outcomes)
	return nil
}

// ofTool tells whether a refusal is what became of a call: the model reads it and
// goes on. Any other says that nothing could be dispatched.
func ofTool(refused *refusal.Error) bool {
	return (refused.Stage == refusal.Execute || refused.Stage == refusal.Wrap) && refused.Code != refusal.StoreUnavailable
}

// dispatch executes the calls of a decision. A stream is kept alive meanwhile,
// and says which tools run.
func (r *run) dispatch(ctx context.Context, j *judged) ([]gateway.Outcome, error) {
	kernel := r.face.options.Kernel
	if r.out == nil {
		return kernel.Execute(ctx, j.decision), nil
	}
	note := "running"
	for _, report := range j.passed() {
		note += " " + report.Tool
	}
	r.out.comment(note)
	var outcomes []gateway.Outcome
	err := r.out.waiting(note, func() error {
		outcomes = kernel.Execute(ctx, j.decision)
		return nil
	})
	return outcomes, err
}

// tell adds a turn to what the model is sent: what it said, and what came of it.
func (r *run) tell(j *judged, outcomes []gateway.Outcome) {
	m := &j.Message
	if len(m.ToolCalls) == 0 || !r.answerable(m) {
		// A model that said nothing need not be reminded of it.
		if m.Content != nil && !blank(*m.Content) {
			r.talk.add(say("assistant", *m.Content))
		}
		first := max(0, slices.IndexFunc(j.decision.Reports, func(r gateway.Report) bool { return r.Refusal != nil }))
		r.talk.add(say("user", string(line(outcomes[first], j.decision.Reports[first].Tool))))
		return
	}
	calls := []byte{'['}
	var results [][]byte
	for i := range m.ToolCalls {
		report, outcome := &j.decision.Reports[j.beside+i], outcomes[j.beside+i]
		call := m.ToolCalls[i]
		if len(call.Arguments) == 0 || report.Refusal != nil && report.Refusal.Stage == refusal.Parse {
			// What is not strict JSON is more than other readers of the history take.
			call.Arguments = []byte("{}")
		}
		if i > 0 {
			calls = append(calls, ',')
		}
		calls = append(calls, toolCall(-1, call.ID, call.Name, call.Arguments, call.Extra)...)
		results = append(results, object{
			{"role", quote(nil, "tool")}, {"tool_call_id", quote(nil, call.ID)},
			{"content", quote(nil, string(line(outcome, report.Tool)))},
		}.bytes())
	}
	content := []byte("null")
	if m.Content != nil && !blank(*m.Content) {
		content = quote(nil, *m.Content)
	}
	r.talk.add(object{{"role", quote(nil, "assistant")}, {"content", content}, {"tool_calls", append(calls, ']')}}.bytes())
	r.talk.add(results...)
}

// answerable tells whether calls can stand in a history as they came. Calls that
// passed can; of others, a provider would refuse the whole request for a name that
// is not of its alphabet.
func (r *run) answerable(m *upstream.Message) bool {
	if r.route.Rules.Protocol == upstream.Text || m.FunctionCall {
		return false
	}
	for i := range m.ToolCalls {
		if kind := m.ToolCalls[i].Type; kind != "" && kind != "function" || !ofAlphabet(m.ToolCalls[i].Name) {
			return false
		}
	}
	return true
}

// ofAlphabet tells whether a name is one that OpenAI lets a function have.
func ofAlphabet(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return name != "" && len(name) <= 64 && strings.Trim(name, letters) == ""
}

// line is what the model reads of an outcome.
func line(o gateway.Outcome, tool string) []byte {
	if o.Result != nil {
		return o.Result
	}
	// The tool has taken the call, and answers somebody else later.
	refused := refusal.New(refusal.OutcomeUnknown, fmt.Sprintf("%s has taken the call and has not answered yet. Do not send the call again.", tool))
	result, _ := wrapper.Refusal(&tool, refused) // it holds text
	return result
}

var errBrokenOff = errors.New("what was waited for broke off")
