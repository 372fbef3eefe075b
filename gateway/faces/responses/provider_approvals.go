package responses

import (
	"context"
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream/responses"
)

// maxApprovals bounds the rounds of approvals in a row: calls at the provider are not counted by
// the bounds of turns.
const maxApprovals = 16

func hasApprovals(reply *responses.Reply) bool {
	for _, item := range reply.Items {
		if item.Class == responses.Approval {
			return true
		}
	}
	return false
}

// approve judges the calls of a reply that the provider would make by MCP, each as a call of the
// tool label.name, and answers the provider (RS-37). It reports whether the model is to be asked
// again. The calls are judged one by one: each has an answer of its own.
func (r *run) approve(ctx context.Context, t *turn) (bool, error) {
	if !t.approves {
		return false, nil
	}
	if t.decision != nil {
		end := r.face.options.Executor.HandOver
		if !r.isEnforced() {
			end = r.face.options.Executor.Execute // of text alone
		}
		for _, o := range end(ctx, t.decision) {
			if o.Refusal != nil {
				t.decision.Release()
				return false, o.Refusal
			}
		}
	}
	if r.approvals++; r.approvals > maxApprovals {
		return false, refusal.New(refusal.BoundReached, "The model asked too often for calls at the provider.")
	}
	answers := [][]byte{}
	for _, item := range t.reply.Items {
		if item.Class != responses.Approval {
			continue
		}
		answer, err := r.answerApproval(ctx, item, !t.reply.Complete())
		if err != nil {
			return false, err
		}
		answers = append(answers, answer)
	}
	if r.stream != nil {
		r.endTurn(t, false)
	}
	r.approvedBytes += r.conversation.add(r.received(t, true)...) + r.conversation.add(answers...)
	r.approvedTokens = turns.SaturatingAdd(r.approvedTokens, tokensOf(t.reply))
	if r.approvedBytes > maxBodyBytes {
		return false, refusal.New(refusal.BoundReached, "The calls at the provider are longer than a conversation may be.")
	}
	return true, nil
}

// remoteCall is a call at the provider that was approved.
type remoteCall struct{ server, name, arguments string }

// refuseRemote returns the refusal of an item of the provider's MCP that this run has not approved, or
// nil. taken are the approvals that earlier items of the reply were made by: each is for one call.
func (r *run) refuseRemote(item *responses.Item, taken map[string]bool) *refusal.Error {
	if item.Type != "mcp_call" && item.Type != "mcp_list_tools" {
		return nil
	}
	o, _ := rawjson.Members(item.Raw)
	server, _ := rawjson.String(o.Get("server_label"))
	if item.Type == "mcp_list_tools" {
		if r.allowsServer(server) {
			return nil
		}
		return refusal.New(refusal.PermissionDenied, "The model's provider has listed the tools of a server that is not allowed here, or that the request does not name. The answer is refused.")
	}
	id, _ := rawjson.String(o.Get("approval_request_id"))
	approved, known := r.approved[id]
	if !known || taken[id] || approved != remoteCallOf(server, o) {
		return refusal.New(refusal.PermissionDenied, "The model's provider has made a call that this gateway has not approved as it stands. The answer is refused.")
	}
	taken[id] = true
	return nil
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
func (r *run) allowsServer(label string) bool {
	return slices.Contains(r.Route.Rules.Responses.MCPServers, label) && (r.servers[label] || r.request.members.Get("prompt") != nil)
}

// checkRemote fails a reply in which the provider has called what was not approved. The call cannot be
// taken back, and another answer would not undo it. It is recorded as refused.
func (r *run) checkRemote(ctx context.Context, reply *responses.Reply) error {
	taken := map[string]bool{}
	for _, item := range reply.Items {
		refused := r.refuseRemote(item, taken)
		if refused == nil {
			continue
		}
		o, _ := rawjson.Members(item.Raw)
		server, _ := rawjson.String(o.Get("server_label"))
		input := gateway.Input{TextOnly: true, Completion: []byte(turns.NoText)}
		if call := remoteCallOf(server, o); call.name != "" {
			input = gateway.Input{Native: &gateway.NativeCall{Name: r.providerTool(server, call.name), Wire: server + "_" + call.name, Arguments: []byte(call.arguments)}}
		}
		r.registered.WithConstraints(gateway.Constraints{RefuseAll: refused}).Judge(ctx, gateway.ModeEnforce, input).Release()
		return &turns.Failure{Refused: refused}
	}
	for id := range taken {
		delete(r.approved, id)
	}
	return nil
}

// answerApproval judges one call at the provider, and returns the item that answers it. Tools that
// the request brings do not count: a definition of the application would stand for a call that the
// application does not run.
func (r *run) answerApproval(ctx context.Context, item *responses.Item, cut bool) ([]byte, error) {
	c := &item.Call
	if !slices.Contains(r.Route.Rules.Responses.MCPServers, c.ServerLabel) {
		return nil, refusal.New(refusal.UnknownTool, "The answer asks for a call at a server of the provider that is not taken here.")
	}
	name := r.providerTool(c.ServerLabel, c.Name)
	input := gateway.Input{Native: &gateway.NativeCall{Name: name, Wire: c.ServerLabel + "_" + c.Name, Arguments: c.Payload}, Truncated: cut}
	if isBlank(c.Payload) {
		input.Native.Arguments = []byte("{}")
	}
	d := r.registered.WithConstraints(gateway.Constraints{}).Judge(ctx, gateway.ModeEnforce, input)
	outcomes := r.face.options.Executor.HandOver(ctx, d)
	o := rawjson.Object{
		rawjson.Field("type", rawjson.Quote("mcp_approval_response")), rawjson.Field("approval_request_id", rawjson.Quote(c.ID)),
	}
	refused := d.Refusal()
	for i := range outcomes {
		if refused == nil && outcomes[i].Refusal != nil {
			refused = outcomes[i].Refusal
		}
	}
	switch {
	case refused == nil:
		r.approved[c.ID] = remoteCall{c.ServerLabel, c.Name, string(input.Native.Arguments)}
		return append(o, rawjson.Field("approve", []byte("true"))).Bytes(), nil
	case refused.Status() >= 500:
		return nil, refused
	}
	reason := rawjson.Quote(turns.Feedback(outcomes[0], d.Reports[0].Tool))
	return append(o, rawjson.Field("approve", []byte("false")), rawjson.Field("reason", reason)).Bytes(), nil
}

// providerTool is the name in the registry of a tool of a server at the provider.
func (r *run) providerTool(label, name string) string {
	wire := label + "_" + name
	if own, known := r.registered.ToolName(wire); !known || own == wire {
		return wire // of a tool without a namespace
	}
	return label + "." + name
}
