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
	beforeValue // opened, and the value decides
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
var callNames = []string{"tool", "tool_call", "tool_calls", "tool_result", "function_call", "arguments"}

// calledNames are the names of members whose values a reader takes for calls, where they open as
// those of calls do (isCallValue).
var calledNames = []string{toolMember, "tool_calls", "function_call"}

// toolMember is the member that holds a call of Callgate's own language: one object.
const toolMember = "tool"

// names are those that open a member which text must not hold; nil: any.
func (j refusedJSON) names() []string {
	switch j {
	case callMembers:
		return callNames
	case callValues:
		return calledNames
	}
	return nil
}

// isCallValue reports whether the value of a member of calledNames, which begins with c, opens as
// that of a call does: lists of calls are objects or arrays.
func isCallValue(key []byte, c byte) bool { return c == '{' || c == '[' && unquote(key) != toolMember }

// longestCallName bounds the raw form of a name: every character may be written
// as an escape of six bytes.
const longestCallName = 6 * len("function_call")

// beginsName reports whether raw may still become the string of one of the names.
func beginsName(raw []byte, names []string) bool {
	for i, c := range raw {
		if c == '\\' {
			return len(raw) <= longestCallName // escapes are decoded when the string ends
		}
		if i >= len("function_call") {
			return false
		}
	}
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, string(raw)) })
}

// isName reports whether the raw string between quotes decodes to one of the names.
func isName(raw []byte, names []string) bool {
	return len(raw) <= longestCallName && slices.Contains(names, unquote(raw))
}
