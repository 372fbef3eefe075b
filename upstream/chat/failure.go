package chat

import "strings"

// Bounds of an error object, in bytes.
const (
	maxErrorMessage = 4 << 10
	maxErrorWord    = 64
)

// failure is OpenAI's error object.
type failure struct{ Type, Code, Param, Message string }

// ReadFailure parses {"error": {...}}, and {"error": "…"} and {"message": "…"} as
// some providers write it. It returns an empty failure if raw is not strict JSON.
func ReadFailure(raw []byte) failure {
	var (
		f failure
		r Reader
	)
	// After a fault, fields read before it are dropped as well.
	if r.document(raw, func(name []byte) error {
		switch {
		case string(name) == "error" && r.kind() == '{':
			return r.object(func(name []byte) error { return r.failureMember(&f, name) })
		case string(name) == "error" && r.kind() == '"':
			return r.word(&f.Message)
		}
		return r.failureMember(&f, name)
	}) != nil {
		return failure{}
	}
	f.Type, f.Code, f.Param, f.Message = truncate(f.Type, maxErrorWord), truncate(f.Code, maxErrorWord), truncate(f.Param, maxErrorMessage), truncate(f.Message, maxErrorMessage)
	return f
}

// failureMember parses one member of an error object. A code may be a number.
func (r *Reader) failureMember(f *failure, name []byte) error {
	switch string(name) {
	case "type":
		return r.word(&f.Type)
	case "code":
		return r.word(&f.Code)
	case "param":
		return r.word(&f.Param)
	case "message":
		return r.word(&f.Message)
	}
	return r.skip()
}

// word reads a string or a number, and skips anything else.
func (r *Reader) word(into *string) error {
	switch r.kind() {
	case '"':
		s, err := r.text()
		*into = s
		return err
	case '0':
		raw, err := r.value()
		*into = string(raw)
		return err
	}
	return r.skip()
}

// truncate cuts a text at a character boundary.
func truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// ErrorSuffix returns the type and the code of a provider's error for a log line, if each is
// a plain name.
func ErrorSuffix(kind, code string) string {
	text := ""
	if isErrorWord(kind) {
		text += ", type " + kind
	}
	if isErrorWord(code) {
		text += ", code " + code
	}
	return text
}

// isErrorWord reports whether a text is one word that can stand in a log line.
func isErrorWord(s string) bool {
	return s != "" && len(s) <= maxErrorWord && strings.Trim(s, alphanumeric+"._-") == ""
}
