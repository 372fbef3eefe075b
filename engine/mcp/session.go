package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/refuse"
)

const (
	maxHandshake  = 1 << 20 // bytes of a response to anything but a call or a list
	maxSession    = 1 << 10 // bytes of a session's id
	maxRevision   = 32      // bytes of a revision that the operator is shown
	pingAfter     = 30 * time.Second
	cancelTimeout = 5 * time.Second
)

// legacyRevisions are those that begin with initialize, the latest first.
var legacyRevisions = []string{wire.Revision2025, wire.Revision202506, wire.Revision202503, wire.Revision2024} // read only

// connection carries the requests of one session. It answers the requests of the server
// itself. It does not know what its requests mean.
type connection interface {
	// roundTrip sends a request and returns how it ended. If the context ends first, the reply
	// has its error.
	roundTrip(ctx context.Context, q *request) *reply
	// notify sends a notification.
	notify(ctx context.Context, q *request) error
	// agreed sets the older revision that initialize has agreed on, and the id of the session,
	// which may be empty. It is not called with a modern server.
	agreed(revision, session string)
	// listen asks for notifications of changed lists of tools, by a request of modern
	// servers. Without one, the server is of an older revision.
	listen(ctx context.Context, q *request) error
	// ended is closed once nothing can be carried any longer.
	ended() <-chan struct{}
	// disconnect ends the connection. It does not block.
	disconnect()
	// closeSession tells the server that the session is over.
	closeSession()
}

// session is a session with a server: it agrees on a revision, numbers the requests, and
// cancels those whose callers have left.
type session struct {
	client     *Client
	connection connection
	modern     bool // the server is of 2026-07-28: each request says what initialize said
	http       bool // each request has headers and a response of its own
	hasState   bool // the server keeps a state that it may forget by itself
	lastID     atomic.Int64
	answered   atomic.Bool  // it has answered anything at all
	compared   atomic.Bool  // its list of tools was discovered, or will be
	used       atomic.Int64 // when, in nanoseconds
	headers    atomic.Pointer[map[string][]headerBinding]

	mu       sync.Mutex
	inFlight int  // requests
	retired  bool // it is disconnected once none is in flight
}

// openSession opens a session over a connection. If it fails, or panics, it ends the
// connection, and with it the program. It offers the server no capabilities: no sampling,
// no elicitation, no roots. Each request says what its caller can answer.
func openSession(ctx context.Context, l *sharedSession, c connection) (*session, error) {
	opened := false
	defer func() {
		if !opened {
			c.disconnect()
		}
	}()
	s := &session{client: l.client, connection: c, http: l.endpoint.target != nil}
	if err := s.open(ctx, l.unprobed, l.client.options.ToolsChanged != nil && l.endpoint.server != ""); err != nil {
		return nil, err
	}
	if s.modern && s.http {
		// Only the tools' schemas say which arguments are repeated in headers.
		// Without the list, a server that wants such headers refuses the call.
		listing, cancel := context.WithTimeout(ctx, openTime/6)
		defer cancel()
		_, _ = s.list(listing)
	}
	s.used.Store(time.Now().UnixNano())
	opened = true
	return s, nil
}

// dial makes the connection of a new session.
func (l *sharedSession) dial() (connection, error) {
	if l.endpoint.target != nil {
		return newRemote(l)
	}
	return startLocal(l)
}

// open agrees with the server on a revision: by server/discover, and if that fails in any
// way, or the server is known not to bear it, by initialize. If wanted, it subscribes to changes that the
// server announces.
func (s *session) open(ctx context.Context, unprobed, listens bool) error {
	var members map[string]json.RawMessage
	if !unprobed {
		members = s.discover(ctx)
	}
	if !s.modern {
		result, err := s.initialize(ctx)
		if err != nil {
			return err
		}
		members, _ = object(result)
	}
	capabilities, _ := object(members["capabilities"])
	tools, _ := object(capabilities["tools"])
	if !listens || string(tools["listChanged"]) != "true" {
		return nil
	}
	if !s.modern {
		return s.connection.listen(ctx, nil)
	}
	return s.connection.listen(ctx, s.newRequest(wire.MethodListen, s.meta(nil), []byte(`"notifications":{"toolsListChanged":true}`)))
}

// discover asks whether the server is of the newest revision, and returns the members of its result.
func (s *session) discover(ctx context.Context) map[string]json.RawMessage {
	s.modern = true
	request := s.newRequest(wire.MethodDiscover, s.meta(nil), nil)
	discovered := s.connection.roundTrip(ctx, request)
	if request.rejected {
		discovered = s.connection.roundTrip(ctx, s.newRequest(wire.MethodDiscover, s.meta(nil), nil))
	}
	members, _ := object(discovered.result)
	versions, _ := array(members["supportedVersions"])
	s.modern = slices.ContainsFunc(versions, func(v json.RawMessage) bool { return isString(v, wire.Revision2026) })
	return members
}

// initialize agrees on one of the older revisions, and returns the server's result.
func (s *session) initialize(ctx context.Context) (json.RawMessage, error) {
	params := fmt.Appendf(nil, `"clientInfo":%s,"protocolVersion":%q,"capabilities":{}`, encodeJSON(s.client.info()), wire.Revision2025)
	a := s.connection.roundTrip(ctx, s.newRequest(wire.MethodInitialize, nil, params))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case a.result == nil && s.http && a.rpcError == nil && (a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed):
		return nil, refuse.Reason(fmt.Sprintf("%v to initialize; if it speaks the old transport HTTP+SSE alone (URLs such as /sse), use its URL of Streamable HTTP, often /mcp", a.asError()))
	case a.result == nil:
		return nil, a.asError()
	}
	members, ok := object(a.result)
	var revision string
	switch {
	case !ok, !optionalString(members["protocolVersion"], &revision), len(a.session) > maxSession, !ascii.IsVisible(a.session):
		return nil, refuse.Reason("it answered initialize in a form that cannot be used")
	case !slices.Contains(legacyRevisions, revision):
		if len(revision) > maxRevision || !ascii.IsPlainID(revision) {
			revision = "one that is not shown"
		}
		return nil, refuse.Reason(fmt.Sprintf("it answered initialize with another version of the protocol, %s; expected one of %s", revision,
			strings.Join(legacyRevisions, ", ")))
	}
	s.hasState = a.session != ""
	s.connection.agreed(revision, a.session)
	return a.result, s.connection.notify(ctx, &request{method: wire.NoticeInitialized, params: []byte("{}")})
}

// info is the clientInfo of the gateway.
func (c *Client) info() any {
	return struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}{"callgate", c.options.Version}
}

// meta is the _meta of a request whose caller can answer some kinds of questions. A server
// of the older revisions gets none.
func (s *session) meta(asks []string) map[string]any {
	if !s.modern {
		return map[string]any{}
	}
	return map[string]any{
		wire.MetaVersion: wire.Revision2026, wire.MetaClient: s.client.info(), wire.MetaCapabilities: capabilitiesFor(asks),
	}
}

// newRequest returns the next request. Its parameters are _meta and other members.
func (s *session) newRequest(method string, meta map[string]any, members []byte) *request {
	q := &request{id: s.lastID.Add(1), method: method, params: encodeParams(meta, members), limit: maxHandshake,
		headers: map[string]string{}}
	if s.modern {
		q.headers[wire.HeaderVersion], q.headers[wire.HeaderMethod] = wire.Revision2026, method
	}
	return q
}

// do sends a request and returns how it ended. If its caller leaves first, it cancels the
// request by a message, unless the end of the stream has cancelled it.
func (s *session) do(ctx context.Context, q *request) *reply {
	s.count(1)
	defer s.count(-1)
	a := s.connection.roundTrip(ctx, q)
	if why := ctx.Err(); why != nil && a.err != nil && q.sent && !(s.modern && s.http) {
		s.client.spawn(func() { callSafely(func() { s.cancel(q.id, why) }) })
	}
	return a
}

// count counts requests in flight.
func (s *session) count(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight += by; s.retired && s.inFlight == 0 {
		s.connection.disconnect()
	}
}

// retire disconnects the session once no request is in flight: the server may answer those that it has taken.
func (s *session) retire() {
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	s.count(0)
}

// cancel sends the cancellation of a request. A failure to do so changes nothing here.
func (s *session) cancel(id int64, why error) {
	ctx, stop := context.WithTimeout(s.client.ctx, cancelTimeout)
	defer stop()
	_ = s.connection.notify(ctx, &request{method: wire.NoticeCancelled,
		params: fmt.Appendf(nil, `{"reason":%q,"requestId":%d}`, why.Error(), id)})
}

// ready reports whether a session can be used: it pings a server that may have forgotten a
// quiet one, so that no call is lost.
func (s *session) ready(ctx context.Context) bool {
	now := time.Now()
	last := time.Unix(0, s.used.Swap(now.UnixNano()))
	return now.Sub(last) < pingAfter || s.known(ctx)
}

// known asks the server, by a ping, whether it still knows the session.
func (s *session) known(ctx context.Context) bool { return !s.ping(ctx).deniesSession() }

// ping asks the server for any answer in the session. It does not ask one that keeps none.
func (s *session) ping(ctx context.Context) *reply {
	if !s.hasState || ctx.Err() != nil {
		return &reply{}
	}
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	ping := s.newRequest(wire.MethodPing, nil, nil)
	ping.params = nil
	return s.do(ctx, ping)
}
