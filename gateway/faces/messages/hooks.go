package messages

import (
	"bytes"
	"context"
	"strings"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// hookHistory has the hooks see the calls, results of tools and texts of the model that the request
// brings back, and sends the model what they leave. The history was read and found valid.
func (d *dialogue) hookHistory(ctx context.Context) error {
	messages := d.members.Get("messages")
	h := hookedHistory{dialogue: d, names: map[string]string{}, hooked: d.Admission.Hooks().AtBrought(hook.Call, hook.Result, hook.Text)}
	if !h.hooked && !turns.MayHide(messages) {
		return nil
	}
	left, err := rawjson.MapElements(messages, func(_ int, raw []byte) ([]byte, error) { return h.message(ctx, raw) })
	if err == nil && !bytes.Equal(left, messages) {
		d.members = d.members.Set("messages", left)
	}
	return err
}

// hookedHistory is the history while hooks see it.
type hookedHistory struct {
	*dialogue
	hooked bool              // there are hooks to see it; else invisible characters of results are escaped alone
	names  map[string]string // of the tools of calls, by their ids
}

// message is a message as hooks leave it: of the model all, of others the results.
func (h *hookedHistory) message(ctx context.Context, raw []byte) ([]byte, error) {
	o, _ := rawjson.Members(raw)
	role, _ := rawjson.String(o.Get("role"))
	content := o.Get("content")
	var left []byte
	var err error
	switch {
	case role == "assistant" && !h.hooked:
		return raw, nil
	case role != "assistant":
		left, err = rawjson.MapElements(content, func(_ int, raw []byte) ([]byte, error) { return h.result(ctx, raw) })
	case rawjson.IsString(content):
		left, err = h.HookValue(ctx, content, false)
	default:
		left, err = h.HookParts(ctx, content, func(o rawjson.Object) (bool, error) { return h.block(ctx, o) })
	}
	if err != nil || bytes.Equal(left, content) {
		return raw, err
	}
	return o.Set("content", left).Bytes(), nil
}

// result is a block of a message that is not the model's, as hooks leave it: they see what a
// tool_result has.
func (h *hookedHistory) result(ctx context.Context, raw []byte) ([]byte, error) {
	o, _ := rawjson.Members(raw)
	content := o.Get("content")
	if kind, _ := rawjson.String(o.Get("type")); kind != "tool_result" || content == nil {
		return raw, nil
	}
	id, _ := rawjson.String(o.Get("tool_use_id"))
	left, err := h.BroughtResult(ctx, h.names[id], content)
	if err != nil || bytes.Equal(left, content) {
		return raw, err
	}
	return o.Set("content", left).Bytes(), nil
}

// block has the hooks see a block of the model but for its text, and notes the tool of a call. Encrypted
// values, files, and results of the provider's tools are not seen.
func (h *hookedHistory) block(ctx context.Context, o rawjson.Object) (changed bool, err error) {
	kind, _ := rawjson.String(o.Get("type"))
	source, _ := rawjson.Members(o.Get("source"))
	form, _ := rawjson.String(source.Get("type"))
	sealed := turns.IsSealed(o)
	switch {
	case strings.HasSuffix(kind, "tool_use"):
		return h.call(ctx, o)
	case strings.HasSuffix(kind, "_tool_result"), kind == "redacted_thinking", kind == "mcp_tool_listing", form == "base64":
		return false, nil
	}
	return turns.HookMembers(o, func(name string, value []byte) ([]byte, error) {
		switch {
		case name == "type", name == "cache_control", name == "signature", name == "encrypted_content", turns.IsTextMember(name) &&
			value[0] == '"':
			return value, nil
		}
		return h.HookValue(ctx, value, sealed)
	})
}

// call has the hooks see the arguments of a call.
func (h *hookedHistory) call(ctx context.Context, o rawjson.Object) (bool, error) {
	id, _ := rawjson.String(o.Get("id"))
	tool := h.toolOf(o)
	h.names[id] = tool
	return turns.HookMembers(o, func(name string, value []byte) ([]byte, error) {
		if name != "input" {
			return value, nil
		}
		return h.Admission.Hooks().Brought(ctx, hook.Call, tool, value)
	})
}

// toolOf is the registry's name of the tool that a call of the history calls.
func (d *dialogue) toolOf(call rawjson.Object) string {
	tool, _ := rawjson.String(call.Get("name"))
	toolset, _ := rawjson.String(call.Get("toolset_name"))
	server, _ := rawjson.String(call.Get("server_name"))
	switch {
	case toolset != "":
		return d.RegistryName(toolset + "_" + tool)
	case server != "":
		return server + "." + tool
	}
	return d.RegistryName(tool)
}
