package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// The errors of this package.
var (
	ErrSyntax    = errors.New("not one strict JSON value")
	ErrDuplicate = errors.New("a name stands twice in one JSON object")
	ErrDepth     = errors.New("JSON that is nested too deeply")
	ErrNoObject  = errors.New("found no object")
)

// LiteralLength returns the length of the strict string literal that b begins with; 0 if it begins
// with none.
func LiteralLength(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	escaped, ascii := false, true
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			literal := b[:i+1]
			if escaped && !Valid(literal) || !ascii && !utf8.Valid(literal) {
				return 0
			}
			return i + 1
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			return 0
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return 0
}

// Unquote decodes a string literal; without escapes the result is part of the literal.
func Unquote(literal []byte) ([]byte, error) {
	if len(literal) > 1 && literal[0] == '"' && bytes.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1], nil
	}
	return jsontext.AppendUnquote(nil, literal)
}

// AppendUnquote appends the text of a string literal to b; after an error b is as it was.
func AppendUnquote(b, literal []byte) ([]byte, error) {
	if len(literal) > 1 && literal[0] == '"' && bytes.IndexByte(literal, '\\') < 0 {
		return append(b, literal[1:len(literal)-1]...), nil
	}
	grown, err := jsontext.AppendUnquote(b, literal)
	if err != nil {
		return b, err
	}
	return grown, nil
}

// AppendQuote appends text as a string literal; invalid UTF-8 becomes replacement characters.
func AppendQuote[text string | []byte](b []byte, s text) []byte {
	if isPlain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	b, _ = jsontext.AppendQuote(b, s) // fails on invalid UTF-8 alone, and then writes replacement characters
	return b
}

// AppendEscaped is AppendQuote as encoding/json writes a text: <, > and & are escaped, and so are the line
// and paragraph separators.
func AppendEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == '"', c == '\\', c == '<', c == '>', c == '&', c >= utf8.RuneSelf:
			quoted, _ := json.Marshal(s) // a string cannot fail
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// isPlain reports whether a text is written as it is: ASCII, without quotes, backslashes and
// control characters.
func isPlain[text string | []byte](s text) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, slash := w^'"'*ones, w^'\\'*ones
		// A byte whose highest bit is set in one of these is beyond ASCII, below the space, or zero.
		if (w|(w-' '*ones)|(quote-ones)|(slash-ones))&high != 0 {
			return false
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
