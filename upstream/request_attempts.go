package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
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
func (c *Client) send(ctx context.Context, route *Route, p *posting) (*exchange, error) {
	times := route.definition.Timeouts
	from, latest := c.now(), c.alarms.Now()+times.Total
	ends := from.Add(times.Total)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(ends) {
		ends = deadline
	}
	meter := p.meter
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
func (c *Client) receive(ctx context.Context, route *Route, p *posting) (*exchange, []byte, error) {
	a, err := c.send(ctx, route, p)
	if err != nil {
		return nil, nil, err
	}
	body, err := a.readAll()
	if err != nil {
		defer a.close()
		return nil, nil, transportError(a, route.Upstream, err, true)
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
func (c *Client) attempt(ctx context.Context, route *Route, p *posting, latest time.Duration) (*exchange, *attemptError) {
	d := route.definition
	target := route.endpoints[p.endpoint]
	if target == nil {
		return nil, &attemptError{unbilled: true, err: misconfigured("%s: no request can be made of its base_url", route.Upstream)}
	}
	a := &exchange{responseTime: d.Timeouts.Response}
	a.begin(ctx, c.alarms, latest)
	a.start(d.Timeouts.Total, errTotal)
	key, err := c.credential(a, d)
	if err != nil {
		defer a.end()
		if a.Err() != nil {
			return nil, &attemptError{unbilled: true, err: transportError(a, route.Upstream, err, false)}
		}
		return nil, &attemptError{unbilled: true, err: misconfigured("%s: %w", route.Upstream, err)}
	}
	own := route.plain && !p.get && len(p.body) <= outbound.MaxOwnBody
	sending := context.Context(a)
	if !own {
		sending = a.traced()
	}
	request := newRequest(sending, target, key, p)
	a.start(d.Timeouts.Connect, errConnect)
	// Neither sends a request again of which a byte was sent: that is another attempt.
	var got *http.Response
	if own {
		outbound.SetBody(request, p.body)
		got, _, err = c.plain.Send(request, anyAddress, false) //nolint:bodyclose // exchange.close closes it
	} else {
		setBody(request, p)
		// RoundTrip, not a client: it follows no redirect and keeps no cookie.
		got, err = c.transport.RoundTrip(request) //nolint:bodyclose // exchange.close closes it
	}
	if err != nil {
		defer a.end()
		begun, connecting := a.begun.Load(), errors.Is(context.Cause(a), errConnect)
		return nil, &attemptError{
			err:      transportError(a, route.Upstream, err, begun),
			unbilled: !a.connected.Load(),
			retry:    !begun && !isPermanent(err) && (a.Err() == nil || connecting),
		}
	}
	a.body = boundedBody{ReadCloser: got.Body, timeouts: &a.phaseTimer, idle: d.Timeouts.Idle, remaining: d.MaxStream}
	if p.accept == typeJSON {
		a.body.remaining, a.body.budget = d.MaxBody, &c.budget
	}
	a.length, a.header, a.secrets = got.ContentLength, keptHeaders(got.Header, key.secrets), key.secrets
	if f := c.checkHead(route, key, got, &a.body, p); f != nil {
		if f.status == http.StatusUnauthorized {
			f.retry = c.plain.Rejected(request, d.Credential) // with another token
		}
		a.close()
		f.unbilled = refusedByProvider(f.status)
		return nil, f
	}
	return a, nil
}

// anyAddress allows every address: the operator names the hosts of upstreams.
var anyAddress = []string{"0.0.0.0/0", "::/0"}

// newRequest returns the request of an attempt, without its body.
func newRequest(ctx context.Context, endpoint *url.URL, key credentialValue, p *posting) *http.Request {
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
	header["Accept"], header["Accept-Encoding"], header["User-Agent"] = contentStream, identityEncoding, userAgent
	if p.accept == typeJSON {
		header["Accept"] = contentJSON
	}
	if key.header != "" {
		header[key.header] = []string{key.value}
	}
	method := http.MethodGet
	if !p.get {
		method, header["Content-Type"] = http.MethodPost, contentJSON
	}
	return (&http.Request{
		Method: method, URL: endpoint, Host: endpoint.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
	}).WithContext(ctx)
}

// setBody sets the body of a request that net/http sends, which may send it again on another connection.
func setBody(request *http.Request, p *posting) {
	if p.get {
		return
	}
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(p.body)), int64(len(p.body))
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.body)), nil }
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
		return &attemptError{status: status,
			err: misconfigured("%s answered with HTTP status %d: its key, or what the key may do", name, status)}
	case status >= http.StatusBadRequest:
		return &attemptError{status: status, err: newStatusError(name, key.secrets, response, b, after), retry: again, retryAfter: after}
	case status != http.StatusOK && status != http.StatusCreated:
		return &attemptError{status: status, err: failed("%s answered with HTTP status %d", name, status)}
	case response.Header.Get("Content-Encoding") != "" && response.Header.Get("Content-Encoding") != "identity":
		return &attemptError{status: status, err: unavailable("The model's provider compressed its answer, which Callgate does not ask for. The operator has to switch that off.", "%s compressed its answer, which was not asked for", name)}
	case !hasContentType(response.Header.Values("Content-Type"), p.accept):
		if p.accept == typeStream && hasContentType(response.Header.Values("Content-Type"), typeJSON) { // it may say why there is no stream
			raw, _ := readErrorBody(response, b)
			if failure := ReadFailure(raw); failure.Message != "" {
				return &attemptError{status: status, err: StatedFailure(route, failure, func(text []byte) bool { return mentions(text, key.secrets) })}
			}
		}
		return &attemptError{status: status, err: unavailable("The model's answer has another content type than "+p.accept+". The operator has to check that base_url names the API of the model.", "%s answered with another content type than %s", name, p.accept)}
	case response.ContentLength > int64(b.remaining):
		return &attemptError{status: status, err: tooLarge("%s answered with more than %d bytes", name, b.remaining)}
	}
	return nil
}
