package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/engine/outbound"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/refusal"
)

const (
	firstPause        = 200 * time.Millisecond
	maxPause          = 5 * time.Second  // between our own attempts
	maxRetryAfterWait = 30 * time.Second // longest Retry-After that is waited for
)

// response is an answer whose head was accepted.
type response struct {
	timeouts    *phaseTimer
	body        *boundedBody
	framed      bool // HTTP framing says where the body ends
	cancelTotal context.CancelFunc
}

// close ends the exchange. It is safe to call twice.
func (a *response) close() {
	a.timeouts.end()
	a.body.close()
	a.cancelTotal()
}

// attemptError is why one attempt failed.
type attemptError struct {
	err        error // *refusal.Error or *StatusError
	status     int
	retry      bool          // another attempt may succeed
	retryAfter time.Duration // the provider's Retry-After; 0 if none
}

// send makes attempts until one returns an answer of the wanted type, or no further attempt
// is allowed.
func (c *Client) send(ctx context.Context, route *Route, body []byte, wanted string) (*response, error) {
	times := route.definition.Timeouts
	ends := c.now().Add(times.Total)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(ends) {
		ends = deadline
	}
	ctx, cancel := context.WithTimeoutCause(ctx, times.Total, errTotal)
	for tried := 0; ; tried++ {
		from := c.now()
		a, f := c.attempt(ctx, route, body, wanted)
		c.observeAttempt(route, f, c.now().Sub(from))
		if f == nil {
			a.cancelTotal = cancel
			return a, nil
		}
		wait := f.retryAfter
		if wait == 0 {
			wait = backoff(tried)
		}
		if !f.retry || tried >= route.definition.Retries || wait > maxRetryAfterWait || wait >= ends.Sub(c.now()) {
			cancel()
			return nil, f.err
		}
		if err := sleep(ctx, wait); err != nil {
			defer cancel()
			return nil, transportError(ctx, route.Upstream, err, false)
		}
	}
}

// observeAttempt calls the observer. A panic of the observer is ignored.
func (c *Client) observeAttempt(route *Route, f *attemptError, took time.Duration) {
	defer func() { _ = recover() }()
	a := Attempt{Upstream: route.Upstream, Status: http.StatusOK, Took: took}
	if f != nil {
		a.Status = f.status
		var refused *refusal.Error
		if errors.As(f.err, &refused) {
			a.Code = refused.Code
		}
	}
	c.observe(a)
}

// backoff doubles with each attempt; jitter makes it half to one and a half of that.
func backoff(tried int) time.Duration {
	middle := min(firstPause<<min(tried, 16), maxPause)
	return middle/2 + rand.N(middle)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attempt sends the request once.
func (c *Client) attempt(ctx context.Context, route *Route, content []byte, wanted string) (*response, *attemptError) {
	d := &route.definition
	key, err := readKey(d)
	if err != nil {
		return nil, &attemptError{err: misconfigured("%s: its key: %w", route.Upstream, err)}
	}
	if route.endpoint == nil {
		return nil, &attemptError{err: misconfigured("%s: no request can be made of its base_url", route.Upstream)}
	}
	w := newPhaseTimer(ctx)
	var begun atomic.Bool
	traced := httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { w.start(d.Timeouts.Response, errResponseTimeout) },
		GotFirstResponseByte: func() { begun.Store(true) },
	})
	request := newRequest(traced, route.endpoint, key, content, wanted)
	w.start(d.Timeouts.Connect, errConnect)
	// Neither sends a request again of which a byte was sent: that is another attempt.
	var got *http.Response
	if route.plain && len(content) <= outbound.MaxOwnBody {
		outbound.SetBody(request, content)
		got, _, err = c.plain.Send(request, anyAddress, false) //nolint:bodyclose // response.close closes it
	} else {
		// RoundTrip, not a client: it follows no redirect and keeps no cookie.
		got, err = c.transport.RoundTrip(request) //nolint:bodyclose // response.close closes it
	}
	if err != nil {
		defer w.end()
		connecting := errors.Is(context.Cause(w.ctx), errConnect)
		return nil, &attemptError{
			err:   transportError(w.ctx, route.Upstream, err, begun.Load()),
			retry: !begun.Load() && !isPermanent(err) && (w.ctx.Err() == nil || connecting),
		}
	}
	b := &boundedBody{ReadCloser: got.Body, timeouts: w, idle: d.Timeouts.Idle, remaining: d.MaxStream}
	if wanted == "application/json" {
		b.remaining, b.budget = d.MaxBody, &c.budget
	}
	a := &response{timeouts: w, body: b, framed: hasFraming(got)}
	if f := c.checkHead(route, key, got, b, wanted); f != nil {
		w.end()
		b.close()
		return nil, f
	}
	return a, nil
}

// anyAddress allows every address: the operator names the hosts of upstreams.
var anyAddress = []string{"0.0.0.0/0", "::/0"}

// isPlain reports whether engine/outbound sends to an endpoint as net/http would, but reads
// and writes on the goroutine of the caller: without TLS, and so HTTP/1.1, at a host that can be
// no IPv4 address in an old spelling.
func isPlain(endpoint *url.URL) bool {
	if endpoint == nil || endpoint.Scheme != "http" {
		return false
	}
	host := strings.TrimSuffix(endpoint.Hostname(), ".")
	label := host[strings.LastIndexByte(host, '.')+1:]
	if label != "" && (label[0] < '0' || label[0] > '9') {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// readKey returns the key of an upstream. A key that cannot stand in a header is an error,
// which does not show it.
func readKey(d *Definition) (string, error) {
	if d.Key == nil {
		return "", nil
	}
	key, err := d.Key()
	if err != nil {
		return "", err
	}
	if key == "" || !ascii.IsVisible(key) {
		return "", errors.New("found a secret that no header can carry; expected letters, digits and marks, without spaces")
	}
	return key, nil
}

func newRequest(ctx context.Context, endpoint *url.URL, key string, content []byte, wanted string) *http.Request {
	request := http.Request{
		Method: http.MethodPost, URL: endpoint, Host: endpoint.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type":    {"application/json"},
			"Accept":          {wanted},
			"Accept-Encoding": {"identity"},
			"User-Agent":      {"callgate"},
		},
		Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	}
	if key != "" {
		request.Header["Authorization"] = []string{"Bearer " + key}
	}
	return request.WithContext(ctx)
}

// hasFraming reports whether HTTP framing marks the end of the body, rather than the end of
// the connection.
func hasFraming(response *http.Response) bool {
	return response.ProtoMajor >= 2 || response.ContentLength >= 0 || len(response.TransferEncoding) > 0
}

// checkHead checks the head of an answer; nil means that its body can be read.
func (c *Client) checkHead(route *Route, key string, response *http.Response, b *boundedBody, wanted string) *attemptError {
	name, status := route.Upstream, response.StatusCode
	var after time.Duration
	if status >= http.StatusBadRequest {
		after = netx.RetryAfter(response.Header.Get("Retry-After"), c.now(), firstPause)
	}
	again := status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return &attemptError{status: status, err: misconfigured("%s answered with HTTP status %d: its key, or what the key may do", name, status)}
	case status >= http.StatusInternalServerError:
		refused := failed("%s answered with HTTP status %d", name, status)
		refused.RetryAfterMS = after.Milliseconds()
		return &attemptError{status: status, err: refused, retry: again, retryAfter: after}
	case status >= http.StatusBadRequest:
		return &attemptError{status: status, err: newStatusError(name, key, response, b, after), retry: again, retryAfter: after}
	case status != http.StatusOK:
		return &attemptError{status: status, err: failed("%s answered with HTTP status %d", name, status)}
	case response.Header.Get("Content-Encoding") != "" && response.Header.Get("Content-Encoding") != "identity":
		return &attemptError{status: status, err: malformed("%s compressed its answer, which was not asked for", name)}
	case !hasContentType(response.Header.Values("Content-Type"), wanted):
		return &attemptError{status: status, err: malformed("%s answered with another content type than %s", name, wanted)}
	case response.ContentLength > int64(b.remaining):
		return &attemptError{status: status, err: tooLarge("%s answered with more than %d bytes", name, b.remaining)}
	}
	return nil
}

// hasContentType reports whether a body is of the wanted type, in UTF-8.
func hasContentType(stated []string, wanted string) bool {
	if len(stated) != 1 {
		return false
	}
	if stated[0] == wanted {
		return true
	}
	media, parameters, err := mime.ParseMediaType(stated[0])
	charset, other := parameters["charset"]
	return err == nil && media == wanted && (!other || strings.EqualFold(charset, "utf-8"))
}
