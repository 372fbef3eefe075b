package acpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
)

// Proxy is one connection of an editor with an agent.
type Proxy struct {
	options       acp.ProxyOptions
	modes         modeRules
	editor, agent *jsonrpc.Conn
	forwards      *forwards
	sessions      sessions

	// ctx ends with the connection, with the reason.
	ctx context.Context
	end context.CancelCauseFunc

	opened chan struct{} // closed once the editor has sent initialize

	mu          sync.Mutex
	initialized bool // opened is closed
	client      wire.ClientCapabilities
	server      *wire.InitializeResponse // nil until the agent has answered
}

// editorSays are the capabilities of the editor.
func (p *Proxy) editorSays() wire.ClientCapabilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client
}

// agentSays is the agent's answer to initialize.
func (p *Proxy) agentSays() wire.InitializeResponse {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return wire.InitializeResponse{}
	}
	return *p.server
}

// call sends a request to the editor. Once ctx ends, the editor is told that nobody waits for its
// answer. The errors are those of delegate.Client.
func (p *Proxy) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if p.ctx.Err() != nil {
		return nil, delegate.ErrNotSent
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	pending, err := p.editor.Start(ctx, method, params)
	if err != nil {
		return nil, errors.Join(delegate.ErrNotSent, err)
	}
	raw, err := pending.Wait(ctx)
	var fault *jsonrpc.Error
	switch {
	case errors.As(err, &fault):
		return nil, &delegate.Refused{Code: fault.Code, Message: fault.Message}
	case err != nil && ctx.Err() != nil:
		_ = p.editor.Notify(wire.MethodCancelRequest, cancelRequest{pending.ID()}) // a failure ends the connection
	}
	return raw, err
}

// admit admits a request for a session, whose calls are one thread.
func (p *Proxy) admit(ctx context.Context, s *session) (*gateway.Admission, error) {
	request := p.options.Request
	request.Thread = s.id
	return p.options.Executor.Kernel.Admit(ctx, request)
}

// answerReader translates an answer of the agent.
type answerReader func(json.RawMessage) (any, *jsonrpc.Error)

// read is an answer that passes as it was read.
func read[T any](raw json.RawMessage) (any, *jsonrpc.Error) {
	value, err := wire.Read[T](raw)
	if err != nil {
		return nil, unreadable(err)
	}
	return value, nil
}

// empty is an answer that holds nothing.
func empty(raw json.RawMessage) (any, *jsonrpc.Error) { return read[wire.EmptyResponse](raw) }

// pass passes a request to the agent. An error of the agent passes back with its code and message
// alone.
func (p *Proxy) pass(ctx context.Context, id jsonrpc.ID, method string, params any, reader answerReader) *jsonrpc.Error {
	return p.forwards.Pass(ctx, &forwarded{ID: id, Finish: func(raw json.RawMessage, fault *jsonrpc.Error) (any, *jsonrpc.Error) {
		if fault != nil {
			return nil, passedError(fault)
		}
		return reader(raw)
	}}, method, params)
}

// cancelRequest is the params of $/cancel_request.
type cancelRequest struct {
	RequestID jsonrpc.ID `json:"requestId"`
}

// cancelledID reads the id of the request that is cancelled.
func cancelledID(params json.RawMessage) (jsonrpc.ID, bool) {
	r, err := wire.Read[wire.CancelRequestNotification](params)
	if err != nil {
		return jsonrpc.ID{}, false
	}
	return jsonrpc.ParseID(r.RequestID)
}
