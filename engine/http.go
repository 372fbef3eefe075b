package engine

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/refusal"
)

const (
	maxAttempts   = 3
	firstPause    = 100 * time.Millisecond
	longestPause  = time.Second
	maxRetryAfter = 2 * time.Second // a tool that asks for more is not waited for
)

// retried tells whether calls of this effect may be tried again.
func retried(effect string) bool { return effect == "read" || effect == "idempotent" }

// fault is why one attempt gave no result.
type fault struct {
	refused *refusal.Error
	again   bool          // another attempt may end otherwise
	after   time.Duration // what the tool asked to wait; 0 if nothing
	health  health        // what it tells of the tool's server
}

func (f *fault) Error() string { return f.refused.Error() }

func (e *Engine) runHTTP(ctx context.Context, call Call) (Result, *refusal.Error) {
	target, err := url.Parse(call.Run.URL)
	if err != nil || target.Host == "" || target.User != nil || target.Scheme != "http" && target.Scheme != "https" {
		return Result{}, unavailable("the URL of %s is not an absolute http or https URL without user info", call.Tool)
	}
	sent, refused := outlineOf(target, call)
	if refused != nil {
		return Result{}, refused
	}
	if sent.authorization, err = credential(e.secret, call.Run.Credential); err != nil {
		return Result{}, unavailable("%s: %w", call.Tool, err)
	}
	transport, err := e.pool.transport(target, call.Run.Addresses, !retried(call.Effect) || sent.bare())
	if err != nil {
		return Result{}, unavailable("%s: %w", call.Tool, err)
	}
	return tries(ctx, call, e.breakers.of(call), func() (Result, *fault) { return e.attempt(ctx, transport, sent, call) })
}

// tries makes the attempts of a call, where its breaker lets them through. Where it
// does not, the fault of the attempt before stays the one that is told.
func tries(ctx context.Context, call Call, breaker *breaker, attempt func() (Result, *fault)) (Result, *refusal.Error) {
	var (
		result   Result
		last     *fault
		attempts int
	)
	try := func() (tried bool) {
		r, f, tried := breaker.pass(attempt)
		switch {
		case tried:
			attempts++
			result, last = r, f
		case attempts == 0:
			breaker.refused()
			last = &fault{refused: unavailable("%s has not answered lately: its breaker is open, so nothing was sent", call.Tool)}
		}
		return tried
	}
	if retried(call.Effect) {
		repeat(ctx, try, func() *fault { return last })
	} else {
		try()
	}
	result.Attempts = attempts
	if last != nil {
		return result, last.refused
	}
	return result, nil
}

// repeat tries until an attempt gives a result, or no other one would, or may be
// made. last is the fault of the one before.
func repeat(ctx context.Context, try func() bool, last func() *fault) {
	deadline, _ := ctx.Deadline()
	// What Retry returns is not needed: the last attempt has said everything.
	_, _ = backoff.Retry(ctx, func() (struct{}, error) {
		tried, last := try(), last()
		switch {
		case last == nil:
			return struct{}{}, nil
		case !tried, !last.again, last.after > maxRetryAfter:
			return struct{}{}, backoff.Permanent(last)
		case last.after > 0:
			return struct{}{}, &backoff.RetryAfterError{Duration: last.after}
		default:
			return struct{}{}, last
		}
	},
		backoff.WithBackOff(&backoff.ExponentialBackOff{
			InitialInterval: firstPause, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: longestPause,
		}),
		backoff.WithMaxTries(maxAttempts),
		backoff.WithMaxElapsedTime(time.Until(deadline)),
	)
}

// attempt sends the call once and reads the answer.
func (e *Engine) attempt(ctx context.Context, transport *http.Transport, sent *outline, call Call) (result Result, f *fault) {
	var dispatched atomic.Bool
	defer func() {
		if p := recover(); p != nil {
			if what := panicked(p); dispatched.Load() && !retried(call.Effect) {
				f = &fault{refused: unknown("%s: %s", call.Tool, what)}
			} else {
				f = &fault{refused: broken(what)}
			}
		}
	}()
	// The request is written as soon as it has a connection, and what of it
	// reached the tool cannot be known from then on.
	traced := httptrace.WithClientTrace(context.WithValue(ctx, dispatchedKey{}, &dispatched), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { dispatched.Store(true) },
	})
	request, err := sent.request(traced, call)
	if err != nil {
		return Result{}, &fault{refused: unavailable("no request can be made of %s", call.Tool)}
	}
	// RoundTrip, not a client: it follows no redirect and keeps no cookie.
	response, err := transport.RoundTrip(request)
	if err != nil {
		return Result{}, lost(ctx, call, site(sent.target), err, dispatched.Load())
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return Result{}, &fault{
			refused: status(call, response.StatusCode),
			again:   passing(response.StatusCode),
			after:   retryAfter(e.now, response.Header.Get("Retry-After")),
			health:  judge(response.StatusCode),
		}
	}
	if sent.method == http.MethodHead {
		return Result{}, nil // such an answer has no body, whatever its head says of one
	}
	result, refused, err := read(response, call)
	switch {
	case err != nil:
		return Result{}, lost(ctx, call, site(sent.target), err, true)
	case refused != nil:
		return Result{}, &fault{refused: refused, health: well}
	}
	return result, nil
}

// lost judges an attempt that ended without a whole answer.
func lost(ctx context.Context, call Call, at string, err error, dispatched bool) *fault {
	f := refuse(ctx, call, at, err, dispatched)
	f.health = blame(ctx, err)
	return f
}

// refuse says what such an attempt means for the call.
func refuse(ctx context.Context, call Call, at string, err error, dispatched bool) *fault {
	var b *blockedError
	switch {
	case errors.As(err, &b):
		return &fault{refused: blocked("%s: %s", call.Tool, b.reason)}
	case !dispatched && ctx.Err() != nil:
		return &fault{refused: stopped(ctx, call)}
	case !dispatched:
		return &fault{refused: unavailable("%s at %s could not be connected to: %s", call.Tool, at, describe(err)), again: !lasting(err)}
	case !retried(call.Effect) && ctx.Err() != nil:
		return &fault{refused: unknown("%s at %s was sent the call and did not answer within %s", call.Tool, at, call.Run.Timeout)}
	case !retried(call.Effect):
		return &fault{refused: unknown("%s at %s was sent the call: %s", call.Tool, at, describe(err))}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &fault{refused: timedOut("%s at %s did not answer within %s", call.Tool, at, call.Run.Timeout)}
	case ctx.Err() != nil:
		return &fault{refused: unavailable("%s: the call was stopped before there was an answer", call.Tool)}
	default:
		return &fault{refused: unavailable("%s at %s was sent the call: %s", call.Tool, at, describe(err)), again: true}
	}
}

func site(target *url.URL) string { return target.Scheme + "://" + target.Host }

// passing tells which answers may be others a little later.
func passing(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// retryAfter reads a Retry-After header (RFC 9110, section 10.2.3): seconds or a
// date. It is 0 where there is none that can be read, and at least the first
// pause otherwise.
func retryAfter(now func() time.Time, header string) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now())
	} else {
		return 0
	}
	return max(wait, firstPause)
}
