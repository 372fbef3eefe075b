package messages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	wire "github.com/callgate/callgate/upstream/messages"
)

// judge judges a reply as a whole.
func (r *run) judge(ctx context.Context, t *turn) {
	constraints := r.constraints(r.AnswerConstraints(len(t.calls) > 0, t.stopped))
	constraints.RefuseAll = r.fault(t)
	if refused := t.cutOff(); refused != nil {
		constraints.RefuseCall = refused
	}
	var inputs []gateway.Input
	if t.texts > 0 {
		inputs = append(inputs, gateway.Input{Completion: t.text, TextOnly: true, Truncated: t.cut()})
	}
	t.decision = r.Admission.WithConstraints(constraints).Judge(ctx, r.Mode, append(inputs, r.callInputs(t)...)...)
	t.takeHooked()
}

// callInputs are the calls of a reply under the registry's names.
func (r *run) callInputs(t *turn) []gateway.Input {
	var inputs []gateway.Input
	for _, call := range t.calls {
		name := call.Name
		if call.Toolset != "" {
			name = call.Toolset + "_" + call.Name
		}
		n := &gateway.NativeCall{Name: r.RegistryName(name), Wire: name, Arguments: call.Input}
		if (call.Toolset != "") != r.inToolset(name) {
			// A client that does not know toolsets goes by the name alone. No registry can have
			// this name.
			n.Name = call.Toolset + ":" + call.Name
		}
		inputs = append(inputs, gateway.Input{Native: n, Truncated: t.cut()})
	}
	return inputs
}

// inToolset reports whether a name is that of a member of a toolset that the request has. Calls of
// members, and they alone, have a toolset_name.
func (r *run) inToolset(name string) bool {
	is := func(t *toolEntry) bool {
		return strings.HasSuffix(upstream.WithoutDate(t.kind), "_toolset") && slices.Contains(t.names, name)
	}
	return slices.ContainsFunc(r.request.tools, func(t toolEntry) bool { return is(&t) }) ||
		slices.ContainsFunc(r.request.changes, func(c toolChange) bool { return c.definition != nil && is(c.definition) })
}

// fault is the refusal of a reply whose parts do not fit together, or nil.
func (r *run) fault(t *turn) *refusal.Error {
	if t.denied != nil || len(t.calls) == 0 {
		return t.denied
	}
	rules := &r.Route.Rules
	for _, call := range t.calls {
		if !call.Direct() && !rules.Messages.ProgrammaticCalls {
			return refusal.New(refusal.PermissionDenied, "A program at the provider has called a tool, which is not allowed here. Call the tool itself.")
		}
	}
	switch {
	case !isBlank(t.text) && rules.NativeProse == upstream.Refuse:
		return refusal.New(refusal.MixedOutput, "The answer has text beside a call. Send the call alone, or answer in text without a call.")
	case len(t.calls) > 1 && (rules.Parallel == upstream.Refuse || r.request.singleCall):
		return refusal.New(refusal.MultipleCalls, "More than one call was sent in one answer. Send one call, and the next one after its result.")
	}
	return nil
}

// checkBlock fails a reply with a block that the upstream's entry does not allow: of the
// provider's own tools, or of another model (AM-13, AM-21, AM-22, AM-31). A call that the provider
// has executed cannot be taken back, and another answer of the model would not undo it.
func (r *run) checkBlock(b *wire.Block) error {
	server := ""
	if b.Call != nil {
		server = b.Call.Server
	}
	name := b.Type
	if b.Kind == wire.HostedCall && b.Call != nil && b.Type == "server_tool_use" {
		name = b.Call.Name
	}
	return r.checkHosted(b.Kind, b.Type, name, server)
}

func (r *run) checkHosted(kind wire.Kind, block, name, server string) error {
	rules := &r.Route.Rules.Messages
	allowed := true
	switch kind {
	case wire.HostedCall, wire.Hosted:
		switch {
		case block == "mcp_tool_use":
			allowed = slices.Contains(rules.MCPServers, server)
		case strings.HasPrefix(block, "mcp_tool_"):
			allowed = len(rules.MCPServers) > 0
		default:
			allowed = slices.ContainsFunc(rules.ServerTools, func(tool string) bool { return purpose(upstream.WithoutDate(tool)) == purpose(name) })
		}
	case wire.Fallback:
		allowed = rules.Fallbacks
	}
	if allowed {
		return nil
	}
	refused := refusal.New(refusal.PermissionDenied, fmt.Sprintf("The model's provider has answered with %s, which the upstream %s does not allow. Nothing of the answer was used.", parser.Quote(name), r.Route.Upstream))
	return &turns.Failure{Refused: refused}
}

// purpose is the tool that a name of a block, or of a call at the provider, belongs to: the
// provider's code execution calls bash_code_execution and the like.
func purpose(name string) string {
	name = strings.TrimSuffix(name, "_tool_result")
	switch {
	case strings.HasSuffix(name, "code_execution"), name == "container_upload":
		return "code_execution"
	case strings.HasPrefix(name, "tool_search"):
		return "tool_search"
	}
	return name
}

// requestWhole requests a reply that is not streamed.
func (r *run) requestWhole(modelCtx, ctx context.Context) (*turn, error) {
	answer, err := r.post(modelCtx, upstream.Messages)
	if err != nil {
		return nil, err
	}
	r.answered, r.mentionsKey = answer.Header, answer.MentionsKey
	reply, err := wire.Read(answer.Body, r.readerOptions())
	if err != nil {
		return nil, r.unreadable(err)
	}
	for i := range reply.Blocks {
		if err := r.checkBlock(&reply.Blocks[i]); err != nil {
			return nil, err
		}
	}
	t := newTurn(reply)
	r.hookBlocks(ctx, t)
	r.judge(ctx, t)
	return t, nil
}
