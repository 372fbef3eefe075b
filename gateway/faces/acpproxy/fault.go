package acpproxy

import (
	"fmt"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/refusal"
)

// refusedAgent is a denial as the agent gets it.
func refusedAgent(refused *refusal.Error) *jsonrpc.Error {
	return &jsonrpc.Error{Code: wire.CodeAuth, Message: refused.Message, Data: map[string]any{"callgate": refused}}
}

// refusedEditor is a denial as the editor gets it. It never has the code of a denial to the agent,
// which editors take for a request to log in.
func refusedEditor(code int, refused *refusal.Error) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: refused.Message, Data: map[string]any{"callgate": refused}}
}

// badParams is the answer to params that cannot be read.
func badParams(err error) *jsonrpc.Error {
	return refusedEditor(jsonrpc.CodeParams, refusal.New(refusal.BadRequest, fmt.Sprintf("The params cannot be read: %v.", err)))
}

// unknownMethod is the answer to a method that the protocol does not have, or that was not offered.
func unknownMethod() *jsonrpc.Error {
	return refusedEditor(jsonrpc.CodeMethod, refusal.New(refusal.MethodNotAllowed, "There is no such method here."))
}

// unreadable is the answer to a request that the agent has answered with what cannot be read.
func unreadable(err error) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "The agent's answer cannot be read: %v.", err)
}

// maxErrorText bounds the message of an error that is passed on.
const maxErrorText = 4 << 10

// passedError is an error of one side as the other gets it. Its data are dropped, unless they are
// the proxy's.
func passedError(fault *jsonrpc.Error) *jsonrpc.Error {
	if own, ok := fault.Data.(map[string]any); ok {
		return &jsonrpc.Error{Code: fault.Code, Message: fault.Message, Data: own}
	}
	return &jsonrpc.Error{Code: fault.Code, Message: text.Cut(fault.Message, maxErrorText)}
}

// passedCode is the code of an error of the editor, as the agent gets it.
func passedCode(code int) int {
	switch code {
	case wire.CodeNotFound, wire.CodeCancelled, jsonrpc.CodeParams, jsonrpc.CodeRequest:
		return code
	}
	return jsonrpc.CodeInternal
}

// unknownOutcome is the refusal of a request that the editor may have run.
func unknownOutcome() *refusal.Error {
	return refusal.New(refusal.OutcomeUnknown, "Whether this was done is not known. Do not send it again without finding out.")
}

func unknownSession() *refusal.Error {
	return refusal.New(refusal.NotFound, "There is no such session on this connection.")
}

func unknownTerminal() *refusal.Error {
	return refusal.New(refusal.NotFound, "There is no such terminal in this session: it was not created through the gate, or was released.")
}

func cancelledTurn() *refusal.Error {
	return refusal.At(refusal.Request, refusal.Canceled, "The turn was cancelled. Nothing was executed.")
}

// refuseMode is the refusal of a mode.
func refuseMode() *jsonrpc.Error {
	return refusedEditor(jsonrpc.CodeParams, refusal.New(refusal.PermissionDenied,
		"In this mode the agent asks nobody, so that nothing would be judged. Choose another mode; the operator allows one by --allow-mode."))
}
