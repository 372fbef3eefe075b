package messages

import (
	"bytes"
	"context"

	"github.com/callgate/callgate/internal/rawjson"
)

// hookHistory has the hooks see the results of tools that the request brings back, and sends the
// model what they leave. The history was read and found valid.
func (r *run) hookHistory(ctx context.Context) error {
	if !r.Admission.HooksBrought() {
		return nil
	}
	h := hookedHistory{run: r, names: map[string]string{}}
	list, _ := rawjson.Elements(r.request.members.Get("messages"))
	messages := []byte{'['}
	for i, raw := range list {
		message, err := h.message(ctx, raw)
		if err != nil {
			return err
		}
		if i > 0 {
			messages = append(messages, ',')
		}
		messages = append(messages, message...)
	}
	if h.changed {
		r.request.members = r.request.members.Set("messages", append(messages, ']'))
	}
	return nil
}

// hookedHistory is the history while hooks see it.
type hookedHistory struct {
	run     *run
	names   map[string]string // of the tools of calls, by their ids
	changed bool
}

// message is a message as hooks leave it.
func (h *hookedHistory) message(ctx context.Context, raw []byte) ([]byte, error) {
	o, _ := rawjson.Members(raw)
	list, ok := rawjson.Elements(o.Get("content"))
	if !ok {
		return raw, nil
	}
	content, changed := []byte{'['}, false
	for i, raw := range list {
		block, err := h.block(ctx, raw)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			content = append(content, ',')
		}
		content, changed = append(content, block...), changed || !bytes.Equal(block, raw)
	}
	if !changed {
		return raw, nil
	}
	h.changed = true
	return o.Set("content", append(content, ']')).Bytes(), nil
}

// block is a block as hooks leave it: of a call it notes the tool, and they see what a tool_result has.
func (h *hookedHistory) block(ctx context.Context, raw []byte) ([]byte, error) {
	o, _ := rawjson.Members(raw)
	switch kind, _ := rawjson.String(o.Get("type")); kind {
	case "tool_use":
		id, _ := rawjson.String(o.Get("id"))
		name, _ := rawjson.String(o.Get("name"))
		h.names[id] = h.run.RegistryName(name)
	case "tool_result":
		content := o.Get("content")
		if content == nil {
			return raw, nil
		}
		id, _ := rawjson.String(o.Get("tool_use_id"))
		left, err := h.run.Admission.HookBrought(ctx, h.names[id], content)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(left, content) {
			return o.Set("content", left).Bytes(), nil
		}
	}
	return raw, nil
}
