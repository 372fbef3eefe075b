package jsonrpc

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/wrapper"
)

// maxID bounds the bytes of an id.
const maxID = 1024

// ID is the id of a request: a string or a whole number. The zero ID is none. Two IDs are equal
// if they have the same text or the same digits.
type ID struct {
	text   string
	number bool
}

// StringID returns the id with a text.
func StringID(text string) ID { return ID{text: quoted(text)} }

// NumberID returns the id with a number.
func NumberID(n int64) ID { return ID{text: strconv.FormatInt(n, 10), number: true} }

// ParseID reads an id from JSON that was read strictly, such as a member of parameters. Null,
// fractions, exponents and ids of more than 1024 bytes are none.
func ParseID(checked json.RawMessage) (ID, bool) {
	if len(checked) == 0 {
		return ID{}, false
	}
	switch c := checked[0]; {
	case c == '"':
		text, err := rawjson.Unquote(checked)
		if err != nil || len(text) > maxID {
			return ID{}, false
		}
		return StringID(string(text)), true
	case c == '-' || '0' <= c && c <= '9':
		digits := string(checked)
		if len(digits) > maxID || strings.ContainsAny(digits, ".eE") {
			return ID{}, false
		}
		return ID{text: digits, number: true}, true
	}
	return ID{}, false
}

// quoted returns a text as a string of JSON in which nothing hides.
func quoted(text string) string {
	return string(wrapper.Escape(rawjson.AppendQuote(nil, text)))
}

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.text == "" }

// Number returns the number that the id is, if it is one that an int64 holds.
func (id ID) Number() (int64, bool) {
	n, err := strconv.ParseInt(id.text, 10, 64)
	return n, id.number && err == nil && strconv.FormatInt(n, 10) == id.text
}

// Text returns the text that the id is, if it is a string.
func (id ID) Text() (string, bool) {
	if id.number || id.IsZero() {
		return "", false
	}
	text, err := rawjson.Unquote([]byte(id.text))
	return string(text), err == nil
}

// String returns the id as JSON, "null" for none.
func (id ID) String() string {
	if id.IsZero() {
		return "null"
	}
	return id.text
}

// MarshalJSON returns the id as JSON, null for none.
func (id ID) MarshalJSON() ([]byte, error) { return []byte(id.String()), nil }
