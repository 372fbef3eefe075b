package acpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/callgate/callgate/acp/delegate"
	"github.com/callgate/callgate/acp/wire"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// The tools that the agent's requests for files and terminals become.
const (
	toolRead     = "acp.fs.read"
	toolWrite    = "acp.fs.write"
	toolTerminal = "acp.terminal.create"
)

// serve answers a request of the agent.
func (p *Proxy) serve(ctx context.Context, m *jsonrpc.Message) (any, *jsonrpc.Error) {
	method, ok := wire.ClientMethod(m.Method)
	if !ok || method.Notification || m.Method == wire.MethodElicitationCreate { // which was not offered
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
		return p.act(ctx, m.Method, r.SessionID, &request{tool: toolRead, path: r.Path, arguments: fileArguments{Path: r.Path, Line: r.Line, Limit: r.Limit}})
	case wire.WriteTextFileRequest:
		if err := checkPaths("/path", r.Path); err != nil {
			return nil, badParams(err)
		}
		return p.act(ctx, m.Method, r.SessionID, &request{tool: toolWrite, path: r.Path, arguments: fileArguments{Path: r.Path, Content: &r.Content}})
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

// request is a request of the agent for a file or a terminal.
type request struct {
	tool      string
	path      string // of a file
	arguments any
	session   *session
	proxy     *Proxy

	mu sync.Mutex
	// answer is the editor's, and fault the error that it answered with. Over says that nobody
	// waits for them any more.
	answer any
	fault  *delegate.Refused
	over   bool
}

// take ends the waiting for the editor, and returns its answer.
func (r *request) take() (any, *delegate.Refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.answer, r.fault
}

// set keeps the answer of the editor. It reports whether somebody waits for it.
func (r *request) set(answer any, fault *delegate.Refused) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.answer, r.fault = answer, fault
	}
	return !r.over
}

// fileArguments are the arguments of acp.fs.read and acp.fs.write.
type fileArguments struct {
	Path    string  `json:"path"`
	Line    *uint32 `json:"line,omitempty"`
	Limit   *uint32 `json:"limit,omitempty"`
	Content *string `json:"content,omitempty"`
}

// commandArguments are the arguments of acp.terminal.create.
type commandArguments struct {
	Command         string            `json:"command"`
	Args            []string          `json:"args,omitempty"`
	Env             map[string]string `json:"env,omitempty"`
	Cwd             string            `json:"cwd,omitempty"`
	OutputByteLimit *uint64           `json:"outputByteLimit,omitempty"`
}

func terminalArguments(r wire.CreateTerminalRequest) commandArguments {
	a := commandArguments{Command: r.Command, Args: r.Args, Cwd: r.Cwd, OutputByteLimit: r.OutputByteLimit}
	if len(r.Env) > 0 {
		a.Env = map[string]string{}
		for _, v := range r.Env {
			a.Env[v.Name] = v.Value
		}
	}
	return a
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
	r.session, r.proxy = s, p
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
	switch {
	case refused != nil && fault != nil:
		// The code tells the agent, for instance, that there is no such file.
		return nil, &jsonrpc.Error{Code: passedCode(fault.Code), Message: cut(fault.Message, maxErrorText), Data: map[string]any{"callgate": refused}}
	case refused != nil:
		return nil, refusedAgent(refused)
	}
	return answer, nil
}

// unknownOutcome is the refusal of a request that the editor may have run.
func unknownOutcome() *refusal.Error {
	return refusal.New(refusal.OutcomeUnknown, "Whether this was done is not known. Do not send it again without finding out.")
}

// passedCode is the code of an error of the editor, as the agent gets it.
func passedCode(code int) int {
	switch code {
	case wire.CodeNotFound, wire.CodeCancelled, jsonrpc.CodeParams, jsonrpc.CodeRequest:
		return code
	}
	return jsonrpc.CodeInternal
}

// execute judges a request as a call of its tool, and executes it. It returns why there is no
// answer; nil where there is one.
func (p *Proxy) execute(ctx context.Context, r *request) (refused *refusal.Error) {
	defer func() {
		if caught := recover(); caught != nil {
			refused = refusal.From(refusal.Execute, safe.PanicError(caught))
		}
	}()
	if p.options.Executor == nil {
		return refusal.From(refusal.Identity, errors.New("there is no executor"))
	}
	arguments, err := wrapper.Marshal(r.arguments)
	if err != nil {
		return refusal.From(refusal.Parse, err)
	}
	admission, err := p.admit(ctx, r.session)
	if err != nil {
		return refusal.From(refusal.Identity, err)
	}
	input := gateway.Input{Native: &gateway.NativeCall{Name: r.tool, Arguments: arguments}, Dialogue: answersRules()}
	o := p.options.Executor.HandleAdmittedWaiting(delegate.WithClient(ctx, r), admission, input, "", calls.Wait{Caller: p.asker(r.session, r.toolCall())})
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
		return nil, &jsonrpc.Error{Code: passedCode(fault.Code), Message: cut(fault.Message, maxErrorText)}
	case ctx.Err() != nil:
		return nil, jsonrpc.Errorf(wire.CodeCancelled, "The request was cancelled.")
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "The client has not answered.")
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
	return run(ctx, r, wire.MethodReadTextFile, params, wire.ReadReadTextFileResponse)
}

// WriteTextFile lets the editor write a file.
func (r *request) WriteTextFile(ctx context.Context, params wire.WriteTextFileRequest) error {
	params.SessionID = r.session.id
	_, err := run(ctx, r, wire.MethodWriteTextFile, params, wire.ReadEmptyResponse)
	return err
}

// RunCommand lets the editor create a terminal, which stays with the agent.
func (r *request) RunCommand(ctx context.Context, params wire.CreateTerminalRequest) (delegate.Command, error) {
	params.SessionID = r.session.id
	created, err := run(ctx, r, wire.MethodTerminalCreate, params, wire.ReadCreateTerminalResponse)
	return delegate.Command{ID: created.TerminalID}, err
}

// run sends a request to the editor and keeps its answer for the agent.
func run[T any](ctx context.Context, r *request, method string, params any, read func(json.RawMessage) (T, error)) (answer T, err error) {
	raw, err := r.proxy.call(ctx, method, params)
	if err != nil {
		var fault *delegate.Refused
		errors.As(err, &fault)
		r.set(nil, fault)
		return answer, err
	}
	if answer, err = read(raw); err != nil {
		return answer, err
	}
	if created, ok := any(answer).(wire.CreateTerminalResponse); !r.set(withoutMeta(answer), nil) && ok {
		r.proxy.release(r.session.id, created.TerminalID)
	}
	return answer, nil
}
