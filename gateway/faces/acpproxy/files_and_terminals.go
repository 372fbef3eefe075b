package acpproxy

import (
	"context"
	"errors"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// serve answers a request of the agent.
func (p *Proxy) serve(ctx context.Context, m *jsonrpc.Message) (any, *jsonrpc.Error) {
	method, ok := wire.ClientMethod(m.Method)
	if !ok || method.Notification {
		return nil, unknownMethod()
	}
	params, err := method.ReadParams(m.Params)
	if err != nil {
		return nil, badParams(err)
	}
	switch r := params.(type) {
	case wire.ReadTextFileRequest:
		if err := checkPaths("/path", r.Path); err != nil {
			return nil, badParams(err)
		}
		return p.act(ctx, m.Method, r.SessionID,
			&request{tool: toolRead, path: r.Path, arguments: fileArguments{Path: r.Path, Line: r.Line, Limit: r.Limit}})
	case wire.WriteTextFileRequest:
		if err := checkPaths("/path", r.Path); err != nil {
			return nil, badParams(err)
		}
		return p.act(ctx, m.Method, r.SessionID,
			&request{tool: toolWrite, path: r.Path, arguments: fileArguments{Path: r.Path, Content: &r.Content}})
	case wire.CreateTerminalRequest:
		if err := checkPaths("/cwd", strings.TrimSuffix(r.Cwd, "/")); err != nil {
			return nil, badParams(err)
		}
		return p.act(ctx, m.Method, r.SessionID, &request{tool: toolTerminal, arguments: terminalArguments(r)})
	case wire.TerminalRequest:
		return p.terminal(ctx, method, r)
	case wire.RequestPermissionRequest:
		return p.permission(ctx, r)
	}
	return nil, unknownMethod()
}

// act judges a request for a file or a terminal and lets the editor run it.
func (p *Proxy) act(ctx context.Context, method, sessionID string, r *request) (any, *jsonrpc.Error) {
	if !offers(p.editorSays(), method) {
		return nil, unknownMethod()
	}
	s := p.sessions.get(sessionID)
	if s == nil {
		return nil, refusedAgent(unknownSession())
	}
	ctx, leave, refused := s.enter(ctx, method)
	if refused != nil {
		s.judged(method, r.path, "", true)
		return nil, refusedAgent(refused)
	}
	defer leave()
	r.method, r.session, r.proxy = method, s, p
	refused = p.execute(ctx, r)
	answer, fault := r.take()
	if refused == nil && answer == nil {
		refused = unknownOutcome()
	}
	terminal := ""
	if created, ok := answer.(wire.CreateTerminalResponse); ok {
		terminal = created.TerminalID
		if refused == nil && !s.addTerminal(terminal) {
			refused = unknownSession()
		}
		if refused != nil {
			p.release(s.id, terminal)
		}
	}
	s.judged(method, r.path, terminal, refused != nil)
	r.close(refused, terminal)
	switch {
	case refused != nil && fault != nil:
		// The code tells the agent, for instance, that there is no such file.
		return nil, &jsonrpc.Error{Code: passedCode(fault.Code), Message: text.Cut(fault.Message, maxErrorText),
			Data: map[string]any{"callgate": refused}}
	case refused != nil:
		return nil, refusedAgent(refused)
	}
	return answer, nil
}

// execute judges a request as a call of its tool, and executes it. It returns why there is no
// answer; nil where there is one.
func (p *Proxy) execute(ctx context.Context, r *request) (refused *refusal.Error) {
	defer safe.Catch(func(panicked error) { refused = refusal.From(refusal.Execute, panicked) })
	if p.options.Executor == nil {
		return refusal.From(refusal.Identity, errors.New("there is no executor"))
	}
	admission, err := p.admit(ctx, r.session)
	if err != nil {
		return refusal.From(refusal.Identity, err)
	}
	if command, ok := r.arguments.(commandArguments); ok && command.Cwd == "" {
		// Its relative words start in the folder of the session, and are judged from the first root: where these
		// differ, the call says so.
		if bounds, err := admission.Bounds(); err == nil && !bounds.StartsAt(r.session.cwd) {
			command.Cwd = r.session.cwd
			r.arguments = command
		}
	}
	arguments, err := wrapper.Marshal(r.arguments)
	if err != nil {
		return refusal.From(refusal.Parse, err)
	}
	input := gateway.Input{Native: &gateway.NativeCall{Name: r.tool, Arguments: arguments}, Dialogue: answersRules()}
	o := p.options.Executor.HandleAdmittedWaiting(delegate.WithClient(ctx, r), admission, input, "", calls.Wait{Caller: r.caller()})
	switch {
	case o.Refusal != nil:
		return o.Refusal
	case o.Value.Refusal != nil || o.Pending:
		return unknownOutcome()
	}
	r.hooked(o.Value.Output)
	return nil
}

// terminal passes a request for a terminal that was created through the gate.
func (p *Proxy) terminal(ctx context.Context, method wire.Method, r wire.TerminalRequest) (any, *jsonrpc.Error) {
	s := p.sessions.get(r.SessionID)
	if s == nil {
		return nil, refusedAgent(unknownSession())
	}
	ctx, leave, refused := s.enter(ctx, method.Name)
	if refused != nil {
		return nil, refusedAgent(refused)
	}
	defer leave()
	if !s.hasTerminal(r.TerminalID) {
		return nil, refusedAgent(unknownTerminal())
	}
	if method.Name == wire.MethodTerminalRelease {
		s.dropTerminal(r.TerminalID) // whatever the editor says of it
	}
	r.Meta = nil
	raw, err := p.call(ctx, method.Name, r)
	if err == nil {
		var answer any
		if answer, err = method.ReadResult(raw); err == nil {
			answer, refused = p.hookTerminal(ctx, s, withoutMeta(answer))
			if refused != nil {
				return nil, refusedAgent(refused)
			}
			return answer, nil
		}
	}
	var fault *delegate.Refused
	switch {
	case errors.As(err, &fault):
		return nil, &jsonrpc.Error{Code: passedCode(fault.Code), Message: text.Cut(fault.Message, maxErrorText)}
	case ctx.Err() != nil:
		return nil, jsonrpc.Errorf(wire.CodeCancelled, "The request was cancelled.")
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "The client has not answered.")
}

// withoutMeta is an answer of the editor without its _meta.
func withoutMeta(answer any) any {
	switch a := answer.(type) {
	case wire.ReadTextFileResponse:
		a.Meta = nil
		return a
	case wire.CreateTerminalResponse:
		a.Meta = nil
		return a
	case wire.TerminalOutputResponse:
		a.Meta = nil
		return a
	case wire.TerminalExitStatus:
		a.Meta = nil
		return a
	}
	return wire.EmptyResponse{}
}

// Offers reports whether the editor runs a method.
func (r *request) Offers(method string) bool { return offers(r.proxy.editorSays(), method) }

// ReadTextFile lets the editor read a file.
func (r *request) ReadTextFile(ctx context.Context, params wire.ReadTextFileRequest) (wire.ReadTextFileResponse, error) {
	params.SessionID = r.session.id
	return run[wire.ReadTextFileResponse](ctx, r, wire.MethodReadTextFile, params)
}

// WriteTextFile lets the editor write a file.
func (r *request) WriteTextFile(ctx context.Context, params wire.WriteTextFileRequest) error {
	params.SessionID = r.session.id
	_, err := run[wire.EmptyResponse](ctx, r, wire.MethodWriteTextFile, params)
	return err
}

// RunCommand lets the editor create a terminal, which stays with the agent.
func (r *request) RunCommand(ctx context.Context, params wire.CreateTerminalRequest) (delegate.Command, error) {
	params.SessionID = r.session.id
	created, err := run[wire.CreateTerminalResponse](ctx, r, wire.MethodTerminalCreate, params)
	return delegate.Command{ID: created.TerminalID}, err
}

// run sends a request to the editor and keeps its answer for the agent.
func run[T any](ctx context.Context, r *request, method string, params any) (answer T, err error) {
	raw, err := r.proxy.call(ctx, method, params)
	if err != nil {
		var fault *delegate.Refused
		errors.As(err, &fault)
		r.set(nil, fault)
		return answer, err
	}
	if answer, err = wire.Read[T](raw); err != nil {
		return answer, err
	}
	if created, ok := any(answer).(wire.CreateTerminalResponse); !r.set(withoutMeta(answer), nil) && ok {
		r.proxy.release(r.session.id, created.TerminalID)
	}
	return answer, nil
}
