package openai

import (
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/upstream"
)

// requestBody is the next request to the model: the application's, with changes only to the
// members that this face is responsible for.
func (r *run) requestBody() ([]byte, error) {
	o := r.request.members.set("model", quote(nil, r.route.UpstreamModel))
	o = o.set("messages", r.conversation.bytes())
	if r.request.stream && r.mode == gateway.ModeCall && r.route.Rules.TokenBudget > 0 {
		options, _ := readMembers(r.request.members.get("stream_options"))
		o = o.set("stream_options", options.set("include_usage", []byte("true")).bytes())
	}
	if len(r.offer.tools) == 0 || r.route.Rules.Protocol == upstream.Text {
		return o.without("tools", "tool_choice", "parallel_tool_calls").bytes(), nil
	}
	definitions, err := r.offer.definitions()
	if err != nil {
		return nil, err
	}
	o = o.set("tools", definitions)
	if r.request.members.get("tool_choice") == nil {
		return o.bytes(), nil
	}
	if r.request.choice.required && !r.choice.required && r.choice.names == nil {
		return o.without("tool_choice").bytes(), nil // it was met
	}
	return o.set("tool_choice", r.choice.encode(r.request.members.get("tool_choice"))).bytes(), nil
}

// encode returns tool_choice for the model, with only the members that were read. A list of
// tools may have become shorter.
func (c *toolChoice) encode(written []byte) []byte {
	if c.names == nil {
		return written // a word
	}
	named := func(name string) []byte {
		return object{{"type", quote(nil, "function")}, {"function", object{{"name", quote(nil, name)}}.bytes()}}.bytes()
	}
	if c.forced {
		return named(c.names[0])
	}
	mode := "auto"
	if c.required {
		mode = "required"
	}
	list := []byte{'['}
	for i, name := range c.names {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, named(name)...)
	}
	allowed := object{{"mode", quote(nil, mode)}, {"tools", append(list, ']')}}.bytes()
	return object{{"type", quote(nil, "allowed_tools")}, {"allowed_tools", allowed}}.bytes()
}
