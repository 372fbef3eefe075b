package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// call calls a tool.
func (f *Face) call(ctx context.Context, r request) *response {
	if fault := r.checkParams(r.callParams()...); fault != nil {
		return &response{fault: fault}
	}
	name, ok := r.params["name"].(string)
	if !ok {
		return &response{fault: newError(jsonrpc.CodeParams, "\"params.name\" must be the name of a tool.")}
	}
	arguments := []byte(r.Unread)
	if arguments == nil {
		arguments = []byte("{}")
	}
	dialogue, fault := f.dialogue(r)
	if fault != nil {
		return &response{fault: fault}
	}
	asker := f.newApprovalAsker(r, dialogue)
	native := f.nativeCall(r.admission, name, arguments)
	tool, err := r.admission.Tool(native.Name)
	if err != nil {
		return &response{fault: refusalError(refusal.From(refusal.Identity, err))}
	}
	if tool != nil && r.modern && r.headers != nil {
		if fault := checkMirrored(tool.AuthoredSchema, arguments, r.headers,
			f.options.Executor.Kernel.ParserOptions().MaxDepth); fault != nil {
			return &response{fault: fault}
		}
	}
	defer r.notifier.close()
	input := gateway.Input{Native: native, Dialogue: dialogue}
	o := f.elicit(ctx, r, input, asker)
	a := asker.respond(o)
	switch {
	case a != nil:
	case r.modern && o.InputRequest != nil:
		a = &response{result: inputRequired(o), failed: o.Refusal}
	default:
		a = r.callResponse(o, tool)
	}
	a.callID = o.CallID
	return a
}

// callParams are the parameters of a call. Before 2026-07-28 there were none that answer a
// tool.
func (r request) callParams() []string {
	if r.modern {
		return []string{"name", paramArguments, wire.ParamResponses, wire.ParamState}
	}
	return []string{"name", paramArguments}
}

// callResponse is the response to a call with an outcome.
func (r request) callResponse(o calls.Outcome, tool *gateway.Tool) *response {
	refused := o.Refusal
	switch {
	case o.Pending:
		refused = refusal.New(refusal.OutcomeUnknown, fmt.Sprintf(
			"The tool has taken the call and has not answered yet. Do not send the call again: what became of it is asked for by its id, %s.", o.CallID))
		o.Value, _ = wrapper.Refusal(nil, refused) // it holds text
	case refused == nil:
	case refused.Code == refusal.UnknownTool:
		return &response{fault: answersError(refused)}
	case refused.Stage == refusal.Identity, refused.Stage == refusal.Request, refused.Code == refusal.Overloaded:
		return &response{fault: refusalError(refused)}
	case r.modern && concernsAnswersOnly(refused):
		return &response{fault: answersError(refused)}
	default:
		if fault := r.missingCapabilities(refused); fault != nil {
			return &response{fault: fault}
		}
	}
	output := o.Value.Output
	if len(output) == 0 {
		return &response{fault: refusalError(refusal.From(refusal.Wrap, errors.New("a result without an output")))}
	}
	result := object{"_meta": object{metaCallID: o.CallID}}
	if o.Value.Refusal != nil {
		// No structuredContent: clients validate it with the tool's outputSchema even in an
		// error, and drop the refusal if it is invalid.
		result["isError"], result["content"] = true, []object{textBlock(string(output))}
		return &response{result: result, failed: refused}
	}
	if tool != nil && tool.Run == "mcp" {
		if blocks, structured, ok := parseContent(output, o.Wrapped); ok {
			if len(tool.OutputSchema) > 0 { // it describes the whole output
				structured = output
			}
			result["content"] = blocks
			// Before 2026-07-28 it was an object, and clients refuse anything else.
			if structured != nil && (r.modern || structured[0] == '{') {
				result["structuredContent"] = structured
			}
			return &response{result: result}
		}
	}
	content := []object{textBlock(string(output))}
	if id := o.Value.Subscription; id != "" {
		content = append(content, textBlock(fmt.Sprintf(`{"subscription":%q}`, id)))
	}
	result["content"], result["structuredContent"] = content, output
	return &response{result: result}
}

// answersError is the error of a call that its client can correct, and its model cannot.
func answersError(refused *refusal.Error) *rpcError {
	return faultOf(jsonrpc.CodeParams, http.StatusOK, refused)
}

// capabilityError is an error of a tool server that needs capabilities of the client which the
// gateway did not declare.
type capabilityError interface{ RequiredCapabilities() json.RawMessage }

// missingCapabilities returns the fault of a call whose tool needs capabilities that the
// client has not declared; nil if it has declared them.
func (r request) missingCapabilities(refused *refusal.Error) *rpcError {
	var n capabilityError
	if !r.modern || !errors.As(refused.Cause, &n) {
		return nil
	}
	required := parser.DecodeObject(n.RequiredCapabilities())
	has, _ := r.meta()[wire.MetaCapabilities].(map[string]any)
	missing := object{}
	for name, value := range required {
		if _, declared := has[name]; !declared {
			missing[name] = value
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &rpcError{&jsonrpc.Error{
		Code: wire.CodeCapability, Message: "The tool needs something of the client that it has not declared.",
		Data: object{"requiredCapabilities": missing},
	}, http.StatusBadRequest, refused}
}
