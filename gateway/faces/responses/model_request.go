package responses

import (
	"github.com/callgate/callgate/internal/rawjson"
)

// input is the conversation as JSON.
func (r *run) input() []byte {
	v := &r.conversation
	if v.text != nil {
		return v.text
	}
	size := len("[]") + len(v.items)
	for i := range v.items {
		size += len(v.items[i].raw)
	}
	b := append(make([]byte, 0, size), '[')
	for i := range v.items {
		if i > 0 {
			b = append(b, ',')
		}
		if item := &v.items[i]; item.raw != nil {
			b = append(b, item.raw...)
		} else {
			b = append(b, item.object.Set("tools", r.appendTools(nil, item.tools)).Bytes()...)
		}
	}
	return append(b, ']')
}

// requestBody is the next request to the model: the application's, with changes only to the
// members that this face is responsible for.
func (r *run) requestBody() []byte {
	o := r.request.members.Set("model", rawjson.Quote(r.Route.UpstreamModel))
	if r.conversation.text != nil || len(r.conversation.items) > 0 || o.Get("input") != nil { // else the prompt has it
		o = o.Set("input", r.input())
	}
	if r.previous != "" {
		o = o.Set("previous_response_id", rawjson.Quote(r.previous))
	}
	var tools []byte
	switch {
	case r.named && r.request.members.Get("tools") != nil:
		tools = r.appendTools(nil, r.tools)
	case !r.named && len(r.Offer.Tools) > 0:
		tools = r.registryTools()
	}
	if len(tools) > len("[]") {
		o = o.Set("tools", tools)
	} else {
		o = o.Without("tools")
	}
	if len(r.Offer.Tools) == 0 && !r.hasHosted {
		return o.Without("tool_choice", "parallel_tool_calls").Bytes()
	}
	if choice := r.encodeChoice(); choice != nil {
		return o.Set(paramChoice, choice).Bytes()
	}
	return o.Without(paramChoice).Bytes()
}
