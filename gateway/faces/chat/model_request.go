package chat

import (
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
)

// requestBody is the next request to the model: the application's, with changes only to the
// members that this face is responsible for.
func (r *run) requestBody() ([]byte, error) {
	o := r.request.members.Set("model", rawjson.Quote(r.Route.UpstreamModel))
	o = o.Set("messages", r.conversation.bytes())
	if r.request.stream && (r.Mode == gateway.ModeCall && r.Route.Rules.TokenBudget > 0 || r.IsMetered()) {
		options, _ := rawjson.Members(r.request.members.Get("stream_options"))
		o = o.Set("stream_options", options.Set("include_usage", []byte("true")).Bytes())
	}
	if len(r.Offer.Tools) == 0 || r.Route.Rules.Protocol == upstream.Text {
		return o.Without("tools", "tool_choice", "parallel_tool_calls").Bytes(), nil
	}
	definitions, err := definitions(r.Offer.Tools)
	if err != nil {
		return nil, err
	}
	o = o.Set("tools", definitions)
	if r.request.members.Get("tool_choice") == nil {
		return o.Bytes(), nil
	}
	if r.request.choice.Required && !r.Choice.Required && r.Choice.Names == nil {
		return o.Without("tool_choice").Bytes(), nil // it was met
	}
	return o.Set("tool_choice", encodeChoice(&r.Choice, r.request.members.Get("tool_choice"))).Bytes(), nil
}

// encodeChoice returns tool_choice for the model, with only the members that were read. A list of
// tools may have become shorter.
func encodeChoice(c *turns.ToolChoice, original []byte) []byte {
	if c.Names == nil {
		return original // a word
	}
	named := func(name string) []byte {
		return rawjson.Object{rawjson.Field("type", rawjson.Quote("function")), rawjson.Field("function", rawjson.Object{rawjson.Field("name", rawjson.Quote(name))}.Bytes())}.Bytes()
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
	allowed := rawjson.Object{rawjson.Field("mode", rawjson.Quote(mode)), rawjson.Field("tools", append(list, ']'))}.Bytes()
	return rawjson.Object{rawjson.Field("type", rawjson.Quote("allowed_tools")), rawjson.Field("allowed_tools", allowed)}.Bytes()
}
