// Package acp runs tools by the client of an ACP session: it reads and writes a file in the
// client's editor, or runs a command in a terminal of it. The face of the session puts the
// client into the context of a call; without one, the call is tool_unavailable.
//
// The arguments of a tool are the parameters of its method, by their names in the protocol, with
// two differences. A relative path starts at the project's first root. The variables of a
// command's environment are an object, in which each name stands once.
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Client runs the tools of type acp. The zero value is usable.
type Client struct{}

// Discover fails: an editor has no list of tools.
func (*Client) Discover(context.Context, tool.Server) ([]tool.Definition, error) {
	return nil, errors.New("editors have no list of tools: tools of type acp are defined in a tool file")
}

// Run runs a call by the client of its context, and asks it once.
func (*Client) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	client := delegate.ClientOf(ctx)
	if client == nil {
		return tool.Result{}, refusal.New(refusal.ToolUnavailable,
			"This tool is run by the editor of an ACP session and cannot be run here; continue without it.").
			WithCause(fmt.Errorf("%s is of type acp, and the call did not come through callgate acp", call.Tool))
	}
	if !client.Offers(call.Run.Tool) {
		return tool.Result{}, refusal.New(refusal.ToolUnavailable,
			"The editor of this session does not offer this; continue without it.").
			WithCause(fmt.Errorf("%s needs the method %s, which the client does not offer", call.Tool, call.Run.Tool))
	}
	params, err := paramsOf(call)
	if err != nil {
		return tool.Result{}, refuse.Failed(fmt.Sprintf("The arguments do not fit the editor's method (%v); correct them and call again.",
			err))
	}
	value, err := ask(delegate.WithCall(ctx, call.ID), client, call.Run.Tool, params)
	if err != nil {
		return failed(ctx, call, err)
	}
	body, err := json.Marshal(value)
	if err != nil {
		return tool.Result{Attempts: 1}, refuse.InvalidResult(call, err.Error())
	}
	if int64(len(body)) > call.Run.MaxResultBytes {
		return tool.Result{Attempts: 1}, refuse.ResultTooLarge(call)
	}
	return tool.Result{Body: body, JSON: true, Attempts: 1}, nil
}

// ask sends the request of a method, and returns the tool's result.
func ask(ctx context.Context, client delegate.Client, method string, params json.RawMessage) (any, error) {
	switch method {
	case wire.MethodReadTextFile:
		request, err := wire.Read[wire.ReadTextFileRequest](params)
		if err != nil {
			return nil, &argumentsError{err}
		}
		read, err := client.ReadTextFile(ctx, request)
		return map[string]string{"content": read.Content}, err
	case wire.MethodWriteTextFile:
		request, err := wire.Read[wire.WriteTextFileRequest](params)
		if err != nil {
			return nil, &argumentsError{err}
		}
		return struct{}{}, client.WriteTextFile(ctx, request)
	case wire.MethodTerminalCreate:
		request, err := wire.Read[wire.CreateTerminalRequest](params)
		if err != nil {
			return nil, &argumentsError{err}
		}
		ran, err := client.RunCommand(ctx, request)
		return resultOf(ran), err
	}
	return nil, fmt.Errorf("%w: no tool runs %q", delegate.ErrNotSent, method)
}

// argumentsError is a fault of arguments that the tool's schema has let pass.
type argumentsError struct{ fault error }

func (e *argumentsError) Error() string { return e.fault.Error() }

// resultOf is the result of a command as a model reads it.
func resultOf(c delegate.Command) any {
	if c.ID != "" {
		return map[string]string{"terminalId": c.ID}
	}
	return struct {
		Output    string                   `json:"output"`
		Truncated bool                     `json:"truncated"`
		Exit      *wire.TerminalExitStatus `json:"exit,omitempty"`
		TimedOut  bool                     `json:"timed_out,omitempty"`
		Cancelled bool                     `json:"cancelled,omitempty"`
	}{c.Output.Output, c.Output.Truncated, c.Output.ExitStatus, c.TimedOut, c.Cancelled}
}

// failed says what an error of a client means for the call.
func failed(ctx context.Context, call tool.Call, err error) (tool.Result, error) {
	cause := fmt.Errorf("%s: %w", call.Tool, err)
	var (
		arguments *argumentsError
		refused   *delegate.Refused
		invalid   *wire.Error
	)
	switch {
	case errors.As(err, &arguments):
		return tool.Result{}, refuse.Failed(fmt.Sprintf("The arguments do not fit the editor's method (%v); correct them and call again.",
			arguments))
	case errors.Is(err, delegate.ErrNotSent):
		return tool.Result{}, refuse.Unavailable("%w", cause)
	case errors.As(err, &refused):
		return tool.Result{Attempts: 1}, refuse.Failed(fmt.Sprintf("The editor did not do this (error %d): %s", refused.Code,
			refuse.Quote(refused.Message)))
	case errors.As(err, &invalid):
		return tool.Result{Attempts: 1}, refuse.InvalidResult(call, invalid.Error())
	case !refuse.Retryable(call.Effect):
		return tool.Result{Attempts: 1}, refuse.OutcomeUnknown("%w", cause)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return tool.Result{Attempts: 1}, refuse.TimedOut("%w", cause)
	}
	return tool.Result{Attempts: 1}, refuse.Unavailable("%w", cause)
}
