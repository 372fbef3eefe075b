package emit

import (
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream/responses"
)

// WriteCall writes a call that passed, in one piece.
func (s *Stream) WriteCall(item *responses.Item, report *gateway.Report) {
	state := s.begin(item)
	whole := AppendCall(nil, item, report, "completed", false)
	kind, member, text := "", "", item.Call.Payload
	switch item.Type {
	case "function_call":
		kind, member, text = "response.function_call_arguments", "arguments", report.Call.Arguments
	case "custom_tool_call":
		kind, member = "response.custom_tool_call_input", "input"
	}
	s.writeItem("response.output_item.added", state, AppendCall(nil, item, report, "in_progress", kind != ""))
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

// WriteRequest writes the item by which the caller is asked of a call. Like the API's own it is whole
// from its beginning on.
func (s *Stream) WriteRequest(item *responses.Item, q *calls.Question) {
	state := s.begin(&responses.Item{ID: q.ID})
	whole := AppendRequest(nil, item, q)
	s.writeItem("response.output_item.added", state, whole)
	s.done(state, whole)
}

// WriteSummary writes the events of a reasoning item that came behind a call. Its beginning has
// no summary: clients put the events behind it.
func (s *Stream) WriteSummary(item *responses.Item) {
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

// WriteEnd writes the terminal event.
func (s *Stream) WriteEnd(reply *responses.Reply, status string) {
	s.open("response." + status)
	s.raw("response", s.encode(reply, s.id, status, s.outputs, nil))
	s.close()
	s.Write()
}

// WriteFailed writes the terminal event of a response that has failed, with its error. Items that have
// not ended stay so.
func (s *Stream) WriteFailed(failure []byte) {
	if s.id == "" {
		s.beginResponse()
	}
	ended := slices.DeleteFunc(slices.Clone(s.outputs), func(item []byte) bool { return item == nil })
	s.open("response.failed")
	s.raw("response", s.encode(s.head, s.id, "failed", ended, failure))
	s.close()
}
