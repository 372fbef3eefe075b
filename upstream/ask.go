package upstream

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/refusal"
)

const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second  // of ours
	longestWait  = 30 * time.Second // that a provider may ask for
)

// answer is one that has begun: the head was accepted.
type answer struct {
	watch  *watch
	body   *body
	framed bool // HTTP says where the body ends
	whole  context.CancelFunc
}

// close gives it up, where it has not ended. It may be called again.
func (a *answer) close() {
	a.watch.end()
	a.body.close()
	a.whole()
}

// fault is why one attempt gave no answer.
type fault struct {
	err    error // *refusal.Error or *StatusError
	status int
	again  bool          // another attempt may end otherwise
	after  time.Duration // what the provider asks to wait; 0 if nothing
}

// ask makes attempts until there is an answer of the wanted type, or no other
// attempt is due.
func (c *Client) ask(ctx context.Context, route *Route, body []byte, wanted string) (*answer, error) {
	times := route.definition.Timeouts
	ends := c.now().Add(times.Total)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(ends) {
		ends = deadline
	}
	ctx, cancel := context.WithTimeoutCause(ctx, times.Total, errTotal)
	for tried := 0; ; tried++ {
		from := c.now()
		a, f := c.attempt(ctx, route, body, wanted)
		c.tell(route, f, c.now().Sub(from))
		if f == nil {
			a.whole = cancel
			return a, nil
		}
		wait := f.after
		if wait == 0 {
			wait = pause(tried)
		}
		if !f.again || tried >= route.definition.Retries || wait > longestWait || wait >= ends.Sub(c.now()) {
			cancel()
			return nil, f.err
		}
		if err := sleep(ctx, wait); err != nil {
			defer cancel()
			return nil, lost(ctx, route.Upstream, err, false)
		}
	}
}

// tell lets the observer know. What it does wrong is its own affair.
func (c *Client) tell(route *Route, f *fault, took time.Duration) {
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

// pause grows with each attempt, by half to one and a half of it.
func pause(tried int) time.Duration {
	middle := min(firstPause<<min(tried, 16), longestPause)
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

// attempt asks once.
func (c *Client) attempt(ctx context.Context, route *Route, content []byte, wanted string) (*answer, *fault) {
	d := &route.definition
	key, err := secret(d)
	if err != nil {
		return nil, &fault{err: misconfigured("%s: its key: %w", route.Upstream, err)}
	}
	w := newWatch(ctx)
	var begun atomic.Bool
	traced := httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { w.begin(d.Timeouts.FirstByte, errFirstByte) },
		GotFirstResponseByte: func() { begun.Store(true) },
	})
	request, err := newRequest(traced, d.BaseURL, key, content, wanted)
	if err != nil {
		w.end()
		return nil, &fault{err: misconfigured("%s: no request can be made of its base_url", route.Upstream)}
	}
	w.begin(d.Timeouts.Connect, errConnect)
	// RoundTrip, not a client: it follows no redirect and keeps no cookie.
	response, err := c.transport.RoundTrip(request) //nolint:bodyclose // the answer closes it
	if err != nil {
		defer w.end()
		connecting := errors.Is(context.Cause(w.ctx), errConnect)
		return nil, &fault{
			err:   lost(w.ctx, route.Upstream, err, begun.Load()),
			again: !begun.Load() && !lasting(err) && (w.ctx.Err() == nil || connecting),
		}
	}
	b := &body{ReadCloser: response.Body, watch: w, idle: d.Timeouts.Idle, left: d.MaxStream}
	if wanted == "application/json" {
		b.left, b.held = d.MaxBody, &c.held
	}
	a := &answer{watch: w, body: b, framed: framed(response)}
	if f := c.refused(route, key, response, b, wanted); f != nil {
		w.end()
		b.close()
		return nil, f
	}
	return a, nil
}

// secret reads the key. What cannot stand in a header is not sent, and not
// shown.
func secret(d *Definition) (string, error) {
	if d.Key == nil {
		return "", nil
	}
	key, err := d.Key()
	if err != nil {
		return "", err
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("found a secret that no header can carry; expected letters, digits and marks, without spaces")
	}
	return key, nil
}

func newRequest(ctx context.Context, base, key string, content []byte, wanted string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/chat/completions", bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{
		"Content-Type":    {"application/json"},
		"Accept":          {wanted},
		"Accept-Encoding": {"identity"},
		"User-Agent":      {"callgate"},
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	return request, nil
}

// framed tells whether HTTP says where the body ends, so that an end is not
// just a connection that is closed.
func framed(response *http.Response) bool {
	return response.ProtoMajor >= 2 || response.ContentLength >= 0 || len(response.TransferEncoding) > 0
}

// refused judges the head of an answer; nil is one that can be read.
func (c *Client) refused(route *Route, key string, response *http.Response, b *body, wanted string) *fault {
	name, status := route.Upstream, response.StatusCode
	after := retryAfter(response.Header.Get("Retry-After"), c.now())
	again := status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return &fault{status: status, err: misconfigured("%s answered with HTTP status %d: its key, or what the key may do", name, status)}
	case status >= http.StatusInternalServerError:
		refused := failed("%s answered with HTTP status %d", name, status)
		refused.RetryAfterMS = after.Milliseconds()
		return &fault{status: status, err: refused, again: again, after: after}
	case status >= http.StatusBadRequest:
		return &fault{status: status, err: newStatusError(name, key, response, b, after), again: again, after: after}
	case status != http.StatusOK:
		return &fault{status: status, err: failed("%s answered with HTTP status %d", name, status)}
	case response.Header.Get("Content-Encoding") != "" && response.Header.Get("Content-Encoding") != "identity":
		return &fault{status: status, err: garbled("%s compressed its answer, which was not asked for", name)}
	case !typed(response.Header.Values("Content-Type"), wanted):
		return &fault{status: status, err: garbled("%s answered with another content type than %s", name, wanted)}
	case response.ContentLength > int64(b.left):
		return &fault{status: status, err: tooLarge("%s answered with more than %d bytes", name, b.left)}
	}
	return nil
}

// typed tells whether a body is of the wanted type, in UTF-8.
func typed(stated []string, wanted string) bool {
	if len(stated) != 1 {
		return false
	}
	media, parameters, err := mime.ParseMediaType(stated[0])
	charset, other := parameters["charset"]
	return err == nil && media == wanted && (!other || strings.EqualFold(charset, "utf-8"))
}
