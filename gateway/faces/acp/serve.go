package acp

import (
	"context"
	"encoding/json"
	"io"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/parser"
)

// Serve serves one client, a message a line, until its input ends or ctx does, and returns once
// everything was answered. The request identifies the client; its inputs are ignored. From dispatch
// on a call does not end with ctx.
func (f *Face) Serve(ctx context.Context, request gateway.Request, in io.Reader, out io.Writer) error {
	c := newConnection(f, request, in, out)
	return c.conn.Run(ctx)
}

// maxFrame bounds a message of the client: more than the content of any prompt that a conversation
// takes.
const maxFrame = 16 << 20

func newConnection(f *Face, request gateway.Request, in io.Reader, out io.Writer) *connection {
	request.AsksCaller = true // by session/request_permission
	c := &connection{face: f, request: request, sessions: map[string]*session{}, begun: map[*jsonrpc.Message]*exchange{}}
	c.conn = jsonrpc.New(jsonrpc.Options{
		In: in, Out: out, MaxFrame: maxFrame, Receive: c.receive, Handle: c.handle, Answered: c.answered, Notify: c.notify,
		Refuse:   overloaded,
		Panicked: func(err error) { f.options.Logger.Error("an ACP request failed", "cause", err.Error()) },
	})
	return c
}

// receive looks at a request in the order of the messages: what comes behind initialize and
// session/prompt finds them begun.
func (c *connection) receive(ctx context.Context, m *jsonrpc.Message) *jsonrpc.Error {
	if m.Method == wire.MethodInitialize {
		return c.initialize(m)
	}
	c.mu.Lock()
	initialized := c.initialized
	c.mu.Unlock()
	if !initialized {
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "A client begins with %s.", wire.MethodInitialize)
	}
	if m.Method == wire.MethodSessionPrompt {
		return c.beginPrompt(ctx, m)
	}
	return nil
}

// initialize takes the capabilities of the client.
func (c *connection) initialize(m *jsonrpc.Message) *jsonrpc.Error {
	params, err := wire.Read[wire.InitializeRequest](m.Params)
	if err != nil {
		return badParams(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.initialized {
		return jsonrpc.Errorf(jsonrpc.CodeRequest, "The connection is initialized already.")
	}
	c.initialized, c.client = true, params.ClientCapabilities
	return nil
}

// initializeResult is the answer to initialize. Another version than ours is answered with ours.
func (c *connection) initializeResult() wire.InitializeResponse {
	there := &wire.Capability{}
	return wire.InitializeResponse{
		ProtocolVersion: wire.Version,
		AgentCapabilities: wire.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: wire.PromptCapabilities{Image: c.face.options.Images, EmbeddedContext: true},
			SessionCapabilities: wire.SessionCapabilities{
				List: there, Delete: there, AdditionalDirectories: there, Resume: there, Close: there,
			},
		},
		AgentInfo: &wire.Implementation{Name: "callgate", Title: "Callgate", Version: c.face.options.Version},
	}
}

// handle answers a request.
func (c *connection) handle(ctx context.Context, m *jsonrpc.Message) (any, *jsonrpc.Error) {
	switch m.Method {
	case wire.MethodInitialize:
		return c.initializeResult(), nil
	case wire.MethodSessionNew:
		return answer(ctx, c, m, wire.Read[wire.NewSessionRequest], c.newSession)
	case wire.MethodSessionLoad:
		return answer(ctx, c, m, wire.ReadLoadSessionRequest, c.loadSession)
	case wire.MethodSessionResume:
		return answer(ctx, c, m, wire.Read[wire.OpenSessionRequest], c.resumeSession)
	case wire.MethodSessionList:
		return answer(ctx, c, m, wire.Read[wire.ListSessionsRequest], c.listSessions)
	case wire.MethodSessionDelete:
		return answer(ctx, c, m, wire.Read[wire.SessionRequest], c.deleteSession)
	case wire.MethodSessionClose:
		return answer(ctx, c, m, wire.Read[wire.SessionRequest], c.closeSession)
	case wire.MethodSessionPrompt:
		return c.prompt(m)
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethod, "There is no method %s here.", parser.Quote(m.Method))
}

// answer reads the params of a request, and answers it.
func answer[P, R any](ctx context.Context, c *connection, m *jsonrpc.Message, read func(json.RawMessage) (P, error),
	do func(context.Context, P) (R, error)) (any, *jsonrpc.Error) {
	params, err := read(m.Params)
	if err != nil {
		return nil, badParams(err)
	}
	result, err := do(ctx, params)
	if err != nil {
		c.logInternal(m, err)
		return nil, faultOf(err)
	}
	return result, nil
}

// notify takes a notification. One that is not known, or not a notification of the protocol, is
// passed over.
func (c *connection) notify(_ context.Context, m *jsonrpc.Message) {
	switch m.Method {
	case wire.MethodSessionCancel:
		params, err := wire.Read[wire.SessionRequest](m.Params)
		if err != nil {
			return
		}
		if s := c.session(params.SessionID); s != nil {
			s.cancel()
		}
	case wire.MethodCancelRequest:
		params, err := wire.Read[wire.CancelRequestNotification](m.Params)
		if err != nil {
			return
		}
		if id, ok := jsonrpc.ParseID(params.RequestID); ok {
			c.conn.Cancel(id)
		}
	}
}
