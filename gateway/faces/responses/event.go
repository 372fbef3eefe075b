package responses

import (
	"errors"
	"strconv"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// maxDepth bounds the nesting of a document.
const maxDepth = 128

// wireEvent are the members of an event, as they were written. They are parts of its data.
type wireEvent struct {
	data                                                  []byte
	kind                                                  []byte // decoded
	itemID                                                []byte // a string literal, or nil
	delta, text, arguments, input, diff, command, refused []byte
	item, part, response, annotation, failure             []byte
	message, code, name, callID                           []byte
	elsewhere                                             turns.Elsewhere // what no event has as its own

	output, content, commandIndex int // absent: -1
	sequence                      int // -1: none, or not a number

	values     [maxValues]varyingValue // those that differ from delta to delta
	valueCount int
}

// number reads an index; absent or null is -1.
func number(value []byte) (int, error) {
	if rawjson.IsNull(value) {
		return -1, nil
	}
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 || n > 1<<40 || string(value) == "-0" {
		return 0, errors.New("a number of an event that is not a whole number from 0 on")
	}
	return n, nil
}

// sequenceOf reads a sequence_number; one that is no index is -1.
func sequenceOf(value []byte) int {
	if n, err := number(value); err == nil {
		return n
	}
	return -1
}

// read reads the data of one event into e, and checks it as a whole.
func (e *wireEvent) read(data []byte) error {
	*e = wireEvent{data: data, output: -1, content: -1, commandIndex: -1, sequence: -1}
	// The document is checked as a whole, and then split: that takes less time than reading it member by member.
	if err := rawjson.Check(data, maxDepth); err != nil {
		return err
	}
	return e.split()
}

// split reads the members of an event that was checked.
func (e *wireEvent) split() error {
	if err := rawjson.EachMember(e.data, func(name []byte, start, end int) error {
		value := e.data[start:end:end]
		var into *[]byte
		var index *int
		varies := valueKind(maxValues) // it does not
		switch string(name) {
		case "type":
			into = &e.kind
		case "item_id":
			into = &e.itemID
		case "delta":
			into, varies = &e.delta, deltaValue
		case "text":
			into = &e.text
		case "arguments":
			into = &e.arguments
		case "input":
			into = &e.input
		case "diff":
			into = &e.diff
		case "command":
			into = &e.command
		case "refusal":
			into = &e.refused
		case "item":
			into = &e.item
		case "part":
			into = &e.part
		case "response":
			into = &e.response
		case "annotation":
			into = &e.annotation
		case "error":
			into = &e.failure
		case "message":
			into = &e.message
		case "code":
			into = &e.code
		case "name":
			into = &e.name
		case "call_id":
			into = &e.callID
		case "sequence_number":
			if '0' <= value[0] && value[0] <= '9' { // it may be anything
				varies, e.sequence = sequenceValue, sequenceOf(value)
			}
		case "output_index":
			index = &e.output
		case "content_index":
			index = &e.content
		case "command_index":
			index = &e.commandIndex
		case "obfuscation":
			if value[0] == '"' {
				varies = paddingValue
			}
		case "agent", "response_id", "event_id": // of the event
		default:
			if isDisguised(name) {
				return errors.New("a member whose name is that of another but for the case of letters")
			}
			if turns.NamesCalls(name) && !turns.IsNothing(value) {
				return errStray
			}
			e.elsewhere.Note(name, value)
		}
		if varies != maxValues {
			e.note(varies, start, end)
		}
		switch {
		case into != nil:
			*into = value
		case index != nil:
			n, err := number(value)
			*index = n
			return err
		}
		return nil
	}); errors.Is(err, rawjson.ErrNotObject) {
		return errors.New("an event that is not an object")
	} else if err != nil {
		return err
	}
	kind, ok := rawjson.Text(e.kind)
	if e.kind == nil && !turns.IsNothing(e.failure) {
		return providerError(e.failure)
	}
	if e.kind == nil {
		return failureIn(e.data, "an event without a type")
	}
	if !ok || len(kind) > maxWord {
		return errors.New("an event without a type")
	}
	e.kind = kind
	return nil
}

// argumentsBut is where an event may have the arguments of a call, but for the member that it has them in; empty: in none.
func (e *wireEvent) argumentsBut(read string) turns.Elsewhere {
	found := e.elsewhere
	for _, m := range [...]struct {
		name  string
		value []byte
	}{{"delta", e.delta}, {"arguments", e.arguments}, {"input", e.input}, {"text", e.text}} {
		if m.value != nil && m.name != read {
			found.Note([]byte(m.name), m.value)
		}
	}
	return found
}
