package messages

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/callgate/callgate/internal/strictjson"
)

// Bounds of the parts of a reply.
const (
	maxDepth  = 256 // of any part
	maxID     = 256
	maxName   = 256 // of a tool, a model
	maxWord   = 64  // of types and reasons
	maxBlocks = 4096
	maxCalls  = 1024
	// Bounds of a usage object: members, and bytes.
	maxUsage      = 64
	maxUsageBytes = 16 << 10
	// maxMessageDeltas bounds the events that bring the reason and the usage.
	maxMessageDeltas = 1024
)

// document reads bytes that are one strict JSON object and nothing else. member gets each
// member with its value, a part of data.
func document(data []byte, member func(name string, value []byte) error) error {
	if strictjson.Deeper(data, maxDepth) {
		return fmt.Errorf("JSON nested deeper than %d levels", maxDepth)
	}
	r := strictjson.NewReader(data)
	err := readSpans(r, func(name string, start, end int) error { return member(name, data[start:end:end]) })
	if err != nil {
		return err
	}
	if err := r.End(); err != nil {
		return syntax(err)
	}
	return nil
}

// within reads an object that is part of a document that was read.
func within(object []byte, member func(name string, value []byte) error) error {
	return splitMembers(object, func(name string, start, end int) error { return member(name, object[start:end:end]) })
}

// splitMembers is readSpans for an object that was read.
func splitMembers(checked []byte, member func(name string, start, end int) error) error {
	if err := isObject(checked); err != nil {
		return err
	}
	return strictjson.EachMember(checked, func(name []byte, start, end int) error { return member(memberName(name), start, end) })
}

var errNoObject = errors.New("a value that is not an object")

// isObject is an error for checked JSON that is no object.
func isObject(checked []byte) error {
	if value := bytes.TrimLeft(checked, " \t\r\n"); len(value) == 0 || value[0] != '{' {
		return errNoObject
	}
	return nil
}

// readSpans reads an object, and calls member with the span of each value.
func readSpans(r *strictjson.Reader, member func(name string, start, end int) error) error {
	if r.Kind() != '{' {
		return errNoObject
	}
	var fault error // of member, as it is
	err := r.Object(func(name []byte) error {
		kept := memberName(name)
		if _, err := r.Value(); err != nil {
			return err
		}
		fault = member(kept, r.Start(), r.Offset())
		return fault
	})
	if err != nil && fault == nil {
		return syntax(err)
	}
	return err
}

// memberName is the name as a string. It allocates nothing for the names that every event has.
func memberName(name []byte) string {
	switch string(name) {
	case "type":
		return "type"
	case "index":
		return "index"
	case "delta":
		return "delta"
	case "text":
		return "text"
	case "partial_json":
		return "partial_json"
	case "thinking":
		return "thinking"
	}
	return string(name)
}

func isNull(value []byte) bool { return value[0] == 'n' }

// text decodes a string; ok is false for any other value.
func text(value []byte) (_ []byte, ok bool) {
	if value[0] != '"' {
		return nil, false
	}
	s, err := strictjson.Unquote(value)
	return s, err == nil
}

// readText decodes a string into a field. null is allowed where nullable.
func readText(into *[]byte, name string, value []byte, nullable bool) error {
	if nullable && isNull(value) {
		return nil
	}
	s, ok := text(value)
	if !ok {
		return fmt.Errorf("%s that is not a string", name)
	}
	*into = s
	return nil
}

// readWord decodes a string that is one short word.
func readWord(into *string, name string, value []byte) error {
	s, ok := text(value)
	if !ok || !isWord(string(s)) {
		return fmt.Errorf("%s that is not one word", name)
	}
	*into = string(s)
	return nil
}

// readName decodes a string of 1 to most bytes.
func readName(into *string, name string, value []byte, most int) error {
	s, ok := text(value)
	if !ok || len(s) == 0 || len(s) > most {
		return fmt.Errorf("%s that is not a string of 1 to %d bytes", name, most)
	}
	*into = string(s)
	return nil
}

// readCount reads a whole number from 0; null is 0.
func readCount(into *int64, name string, value []byte) error {
	if isNull(value) {
		return nil
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%s that is not a whole number from 0", name)
	}
	*into = n
	return nil
}

// oneLine returns JSON with spaces instead of line ends, which stand between tokens only: an
// event of a stream cannot hold them.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	b := bytes.Clone(raw)
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return b
}

// with returns an object with other values of some members; absent ones come last. A nil
// value leaves its member as it is.
func with(object []byte, changes ...member) []byte {
	size := len(object)
	for _, c := range changes {
		size += len(c.name) + len(c.value) + len(`,"":`)
	}
	b := append(make([]byte, 0, size), '{')
	done := make([]bool, len(changes))
	_ = within(object, func(name string, value []byte) error {
		for i, c := range changes {
			if c.name == name && c.value != nil {
				value, done[i] = c.value, true
			}
		}
		b = appendMember(b, name, value)
		return nil
	})
	for i, c := range changes {
		if c.value != nil && !done[i] {
			b = appendMember(b, c.name, c.value)
		}
	}
	return append(b, '}')
}

// rewrite returns an object with each value as a function returns it; nil leaves its member out. The
// object is returned as it is where nothing changes.
func rewrite(object []byte, value func(name string, value []byte) []byte) []byte {
	b, same := append(make([]byte, 0, len(object)), '{'), true
	_ = within(object, func(name string, from []byte) error {
		to := value(name, from)
		same = same && to != nil && len(to) == len(from) && &to[0] == &from[0]
		if to != nil {
			b = appendMember(b, name, to)
		}
		return nil
	})
	if same {
		return object
	}
	return append(b, '}')
}

// appendMember appends a member to an object that is open.
func appendMember(b []byte, name string, value []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(strictjson.AppendQuote(b, name), ':')
	return append(b, value...)
}
