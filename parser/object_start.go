package parser

import (
	"slices"
	"strings"
)

// objectStart follows one place at which a JSON object may open: a brace, JSON
// whitespace, a JSON string, JSON whitespace and a colon. Of all candidates in a
// text at most two live at a time, since the quote that begins the string of a
// later one ends the string of an earlier one; so the search is linear.
type objectStart struct {
	start int // offset of the brace (or comma)
	state startState
	hex   int
	// key holds the raw string of the member, as far as it may still be one of
	// the names that matter; only where the search asks for names.
	key []byte
}

type startState int

const (
	dead startState = iota
	afterBrace
	inString
	inEscape
	inHex
	afterString
	opened
)

// step takes the next byte and returns the new state. UTF-8 is not its concern.
func (o *objectStart) step(c byte) startState {
	switch o.state {
	case afterBrace:
		if c == '"' {
			o.state = inString
		} else if !isSpace(c) {
			o.state = dead
		}
	case inString:
		switch {
		case c == '"':
			o.state = afterString
		case c == '\\':
			o.state = inEscape
		case c < 0x20:
			o.state = dead
		}
	case inEscape:
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			o.state = inString
		case 'u':
			o.state, o.hex = inHex, 4
		default:
			o.state = dead
		}
	case inHex:
		if !isHex(c) {
			o.state = dead
		} else if o.hex--; o.hex == 0 {
			o.state = inString
		}
	case afterString:
		if c == ':' {
			o.state = opened
		} else if !isSpace(c) {
			o.state = dead
		}
	}
	return o.state
}

// callNames are the names that open a member of the call language within text
// in which other JSON is allowed.
var callNames = [...]string{"tool", "tool_call", "tool_calls", "tool_result", "function_call", "arguments"}

// longestCallName bounds the raw form of a name: every character may be written
// as an escape of six bytes.
const longestCallName = 6 * len("function_call")

// beginsCallName reports whether raw may still become the string of a call name.
func beginsCallName(raw []byte) bool {
	for i, c := range raw {
		if c == '\\' {
			return len(raw) <= longestCallName // escapes are decoded when the string ends
		}
		if i >= len("function_call") {
			return false
		}
	}
	return slices.ContainsFunc(callNames[:], func(n string) bool { return strings.HasPrefix(n, string(raw)) })
}

// isCallName reports whether the raw string between quotes decodes to one.
func isCallName(raw []byte) bool {
	return len(raw) <= longestCallName && slices.Contains(callNames[:], unquote(raw))
}
