package responses

import (
	"context"
	"net/url"
	"slices"
	"unicode/utf8"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// isOwn reports whether a tool of the request is no tool, but says that the caller can be asked. A
// server of the provider that the operator allows under the same label stays one.
func (d *dialogue) isOwn(def *definition) bool {
	label, _ := rawjson.String(def.object.Get("server_label"))
	return def.kind == "mcp" && label == ownLabel && !d.inInput && !slices.Contains(d.Route.Rules.Responses.MCPServers, ownLabel)
}

// readOwn reads the entry by which the client says that it can be asked. Nothing is connected to, so
// it has no credentials, and which calls ask is for the policy to say.
func (d *dialogue) readOwn(def *definition) error {
	if d.asksAt != "" {
		return bad(def.param, "Two tools have the same name.")
	}
	d.asksAt = def.param
	address := false
	for _, m := range def.object {
		text, isText := rawjson.String(m.Value)
		at := def.param + "." + m.Name
		switch m.Name {
		case "type", "server_label":
		case "server_description":
			if !isText && string(m.Value) != "null" {
				return bad(at, "%q must be a string.", m.Name)
			}
		case "server_url":
			u, err := url.Parse(text)
			if address = isText && err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""; !address {
				return bad(at, "\"server_url\" must be the URL of this gateway. Nothing is connected to.")
			}
		case "require_approval":
			if text != "always" && string(m.Value) != "null" {
				return bad(at, "\"require_approval\" must be \"always\" for the server %q: the policy says which calls ask.", ownLabel)
			}
		default:
			if string(m.Value) != "null" {
				return bad(at, "The server %q is this gateway: its entry says that this client answers requests for approval, and may have the members "+
					"type, server_label, server_url, server_description and require_approval.", ownLabel)
			}
		}
	}
	if !address {
		return bad(def.param+".server_url", "\"server_url\" must be the URL of this gateway. Nothing is connected to.")
	}
	return nil
}

// checkOwn refuses the entry where the gateway does not run the calls: then there is nothing that an
// answer would let run.
func (d *dialogue) checkOwn() error {
	if d.asksAt != "" && d.isEnforced() {
		return bad(d.asksAt, "The server %q is taken only in the mode orchestrate: here the application runs the calls, and people decide them before.", ownLabel)
	}
	return nil
}

// Asks is of turns.Confirming: the caller is asked of functions that wait for it, whose arguments can be shown as they are.
func (d *dialogue) Asks() func(*turns.Part, *calls.Question) bool {
	if d.asksAt == "" {
		return nil
	}
	return func(p *turns.Part, q *calls.Question) bool {
		it := p.Wire.(*item)
		return len(q.Rules) > 0 && !q.Secret && len(q.Arguments) > 0 && it.Type == "function_call" && it.call.namespace == "" &&
			!it.call.async
	}
}

// readRequest reads an item by which the caller was asked, as the call that it stands for.
func (h *history) readRequest(o rawjson.Object, param string) (conversationItem, error) {
	var as conversationItem
	if err := onlyMembers(o, param, "type", "id", "server_label", "name", "arguments"); err != nil {
		return as, err
	}
	if label, _ := rawjson.String(o.Get("server_label")); label != ownLabel {
		return as, bad(param+".server_label", "Calls at the provider are approved by the policy here, not by the application.")
	}
	id, _ := rawjson.String(o.Get("id"))
	name, _ := rawjson.String(o.Get("name"))
	if id == "" || name == "" {
		return as, bad(param, "A request for approval must have an id and the name of a tool.")
	}
	call := rawjson.Object{
		rawjson.Field("type", rawjson.Quote("function_call")), rawjson.Field("call_id", rawjson.Quote(id)),
		rawjson.Field("name", rawjson.Quote(name)), rawjson.Field("arguments", o.Get("arguments")),
	}
	if err := h.readCall("function_call", call, param); err != nil {
		return as, err
	}
	arguments, _ := rawjson.String(o.Get("arguments"))
	earlier := h.open[id]
	earlier.kind, earlier.arguments = typeRequest, arguments
	h.open[id] = earlier
	return conversationItem{raw: call.Bytes()}, nil
}

// readAnswer reads the answer of the caller to such an item. The item for the model in its place
// is written once the call has been judged.
func (h *history) readAnswer(o rawjson.Object, param string) (conversationItem, error) {
	var as conversationItem
	if err := onlyMembers(o, param, "type", "id", "approval_request_id", "approve", "reason"); err != nil {
		return as, err
	}
	id, _ := rawjson.String(o.Get("approval_request_id"))
	call, open := h.open[id]
	reason, ok := rawjson.String(o.Get("reason"))
	approve := string(o.Get("approve"))
	switch {
	case !open || call.kind != typeRequest:
		return as, bad(param+".approval_request_id",
			"This item answers no request for approval before it, or one that is answered already.")
	case approve != "true" && approve != "false":
		return as, bad(param+".approve", "\"approve\" must be true or false.")
	case !ok && o.Get("reason") != nil, utf8.RuneCountInString(reason) > calls.MaxReason:
		return as, bad(param+".reason", "The reason must be a string of at most %d characters.", calls.MaxReason)
	}
	delete(h.open, id)
	if len(h.run.confirmations) == maxConfirmations {
		return as, bad(param, "\"input\" may have at most %d answers to requests for approval.", maxConfirmations)
	}
	h.run.confirmations = append(h.run.confirmations, confirmation{at: len(h.run.conversation.items), Confirmation: calls.Confirmation{
		ID: id, Tool: call.name, Arguments: []byte(call.arguments), Yes: approve == "true", Reason: reason,
	}})
	return as, nil
}

// maxConfirmations is how many answers to requests for approval a conversation may begin with. Each
// is looked up.
const maxConfirmations = 256

// onlyMembers refuses an item with other members than some.
func onlyMembers(o rawjson.Object, param string, names ...string) error {
	for _, m := range o {
		if !slices.Contains(names, m.Name) && string(m.Value) != "null" {
			return bad(param, "The member %s of an item of this type is not taken here.", parser.Quote(m.Name))
		}
	}
	return nil
}

// Confirm is of turns.Confirming: it takes the answers of the caller, in their order, and puts the results of their calls into the
// conversation.
func (d *dialogue) Confirm(ctx context.Context) error {
	pending := d.confirmations
	d.confirmations = nil
	added := 0
	for _, c := range pending {
		c.Outdated = c.at < d.lastOfModel
		line, err := d.Run.Confirm(ctx, d.registered, c.Confirmation)
		if err != nil {
			return err
		}
		o := rawjson.Object{
			rawjson.Field("type", rawjson.Quote("function_call_output")), rawjson.Field("call_id", rawjson.Quote(c.ID)),
			rawjson.Field("output", rawjson.Quote(line)),
		}
		d.conversation.items[c.at].raw = o.Bytes()
		if added += len(line); added > maxBodyBytes {
			return &turns.Failure{Refused: refusal.New(refusal.BoundReached,
				"The results of the calls that were approved are longer than a conversation may be.")}
		}
	}
	return nil
}
