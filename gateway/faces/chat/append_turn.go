package chat

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/chat"
)

// appendTurn adds a turn to the conversation: the model's message and the results of its
// calls. It returns how long they are.
func (r *run) appendTurn(j *judgedChoice, outcomes []calls.Outcome) int {
	m := &j.Message
	if len(m.ToolCalls) == 0 || !r.canReplayCalls(m) {
		added := 0 // an empty message adds nothing to the conversation
		if m.Content != nil && !isBlank(*m.Content) {
			added = r.conversation.add(chatMessage("assistant", *m.Content))
		}
		first := max(0, slices.IndexFunc(j.decision.Reports, func(r gateway.Report) bool { return r.Refusal != nil }))
		return added + r.conversation.add(chatMessage("user", string(turns.Feedback(outcomes[first], j.decision.Reports[first].Tool))))
	}
	calls := []byte{'['}
	var results [][]byte
	for i := range m.ToolCalls {
		report, outcome := &j.decision.Reports[j.textInputs+i], outcomes[j.textInputs+i]
		call := m.ToolCalls[i]
		if isBlank(string(call.Arguments)) || report.Refusal != nil && report.Refusal.Stage == refusal.Parse {
			// Other readers of the history do not accept arguments that are not strict
			// JSON.
			call.Arguments = []byte("{}")
		}
		if i > 0 {
			calls = append(calls, ',')
		}
		calls = appendToolCall(calls, -1, call.ID, call.Name, call.Arguments, call.Extra)
		results = append(results, rawjson.Object{
			rawjson.Field("role", rawjson.Quote("tool")), rawjson.Field("tool_call_id", rawjson.Quote(call.ID)),
			rawjson.Field("content", rawjson.Quote(string(turns.Feedback(outcome, report.Tool)))),
		}.Bytes())
	}
	content := []byte("null")
	if m.Content != nil && !isBlank(*m.Content) {
		content = rawjson.Quote(*m.Content)
	}
	added := r.conversation.add(rawjson.Object{rawjson.Field("role", rawjson.Quote("assistant")), rawjson.Field("content", content), rawjson.Field("tool_calls", append(calls, ']'))}.Bytes())
	return added + r.conversation.add(results...)
}

// canReplayCalls reports whether calls can be in a history unchanged. Calls that passed
// can; for others, a provider would refuse the whole request if a name is not of its
// alphabet.
func (r *run) canReplayCalls(m *chat.Message) bool {
	if r.Route.Rules.Protocol == upstream.Text || m.FunctionCall {
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
