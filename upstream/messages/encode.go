package messages

import (
	"strconv"

	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/internal/strictjson"
)

// start is the block as it begins in a stream: what deltas bring is empty.
func (b *Block) start() []byte {
	switch b.Kind {
	case Text:
		if b.Citations != nil {
			return with(b.Raw, member{"text", []byte(`""`)}, member{"citations", []byte("[]")})
		}
		return with(b.Raw, member{"text", []byte(`""`)})
	case Thinking:
		if b.Type != "thinking" {
			return b.Raw
		}
		changes := []member{{"thinking", []byte(`""`)}}
		if b.signature != nil {
			changes = append(changes, member{"signature", []byte(`""`)})
		}
		return with(b.Raw, changes...)
	case Call, HostedCall:
		return with(b.Raw, member{"input", []byte("{}")})
	case Compaction:
		return with(b.Raw, member{"content", []byte("null")})
	}
	return b.Raw
}

// parts are the deltas that bring what opening leaves out. Their indexes are to be set.
func (b *Block) parts() []Event {
	var events []Event
	delta := func(kind EventKind, name string, text []byte) {
		events = append(events, Event{Kind: kind, Block: b.Kind, Name: name, Text: text})
	}
	switch b.Kind {
	case Text:
		if len(b.Text) > 0 {
			delta(TextDelta, "text_delta", b.Text)
		}
		if b.Citations != nil {
			_ = part{b.Citations, b.Citations}.elements(func(citation part) error {
				events = append(events, Event{Kind: BlockDelta, Block: b.Kind, Name: "citations_delta", Raw: citationDelta(citation.checked)})
				return nil
			})
		}
	case Thinking:
		if b.Type != "thinking" {
			break
		}
		if len(b.thinking) > 0 {
			delta(BlockDelta, "thinking_delta", b.thinking)
		}
		if len(b.signature) > 0 {
			delta(BlockDelta, "signature_delta", b.signature)
		}
	case Call, HostedCall:
		if !isEmptyObject(b.Call.Input) {
			delta(BlockDelta, "input_json_delta", b.Call.Input)
		}
	case Compaction:
		if raw := b.compactionDelta(); raw != nil {
			events = append(events, Event{Kind: BlockDelta, Block: b.Kind, Name: "compaction_delta", Raw: raw})
		}
	}
	return events
}

// citationDelta is the delta that brings a citation.
func citationDelta(citation []byte) []byte {
	return append(append([]byte(`{"type":"citations_delta","citation":`), citation...), '}')
}

// compactionDelta is the delta with the content of a compaction; nil if it has none.
func (b *Block) compactionDelta() []byte {
	raw, found := []byte(`{"type":"compaction_delta"`), false
	_ = within(b.Raw, func(name string, value []byte) error {
		if (name == "content" || name == "encrypted_content") && !isNull(value) {
			raw, found = appendMember(raw, name, value), true
		}
		return nil
	})
	if !found {
		return nil
	}
	return append(raw, '}')
}

// AppendEvents appends the events of a whole block, at an index.
func (b *Block) AppendEvents(dst []byte, index int) []byte {
	dst = AppendEvent(dst, &Event{Kind: BlockStart, Raw: b.start()}, index)
	for _, e := range b.parts() {
		dst = AppendEvent(dst, &e, index)
	}
	return AppendEvent(dst, &Event{Kind: BlockStop}, index)
}

// AppendEvent appends an event of a block, a ping or an unknown event, as it is sent, with
// another index.
func AppendEvent(dst []byte, e *Event, index int) []byte {
	switch e.Kind {
	case BlockStart:
		dst = append(dst, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":"...)
		dst = append(strconv.AppendInt(dst, int64(index), 10), `,"content_block":`...)
		return append(append(dst, oneLine(e.Raw)...), "}\n\n"...)
	case TextDelta, BlockDelta:
		dst = append(dst, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
		dst = append(strconv.AppendInt(dst, int64(index), 10), `,"delta":`...)
		if e.Raw != nil {
			return append(append(dst, oneLine(e.Raw)...), "}\n\n"...)
		}
		dst = append(append(append(dst, `{"type":"`...), e.Name...), `","`...)
		dst = append(append(dst, textOf[kindOfDelta(e.Name)]...), `":`...)
		return append(strictjson.AppendQuote(dst, e.Text), "}}\n\n"...)
	case BlockStop:
		dst = append(dst, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":"...)
		return append(strconv.AppendInt(dst, int64(index), 10), "}\n\n"...)
	case Ping:
		return append(dst, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
	case Other:
		return sse.AppendEvent(dst, e.Name, oneLine(e.Raw))
	}
	return dst
}

// AppendMessage appends the whole message, with other blocks and usage.
func (r *Reply) AppendMessage(dst []byte, blocks []*Block, usage []byte) []byte {
	content := []byte{'['}
	for i, b := range blocks {
		if i > 0 {
			content = append(content, ',')
		}
		content = append(content, b.Raw...)
	}
	return r.append(dst, append(content, ']'), usage, true)
}

// AppendStart appends the event message_start: the message without content.
func (r *Reply) AppendStart(dst []byte) []byte {
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	return append(append(dst, oneLine(r.append(nil, []byte("[]"), r.Usage.Raw, false))...), "}\n\n"...)
}

func (r *Reply) append(dst, content, usage []byte, ended bool) []byte {
	dst = append(dst, '{')
	for _, m := range r.members {
		value := m.value
		switch {
		case m.name == "content":
			value = content
		case m.name == "usage":
			value = usage
		case m.name == "stop_reason" && !ended, m.name == "stop_sequence" && !ended:
			value = []byte("null")
		case m.name == memberSafeguards && !ended: // they are of the calls, which come later
			continue
		}
		dst = appendMember(dst, m.name, value)
	}
	return append(dst, '}')
}

// ofDelta are the members of a message that a message_delta brings.
var ofDelta = []string{"stop_reason", "stop_sequence", "stop_details", "container", memberSafeguards}

// AppendEnd appends the events that end the message: one message_delta, and message_stop.
func (r *Reply) AppendEnd(dst, usage []byte) []byte {
	dst = append(dst, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"...)
	for _, name := range ofDelta {
		value := r.Member(name)
		if value == nil && name == "stop_sequence" {
			value = []byte("null")
		}
		if value != nil {
			dst = appendMember(dst, name, oneLine(value))
		}
	}
	dst = append(append(dst, `},"usage":`...), oneLine(usage)...)
	if value := r.Member("context_management"); value != nil {
		dst = append(append(dst, `,"context_management":`...), oneLine(value)...)
	}
	return append(dst, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}
