package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/mcp/wire"
)

const (
	maxSession   = 1 << 10 // bytes of a session's id
	maxVersion   = 32
	closeTimeout = 2 * time.Second
)

// remote carries a session over Streamable HTTP. Each request is one POST, and its
// response is read whole before it is used.
type remote struct {
	client   *Client
	endpoint endpoint
	ctx      context.Context
	cancel   context.CancelFunc
	incoming chan jsonrpc.Message

	mu               sync.Mutex
	version          string // that was agreed on by initialize; empty with a modern server
	session          string
	announcesChanges bool // the server tells of changes on a stream of its own
}

func newRemote(l *sharedSession) (*remote, error) {
	if l.client.options.Outbound == nil {
		return nil, refuse.Reason("nothing is reached by URL here")
	}
	r := &remote{client: l.client, endpoint: l.endpoint, incoming: make(chan jsonrpc.Message)}
	r.ctx, r.cancel = context.WithCancel(l.client.ctx)
	return r, nil
}

// Read returns the response to a request of the SDK.
func (r *remote) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-r.incoming:
		return m, nil
	case <-r.ctx.Done():
		return nil, io.EOF
	}
}

// Write sends a request, and returns after its response was read.
func (r *remote) Write(ctx context.Context, m jsonrpc.Message) (err error) {
	defer recoverTo(&err)
	request, ok := m.(*jsonrpc.Request)
	if !ok {
		return nil // nothing is passed on that the SDK would answer
	}
	if request.Method == wire.MethodListen {
		r.client.spawn(func() { r.watchChanges(request) })
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	if !request.IsCall() {
		return r.notify(ctx, request)
	}
	e := roundTripOf(ctx)
	r.deliver(e.complete(request.ID, r.roundTrip(ctx, request, e)))
	return nil
}

func (r *remote) deliver(m jsonrpc.Message) {
	select {
	case r.incoming <- m:
	case <-r.ctx.Done():
	}
}

// Close ends what is in flight. It does not block.
func (r *remote) Close() error {
	r.cancel()
	return nil
}

// SessionID is for the SDK's information.
func (r *remote) SessionID() string { return "" }

func (r *remote) ended() <-chan struct{} { return r.ctx.Done() }

func (r *remote) cause() error { return nil }

func (r *remote) modern() bool {
	version, _ := r.negotiated()
	return version == ""
}

func (r *remote) hasState() bool {
	_, session := r.negotiated()
	return session != ""
}

func (r *remote) negotiated() (version, session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version, r.session
}

// roundTrip sends a request once and reads the response.
func (r *remote) roundTrip(ctx context.Context, request *jsonrpc.Request, e *roundTrip) *reply {
	response, err := r.send(ctx, request, e)
	if err != nil {
		return &reply{err: err}
	}
	defer response.Body.Close()
	a := r.read(ctx, response, request, e)
	if request.Method == wire.MethodInitialize && a.result != nil {
		if !r.readInitializeResult(a.result, response.Header) {
			return &reply{invalid: "it answered the greeting in a form that cannot be used"}
		}
	}
	return a
}

// readInitializeResult stores the revision and the session id of an initialize response.
func (r *remote) readInitializeResult(result json.RawMessage, header http.Header) bool {
	session := header.Get(wire.HeaderSession)
	members, _ := object(result)
	var version string
	if !optionalString(members["protocolVersion"], &version) || version == "" || len(version) > maxVersion || !isVisibleASCII(version) ||
		len(session) > maxSession || !isVisibleASCII(session) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version, r.session, r.announcesChanges = version, session, announcesChanges(members["capabilities"])
	return true
}

// announcesChanges reports whether a server's capabilities announce changed lists of
// tools.
func announcesChanges(capabilities json.RawMessage) bool {
	all, _ := object(capabilities)
	tools, _ := object(all["tools"])
	return string(tools["listChanged"]) == "true"
}

func isVisibleASCII(s string) bool {
	return ascii.IsVisible(s)
}

// notify sends a notification.
func (r *remote) notify(ctx context.Context, request *jsonrpc.Request) error {
	if request.Method == wire.NoticeCancelled {
		if r.modern() {
			return nil // that the request was closed says it
		}
		// Whether it arrives changes nothing here.
		r.post(ctx, request)
		return nil
	}
	status := r.post(ctx, request)
	if status < 200 || status > 299 {
		return refuse.Reason("it did not take a notification")
	}
	if r.mu.Lock(); request.Method == wire.NoticeInitialized && r.announcesChanges && r.client.options.ToolsChanged != nil && r.endpoint.server != "" {
		r.client.spawn(func() { r.watchChanges(nil) })
	}
	r.mu.Unlock()
	return nil
}

// post sends a message and returns the status of the response; 0 if there is none.
func (r *remote) post(ctx context.Context, m jsonrpc.Message) int {
	response, err := r.send(ctx, m, &roundTrip{})
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// send makes the POST of a message.
func (r *remote) send(ctx context.Context, m jsonrpc.Message, e *roundTrip) (*http.Response, error) {
	body, err := e.encode(m)
	if err != nil {
		return nil, err
	}
	request, err := r.request(ctx, http.MethodPost)
	if err != nil {
		return nil, err
	}
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if call, ok := m.(*jsonrpc.Request); ok {
		setMirrorHeaders(request.Header, call, e.headers)
	}
	response, sent, err := r.client.options.Outbound.Send(request, r.endpoint.addresses, e.once)
	if sent {
		e.sent.Store(true)
	}
	return response, err
}

// request makes a request with the headers that all requests have.
func (r *remote) request(ctx context.Context, method string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.endpoint.target.String(), nil)
	if err != nil {
		return nil, refuse.Reason("no request can be made of its URL")
	}
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("User-Agent", "callgate")
	if version, session := r.negotiated(); version != "" {
		request.Header.Set(wire.HeaderVersion, version)
		if session != "" {
			request.Header.Set(wire.HeaderSession, session)
		}
	}
	token, err := r.client.options.Outbound.Credential(r.endpoint.credential)
	if err != nil {
		return nil, refuse.Reason(err.Error())
	}
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	return request, nil
}

// closeSession deletes a session that the server keeps.
func (r *remote) closeSession() {
	if !r.hasState() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	request, err := r.request(ctx, http.MethodDelete)
	if err != nil {
		return
	}
	if response, _, err := r.client.options.Outbound.Send(request, r.endpoint.addresses, false); err == nil {
		response.Body.Close()
	}
}

// recoverTo keeps a panic from goroutines of the SDK, where it would end the process.
func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = refuse.Reason(safe.PanicError(p).Error())
	}
}
