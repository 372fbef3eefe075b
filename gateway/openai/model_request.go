package openai

import (
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/upstream"
)

// requestBody is the next request to the model: the application's, with changes only to the
// members that this face is responsible for.
func (r *run) requestBody() ([]byte, error) {
	o := r.request.members.set("model", quote(nil, r.Route.UpstreamModel))
	o = o.set("messages", r.conversation.bytes())
	if r.request.stream && r.Mode == gateway.ModeCall && r.Route.Rules.TokenBudget > 0 {
		options, _ := readMembers(r.request.members.get("stream_options"))
		o = o.set("stream_options", options.set("include_usage", []byte("true")).bytes())
	}
	if len(r.Offer.Tools) == 0 || r.Route.Rules.Protocol == upstream.Text {
		return o.without("tools", "tool_choice", "parallel_tool_calls").bytes(), nil
	}
	definitions, err := definitions(r.Offer.Tools)
	if err != nil {
		return nil, err
	}
	o = o.set("tools", definitions)
	if r.request.members.get("tool_choice") == nil {
		return o.bytes(), nil
	}
	if r.request.choice.Required && !r.Choice.Required && r.Choice.Names == nil {
		return o.without("tool_choice").bytes(), nil // it was met
	}
	return o.set("tool_choice", encodeChoice(&r.Choice, r.request.members.get("tool_choice"))).bytes(), nil
}

// encodeChoice returns tool_choice for the model, with only the members that were read. A list of
// tools may have become shorter.
func encodeChoice(c *turns.ToolChoice, written []byte) []byte {
	if c.Names == nil {
		return written // a word
	}
	named := func(name string) []byte {
		return object{{"type", quote(nil, "function")}, {"function", object{{"name", quote(nil, name)}}.bytes()}}.bytes()
	}
	if c.Forced {
		return named(c.Names[0])
	}
	mode := "auto"
	if c.Required {
		mode = "required"
	}
	list := []byte{'['}
	for i, name := range c.Names {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, named(name)...)
	}
	allowed := object{{"mode", quote(nil, mode)}, {"tools", append(list, ']')}}.bytes()
	return object{{"type", quote(nil, "allowed_tools")}, {"allowed_tools", allowed}}.bytes()
}
