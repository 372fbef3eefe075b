package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

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

// session is one that is open.
type session struct {
	conn *connection
	id   string

	mu      sync.Mutex
	running *exchange // the prompt that is being answered, or nil
	last    *exchange // the prompt that was begun last, or nil
	closed  bool
	// admission is that of the request which opened the session.
	admission *gateway.Admission
	cwd       string
	others    []string // further folders
	root      string   // where commands run and their words were judged from; empty: it is cwd
	title     string
	updated   time.Time

	// protocol is the one in which the history is written; empty before the first prompt. It,
	// history and shown are used by the running exchange alone, or with mu while there is none.
	protocol upstream.Protocol
	history  turns.Conversation
	shown    transcript
}

// exchange is one prompt and its answer.
type exchange struct {
	session *session
	ctx     context.Context
	stop    context.CancelFunc // ends ctx; the prompt is answered as cancelled
	ended   chan struct{}      // closed when it was answered
	content content
	view    *view
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

// errRunning is the refusal of what cannot be done beside a prompt.
var errRunning = jsonrpc.Errorf(jsonrpc.CodeRequest, "A prompt of this session is being answered. Wait for its end, or cancel it.")

// errNotSent is why a request of ours never reached the client.
var errNotSent = errors.New("the request was not sent")

// call sends a request to the client. When ctx ends the client is told that no answer is needed.
func (c *connection) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	p, err := c.conn.Start(ctx, method, params)
	if errors.Is(err, jsonrpc.ErrEnded) || err != nil && ctx.Err() != nil {
		return nil, errors.Join(errNotSent, err)
	}
	if err != nil {
		return nil, err
	}
	raw, err := p.Wait(ctx)
	if ctx.Err() != nil && err != nil {
		_ = c.conn.Notify(wire.MethodCancelRequest, struct {
			ID jsonrpc.ID `json:"requestId"`
		}{p.ID()})
	}
	return raw, err
}

// logInternal logs why a request failed, where that is no fault of the client.
func (c *connection) logInternal(m *jsonrpc.Message, err error) {
	var own *jsonrpc.Error
	if refused := refusal.From(refusal.Any, err); !errors.As(err, &own) && refused.Code == refusal.Internal {
		c.face.options.Logger.Error("an ACP request failed", "method", m.Method, "cause", errors.Join(refused.Cause, err).Error())
	}
}

// send sends an update of the session. If it cannot be sent, the connection ends, and with it ctx.
func (x *exchange) send(u wire.Update) {
	_ = x.session.conn.conn.Notify(wire.MethodSessionUpdate, wire.SessionNotification{SessionID: x.session.id, Update: u})
}

// cancel ends the prompt that is being answered, if there is one.
func (s *session) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.stop()
	}
}

// close cancels what runs, waits until that was answered, and takes the session off the connection.
func (s *session) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	last := s.last
	s.mu.Unlock()
	if last != nil {
		last.stop()
		select {
		case <-last.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.conn.mu.Lock()
	delete(s.conn.sessions, s.id)
	s.conn.mu.Unlock()
	return nil
}
