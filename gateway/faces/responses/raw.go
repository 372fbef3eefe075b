package responses

import (
	"bytes"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
)

// maxWord bounds the strings that name something.
const maxWord = 1024

// word decodes a short string.
func word(value []byte) (string, bool) {
	text, ok := rawjson.Text(value)
	return string(text), ok && len(text) <= maxWord
}

// optional is word where the value may be null or absent.
func optional(value []byte) (string, bool) {
	if rawjson.IsNull(value) {
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
	if rawjson.IsNull(list) {
		return true
	}
	if list[0] != '[' {
		return false
	}
	all := true
	_ = rawjson.EachOf(list, func(raw []byte) error { // it was checked before
		all = all && isReasoning(raw)
		return nil
	})
	return all
}

func isReasoning(part []byte) bool {
	kind, _ := word(rawjson.MemberOf(part, "type"))
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
