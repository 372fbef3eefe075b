package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/mcp/wire"
)

const (
	maxHandshake = 1 << 20 // bytes of an answer to a request of the SDK's own
	pingAfter    = 30 * time.Second
)

// connection carries the requests of one session. It answers the requests of the server
// itself. The SDK sees nothing but the end of its own requests, because it does not bound
// what a server sends.
type connection interface {
	sdk.Connection
	// ended is closed once nothing can be carried any longer.
	ended() <-chan struct{}
	// cause is why it ended.
	cause() error
	// closeSession tells the server that the session is over.
	closeSession()
	// hasState tells whether the server keeps a state that it may forget by itself.
	hasState() bool
	// modern tells of a server that needs no greeting, and reads its headers.
	modern() bool
}

// session is a session with a server: the SDK, which negotiates the revision and numbers
// requests, and the connection that carries them.
type session struct {
	*sdk.ClientSession
	connection connection
	answered   atomic.Bool  // it has answered anything at all
	used       atomic.Int64 // when, in nanoseconds
	headers    atomic.Pointer[map[string][]headerBinding]
}

// dialer gives the SDK an existing connection.
type dialer struct{ connection connection }

func (d dialer) Connect(context.Context) (sdk.Connection, error) { return d.connection, nil }

// newSession opens a session. It offers the server no capabilities: no sampling, no
// elicitation, no roots. Each request says what its caller can answer.
func newSession(ctx context.Context, l *sharedSession) (*session, error) {
	c, err := l.dial()
	if err != nil {
		return nil, err
	}
	options := &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	}
	if l.client.options.ToolsChanged != nil && l.endpoint.server != "" {
		// The connection tells of changes. Without a handler, none are asked for.
		options.ToolListChangedHandler = func(context.Context, *sdk.ToolListChangedRequest) {}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "callgate", Version: l.client.options.Version}, options)
	greeting := &roundTrip{limit: maxHandshake, handshake: true}
	agreed, err := client.Connect(greeting.withContext(ctx), dialer{c}, nil)
	if err != nil {
		err = openError(ctx, c, greeting.response.Load(), err)
		_ = c.Close()
		return nil, err
	}
	s := &session{ClientSession: agreed, connection: c}
	if c.modern() {
		// Which arguments go into headers, too, is said by the tools' schemas alone.
		// Without the list, a server that wants such headers refuses the call.
		listing, cancel := context.WithTimeout(ctx, openTime/6)
		defer cancel()
		_, _ = s.list(listing)
	}
	s.used.Store(time.Now().UnixNano())
	return s, nil
}

// acceptsAnswers reports whether the server can ask for input by a result.
func (s *session) acceptsAnswers() bool {
	agreed := s.InitializeResult()
	return agreed != nil && agreed.ProtocolVersion == wire.Revision2026
}

// dial makes the connection of a new session.
func (l *sharedSession) dial() (connection, error) {
	if l.endpoint.target != nil {
		return newRemote(l)
	}
	return startLocal(l)
}

// openError says why a session could not be opened.
func openError(ctx context.Context, c connection, a *reply, err error) error {
	var said refuse.Reason
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case a == nil, a.result != nil:
		if cause := c.cause(); cause != nil {
			return cause
		}
		if errors.As(err, &said) {
			return said
		}
		return refuse.Reason("it could not agree on a version of the protocol")
	}
	return a.asError()
}

// asError describes a reply without a result for the operator.
func (a *reply) asError() error {
	switch {
	case a.err != nil:
		return a.err
	case a.tooLarge:
		return errTooLarge
	case a.rpcError != nil:
		return refuse.Reason(fmt.Sprintf("it answered with the JSON-RPC error %d", a.rpcError.code))
	case a.sessionGone:
		return errSessionGone
	case a.status != 0:
		return refuse.Reason(fmt.Sprintf("it answered with HTTP status %d", a.status))
	}
	return refuse.Reason(a.invalid)
}

// errSessionGone is a session that the server no longer knows.
const errSessionGone refuse.Reason = "it has ended the session"

// ready pings a server that may have dropped a quiet session, so that no call is lost to
// it.
func (s *session) ready(ctx context.Context) error {
	now := time.Now()
	last := time.Unix(0, s.used.Swap(now.UnixNano()))
	if !s.connection.hasState() || now.Sub(last) < pingAfter {
		return nil
	}
	e := &roundTrip{limit: maxHandshake}
	err := s.Ping(e.withContext(ctx), nil)
	if a := e.response.Load(); a != nil && a.sessionGone {
		return errSessionGone
	} else if a == nil {
		return err
	}
	return nil
}

// closeAll ends the session and its connection, and tells the server.
func (s *session) closeAll() {
	s.disconnect()
	_ = s.Close()
	s.connection.closeSession()
}

// disconnect ends the connection. It does not block.
func (s *session) disconnect() { _ = s.connection.Close() }
