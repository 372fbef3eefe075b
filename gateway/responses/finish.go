package responses

import (
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/responses"
	"github.com/callgate/callgate/wrapper"
)

// endTurn writes what was held back of a turn and passed, with its calls where the turn is
// the answer. Items that have begun are ended.
func (r *run) endTurn(t *turn, answer bool) {
	s := r.stream
	passed := t.decision == nil || t.asked != nil || t.decision.Refusal() == nil // nil: it has no text
	for _, item := range t.reply.Items {
		state := s.of(item)
		switch {
		case state.done:
		case item.Class == responses.Call:
			if q := t.asked[item]; q != nil {
				s.writeRequest(item, q)
			} else if report := t.passed(item); answer && passed && report != nil {
				s.writeCall(item, report)
			}
		case item.Class == responses.Message:
			if passed && t.shows(item) {
				s.endItem(item)
			}
		case item.Class == responses.Approval:
		case state.added:
			s.endItem(item)
		case answer && passed && r.shows(item):
			s.addItem(item)
			s.writeSummary(item)
			s.endItem(item)
		}
	}
}

// writeCall writes a call that passed, in one piece.
func (s *eventStream) writeCall(item *responses.Item, report *gateway.Report) {
	state := s.begin(item)
	whole := appendCall(nil, item, report, "completed", false)
	kind, member, text := "", "", item.Call.Payload
	switch item.Type {
	case "function_call":
		kind, member, text = "response.function_call_arguments", "arguments", report.Call.Arguments
	case "custom_tool_call":
		kind, member = "response.custom_tool_call_input", "input"
	}
	s.writeItem("response.output_item.added", state, appendCall(nil, item, report, "in_progress", kind != ""))
	if kind != "" {
		s.open(kind + ".delta")
		s.place(item, state)
		s.raw("delta", rawjson.Quote(text))
		s.close()
		s.open(kind + ".done")
		s.place(item, state)
		if member == "arguments" {
			s.raw("name", rawjson.Quote(item.Call.Name))
		}
		s.raw(member, rawjson.Quote(text))
		s.close()
	}
	s.done(state, whole)
}

// writeSummary writes the events of a reasoning item that came behind a call. Its beginning has
// no summary: clients put the events behind it.
func (s *eventStream) writeSummary(item *responses.Item) {
	if item.Class != responses.Reasoning {
		return
	}
	state := s.of(item)
	members, _ := rawjson.Members(item.Raw)
	begun, _ := rawjson.Members(item.AppendAdded(nil))
	if string(begun.Get("summary")) != "[]" {
		return
	}
	parts, _ := rawjson.Elements(members.Get("summary"))
	if parts == nil {
		return
	}
	for i, part := range parts {
		o, _ := rawjson.Members(part)
		text := o.Get("text")
		if text == nil || text[0] != '"' {
			continue
		}
		for _, e := range []struct {
			kind, member string
			value        []byte
		}{
			{"response.reasoning_summary_part.added", "part", o.Set("text", rawjson.Quote("")).Bytes()},
			{"response.reasoning_summary_text.delta", "delta", text},
			{"response.reasoning_summary_text.done", "text", text},
			{"response.reasoning_summary_part.done", "part", part},
		} {
			s.open(e.kind)
			s.place(item, state)
			s.raw("summary_index", strconvInt(i))
			s.raw(e.member, e.value)
			s.close()
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
	r.stream.writeEnd(t.reply, status)
	r.remember(r.stream.id)
}

// finishStreamWith ends the stream with a text in place of the rest of the last turn.
func (r *run) finishStreamWith(text string) {
	r.endTurn(r.last, false)
	r.stream.endItem(textItem(text))
	r.stream.writeEnd(r.last.reply, "completed")
}

// writeEnd writes the terminal event.
func (s *eventStream) writeEnd(reply *responses.Reply, status string) {
	s.open("response." + status)
	s.raw("response", s.encode(reply, s.id, status, s.outputs, nil))
	s.close()
	s.Write()
}

// failStream ends a stream that has begun (RS-50).
func (r *run) failStream(f *turns.Failure) {
	r.stream.writeFailed(r.appendError(nil, f))
	r.stream.Fail(f, nil)
}

// writeFailed writes the terminal event of a response that has failed, with its error. Items that have
// not ended stay so.
func (s *eventStream) writeFailed(failure []byte) {
	if s.id == "" {
		s.beginResponse()
	}
	ended := slices.DeleteFunc(slices.Clone(s.outputs), func(item []byte) bool { return item == nil })
	s.open("response.failed")
	s.raw("response", s.encode(s.head, s.id, "failed", ended, failure))
	s.close()
}

// appendError appends the error of a failed response: the provider's own code and words, or
// ours.
func (r *run) appendError(b []byte, f *turns.Failure) []byte {
	var code, message string
	var result []byte
	switch {
	case r.failed != nil && f.Refused != nil && rawjson.IsProse([]byte(r.failed.Message)) && upstream.IsPlainID(r.failed.Code):
		code, message = r.failed.Code, r.failed.Message
	case f.Upstream != nil:
		if code, message = f.Upstream.Code, f.Upstream.Message; !upstream.IsPlainID(code) || !rawjson.IsProse([]byte(message)) {
			code, message = "server_error", "The model's provider refused the request."
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
