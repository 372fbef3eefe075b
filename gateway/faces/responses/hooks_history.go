package responses

import (
	"bytes"
	"context"
	"slices"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// hookEarlier is an item as the hooks leave it, of which they see calls and what the model said. Results are
// seen where they are read.
func (h *history) hookEarlier(ctx context.Context, as conversationItem) (conversationItem, error) {
	if as.raw == nil || !h.run.Admission.Hooks().AtBrought(hook.Call, hook.Text) {
		return as, nil
	}
	o, _ := rawjson.Members(as.raw)
	kind, _ := rawjson.String(o.Get("type"))
	changed, err := turns.HookMembers(o, func(name string, value []byte) ([]byte, error) {
		switch {
		case rows[kind] != nil && slices.Contains(rows[kind].arguments, name):
			return h.hookArguments(ctx, kind, o, rawjson.Field(name, value))
		case kind == "reasoning" && (name == "summary" || name == "content"):
			return h.run.HookValue(ctx, value, turns.IsSealed(o))
		case (kind == "" || kind == "message") && name == "content":
			return h.hookMessage(ctx, o, value)
		}
		return value, nil
	})
	if changed {
		as.raw = o.Bytes()
	}
	return as, err
}

// hookMessage is the content of a message as the hooks leave it, if it is the model's.
func (h *history) hookMessage(ctx context.Context, o rawjson.Object, content []byte) ([]byte, error) {
	if role, _ := rawjson.String(o.Get("role")); role != "assistant" {
		return content, nil
	}
	if rawjson.IsString(content) {
		return h.run.HookValue(ctx, content, false)
	}
	return h.run.HookParts(ctx, content, func(part rawjson.Object) (bool, error) {
		return turns.HookMembers(part, func(name string, value []byte) ([]byte, error) {
			if name == "type" || name == "logprobs" || turns.IsTextMember(name) && value[0] == '"' {
				return value, nil
			}
			return h.run.HookValue(ctx, value, false)
		})
	})
}

// hookArguments is what a call states as the hooks leave it. They see it in the form in which a call of a
// model is judged.
func (h *history) hookArguments(ctx context.Context, kind string, o rawjson.Object, m rawjson.Member) ([]byte, error) {
	id, _ := rawjson.String(o.Get("call_id"))
	tool := h.open[id].name // empty of a call at the provider: all hooks see it
	if kind == "mcp_call" {
		label, _ := rawjson.String(o.Get("server_label"))
		name, _ := rawjson.String(o.Get("name"))
		tool = h.run.providerTool(label, name)
	}
	text, isText := rawjson.String(m.Value)
	wrapped := m.Name == "input" || m.Name == "actions"
	holdsJSON := isText && m.Name == "arguments" && rawjson.Readable([]byte(text))
	seen := m.Value
	switch {
	case wrapped:
		seen = rawjson.Object{m}.Bytes()
	case holdsJSON:
		seen = []byte(text)
	}
	left, err := h.run.Admission.Hooks().Brought(ctx, hook.Call, tool, seen)
	switch {
	case err != nil || bytes.Equal(left, seen):
		return m.Value, err
	case wrapped:
		object, _ := rawjson.Members(left)
		return object.Get(m.Name), nil
	case holdsJSON:
		return rawjson.Quote(left), nil
	}
	return left, nil
}
