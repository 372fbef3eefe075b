package responses

import (
	"bytes"
	"strconv"

	"github.com/callgate/callgate/internal/strictjson"
)

// AppendOther appends the last event, which was Other, with other numbers and without its
// obfuscation. Numbers and an id that it does not have are not added, but the
// sequence_number is.
func (s *Stream) AppendOther(b []byte, sequence, output int, itemID string) []byte {
	b = strconv.AppendInt(append(b, `{"sequence_number":`...), int64(sequence), 10)
	_ = members(s.event.data, func(name, value []byte) error { // it was checked before
		switch string(name) {
		case "sequence_number", "obfuscation":
			return nil
		}
		b = append(strictjson.AppendQuote(append(b, ','), name), ':')
		switch string(name) {
		case "output_index":
			b = strconv.AppendInt(b, int64(output), 10)
		case "item_id":
			b = strictjson.AppendQuote(b, itemID)
		default:
			b = append(b, value...)
		}
		return nil
	})
	return append(b, '}')
}

// EventType returns the type of the last event. It is valid until the next one.
func (s *Stream) EventType() []byte { return s.event.kind }

// Annotation returns the annotation of the last event, if it has one. It is valid until the
// next event.
func (s *Stream) Annotation() []byte { return s.event.annotation }

// ContentIndex returns the number of the part of a message that the last event is about; -1
// if it is about none.
func (s *Stream) ContentIndex(item *Item) int {
	for i, part := range item.Parts {
		if part.index == s.event.content {
			return i
		}
	}
	return -1
}

// AppendItem appends an item of the classes Reasoning, Hosted or Unknown as it was received
// last, with the id that the client knows it by.
func (item *Item) AppendItem(b []byte) []byte { return item.appendRaw(b, item.Raw) }

// AppendAdded appends the item as it was when it began.
func (item *Item) AppendAdded(b []byte) []byte { return item.appendRaw(b, item.added) }

// writeArguments makes a function_call state its arguments as a text, as clients and the provider read
// them: a server may have left them out, or written an object.
func (item *Item) writeArguments() {
	if item.Type != "function_call" || item.Raw == nil {
		return
	}
	if stated, ok := literal(member(item.Raw, "arguments")); ok && bytes.Equal(stated, item.Call.Payload) {
		return
	}
	b := strictjson.AppendQuote([]byte(`{"arguments":`), item.Call.Payload)
	_ = members(item.Raw, func(name, value []byte) error { // it was checked before
		if string(name) != "arguments" {
			b = append(append(strictjson.AppendQuote(append(b, ','), name), ':'), value...)
		}
		return nil
	})
	item.Raw = append(b, '}')
}

// Replace replaces an item that is passed on as it was received, from its beginning on.
func (item *Item) Replace(raw []byte) { item.Raw, item.added = raw, nil }

// reasoningMembers are the members of reasoning, which is passed on unjudged: others could be read
// as those of a call.
var reasoningMembers = map[string]bool{
	"id": true, "type": true, "status": true, "summary": true, "content": true, "encrypted_content": true, "format": true,
}

func (item *Item) appendRaw(b, raw []byte) []byte {
	if raw == nil && item.Raw != nil {
		raw = item.Raw
	} else if raw == nil {
		raw = item.added
	}
	b = append(b, '{')
	first := true
	_ = members(raw, func(name, value []byte) error { // it was checked before
		if item.Class == Reasoning && !reasoningMembers[string(name)] {
			return nil
		}
		if !first {
			b = append(b, ',')
		}
		if first = false; string(name) == "id" && item.ID != "" {
			value = strictjson.AppendQuote(nil, item.ID)
		}
		b = append(append(strictjson.AppendQuote(b, name), ':'), value...)
		return nil
	})
	return append(b, '}')
}
