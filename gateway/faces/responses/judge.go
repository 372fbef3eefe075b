package responses

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/responses"
)

// parts are the parts of a reply that are judged.
type parts struct {
	content   *gateway.Input  // the texts of all messages
	extraText []gateway.Input // refusals that the model wrote
	calls     []gateway.Input
	noText    bool           // the content stands for none
	stopped   bool           // that is so since the reply was cut off
	fault     *refusal.Error // of the reply as a whole
	// refuseCalls is the refusal of any call in the reply, or nil.
	refuseCalls *refusal.Error
}

// readParts divides a reply into the parts that the kernel judges.
func (r *run) readParts(t *turn) parts {
	var a parts
	cut := !t.reply.Complete() && t.reply.Status != "queued"
	var refusals []byte
	for _, item := range t.reply.Items {
		for _, part := range item.Parts {
			switch {
			case part.Refusal:
				refusals = append(refusals, part.Text...)
			case t.texts == nil:
				t.texts = slices.Clip(part.Text) // most replies have no other
			default:
				t.texts = append(t.texts, part.Text...)
			}
		}
		if item.Class == responses.Call {
			t.calls = append(t.calls, item)
			a.calls = append(a.calls, gateway.Input{Native: r.nativeCall(item), Truncated: cut || !item.Complete})
		}
	}
	called := len(a.calls) > 0
	t.dropped = called && r.Route.Rules.NativeProse == upstream.Drop
	if len(refusals) > 0 {
		a.extraText = append(a.extraText, gateway.Input{Completion: refusals, TextOnly: true, Truncated: cut})
		a.refuseCalls = refusal.New(refusal.MixedOutput, "The answer refuses and calls a tool at once. Do one of them.")
	}
	// Beside something else, no text is no part; alone, it is an answer of nothing, unless the
	// reply was cut or has items of what the model thought or the provider did.
	if blank := isBlank(t.texts); !t.dropped && (!blank || len(refusals) == 0 && !called) {
		a.content = &gateway.Input{TextOnly: true, Truncated: cut, Completion: t.texts}
		a.noText = blank && (cut || t.reply.Status == "queued" || hasOthers(t.reply))
		if a.stopped = a.noText && cut; a.noText {
			a.content.Completion = []byte(turns.NoText)
		}
	}
	a.fault = r.fault(t, &a)
	return a
}

// hasOthers reports whether a reply has items that neither the model nor the client acts by.
func hasOthers(reply *responses.Reply) bool {
	return slices.ContainsFunc(reply.Items, func(item *responses.Item) bool {
		return item.Class == responses.Hosted || item.Class == responses.Unknown || item.Class == responses.Reasoning
	})
}

// fault returns the refusal of a reply whose parts do not fit together.
func (r *run) fault(t *turn, a *parts) *refusal.Error {
	rules := &r.Route.Rules
	switch {
	case len(t.calls) == 0:
		return nil
	case a.content != nil && rules.NativeProse == upstream.Refuse:
		return refusal.New(refusal.MixedOutput, "The answer has text beside a call. Send the call alone, or answer in text without a call.")
	case len(t.calls) > 1 && (rules.Parallel == upstream.Refuse || r.request.singleCall):
		return refusal.New(refusal.MultipleCalls,
			"More than one call was sent in one answer. Send one call, and the next one after its result.")
	}
	return nil
}

// nativeCall is a call of the model under the registry's name. One of another type than its tool
// has in the request is a call of an unknown tool.
func (r *run) nativeCall(item *responses.Item) *gateway.NativeCall {
	c := &item.Call
	wire, kind := r.wireOf(c.Namespace, c.Name), kindFunction
	n := &gateway.NativeCall{Arguments: c.Payload}
	switch item.Type {
	case "function_call":
		if isBlank(c.Payload) {
			n.Arguments = []byte("{}") // what providers send for a tool without parameters (RS-33)
		}
	case "custom_tool_call":
		kind = kindCustom
		n.Arguments = append(strictjson.AppendQuote([]byte(`{"input":`), c.Payload), '}')
	default:
		kind = strings.TrimSuffix(item.Type, "_call")
		wire = fixedNames[kind]
		if c.Actions {
			n.Arguments = slices.Concat([]byte(`{"actions":`), c.Payload, []byte{'}'})
		}
	}
	n.Name, n.Wire = r.RegistryName(wire), wire
	known, named := r.kinds[wire]
	if (kind == kindFunction || kind == kindCustom) && !r.isNamedSo(wire, c) {
		n.Name = noTool(item)
		return n
	}
	if known == "computer_use_preview" {
		known = "computer"
	}
	if named && known != kind || !named && kind != kindFunction || kind == "computer" && !r.isEnforced() {
		n.Name = noTool(item)
	}
	return n
}

// noTool is the name of a call that is of no tool of the request. No registry can have it.
func noTool(item *responses.Item) string { return item.Type + ":" + item.Call.Name }

// isNamedSo reports whether a call has the namespace and the name of the tool that they stand for
// together. Another division of the same letters is another tool to the client, and a client that
// does not know namespaces goes by the name alone. A tool that was loaded by a search may have its own
// name as its namespace.
func (r *run) isNamedSo(wire string, c *responses.ItemCall) bool {
	namespace := r.namespaceOf[wire]
	return c.Namespace == namespace || namespace == "" && c.Namespace == c.Name
}

// judge judges a reply. A relay, where there is one, has judged its text so far. denied is the refusal
// of a reply that hooks deny for what is beside its texts, or nil.
func (r *run) judge(ctx context.Context, reply *responses.Reply, seen *relay, denied *refusal.Error) *turn {
	t := &turn{reply: reply}
	a := r.readParts(t)
	if a.fault == nil {
		a.fault = denied
	}
	t.text, t.textInputs = a.content != nil, len(a.extraText)
	if t.text {
		t.textInputs++
	}
	extra := slices.Concat(a.extraText, a.calls)
	t.inputs = extra
	if t.text {
		t.inputs = append([]gateway.Input{*a.content}, extra...)
	}
	if seen != nil {
		t.sent = seen.sent
		if seen.stream != nil && t.text && !a.noText && a.fault == nil && (a.refuseCalls == nil || len(a.calls) == 0) {
			t.decision = seen.close(ctx, t.texts, a.content.Truncated, extra...)
			return t
		}
		seen.stream = nil // the text is judged here, whole
	}
	constraints := r.AnswerConstraints(len(t.calls) > 0, a.stopped)
	constraints.RefuseAll = a.fault
	if a.refuseCalls != nil {
		constraints.RefuseCall = a.refuseCalls
	}
	t.decision = r.Admission.WithConstraints(constraints).Judge(ctx, r.Mode, t.inputs...)
	t.takeHooked()
	return t
}

// isBlank reports whether a text is nothing but JSON's white space.
func isBlank(text []byte) bool { return len(bytes.TrimLeft(text, " \t\r\n")) == 0 }

// Input is an input of the last turn's decision, as the model wrote it.
func (r *run) Input(i int) []byte {
	if i >= len(r.last.inputs) {
		return nil
	}
	if n := r.last.inputs[i].Native; n != nil {
		return n.Arguments
	}
	return r.last.inputs[i].Completion
}

// asTurn is a turn for the loop.
func (r *run) asTurn(t *turn) *turns.Turn {
	usage := t.reply.Usage
	if usage != nil && !rawjson.HoldsNoCall(usage) {
		usage = nil
	}
	final := t.sent
	for _, item := range t.calls {
		// Its result is a picture: no refusal can be told to the model.
		final = final || item.Type == "computer_call"
	}
	tokens := tokensOf(t.reply)
	if tokens > 0 { // 0 fails a run with a bound of tokens
		tokens = turns.SaturatingAdd(tokens, r.approvedTokens)
	}
	r.approvedTokens = 0
	return &turns.Turn{
		Decisions: []*gateway.Decision{t.decision}, Final: final, Shown: t.sent, Usage: usage,
		Tokens: tokens,
	}
}

// tokensOf is how many tokens a reply has taken; 0 where the provider does not say.
func tokensOf(reply *responses.Reply) int64 {
	return max(reply.TotalTokens, turns.SaturatingAdd(reply.InputTokens, reply.OutputTokens))
}
