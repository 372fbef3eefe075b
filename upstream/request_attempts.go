package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
)

const (
	firstPause        = 200 * time.Millisecond
	maxPause          = 5 * time.Second  // between our own attempts
	maxRetryAfterWait = 30 * time.Second // longest Retry-After that is waited for
)

// attemptError is why one attempt failed.
type attemptError struct {
	err        error // *refusal.Error or *StatusError
	status     int
	unbilled   bool          // it has certainly taken nothing
	retry      bool          // another attempt may succeed
	retryAfter time.Duration // the provider's Retry-After; 0 if none
}

// send makes attempts until one returns an answer of the wanted type, or no further attempt
// is allowed.
func (c *Client) send(ctx context.Context, route *Route, p *posting) (*response, error) {
	times := route.definition.Timeouts
	from, latest := c.now(), c.alarms.Now()+times.Total
	ends := from.Add(times.Total)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(ends) {
		ends = deadline
	}
	meter := route.Meter
	if meter != nil && p.endpoint.isMetered() {
		body, err := meter.Prepare(p.endpoint, p.body)
		if err != nil {
			return nil, err
		}
		p.body = body
	} else {
		meter = nil
	}
	pauses := newPauses()
	var before error // of the last attempt
	for tried := 0; ; tried++ {
		if meter != nil {
			if err := meter.Reserve(ctx); err != nil {
				return nil, cmp.Or(before, err)
			}
			from = c.now()
		}
		a, f := c.attempt(ctx, route, p, latest)
		if meter != nil && f != nil && f.unbilled {
			meter.Unbilled()
		}
		answered := c.now()
		c.observeAttempt(route, f, answered.Sub(from))
		if f == nil {
			return a, nil
		}
		wait := pauses.NextBackOff()
		if f.retryAfter > 0 {
			wait = f.retryAfter
		}
		if !f.retry || tried >= route.definition.Retries || wait > maxRetryAfterWait || wait >= ends.Sub(answered) {
			return nil, f.err
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, transportError(ctx, route.Upstream, err, false)
		}
		from, before = c.now(), f.err
	}
}

// receive sends a request and reads the whole answer. Close the response once the body is no
// longer used: until then it counts in the memory budget.
func (c *Client) receive(ctx context.Context, route *Route, p *posting) (*response, []byte, error) {
	a, err := c.send(ctx, route, p)
	if err != nil {
		return nil, nil, err
	}
	body, err := a.readAll()
	if err != nil {
		defer a.close()
		return nil, nil, transportError(a.timeouts.ctx, route.Upstream, err, true)
	}
	return a, body, nil
}

// observeAttempt calls the observer. A panic of the observer is ignored.
func (c *Client) observeAttempt(route *Route, f *attemptError, took time.Duration) {
	defer safe.Discard()
	a := Attempt{Upstream: route.Upstream, Status: http.StatusOK, Took: took}
	if f != nil {
		a.Status = f.status
		var refused *refusal.Error
		switch {
		case errors.As(f.err, &refused):
			a.Code = refused.Code
		case f.status >= http.StatusInternalServerError:
			a.Code = refusal.UpstreamUnavailable
		}
	}
	c.observe(a)
}

// newPauses are pauses that double with each attempt; jitter makes each half to one and a half of
// that.
func newPauses() backoff.ExponentialBackOff {
	return backoff.ExponentialBackOff{InitialInterval: firstPause, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: maxPause}
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

// attempt sends the request once. latest is when the answer must be whole, by c.alarms.
func (c *Client) attempt(ctx context.Context, route *Route, p *posting, latest time.Duration) (*response, *attemptError) {
	d := route.definition
	target := route.endpoints[p.endpoint]
	if target == nil {
		return nil, &attemptError{unbilled: true, err: misconfigured("%s: no request can be made of its base_url", route.Upstream)}
	}
	w := newPhaseTimer(ctx, c.alarms, latest)
	w.start(d.Timeouts.Total, errTotal)
	key, err := c.credential(w.ctx, d)
	if err != nil {
		defer w.end()
		if w.ctx.Err() != nil {
			return nil, &attemptError{unbilled: true, err: transportError(w.ctx, route.Upstream, err, false)}
		}
		return nil, &attemptError{unbilled: true, err: misconfigured("%s: %w", route.Upstream, err)}
	}
	var connected, begun atomic.Bool
	traced := httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			connected.Store(true)
			w.start(d.Timeouts.Response, errResponseTimeout)
		},
		GotFirstResponseByte: func() { begun.Store(true) },
	})
	own := route.plain && !p.get && len(p.body) <= outbound.MaxOwnBody
	request := newRequest(traced, target, key, p, own)
	w.start(d.Timeouts.Connect, errConnect)
	// Neither sends a request again of which a byte was sent: that is another attempt.
	var got *http.Response
	if own {
		got, _, err = c.plain.Send(request, anyAddress, false) //nolint:bodyclose // response.close closes it
	} else {
		// RoundTrip, not a client: it follows no redirect and keeps no cookie.
		got, err = c.transport.RoundTrip(request) //nolint:bodyclose // response.close closes it
	}
	if err != nil {
		defer w.end()
		connecting := errors.Is(context.Cause(w.ctx), errConnect)
		return nil, &attemptError{
			err:      transportError(w.ctx, route.Upstream, err, begun.Load()),
			unbilled: !connected.Load(),
			retry:    !begun.Load() && !isPermanent(err) && (w.ctx.Err() == nil || connecting),
		}
	}
	b := &boundedBody{ReadCloser: got.Body, timeouts: w, idle: d.Timeouts.Idle, remaining: d.MaxStream}
	if p.accept == typeJSON {
		b.remaining, b.budget = d.MaxBody, &c.budget
	}
	a := &response{timeouts: w, body: b, length: got.ContentLength, header: keptHeaders(got.Header, key.secrets), secrets: key.secrets}
	if f := c.checkHead(route, key, got, b, p); f != nil {
		if f.status == http.StatusUnauthorized {
			f.retry = c.plain.Rejected(request, d.Credential) // with another token
		}
		w.end()
		b.close()
		f.unbilled = refusedByProvider(f.status)
		return nil, f
	}
	return a, nil
}

// anyAddress allows every address: the operator names the hosts of upstreams.
var anyAddress = []string{"0.0.0.0/0", "::/0"}

// newRequest returns the request of an attempt; own says that outbound sends it.
func newRequest(ctx context.Context, endpoint *url.URL, key credentialValue, p *posting, own bool) *http.Request {
	if p.query != "" {
		withQuery := *endpoint
		withQuery.RawQuery = p.query
		endpoint = &withQuery
	}
	header := make(http.Header, len(p.header)+5)
	for name, values := range p.header {
		if name = http.CanonicalHeaderKey(name); !ownHeaders[name] {
			header[name] = values
		}
	}
	header["Content-Type"], header["Accept"] = contentJSON, []string{p.accept}
	header["Accept-Encoding"], header["User-Agent"] = identityEncoding, userAgent
	if key.header != "" {
		header[key.header] = []string{key.value}
	}
	if p.get {
		delete(header, "Content-Type")
		request := http.Request{Method: http.MethodGet, URL: endpoint, Host: endpoint.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header}
		return request.WithContext(ctx)
	}
	request := http.Request{
		Method: http.MethodPost, URL: endpoint, Host: endpoint.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header,
	}
	if own {
		outbound.SetBody(&request, p.body)
		return request.WithContext(ctx)
	}
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(p.body)), int64(len(p.body))
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.body)), nil }
	return request.WithContext(ctx)
}

// checkHead checks the head of an answer; nil means that its body can be read.
func (c *Client) checkHead(route *Route, key credentialValue, response *http.Response, b *boundedBody, p *posting) *attemptError {
	name, status := route.Upstream, response.StatusCode
	var after time.Duration
	if status >= http.StatusBadRequest {
		after = netx.RetryAfter(response.Header.Get("Retry-After"), c.now(), firstPause)
	}
	again := status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
	again = again && response.Header.Get("X-Should-Retry") != "false"
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return &attemptError{status: status, err: misconfigured("%s answered with HTTP status %d: its key, or what the key may do", name, status)}
	case status >= http.StatusBadRequest:
		return &attemptError{status: status, err: newStatusError(name, key.secrets, response, b, after), retry: again, retryAfter: after}
	case status != http.StatusOK && status != http.StatusCreated:
		return &attemptError{status: status, err: failed("%s answered with HTTP status %d", name, status)}
	case response.Header.Get("Content-Encoding") != "" && response.Header.Get("Content-Encoding") != "identity":
		return &attemptError{status: status, err: unavailable("The model's provider compressed its answer, which Callgate does not ask for. The operator has to switch that off.", "%s compressed its answer, which was not asked for", name)}
	case !hasContentType(response.Header.Values("Content-Type"), p.accept):
		return &attemptError{status: status, err: unavailable("The model's answer has another content type than "+p.accept+". The operator has to check that base_url names the API of the model.", "%s answered with another content type than %s", name, p.accept)}
	case response.ContentLength > int64(b.remaining):
		return &attemptError{status: status, err: tooLarge("%s answered with more than %d bytes", name, b.remaining)}
	}
	return nil
}
