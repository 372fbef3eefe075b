package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/callgate/callgate/acp/wire"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// maxFrame bounds a message of the client: more than the content of any prompt that a conversation
// takes.
const maxFrame = 16 << 20

// connection is that with one client.
type connection struct {
	face    *Face
	request gateway.Request
	conn    *jsonrpc.Conn

	mu          sync.Mutex
	initialized bool
	client      wire.ClientCapabilities
	sessions    map[string]*session            // that are open, by id
	begun       map[*jsonrpc.Message]*exchange // prompts that were received and are not answered
}

func newConnection(f *Face, request gateway.Request, in io.Reader, out io.Writer) *connection {
	request.AsksCaller = true // by session/request_permission
	c := &connection{face: f, request: request, sessions: map[string]*session{}, begun: map[*jsonrpc.Message]*exchange{}}
	c.conn = jsonrpc.New(jsonrpc.Options{
		In: in, Out: out, MaxFrame: maxFrame, Receive: c.receive, Handle: c.handle, Answered: c.answered, Notify: c.notify, Refuse: overloaded,
		Panicked: func(err error) { f.options.Logger.Error("a request failed", "cause", err.Error()) },
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
	params, err := wire.ReadInitializeRequest(m.Params)
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
		return answer(ctx, c, m, wire.ReadNewSessionRequest, c.newSession)
	case wire.MethodSessionLoad:
		return answer(ctx, c, m, wire.ReadLoadSessionRequest, c.loadSession)
	case wire.MethodSessionResume:
		return answer(ctx, c, m, wire.ReadResumeSessionRequest, c.resumeSession)
	case wire.MethodSessionList:
		return answer(ctx, c, m, wire.ReadListSessionsRequest, c.listSessions)
	case wire.MethodSessionDelete:
		return answer(ctx, c, m, wire.ReadSessionRequest, c.deleteSession)
	case wire.MethodSessionClose:
		return answer(ctx, c, m, wire.ReadSessionRequest, c.closeSession)
	case wire.MethodSessionPrompt:
		return c.prompt(m)
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethod, "There is no method %s here.", parser.Quote(m.Method))
}

// answer reads the params of a request, and answers it.
func answer[P, R any](ctx context.Context, c *connection, m *jsonrpc.Message, read func(json.RawMessage) (P, error), do func(context.Context, P) (R, error)) (any, *jsonrpc.Error) {
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

// logInternal logs why a request failed, where that is no fault of the client.
func (c *connection) logInternal(m *jsonrpc.Message, err error) {
	var own *jsonrpc.Error
	if refused := refusal.From(refusal.Any, err); !errors.As(err, &own) && refused.Code == refusal.Internal {
		c.face.options.Logger.Error("a request failed", "method", m.Method, "cause", errors.Join(refused.Cause, err).Error())
	}
}

// notify takes a notification. One that is not known, or not a notification of the protocol, is
// passed over.
func (c *connection) notify(_ context.Context, m *jsonrpc.Message) {
	switch m.Method {
	case wire.MethodSessionCancel:
		params, err := wire.ReadSessionRequest(m.Params)
		if err != nil {
			return
		}
		if s := c.session(params.SessionID); s != nil {
			s.cancel()
		}
	case wire.MethodCancelRequest:
		params, err := wire.ReadCancelRequestNotification(m.Params)
		if err != nil {
			return
		}
		if id, ok := jsonrpc.ParseID(params.RequestID); ok {
			c.conn.Cancel(id)
		}
	}
}

// session is an open session; nil if there is none of that id.
func (c *connection) session(id string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}

// openSession is an open session, or the error of a request that names another.
func (c *connection) openSession(id string) (*session, error) {
	if s := c.session(id); s != nil {
		return s, nil
	}
	return nil, errNoSession
}

// errNoSession is the refusal of a session that is not open.
var errNoSession = refusal.New(refusal.NotFound, "There is no such session here, or it was closed.")
