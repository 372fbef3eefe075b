package responses

import (
	"github.com/callgate/callgate/gateway/faces/responses/internal/emit"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/upstream/responses"
	"github.com/callgate/callgate/wrapper"
)

// endTurn writes what was held back of a turn and passed, with its calls where the turn is
// the answer. Items that have begun are ended.
func (r *run) endTurn(t *turn, answer bool) {
	s := r.stream
	passed := t.decision == nil || t.questions != nil || t.decision.Refusal() == nil // nil: it has no text
	for _, item := range t.reply.Items {
		switch {
		case s.HasEnded(item):
		case item.Class == responses.Call:
			if q := t.questions[item]; q != nil {
				s.WriteRequest(item, q)
			} else if report := t.passed(item); answer && passed && report != nil {
				s.WriteCall(item, report)
			}
		case item.Class == responses.Message:
			if passed && t.shows(item) {
				s.EndItem(item)
			}
		case item.Class == responses.Approval:
		case s.HasBegun(item):
			s.EndItem(item)
		case passed && r.shows(item):
			s.AddItem(item)
			s.WriteSummary(item)
			s.EndItem(item)
		}
	}
}

// finishStream sends the rest of the last turn, and ends the stream.
func (r *run) finishStream() {
	t := r.last
	r.endTurn(t, true)
	status := "completed"
	if t.reply.Status == "incomplete" {
		status = "incomplete"
	}
	r.stream.WriteEnd(t.reply, status)
	r.remember(r.stream.ID())
}

// finishStreamWith ends the stream with a text in place of the rest of the last turn.
func (r *run) finishStreamWith(text string) {
	r.endTurn(r.last, false)
	for _, item := range r.last.reply.Items {
		if r.stream.HasBegun(item) && !r.stream.HasEnded(item) {
			r.stream.CutItem(item)
		}
	}
	r.stream.EndItem(emit.TextItem(text))
	r.stream.WriteEnd(r.last.reply, "completed")
}

// failStream ends a stream that has begun (RS-50).
func (r *run) failStream(f *turns.Failure) {
	r.stream.WriteFailed(r.appendError(nil, f))
	r.stream.Fail(f, nil)
}

// appendError appends the error of a failed response: the provider's own code and words, or
// ours.
func (r *run) appendError(b []byte, f *turns.Failure) []byte {
	var code, message string
	var result []byte
	switch {
	case f.Upstream != nil:
		code, message = f.Upstream.Code, f.Upstream.Why()
		if !ascii.IsPlainID(code) {
			code = "server_error"
		}
		if !rawjson.IsProse([]byte(message)) {
			message = "The model's provider refused the request."
		}
	default:
		code, message, result = string(f.Refused.Code), f.Refused.Message, f.Result
		if result == nil {
			line, _ := wrapper.Refusal(nil, f.Refused) // it holds text and numbers
			result = line.Line
		}
	}
	b = strictjson.AppendQuote(append(b, `{"code":`...), code)
	b = strictjson.AppendQuote(append(b, `,"message":`...), message)
	if result != nil {
		b = append(append(b, `,"callgate":`...), result...)
	}
	return append(b, '}')
}
