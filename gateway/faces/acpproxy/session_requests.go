package acpproxy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/refusal"
)

// checkDelegation refuses a session of an editor that runs nothing for the agent.
func (p *Proxy) checkDelegation() *jsonrpc.Error {
	offered, missing := delegated(p.editorSays())
	if len(offered) > 0 || p.options.WithoutDelegation {
		return nil
	}
	return refusedEditor(jsonrpc.CodeParams, refusal.New(refusal.PermissionDenied,
		"This client runs none of "+strings.Join(missing, ", ")+" for the agent, so that its files and commands would not be judged. "+
			"Use a client that does, or let the operator start the proxy with --require-delegation=false."))
}

// newSession passes session/new. The session is there before anything that the agent sends later.
func (p *Proxy) newSession(ctx context.Context, id jsonrpc.ID, r wire.NewSessionRequest) *jsonrpc.Error {
	if fault := p.checkDelegation(); fault != nil {
		return fault
	}
	r.Meta, r.MCPServers = nil, p.mcpServers(ctx, r.MCPServers)
	return p.pass(ctx, id, wire.MethodSessionNew, r, func(raw json.RawMessage) (any, *jsonrpc.Error) {
		answer, err := wire.Read[wire.NewSessionResponse](raw)
		if err != nil {
			return nil, unreadable(err)
		}
		s := newSession(answer.SessionID, open)
		s.cwd = r.Cwd
		var fault *jsonrpc.Error
		if answer.Modes, answer.ConfigOptions, fault = p.showModes(s, answer.Modes, answer.ConfigOptions); fault == nil {
			if refused := p.sessions.add(s); refused != nil {
				fault = refusedEditor(jsonrpc.CodeInternal, refused)
			}
		}
		if fault != nil {
			return nil, fault
		}
		return answer, nil
	})
}

// openSession passes session/load and session/resume. The agent's reports until its answer are
// history.
func (p *Proxy) openSession(ctx context.Context, id jsonrpc.ID, method string, r wire.OpenSessionRequest) *jsonrpc.Error {
	if fault := p.checkDelegation(); fault != nil {
		return fault
	}
	r.Meta, r.MCPServers = nil, p.mcpServers(ctx, r.MCPServers)
	s := newSession(r.SessionID, replaying)
	s.cwd = r.Cwd
	if refused := p.sessions.add(s); refused != nil {
		return refusedEditor(jsonrpc.CodeParams, refused)
	}
	fault := p.forwards.Pass(ctx, &forwarded{ID: id, Finish: func(raw json.RawMessage, fault *jsonrpc.Error) (any, *jsonrpc.Error) {
		var answer wire.OpenSessionResponse
		if fault != nil {
			fault = passedError(fault)
		} else if read, err := wire.Read[wire.OpenSessionResponse](raw); err != nil {
			fault = unreadable(err)
		} else {
			answer = read
			answer.Modes, answer.ConfigOptions, fault = p.showModes(s, answer.Modes, answer.ConfigOptions)
		}
		if fault != nil {
			s.close()
			p.sessions.remove(s.id)
			return nil, fault
		}
		s.opened()
		return answer, nil
	}}, method, r)
	if fault != nil {
		p.sessions.remove(s.id)
	}
	return fault
}

// mcpServers are those of a session, whatever the editor names: the gateway's, if the agent may use
// one of its tools. Agents take a server without tools for one that has failed.
func (p *Proxy) mcpServers(ctx context.Context, named []wire.MCPServer) []wire.MCPServer {
	if len(named) > 0 {
		p.options.Log.Info("the MCP servers of the client were not passed on; the session gets only the one of the gateway",
			"servers", len(named))
	}
	if p.options.Executor == nil {
		return nil
	}
	var tools []gateway.Tool
	admission, err := p.options.Executor.Kernel.Admit(ctx, p.options.Request)
	if err == nil {
		tools, err = admission.Tools()
	}
	if err != nil {
		p.options.Log.Warn("a session gets no MCP server: the gateway refused the caller", "cause", err.Error())
	}
	if !slices.ContainsFunc(tools, func(t gateway.Tool) bool { return !t.Client }) {
		return nil
	}
	return []wire.MCPServer{p.options.MCPServer}
}

// showModes filters the modes and options of a session, and refuses a session that begins in a
// mode that asks nobody. The agent is told to give it up.
func (p *Proxy) showModes(s *session, modes *wire.ModeState,
	options []wire.ConfigOption) (*wire.ModeState, []wire.ConfigOption, *jsonrpc.Error) {
	filteredModes, asks := p.modes.filterModes(modes)
	filtered, set := p.modes.filterOptions(options)
	if !asks || !set {
		if may(p.agentSays(), wire.MethodSessionClose) {
			_ = p.forwards.Pass(p.ctx, &forwarded{}, wire.MethodSessionClose, wire.SessionRequest{SessionID: s.id})
		}
		return nil, nil, refusedEditor(jsonrpc.CodeParams, refusal.New(refusal.PermissionDenied,
			"The agent begins this session in a mode in which it asks nobody. Configure it to begin in another; the operator allows one by --allow-mode."))
	}
	s.show(filteredModes, filtered)
	return filteredModes, filtered, nil
}

// endSession passes session/close and session/delete.
func (p *Proxy) endSession(ctx context.Context, id jsonrpc.ID, method string, r wire.SessionRequest) *jsonrpc.Error {
	r.Meta = nil
	s := p.sessions.get(r.SessionID)
	if s == nil {
		if method == wire.MethodSessionClose {
			return refusedEditor(wire.CodeNotFound, unknownSession())
		}
		return p.pass(ctx, id, method, r, empty)
	}
	s.cancel()
	s.setClosing(true) // whenever the agent answers
	fault := p.forwards.Pass(ctx, &forwarded{ID: id, Finish: func(raw json.RawMessage, fault *jsonrpc.Error) (any, *jsonrpc.Error) {
		if fault != nil {
			s.setClosing(false)
			return nil, passedError(fault)
		}
		p.sessions.remove(s.id)
		p.found(s, s.close()...)
		go p.releaseAll(s) // the editor is answered meanwhile
		return empty(raw)
	}}, method, r)
	if fault != nil {
		s.setClosing(false)
	}
	return fault
}

// prompt passes a prompt and begins a turn, which ends with the agent's answer.
func (p *Proxy) prompt(ctx context.Context, id jsonrpc.ID, r wire.PromptRequest) *jsonrpc.Error {
	s := p.sessions.get(r.SessionID)
	if s == nil {
		return refusedEditor(wire.CodeNotFound, unknownSession())
	}
	if !takes(p.agentSays().AgentCapabilities.PromptCapabilities, r.Prompt) {
		return badParams(&wire.Error{Pointer: "/prompt", Expected: "content that the agent takes", Found: "other content"})
	}
	r.Meta = nil
	for i := range r.Prompt {
		r.Prompt[i] = plain(r.Prompt[i])
	}
	if refused := s.begin(p.ctx); refused != nil {
		return refusedEditor(jsonrpc.CodeRequest, refused)
	}
	fault := p.forwards.Pass(ctx, &forwarded{ID: id, Cancel: s.withdraw,
		Finish: func(raw json.RawMessage, fault *jsonrpc.Error) (any, *jsonrpc.Error) {
			return p.endTurn(s, raw, fault)
		}}, wire.MethodSessionPrompt, r)
	if fault != nil {
		s.end()
	}
	return fault
}

// plain is content of the editor without any _meta.
func plain(b wire.ContentBlock) wire.ContentBlock {
	b.Meta = nil
	if b.Annotations != nil {
		annotations := *b.Annotations
		annotations.Meta, b.Annotations = nil, &annotations
	}
	if b.Resource != nil {
		resource := *b.Resource
		resource.Meta, b.Resource = nil, &resource
	}
	return b
}

// endTurn is the answer to a prompt. One that the user has cancelled is never an error.
func (p *Proxy) endTurn(s *session, raw json.RawMessage, fault *jsonrpc.Error) (any, *jsonrpc.Error) {
	t, found := s.end()
	p.closeIntroduced(s, wire.ToolDetails{Status: wire.Failed,
		Content: []wire.ToolContent{wire.TextContent("The turn ended before the call did.")}}, s.openIntroduced()...)
	for _, f := range found {
		p.record(s, f)
	}
	stopped := t.stopped
	answer, err := wire.Read[wire.PromptResponse](raw)
	readable := fault == nil && err == nil
	if len(found) > 0 && p.options.Unjudged != acp.Note && stopped == nil {
		stopped = refuseUnjudged(found[0])
		if p.options.Unjudged == acp.Kill {
			p.end(acp.ErrUnjudged)
		}
	}
	switch {
	case stopped == nil && readable:
		return answer, nil
	case t.cancelled && !t.withdrawn:
		return wire.PromptResponse{StopReason: wire.StopCancelled}, nil
	case stopped != nil:
		return nil, refusedEditor(jsonrpc.CodeInternal, stopped)
	case fault != nil:
		return nil, passedError(fault)
	}
	return nil, unreadable(err)
}

// setMode passes session/set_mode, for a mode that was shown.
func (p *Proxy) setMode(ctx context.Context, id jsonrpc.ID, r wire.SetModeRequest) *jsonrpc.Error {
	s := p.sessions.get(r.SessionID)
	switch {
	case s == nil:
		return refusedEditor(wire.CodeNotFound, unknownSession())
	case !s.offered().hasMode(r.ModeID):
		return refuseMode()
	}
	r.Meta = nil
	return p.pass(ctx, id, wire.MethodSessionSetMode, r, empty)
}

// setOption passes session/set_config_option, for a value that was shown.
func (p *Proxy) setOption(ctx context.Context, id jsonrpc.ID, r wire.SetConfigOptionRequest) *jsonrpc.Error {
	s := p.sessions.get(r.SessionID)
	switch {
	case s == nil:
		return refusedEditor(wire.CodeNotFound, unknownSession())
	case !s.offered().hasValue(r):
		return refuseMode()
	}
	r.Meta = nil
	return p.pass(ctx, id, wire.MethodSessionSetConfigOption, r, func(raw json.RawMessage) (any, *jsonrpc.Error) {
		answer, err := wire.Read[wire.SetConfigOptionResponse](raw)
		if err != nil {
			return nil, unreadable(err)
		}
		filtered, asks := p.modes.filterOptions(answer.ConfigOptions)
		s.show(nil, filtered)
		if !asks {
			p.found(s, modeFinding("an option"))
			return nil, refuseMode()
		}
		answer.ConfigOptions = filtered
		return answer, nil
	})
}
