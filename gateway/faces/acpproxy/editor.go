package acpproxy

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
)

// receive passes a request of the editor to the agent, or answers with an error. It runs where the
// editor is read, so that the agent gets messages in their order.
func (p *Proxy) receive(ctx context.Context, m *jsonrpc.Message) *jsonrpc.Error {
	method, ok := wire.AgentMethod(m.Method)
	if !ok || method.Notification {
		return unknownMethod()
	}
	if fault := p.checkMethod(m.Method); fault != nil {
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

// checkMethod returns the fault of a request that may not come now, or that the agent does not
// know.
func (p *Proxy) checkMethod(method string) *jsonrpc.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case method == wire.MethodInitialize && p.initialized:
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "A connection is initialized once.")
	case method == wire.MethodInitialize:
		p.initialized = true
		close(p.opened)
	case p.server == nil:
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "A client begins with %s, and waits for its answer.", wire.MethodInitialize)
	case !may(*p.server, method):
		return unknownMethod()
	}
	return nil
}

// request passes a request whose params were read. The agent gets these params, without a _meta.
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
		return p.pass(ctx, id, method, r, read[wire.ListSessionsResponse])
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

// initialize passes initialize with the capabilities that the agent may see.
func (p *Proxy) initialize(ctx context.Context, id jsonrpc.ID, r wire.InitializeRequest) *jsonrpc.Error {
	out := toAgent(r)
	p.mu.Lock()
	p.client = out.ClientCapabilities
	p.mu.Unlock()
	if _, missing := delegated(out.ClientCapabilities); len(missing) > 0 {
		p.options.Log.Warn("the editor does not run these operations for the agent; the gateway does not see how the agent runs them itself", "missing", missing)
	}
	return p.pass(ctx, id, wire.MethodInitialize, out, func(raw json.RawMessage) (any, *jsonrpc.Error) {
		answer, err := wire.Read[wire.InitializeResponse](raw)
		if err != nil {
			return nil, unreadable(err)
		}
		if answer.ProtocolVersion != wire.Version {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "The agent speaks version %d of the protocol, and this proxy version %d.",
				answer.ProtocolVersion, wire.Version)
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
		r, err := wire.Read[wire.SessionRequest](m.Params)
		if err != nil {
			return
		}
		if s := p.sessions.get(r.SessionID); s != nil {
			s.cancel()
			_ = p.agent.NotifyContext(ctx, m.Method, wire.SessionRequest{SessionID: r.SessionID})
		}
	case wire.MethodCancelRequest:
		if id, ok := cancelledID(m.Params); ok {
			if own, cancel, waits := p.forwards.AgentID(id); waits {
				if cancel != nil {
					cancel()
				}
				_ = p.agent.NotifyContext(ctx, m.Method, cancelRequest{own})
			}
		}
	}
}
