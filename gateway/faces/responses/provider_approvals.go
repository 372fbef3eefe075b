package responses

import (
	"context"
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
)

// answerTo is the item that answers a request for approval (RS-37). The call that was approved may be made once.
func (d *dialogue) answerTo(it *item, told *turns.Told) []byte {
	c := &it.call
	o := rawjson.Object{rawjson.Field("type", rawjson.Quote(typeResponse)), rawjson.Field("approval_request_id", rawjson.Quote(c.id))}
	if told.Failed {
		return append(o, rawjson.Field("approve", []byte("false")), rawjson.Field("reason", rawjson.Quote(told.Result))).Bytes()
	}
	if d.approved == nil {
		d.approved = map[string]remoteCall{}
	}
	d.approved[c.id] = remoteCall{c.serverLabel, c.name, string(told.Arguments)}
	return append(o, rawjson.Field("approve", []byte("true"))).Bytes()
}

// remoteCall is a call at the provider that was approved.
type remoteCall struct{ server, name, arguments string }

// Check is of turns.Checking: the provider may call what was approved, and that once, and list the tools of the servers
// that the request names.
func (d *dialogue) Check(ctx context.Context, p *turns.Part) error {
	it, ok := p.Wire.(*item)
	if !ok || it.Type != "mcp_call" && it.Type != "mcp_list_tools" {
		return nil
	}
	stated := it.raw
	if stated == nil {
		stated = it.added // it was cut off
	}
	o, _ := rawjson.Members(stated)
	server, _ := rawjson.String(o.Get("server_label"))
	if it.Type == "mcp_list_tools" {
		if d.allowsServer(server) {
			return nil
		}
		return d.RefuseDone(ctx, d.registered, nil,
			refusal.New(refusal.PermissionDenied, "The model's provider has listed the tools of a server that is not allowed here, or that the request does not name. The answer is refused."))
	}
	id, _ := rawjson.String(o.Get("approval_request_id"))
	made := remoteCallOf(server, o)
	if approved, known := d.approved[id]; known && approved == made {
		delete(d.approved, id) // each is for one call
		return nil
	}
	var call *gateway.NativeCall
	if made.name != "" {
		call = &gateway.NativeCall{Name: d.providerTool(server, made.name), Wire: server + "_" + made.name,
			Arguments: []byte(made.arguments)}
	}
	return d.RefuseDone(ctx, d.registered, call,
		refusal.New(refusal.PermissionDenied,
			"The model's provider has made a call that this gateway has not approved as it stands. The answer is refused."))
}

// remoteCallOf is the call that an item of the provider's MCP is.
func remoteCallOf(server string, o rawjson.Object) remoteCall {
	name, _ := rawjson.String(o.Get("name"))
	arguments, _ := rawjson.String(o.Get("arguments"))
	if arguments == "" {
		arguments = "{}"
	}
	return remoteCall{server, name, arguments}
}

// allowsServer reports whether a server of the provider's MCP is allowed here, and asked for: by the
// request, or by a stored prompt, which the request does not show.
func (d *dialogue) allowsServer(label string) bool {
	return slices.Contains(d.Route.Rules.Responses.MCPServers, label) && (d.servers[label] || d.members.Get("prompt") != nil)
}

// providerTool is the name in the registry of a tool of a server at the provider.
func (d *dialogue) providerTool(label, name string) string {
	wire := label + "_" + name
	if own, known := d.registered.ToolName(wire); !known || own == wire {
		return wire // of a tool without a namespace
	}
	return label + "." + name
}
