package turns

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// BroughtResult is the result of a tool that the application ran and that its request brings back,
// for a model whose calls are native: a strict JSON value, as the hooks leave it, whose bytes stay but
// for invisible characters, which are written out as their escapes. The error is a *refusal.Error.
func (r *Run) BroughtResult(ctx context.Context, name string, content []byte) ([]byte, error) {
	left, err := r.Admission.Hooks().Brought(ctx, hook.Result, name, content)
	if err != nil {
		return nil, err
	}
	if text := textOfParts(left); text != nil { // a match may span two parts
		together, err := r.Admission.Hooks().Brought(ctx, hook.Result, name, text)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(together, text) {
			left = together
		}
	}
	if MayHide(left) {
		left = escapeHidden(left)
	}
	return left, nil
}

// textOfParts is the text of a list of parts as one JSON string; nil: it is no list of texts alone.
func textOfParts(content []byte) []byte {
	list, ok := rawjson.Elements(content)
	if !ok {
		return nil
	}
	var all strings.Builder
	for _, raw := range list {
		part, _ := rawjson.Members(raw)
		text, isText := rawjson.String(part.Get("text"))
		if !isText {
			return nil
		}
		all.WriteString(text)
	}
	return rawjson.Quote(all.String())
}

// MayHide reports whether invisible characters may stand in the strings of JSON, and tells quickly of
// most texts that none do.
func MayHide(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c >= 0x7F:
			return true
		case c == '\\':
			if i++; i < len(raw) && bytes.IndexByte([]byte("ubfr"), raw[i]) >= 0 {
				return true
			}
		}
	}
	return false
}

// escapeHidden writes out the invisible characters of every string of a value but for names.
func escapeHidden(raw []byte) []byte {
	switch raw[0] {
	case '"':
		text, _ := rawjson.String(raw)
		if escaped := wrapper.EscapeHidden(text); escaped != text {
			return rawjson.Quote(escaped)
		}
	case '[':
		raw, _ = rawjson.MapElements(raw, func(_ int, value []byte) ([]byte, error) { return escapeHidden(value), nil })
	case '{':
		o, _ := rawjson.Members(raw)
		changed, _ := HookMembers(o, func(_ string, value []byte) ([]byte, error) { return escapeHidden(value), nil })
		if changed {
			return o.Bytes()
		}
	}
	return raw
}

// WrapBrought wraps the result of a tool that the application ran and that its request brings back,
// as the hooks leave it, for a model that reads the call language. The error is a *refusal.Error.
func (r *Run) WrapBrought(ctx context.Context, name, text string) (string, error) {
	left, err := r.Admission.Hooks().Brought(ctx, hook.Result, name, rawjson.Quote(text))
	if err != nil {
		return "", err
	}
	if text, ok := rawjson.String(left); ok {
		return WrapResult(name, text)
	}
	return "", refusal.From(refusal.Wrap, errors.New("a text that is none any more"))
}

// WrapResult wraps the result of a tool that the application ran, for the model: a tool_result,
// as one line of JSON. A text that is JSON is the output itself. The error is a *refusal.Error.
func WrapResult(name, text string) (string, error) {
	wrap := func() (wrapper.ToolResult, error) { return wrapper.Text(name, text) }
	if raw := []byte(text); rawjson.Readable(raw) {
		wrap = func() (wrapper.ToolResult, error) { return wrapper.Result(name, raw) }
	}
	result, err := wrap()
	if err != nil {
		return "", refusal.From(refusal.Wrap, err)
	}
	return string(result.Line), nil
}
