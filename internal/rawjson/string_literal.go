package rawjson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
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

// Text decodes a string as Unquote does; ok is false for any other value.
func Text(value []byte) (_ []byte, ok bool) {
	text, err := Unquote(value)
	return text, err == nil
}

// String returns the value of a JSON string. It allocates nothing for the words that every request has.
func String(raw []byte) (string, bool) {
	text, ok := Text(raw)
	return word(text), ok
}

// IsString reports whether a value that was checked is a string.
func IsString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// IsNull reports whether a value that was checked is null, or absent.
func IsNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

// OneLine is JSON with spaces in place of line ends, which stand between tokens alone: an event of a stream cannot hold
// them.
func OneLine(raw []byte) []byte {
	if bytes.ContainsAny(raw, "\r\n") {
		raw = bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
	}
	return raw
}

// Quote writes a string that is valid UTF-8 as JSON.
func Quote[text string | []byte](s text) []byte {
	return AppendQuote(make([]byte, 0, len(s)+len(`""`)), s)
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

// word is a text as a string.
func word(text []byte) string {
	switch string(text) {
	case "role":
		return "role"
	case "content":
		return "content"
	case "type":
		return "type"
	case "text":
		return "text"
	case "function":
		return "function"
	case "name":
		return "name"
	case "id":
		return "id"
	case "arguments":
		return "arguments"
	case "tool_calls":
		return "tool_calls"
	case "tool_call_id":
		return "tool_call_id"
	case "tool_use_id":
		return "tool_use_id"
	case "call_id":
		return "call_id"
	case "input":
		return "input"
	case "output":
		return "output"
	case "model":
		return "model"
	case "messages":
		return "messages"
	case "stream":
		return "stream"
	case "tools":
		return "tools"
	case "max_tokens":
		return "max_tokens"
	case "temperature":
		return "temperature"
	case "parameters":
		return "parameters"
	case "description":
		return "description"
	case "system":
		return "system"
	case "user":
		return "user"
	case "assistant":
		return "assistant"
	case "tool":
		return "tool"
	}
	return string(text)
}
