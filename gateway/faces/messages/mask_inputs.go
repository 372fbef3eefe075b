package messages

import (
	"bytes"

	"github.com/callgate/callgate/internal/rawjson"
)

// The places of inputs of calls in a message, in message_start and in content_block_start.
var (
	inputsOfMessage      = []string{"content", "*", "input"}
	inputsOfMessageStart = []string{"message", "content", "*", "input"}
	inputOfBlockStart    = []string{"content_block", "input"}
)

// part is a part of a document, twice: as it was received, and with {} in place of each input
// of a call, at the same offsets. The kernel judges inputs, and names their faults; everything
// around them is read strictly here.
type part struct{ received, checked []byte }

// read checks a document with inputs at a path below it; nil: it has none.
func read(data []byte, path []string) (part, error) {
	if rawjson.Valid(data) && !rawjson.Deeper(data, maxDepth) {
		return part{data, data}, nil
	}
	p := part{data, data}
	if path != nil { // without one, the whole document would be masked
		p.checked = maskInputs(data, path)
	}
	return p, rawjson.Check(p.checked, maxDepth)
}

// maskInputs returns a copy of data with {} in place of each value at a path.
func maskInputs(data []byte, path []string) []byte {
	out := bytes.Clone(data)
	var r rawjson.Reader
	r.ResetChecked(data)
	// A fault outside of the inputs is in the copy too, and is found there.
	_ = visit(&r, path, func(start, end int) {
		if end-start < len("{}") {
			return // a digit
		}
		hole := out[start:end]
		for i := range hole {
			hole[i] = ' '
		}
		hole[0], hole[len(hole)-1] = '{', '}'
	})
	return out
}

// spans reads an object, and calls member with where each value stands.
func (p part) spans(member func(name []byte, start, end int) error) error {
	return rawjson.EachMember(p.checked, member)
}

// isObject reports whether a value that was checked is an object.
func isObject(checked []byte) bool {
	value := bytes.TrimLeft(checked, " \t\r\n")
	return len(value) > 0 && value[0] == '{'
}

// members reads an object.
func (p part) members(member func(name string, value part) error) error {
	return p.spans(func(name []byte, start, end int) error { return member(string(name), p.slice(start, end)) })
}

// elements reads an array.
func (p part) elements(element func(value part) error) error {
	return rawjson.EachElement(p.checked, func(start, end int) error { return element(p.slice(start, end)) })
}

func (p part) slice(start, end int) part {
	return part{p.received[start:end:end], p.checked[start:end:end]}
}

// visit reads a value and calls found with the span of each value at a path below it. The
// element * of a path stands for each element of an array.
func visit(r *rawjson.Reader, path []string, found func(start, end int)) error {
	switch kind := r.Kind(); {
	case len(path) == 0:
		_, err := r.Value()
		if err == nil {
			found(r.Start(), r.Offset())
		}
		return err
	case kind == '[' && path[0] == "*":
		return r.Array(func() error { return visit(r, path[1:], found) })
	case kind == '{' && path[0] != "*":
		return r.Object(func(name []byte) error {
			if string(name) == path[0] {
				return visit(r, path[1:], found)
			}
			_, err := r.Value()
			return err
		})
	}
	_, err := r.Value()
	return err
}
