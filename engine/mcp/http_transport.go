package mcp

import (
	"context"
	"net/http"
	"time"

	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/refuse"
)

const (
	closeTimeout = 2 * time.Second // of the message that ends a session
	// probeTime is for a server to answer server/discover. It is half of the time that a list or a call has by
	// default, which initialize needs, too.
	probeTime = 5 * time.Second
	minResume = 100 * time.Millisecond // before a stream that has ended is asked for its rest
)

// remote carries a session over Streamable HTTP. Each request is one POST, and its
// response is read whole before it is used.
type remote struct {
	client   *Client
	endpoint endpoint
	ctx      context.Context
	cancel   context.CancelFunc
	// version and session are set once, by initialize; both are empty with a modern server.
	version, session string
}

func newRemote(l *sharedSession) (*remote, error) {
	if l.client.options.Outbound == nil {
		return nil, refuse.Reason("nothing is reached by URL here")
	}
	r := &remote{client: l.client, endpoint: l.endpoint}
	r.ctx, r.cancel = context.WithCancel(l.client.ctx)
	return r, nil
}

// agreed stores the headers of all later requests.
func (r *remote) agreed(version, session string) { r.version, r.session = version, session }

func (r *remote) disconnect() { r.cancel() }

func (r *remote) ended() <-chan struct{} { return r.ctx.Done() }

// modern reports whether initialize has not agreed on an older revision, or not yet.
func (r *remote) modern() bool { return r.version == "" }

// whileConnected is a context that ends with the connection, too.
func (r *remote) whileConnected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(r.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// roundTrip sends a request once and reads the response.
func (r *remote) roundTrip(ctx context.Context, q *request) *reply {
	ctx, cancel := r.whileConnected(ctx)
	defer cancel()
	if q.method == wire.MethodDiscover {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, probeTime)
		defer stop()
	}
	response, err := r.send(ctx, q)
	if err != nil {
		return &reply{err: err}
	}
	defer response.Body.Close()
	a := r.read(ctx, response, q)
	a.session = response.Header.Get(wire.HeaderSession)
	for a.lastEvent != "" && !r.modern() {
		rest := r.resume(ctx, q, a)
		if rest == nil {
			break
		}
		a = rest
	}
	return a
}

// resume reads on where a stream has ended before the response to a request, as servers of 2025-11-25 end it while they
// work. It is a GET, which asks for nothing but the rest. It returns nil if there is none.
func (r *remote) resume(ctx context.Context, q *request, ended *reply) *reply {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(max(ended.pause, minResume)):
	}
	response, err := r.get(ctx, ended.lastEvent)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || mediaType(response.Header) != "text/event-stream" {
		return nil
	}
	return r.readStream(ctx, response, q)
}

// get asks for a stream, or with the id of an event for the rest of one.
func (r *remote) get(ctx context.Context, lastEvent string) (*http.Response, error) {
	get := r.request(ctx, http.MethodGet, nil)
	get.Header.Set("Accept", "text/event-stream")
	if lastEvent != "" {
		get.Header.Set("Last-Event-ID", lastEvent)
	}
	if err := r.authorize(get); err != nil {
		return nil, err
	}
	response, _, err := r.client.options.Outbound.Send(get, r.endpoint.addresses, false)
	return response, err
}

// notify sends a notification.
func (r *remote) notify(ctx context.Context, q *request) error {
	ctx, cancel := r.whileConnected(ctx)
	defer cancel()
	if status := r.deliver(r.post(ctx, q.encode())); status < 200 || status > 299 {
		return errNotAccepted
	}
	return nil
}

// errNotAccepted is a notification without a status of 2xx.
const errNotAccepted refuse.Reason = "it did not take a notification"

// listen follows the stream on which the server announces changes.
func (r *remote) listen(_ context.Context, q *request) error {
	r.client.spawn(func() { r.watchChanges(q) })
	return nil
}

// send makes the POST of a request. One that is not accepted with its token is noted in it.
func (r *remote) send(ctx context.Context, q *request) (*http.Response, error) {
	post := r.post(ctx, q.encode())
	for name, value := range q.headers {
		post.Header.Set(name, value)
	}
	if err := r.authorize(post); err != nil {
		return nil, err
	}
	out := r.client.options.Outbound
	response, sent, err := out.Send(post, r.endpoint.addresses, q.once)
	q.sent = q.sent || sent
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		q.rejected = out.Rejected(post, r.endpoint.credential)
	}
	return response, err
}

// deliver sends an HTTP request, unless it could not be made, and returns the status of the
// response; 0 if there is none.
func (r *remote) deliver(request *http.Request) int {
	if err := r.authorize(request); err != nil {
		return 0
	}
	response, _, err := r.client.options.Outbound.Send(request, r.endpoint.addresses, false)
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// post makes the POST of a message.
func (r *remote) post(ctx context.Context, body []byte) *http.Request {
	post := r.request(ctx, http.MethodPost, body)
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Accept", "application/json, text/event-stream")
	return post
}

// authorize adds the server's credential to a request that has all its other headers.
func (r *remote) authorize(request *http.Request) error {
	if err := r.client.options.Outbound.Authorize(request, r.endpoint.credential); err != nil {
		return &credentialError{err}
	}
	return nil
}

// credentialError is a credential that could not be had, so that nothing was sent. Its text holds
// nothing of a server.
type credentialError struct{ error }

func (e *credentialError) Unwrap() error { return e.error }

// request makes an HTTP request with the headers that all of them have but the credential.
func (r *remote) request(ctx context.Context, method string, body []byte) *http.Request {
	header := http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {"callgate"}}
	for name, value := range map[string]string{wire.HeaderVersion: r.version, wire.HeaderSession: r.session} {
		if value != "" {
			header.Set(name, value)
		}
	}
	return outbound.RequestWith(ctx, method, r.endpoint.target, header, body)
}

// closeSession deletes a session that the server keeps.
func (r *remote) closeSession() {
	if r.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	r.deliver(r.request(ctx, http.MethodDelete, nil))
}
