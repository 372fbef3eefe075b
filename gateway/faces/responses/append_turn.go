package responses

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream/responses"
)

// Append adds the last turn to the conversation: its items as they were received, reasoning
// included, and one result for each of its calls (RS-90).
func (r *run) Append(outcomes []calls.Outcome) int {
	t := r.last
	if r.stream != nil {
		r.endTurn(t, false)
	}
	reports := t.decision.Reports
	if len(t.calls) == 0 || !canReplay(t) {
		added := r.conversation.add(r.received(t, false)...)
		first := max(0, slices.IndexFunc(reports, func(r gateway.Report) bool { return r.Refusal != nil }))
		message := rawjson.Object{
			rawjson.Field("role", rawjson.Quote("user")),
			rawjson.Field("content", rawjson.Quote(turns.Feedback(outcomes[first], reports[first].Tool))),
		}
		return added + r.conversation.add(message.Bytes())
	}
	added := r.conversation.add(r.received(t, true)...)
	for i, item := range t.calls {
		report, outcome := &reports[t.textInputs+i], outcomes[t.textInputs+i]
		added += r.conversation.add(resultItem(item, turns.Feedback(outcome, report.Tool), outcome.Refusal != nil || report.Refusal != nil))
	}
	return added
}

// received are the items of a turn as they were received, with its calls or without.
func (r *run) received(t *turn, withCalls bool) [][]byte {
	var items [][]byte
	for _, item := range t.reply.Items {
		switch {
		case item.Raw == nil, (item.Class == responses.Call || item.Class == responses.Approval) && !withCalls:
			continue
		case item.Class == responses.Reasoning && !withCalls && len(t.calls) > 0:
			continue // it belongs to the calls
		}
		raw := item.Raw
		if item.Type == "function_call" {
			report := &t.decision.Reports[t.textInputs+slices.Index(t.calls, item)]
			if isBlank(item.Call.Payload) || report.Refusal != nil && report.Refusal.Stage == refusal.Parse {
				// Other readers of the history do not accept arguments that are not strict
				// JSON.
				o, _ := rawjson.Members(raw)
				raw = o.Set("arguments", rawjson.Quote("{}")).Bytes()
			}
		}
		items = append(items, raw)
	}
	return items
}

// canReplay reports whether the calls of a turn can be in a history unchanged: for others, a
// provider would refuse the whole request (RS-91).
func canReplay(t *turn) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	for _, item := range t.calls {
		name, named := item.Call.Name, item.Type == "function_call" || item.Type == "custom_tool_call"
		if named && (name == "" || len(name) > 64 || strings.Trim(name, letters) != "") {
			return false
		}
	}
	return true
}
