package messages

import (
	"fmt"
	"strconv"

	"github.com/callgate/callgate/internal/rawjson"
)

// Bounds of the parts of a reply.
const (
	maxDepth  = 256 // of any part
	maxID     = 256 // of a message
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

// readText decodes a string into a field. null is allowed where nullable.
func readText(into *[]byte, name string, value []byte, nullable bool) error {
	if nullable && rawjson.IsNull(value) {
		return nil
	}
	s, ok := rawjson.Text(value)
	if !ok {
		return fmt.Errorf("%s that is not a string", name)
	}
	*into = s
	return nil
}

// readWord decodes a string that is one short word.
func readWord(into *string, name string, value []byte) error {
	s, ok := rawjson.Text(value)
	if !ok || !isWord(string(s)) {
		return fmt.Errorf("%s that is not one word", name)
	}
	*into = string(s)
	return nil
}

// readOptionalWord decodes a string that is one short word, or says nothing: null, and "".
func readOptionalWord(name string, value []byte) (word string, err error) {
	if !rawjson.IsNull(value) && string(value) != `""` {
		err = readWord(&word, name, value)
	}
	return word, err
}

// readName decodes a string of 1 to most bytes.
func readName(into *string, name string, value []byte, most int) error {
	s, ok := rawjson.Text(value)
	if !ok || len(s) == 0 || len(s) > most {
		return fmt.Errorf("%s that is not a string of 1 to %d bytes", name, most)
	}
	*into = string(s)
	return nil
}

// readCount reads a whole number from 0; null is 0.
func readCount(into *int64, name string, value []byte) error {
	if rawjson.IsNull(value) {
		return nil
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%s that is not a whole number from 0", name)
	}
	*into = n
	return nil
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
	_ = rawjson.Each(object, func(name, value []byte) error {
		for i, c := range changes {
			if c.name == string(name) && c.value != nil {
				value, done[i] = c.value, true
			}
		}
		b = appendMember(b, string(name), value)
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
	_ = rawjson.Each(object, func(name, from []byte) error {
		to := value(string(name), from)
		same = same && to != nil && len(to) == len(from) && &to[0] == &from[0]
		if to != nil {
			b = appendMember(b, string(name), to)
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
	b = append(rawjson.AppendQuote(b, name), ':')
	return append(b, value...)
}
