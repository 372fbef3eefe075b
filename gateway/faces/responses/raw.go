package responses

import (
	"bytes"
	"errors"
	"strings"

	"github.com/callgate/callgate/internal/strictjson"
)

// The functions below read parts of a document that was checked as a whole.

// members calls take for each member of an object, with the bytes of its value.
func members(raw []byte, take func(name, value []byte) error) error {
	if len(raw) == 0 || raw[0] != '{' {
		return errors.New("a value that is not an object")
	}
	return strictjson.EachMember(raw, func(name []byte, start, end int) error { return take(name, raw[start:end:end]) })
}

// elements calls take for each element of an array.
func elements(raw []byte, take func(value []byte) error) error {
	return strictjson.EachElement(raw, take)
}

// member returns a member of an object; nil if there is none.
func member(raw []byte, wanted string) []byte {
	var found []byte
	if len(raw) > 0 && raw[0] == '{' {
		_ = members(raw, func(name, value []byte) error { // it was checked before
			if string(name) == wanted {
				found = value
			}
			return nil
		})
	}
	return found
}

func isNull(value []byte) bool { return value == nil || string(value) == "null" }

// literal decodes a string.
func literal(value []byte) ([]byte, bool) {
	if len(value) == 0 || value[0] != '"' {
		return nil, false
	}
	text, err := strictjson.Unquote(value)
	return text, err == nil
}

// maxWord bounds the strings that name something.
const maxWord = 1024

// word decodes a short string.
func word(value []byte) (string, bool) {
	text, ok := literal(value)
	return string(text), ok && len(text) <= maxWord
}

// optional is word where the value may be null or absent.
func optional(value []byte) (string, bool) {
	if isNull(value) {
		return "", true
	}
	return word(value)
}

// isDisguised reports whether the name of a member that is not read is that of one which says what an
// event or an item is, but for the case of letters. Clients that take names without regard to case would
// read another event or item than is read here.
func isDisguised(name []byte) bool {
	for _, read := range []string{"type", "item", "response", "error"} {
		if strings.EqualFold(string(name), read) {
			return true
		}
	}
	return false
}

// areReasoning reports whether a list holds parts of reasoning alone, or is absent. A part of another
// type would be text that nobody judges.
func areReasoning(list []byte) bool {
	if isNull(list) {
		return true
	}
	if list[0] != '[' {
		return false
	}
	all := true
	_ = elements(list, func(raw []byte) error { // it was checked before
		all = all && isReasoning(raw)
		return nil
	})
	return all
}

func isReasoning(part []byte) bool {
	kind, _ := word(member(part, "type"))
	return kind == "reasoning_text" || kind == "summary_text"
}

// eventOf reports whether an event is about items of a type: response.TYPE.… or
// response.TYPE_….
func eventOf(event []byte, itemType string) bool {
	rest, ok := bytes.CutPrefix(event, []byte("response."))
	if ok {
		rest, ok = bytes.CutPrefix(rest, []byte(itemType))
	}
	return ok && len(rest) > 0 && (rest[0] == '.' || rest[0] == '_')
}
