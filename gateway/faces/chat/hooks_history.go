package chat

import (
	"bytes"
	"context"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// hookHistory has the hooks see the calls and the texts of a model that the request brings back, and
// keeps what they leave of them. Results are seen where they are written.
func (d *dialogue) hookHistory(ctx context.Context) error {
	if !d.Admission.Hooks().AtBrought(hook.Call, hook.Text) {
		return nil
	}
	for i := range d.history {
		m := &d.history[i]
		if m.role != "assistant" {
			continue
		}
		members, _ := rawjson.Members(m.raw)
		changed, err := turns.HookMembers(members, func(name string, value []byte) ([]byte, error) {
			return d.hookEarlier(ctx, m, name, value)
		})
		if err != nil {
			return err
		}
		if changed {
			m.raw, m.content = members.Bytes(), members.Get("content")
		}
	}
	return nil
}

// hookEarlier is the value of a member of a model's message as hooks leave it.
func (d *dialogue) hookEarlier(ctx context.Context, m *message, name string, value []byte) ([]byte, error) {
	_, isList := rawjson.Elements(value)
	switch {
	case name == "role" || name == "name":
		return value, nil
	case name == "tool_calls":
		return d.hookEarlierCalls(ctx, m, value)
	case name == "audio":
		return d.hookEarlierAudio(ctx, value)
	case name == "content" && isList:
		return d.HookParts(ctx, value, func(o rawjson.Object) (bool, error) {
			sealed := turns.IsSealed(o)
			return turns.HookMembers(o, func(name string, value []byte) ([]byte, error) {
				if name == "type" || turns.IsTextMember(name) && value[0] == '"' {
					return value, nil
				}
				return d.HookValue(ctx, value, sealed)
			})
		})
	case isList:
		return rawjson.MapElements(value, func(_ int, raw []byte) ([]byte, error) { return d.hookThought(ctx, raw) })
	}
	return d.hookThought(ctx, value)
}

// hookEarlierCalls is the list of a message's calls as hooks leave it.
func (d *dialogue) hookEarlierCalls(ctx context.Context, m *message, list []byte) ([]byte, error) {
	return rawjson.MapElements(list, func(i int, raw []byte) ([]byte, error) {
		call := &m.calls[i]
		left, err := d.Admission.Hooks().Brought(ctx, hook.Call, d.RegistryName(call.name), call.arguments)
		if err != nil || bytes.Equal(left, call.arguments) {
			return raw, err
		}
		call.arguments = left
		o, _ := rawjson.Members(raw)
		function, _ := rawjson.Members(o.Get("function"))
		return o.Set("function", function.Set("arguments", rawjson.Quote(left)).Bytes()).Bytes(), nil
	})
}

// hookEarlierAudio is what a model spoke as hooks leave it: they see the transcript, and where that is
// redacted, the speech is left out.
func (d *dialogue) hookEarlierAudio(ctx context.Context, raw []byte) ([]byte, error) {
	o, _ := rawjson.Members(raw)
	transcript := o.Get("transcript")
	if transcript == nil {
		return raw, nil
	}
	left, err := d.HookValue(ctx, transcript, false)
	if err != nil || bytes.Equal(left, transcript) {
		return raw, err
	}
	return o.Set("transcript", left).Without("data").Bytes(), nil
}

// hookThought is a value beside the content, such as a piece of what a model thought, as hooks leave it.
// Values that the provider has encrypted are for the provider alone.
func (d *dialogue) hookThought(ctx context.Context, raw []byte) ([]byte, error) {
	o, _ := rawjson.Members(raw)
	switch kind, _ := rawjson.String(o.Get("type")); kind {
	case "reasoning.encrypted", "redacted_thinking":
		return raw, nil
	}
	return d.HookValue(ctx, raw, turns.IsSealed(o))
}
