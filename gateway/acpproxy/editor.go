package acpproxy

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/callgate/callgate/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/refusal"
)

// receive passes a request of the editor to the agent, or answers with an error. It runs where the
// editor is read, so that the agent gets messages in their order.
func (p *Proxy) receive(ctx context.Context, m *jsonrpc.Message) *jsonrpc.Error {
	method, ok := wire.AgentMethod(m.Method)
	if !ok || method.Notification {
		return unknownMethod()
	}
	if fault := p.checkOpening(m.Method); fault != nil {
		return fault
	}
	params, err := method.ReadParams(m.Params)
	if err != nil {
		return badParams(err)
	}
	fault := p.request(ctx, m.ID, m.Method, params)
	if fault == nil {
		fault = jsonrpc.NoAnswer // until the agent has answered
	}
	return fault
}

// checkOpening returns the fault of a request that may not come now, or that the agent does not
// know.
func (p *Proxy) checkOpening(method string) *jsonrpc.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case method == wire.MethodInitialize && p.initialized:
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "A connection is initialized once.")
	case method == wire.MethodInitialize:
		p.initialized = true
	case p.server == nil:
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "A client begins with %s, and waits for its answer.", wire.MethodInitialize)
	case !may(*p.server, method):
		return unknownMethod()
	}
	return nil
}

// request passes a request whose params were read. What passes are these params, without a _meta.
func (p *Proxy) request(ctx context.Context, id jsonrpc.ID, method string, params any) *jsonrpc.Error {
	switch r := params.(type) {
	case wire.InitializeRequest:
		return p.initialize(ctx, id, r)
	case wire.AuthenticateRequest:
		r.Meta = nil
		if !slices.ContainsFunc(p.agentSays().AuthMethods, func(m wire.AuthMethod) bool { return m.ID == r.MethodID }) {
			return badParams(&wire.Error{Pointer: "/methodId", Expected: "one of the methods that were offered", Found: "another"})
		}
		return p.pass(ctx, id, method, r, empty)
	case wire.LogoutRequest:
		r.Meta = nil
		return p.pass(ctx, id, method, r, empty)
	case wire.ListSessionsRequest:
		r.Meta = nil
		return p.pass(ctx, id, method, r, read(wire.ReadListSessionsResponse))
	case wire.NewSessionRequest:
		return p.newSession(ctx, id, r)
	case wire.OpenSessionRequest:
		return p.openSession(ctx, id, method, r)
	case wire.SessionRequest:
		return p.endSession(ctx, id, method, r)
	case wire.PromptRequest:
		return p.prompt(ctx, id, r)
	case wire.SetModeRequest:
		return p.setMode(ctx, id, r)
	case wire.SetConfigOptionRequest:
		return p.setOption(ctx, id, r)
	}
	return unknownMethod()
}

// answerReader translates an answer of the agent.
type answerReader func(json.RawMessage) (any, *jsonrpc.Error)

// read is an answer that passes as it was read.
func read[T any](reader func(json.RawMessage) (T, error)) answerReader {
	return func(raw json.RawMessage) (any, *jsonrpc.Error) {
		value, err := reader(raw)
		if err != nil {
			return nil, unreadable(err)
		}
		return value, nil
	}
}

// empty is an answer that holds nothing.
func empty(raw json.RawMessage) (any, *jsonrpc.Error) { return read(wire.ReadEmptyResponse)(raw) }

// unreadable is the answer to a request that the agent has answered with what cannot be read.
func unreadable(err error) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "The agent's answer cannot be read: %v.", err)
}

// pass passes a request to the agent. An error of the agent passes back with its code and message
// alone.
func (p *Proxy) pass(ctx context.Context, id jsonrpc.ID, method string, params any, reader answerReader) *jsonrpc.Error {
	return p.forwards.pass(ctx, &forwarded{id: id, finish: func(raw json.RawMessage, fault *jsonrpc.Error) (any, *jsonrpc.Error) {
		if fault != nil {
			return nil, passedError(fault)
		}
		return reader(raw)
	}}, method, params)
}

// maxErrorText bounds the message of an error that is passed on.
const maxErrorText = 4 << 10

// passedError is an error of one side as the other gets it. Its data are dropped, unless they are
// the proxy's.
func passedError(fault *jsonrpc.Error) *jsonrpc.Error {
	if own, ok := fault.Data.(map[string]any); ok {
		return &jsonrpc.Error{Code: fault.Code, Message: fault.Message, Data: own}
	}
	return &jsonrpc.Error{Code: fault.Code, Message: cut(fault.Message, maxErrorText)}
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

// editorSays are the capabilities of the editor.
func (p *Proxy) editorSays() wire.ClientCapabilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client
}

// initialize passes initialize with the capabilities that the agent may see.
func (p *Proxy) initialize(ctx context.Context, id jsonrpc.ID, r wire.InitializeRequest) *jsonrpc.Error {
	out := toAgent(r)
	p.mu.Lock()
	p.client = out.ClientCapabilities
	p.mu.Unlock()
	if _, missing := delegated(out.ClientCapabilities); len(missing) > 0 {
		p.options.Log.Warn("the editor does not run these for the agent: its own access to files and commands is not seen", "missing", missing)
	}
	return p.pass(ctx, id, wire.MethodInitialize, out, func(raw json.RawMessage) (any, *jsonrpc.Error) {
		answer, err := wire.ReadInitializeResponse(raw)
		if err != nil {
			return nil, unreadable(err)
		}
		if answer.ProtocolVersion != wire.Version {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "The agent speaks version %d of the protocol, and this proxy version %d.", answer.ProtocolVersion, wire.Version)
		}
		answer = toEditor(answer)
		p.mu.Lock()
		p.server = &answer
		p.mu.Unlock()
		return answer, nil
	})
}

// notified takes a notification of the editor.
func (p *Proxy) notified(ctx context.Context, m *jsonrpc.Message) {
	switch m.Method {
	case wire.MethodSessionCancel:
		r, err := wire.ReadSessionRequest(m.Params)
		if err != nil {
			return
		}
		if s := p.sessions.get(r.SessionID); s != nil {
			s.cancel()
			_ = p.agent.NotifyContext(ctx, m.Method, wire.SessionRequest{SessionID: r.SessionID})
		}
	case wire.MethodCancelRequest:
		if id, ok := cancelledID(m.Params); ok {
			if own, cancel, waits := p.forwards.agentID(id); waits {
				if cancel != nil {
					cancel()
				}
				_ = p.agent.NotifyContext(ctx, m.Method, cancelRequest{own})
			}
		}
	}
}

// cancelRequest is the params of $/cancel_request.
type cancelRequest struct {
	RequestID jsonrpc.ID `json:"requestId"`
}

// cancelledID reads the id of the request that is cancelled.
func cancelledID(params json.RawMessage) (jsonrpc.ID, bool) {
	r, err := wire.ReadCancelRequestNotification(params)
	if err != nil {
		return jsonrpc.ID{}, false
	}
	return jsonrpc.ParseID(r.RequestID)
}

// refuseMode is the refusal of a mode.
func refuseMode() *jsonrpc.Error {
	return refusedEditor(jsonrpc.CodeParams, refusal.New(refusal.PermissionDenied,
		"In this mode the agent asks nobody, so that nothing would be judged. Choose another mode; the operator allows one by --allow-mode."))
}
