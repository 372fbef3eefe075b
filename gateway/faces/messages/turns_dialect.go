package messages

import (
	"context"
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	wire "github.com/callgate/callgate/upstream/messages"
)

// RequestTurn requests the next turn from the model, and judges it.
func (r *run) RequestTurn(modelCtx, ctx context.Context) (*turns.Turn, error) {
	var (
		t   *turn
		err error
	)
	if r.stream == nil {
		t, err = r.requestWhole(modelCtx, ctx)
	} else {
		t, err = r.requestStream(modelCtx, ctx)
	}
	if err != nil {
		return nil, err
	}
	r.last = t
	r.Settle(spent(&t.reply.Usage))
	r.screen(t.reply)
	t.reply.KeepSafeguards(r.hasCall(t))
	t.reply.EndTurn()
	if id := t.reply.ContainerID(); id != nil {
		r.container = id
	}
	return &turns.Turn{Decisions: []*gateway.Decision{t.decision}, Final: t.sent, Shown: t.sent, Tokens: t.reply.Usage.Tokens(), Usage: t.reply.Usage.Raw}, nil
}

// hasCall reports whether an id is that of a call of a turn that goes to the application.
func (r *run) hasCall(t *turn) func(id string) bool {
	return func(id string) bool {
		return r.shows(wire.Call) && slices.ContainsFunc(t.calls, func(call *wire.ToolUse) bool { return call.ID == id })
	}
}

// Input is an input of the last turn: of a call its arguments, of the text all of it.
func (r *run) Input(i int) []byte {
	if at := i - r.last.texts; at >= 0 {
		return r.last.calls[at].Input
	}
	return r.last.text
}

// Append adds the last turn to the conversation exactly as it was received, and one message with the
// result of each of its calls (AM-73).
func (r *run) Append(outcomes []calls.Outcome) int {
	t := r.last
	if r.stream != nil {
		r.stream.endTurn(t)
	}
	r.executed = r.executed || t.decision.Refusal() == nil
	before := len(r.added)
	if blocks := t.reply.Blocks; len(blocks) > 0 {
		content := []byte{'['}
		for i := range blocks {
			if i > 0 {
				content = append(content, ',')
			}
			content = append(content, blocks[i].Raw...)
		}
		r.added = append(r.added, message("assistant", append(content, ']')))
	}
	var results []byte
	for i, call := range t.calls {
		outcome, report := outcomes[t.texts+i], &t.decision.Reports[t.texts+i]
		result := rawjson.Object{
			rawjson.Field("type", rawjson.Quote("tool_result")), rawjson.Field("tool_use_id", rawjson.Quote(call.ID)),
			rawjson.Field("content", rawjson.Quote(turns.Feedback(outcome, report.Tool))),
		}
		if outcome.Refusal != nil {
			result = append(result, rawjson.Field("is_error", []byte("true")))
		}
		results = append(append(results, ','), result.Bytes()...)
	}
	if len(t.calls) == 0 {
		first := max(0, slices.IndexFunc(t.decision.Reports, func(report gateway.Report) bool { return report.Refusal != nil }))
		results = append(results, ',')
		results = append(results, rawjson.Object{
			rawjson.Field("type", rawjson.Quote("text")), rawjson.Field("text", rawjson.Quote(turns.Feedback(outcomes[first], t.decision.Reports[first].Tool))),
		}.Bytes()...)
	}
	results[0] = '['
	r.added = append(r.added, message("user", append(results, ']')))
	size := 0
	for _, m := range r.added[before:] {
		size += len(m)
	}
	return size
}

func message(role string, content []byte) []byte {
	return rawjson.Object{rawjson.Field("role", rawjson.Quote(role)), rawjson.Field("content", content)}.Bytes()
}
