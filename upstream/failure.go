package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
)

// Bounds of an error object: in bytes, and how deep it nests.
const (
	maxErrorMessage = 4 << 10
	maxErrorWord    = 64
	maxErrorDepth   = 128
)

// Failure is what a provider says of why it failed, with the members of OpenAI's error object.
type Failure struct{ Type, Code, Param, Message string }

// reasons are the members by which providers say why they failed, those that say most first.
var reasons = []string{"message", "msg", "detail", "error_description", "error_msg", "error_message", "errmsg", "status_msg", "error",
	"errors", "base_resp", "header", "reason", "title"}

// codes are the members with the code of a failure.
var codes = []string{"code", "error_code", "errcode", "status_code"}

// ReadFailure reads {"error": {...}}, and other forms of errors that providers and the servers in front
// of them have: a member of reasons, of an object at the top or within another, of which a list
// has the first. It returns an empty failure if raw is not strict JSON, or says by the code 0 or 200 that nothing failed,
// outside of an error.
func ReadFailure(raw []byte) Failure {
	var (
		f    Failure
		body any
	)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if rawjson.Check(raw, maxErrorDepth) != nil || d.Decode(&body) != nil {
		return f
	}
	f.Message = f.read(body, false)
	f.Type, f.Code, f.Param, f.Message = truncate(f.Type, maxErrorWord), truncate(f.Code, maxErrorWord), truncate(f.Param, maxErrorMessage),
		truncate(f.Message, maxErrorMessage)
	return f
}

// read returns what a value says of why the request failed; failed: it stands in an error. The members of the innermost
// object hold.
func (f *Failure) read(value any, failed bool) (why string) {
	switch v := value.(type) {
	case string:
		return v
	case []any:
		for _, element := range v {
			if why = f.read(element, failed); why != "" {
				return why
			}
		}
	case map[string]any:
		code := codeOf(v)
		if !failed && v["error"] == nil && (code == "200" || code != "" && strings.Trim(code, "0") == "") {
			return ""
		}
		for _, name := range reasons {
			if why = f.read(v[name], failed || name == "error" || name == "errors"); why != "" {
				break
			}
		}
		if byName, ok := v["errors"].(map[string]any); ok && (why == "" || word(v["title"]) == why) { // by the members of the request
			for _, name := range slices.Sorted(maps.Keys(byName)) {
				if at := f.read(byName[name], true); at != "" {
					why = name + ": " + at
					break
				}
			}
		}
		f.Type, f.Code, f.Param = cmp.Or(f.Type, word(v["type"])), cmp.Or(f.Code, code), cmp.Or(f.Param, word(v["param"]))
		if why != "" {
			why += within(v)
		}
	}
	return why
}

// codeOf is the code that an object states; empty: none.
func codeOf(v map[string]any) (code string) {
	for _, name := range codes {
		code = cmp.Or(code, word(v[name]))
	}
	return code
}

// within is what an error says beside its message: the place in the request (FastAPI), the words of the
// provider behind it (OpenRouter), or the rule that decided (Azure).
func within(v map[string]any) (more string) {
	if place, ok := v["loc"].([]any); ok {
		var steps []string
		for _, step := range place {
			steps = append(steps, word(step))
		}
		more = " (at " + strings.Join(steps, ".") + ")"
	}
	metadata, _ := v["metadata"].(map[string]any)
	if raw := metadata["raw"]; raw != nil {
		text, isText := raw.(string)
		if !isText {
			b, _ := json.Marshal(raw) // it was decoded from JSON
			text = string(b)
		}
		more += ": " + text
	}
	inner, _ := v["innererror"].(map[string]any)
	if code := word(inner["code"]); code != "" {
		more += " (" + code + ")"
	}
	return more
}

// word is a string or a number; anything else is none.
func word(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
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
	return s != "" && len(s) <= maxErrorWord && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}
