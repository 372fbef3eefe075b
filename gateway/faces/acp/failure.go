package acp

import (
	"errors"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/refusal"
)

// errorData is what an error says beside its message: the refusal.
type errorData struct {
	Callgate *refusal.Error `json:"callgate"`
}

// faultOf is the error that answers a request which was refused.
func faultOf(err error) *jsonrpc.Error {
	var own *jsonrpc.Error
	if errors.As(err, &own) {
		return own
	}
	refused := refusal.From(refusal.Any, err)
	return &jsonrpc.Error{Code: codeOf(refused), Message: refused.Message, Data: errorData{refused}}
}

// codeOf is the code of the protocol for a refusal.
func codeOf(refused *refusal.Error) int {
	switch refused.Code {
	case refusal.Unauthenticated:
		return wire.CodeAuth
	case refusal.NotFound:
		return wire.CodeNotFound
	case refusal.BadRequest, refusal.BoundaryViolation, refusal.BoundReached, refusal.AgentRequired, refusal.AgentUnknown,
		refusal.ProjectRequired, refusal.WorkspaceMismatch, refusal.ProjectMismatch:
		return jsonrpc.CodeParams
	}
	return jsonrpc.CodeInternal
}

// badParams is the error of params that are not those of their method.
func badParams(err error) *jsonrpc.Error {
	return faultOf(refusal.New(refusal.BadRequest, "The params are not valid. "+err.Error()+"."))
}

// overloaded adds the refusal to the error of a request beyond the bound.
func overloaded(why jsonrpc.Refusal, e *jsonrpc.Error) *jsonrpc.Error {
	if why != jsonrpc.TooMany {
		return nil
	}
	refused := refusal.New(refusal.Overloaded, e.Message+" Wait 1000 ms, then send the same request again.")
	refused.RetryAfterMS = 1000
	return faultOf(refused)
}

// failedPrompt is the error of a prompt that failed for another reason than its model's calls.
func failedPrompt(f *turns.Failure) *jsonrpc.Error {
	if f.Upstream == nil {
		return faultOf(f.Refused)
	}
	message := "The model's provider refused the request"
	if f.Upstream.Message != "" {
		message += ": " + f.Upstream.Message
	}
	return faultOf(refusal.New(refusal.UpstreamUnavailable, message))
}
