package engine

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	maxAttempts   = 3
	firstPause    = 100 * time.Millisecond
	longestPause  = time.Second
	maxRetryAfter = 2 * time.Second // a tool that asks for more is not waited for
)

// Retryable tells whether calls of this effect may be tried again.
func Retryable(effect string) bool { return effect == "read" || effect == "idempotent" }

// Failure is why one attempt gave no result.
type Failure struct {
	refusal    *refusal.Error
	retry      bool          // another attempt may end otherwise
	retryAfter time.Duration // what the tool asked to wait; 0 if nothing
	health     health        // what it tells of the tool's server
}

func (f *Failure) Error() string { return f.refusal.Error() }

func (e *Engine) runHTTP(ctx context.Context, call tool.Call) (tool.Result, *refusal.Error) {
	target, err := url.Parse(call.Run.URL)
	if err != nil || target.Host == "" || target.User != nil || target.Scheme != "http" && target.Scheme != "https" {
		return tool.Result{}, Unavailable("the URL of %s is not an absolute http or https URL without user info", call.Tool)
	}
	sent, refused := newRequestTemplate(target, call)
	if refused != nil {
		return tool.Result{}, refused
	}
	if sent.authorization, err = credential(e.secret, call.Run.Credential); err != nil {
		return tool.Result{}, Unavailable("%s: %w", call.Tool, err)
	}
	transport, err := e.pool.transport(target, call.Run.Addresses, !Retryable(call.Effect) || sent.emptyBody())
	if err != nil {
		return tool.Result{}, Unavailable("%s: %w", call.Tool, err)
	}
	return withRetries(ctx, call, e.breakers.forCall(call), func() (tool.Result, *Failure) { return e.attempt(ctx, transport, sent, call) })
}

// withRetries makes the attempts of a call, where its breaker lets them through. Where it
// does not, the fault of the attempt before stays the one that is told.
func withRetries(ctx context.Context, call tool.Call, breaker *breaker, attempt func() (tool.Result, *Failure)) (tool.Result, *refusal.Error) {
	var (
		result   tool.Result
		last     *Failure
		attempts int
	)
	try := func() (tried bool) {
		r, f, tried := breaker.attempt(attempt)
		switch {
		case tried:
			attempts++
			result, last = r, f
		case attempts == 0:
			breaker.reportRefused()
			last = &Failure{refusal: Unavailable("%s has not answered lately: its breaker is open, so nothing was sent", call.Tool)}
		}
		return tried
	}
	if Retryable(call.Effect) {
		retryLoop(ctx, try, func() *Failure { return last })
	} else {
		try()
	}
	result.Attempts = attempts
	if last != nil {
		return result, last.refusal
	}
	return result, nil
}

// retryLoop tries until an attempt gives a result, or no other one would, or may be
// made. last is the fault of the one before.
func retryLoop(ctx context.Context, try func() bool, last func() *Failure) {
	deadline, _ := ctx.Deadline()
	// What Retry returns is not needed: the last attempt has said everything.
	_, _ = backoff.Retry(ctx, func() (struct{}, error) {
		tried, last := try(), last()
		switch {
		case last == nil:
			return struct{}{}, nil
		case !tried, !last.retry, last.retryAfter > maxRetryAfter:
			return struct{}{}, backoff.Permanent(last)
		case last.retryAfter > 0:
			return struct{}{}, &backoff.RetryAfterError{Duration: last.retryAfter}
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
func (e *Engine) attempt(ctx context.Context, transport *http.Transport, sent *requestTemplate, call tool.Call) (result tool.Result, f *Failure) {
	var dispatched atomic.Bool
	defer func() {
		if p := recover(); p != nil {
			if what := safe.PanicError(p).Error(); dispatched.Load() && !Retryable(call.Effect) {
				f = &Failure{refusal: OutcomeUnknown("%s: %s", call.Tool, what)}
			} else {
				f = &Failure{refusal: Internal(what)}
			}
		}
	}()
	// The request is written as soon as it has a connection, and what of it
	// reached the tool cannot be known from then on.
	traced := httptrace.WithClientTrace(context.WithValue(ctx, dispatchedKey{}, &dispatched), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { dispatched.Store(true) },
	})
	request, err := sent.newRequest(traced, call)
	if err != nil {
		return tool.Result{}, &Failure{refusal: Unavailable("no request can be made of %s", call.Tool)}
	}
	// RoundTrip, not a client: it follows no redirect and keeps no cookie.
	response, err := transport.RoundTrip(request)
	if err != nil {
		return tool.Result{}, ConnectionFailure(ctx, call, Origin(sent.target), err, dispatched.Load())
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return tool.Result{}, &Failure{
			refusal:    statusRefusal(call, response.StatusCode),
			retry:      transientStatus(response.StatusCode),
			retryAfter: retryAfter(e.now, response.Header.Get("Retry-After")),
			health:     healthOfStatus(response.StatusCode),
		}
	}
	if sent.method == http.MethodHead {
		return tool.Result{}, nil // such an answer has no body, whatever its head says of one
	}
	result, refused, err := ReadResult(response, call)
	switch {
	case err != nil:
		return tool.Result{}, ConnectionFailure(ctx, call, Origin(sent.target), err, true)
	case refused != nil:
		return tool.Result{}, &Failure{refusal: refused, health: healthOK}
	}
	return result, nil
}

// ConnectionFailure judges an attempt that ended without a whole answer.
func ConnectionFailure(ctx context.Context, call tool.Call, at string, err error, dispatched bool) *Failure {
	f := connectionRefusal(ctx, call, at, err, dispatched)
	f.health = healthOfError(ctx, err)
	return f
}

// connectionRefusal says what such an attempt means for the call.
func connectionRefusal(ctx context.Context, call tool.Call, at string, err error, dispatched bool) *Failure {
	var b *blockedError
	switch {
	case errors.As(err, &b):
		return &Failure{refusal: AddressBlocked("%s: %s", call.Tool, b.reason)}
	case !dispatched && ctx.Err() != nil:
		return &Failure{refusal: Stopped(ctx, call)}
	case !dispatched:
		return &Failure{refusal: Unavailable("%s at %s could not be connected to: %s", call.Tool, at, DescribeError(err)), retry: !netx.IsPermanent(err)}
	case !Retryable(call.Effect) && ctx.Err() != nil:
		return &Failure{refusal: OutcomeUnknown("%s at %s was sent the call and did not answer within %s", call.Tool, at, call.Run.Timeout)}
	case !Retryable(call.Effect):
		return &Failure{refusal: OutcomeUnknown("%s at %s was sent the call: %s", call.Tool, at, DescribeError(err))}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Failure{refusal: TimedOut("%s at %s did not answer within %s", call.Tool, at, call.Run.Timeout)}
	case ctx.Err() != nil:
		return &Failure{refusal: Unavailable("%s: the call was stopped before there was an answer", call.Tool)}
	default:
		return &Failure{refusal: Unavailable("%s at %s was sent the call: %s", call.Tool, at, DescribeError(err)), retry: true}
	}
}

func Origin(target *url.URL) string { return target.Scheme + "://" + target.Host }

// transientStatus tells which answers may be others a little later.
func transientStatus(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// retryAfter returns the wait of a Retry-After header: 0 if there is none or it is invalid, and
// at least the first pause otherwise.
func retryAfter(now func() time.Time, header string) time.Duration {
	wait, ok := netx.RetryAfter(header, now())
	if !ok {
		return 0
	}
	return max(wait, firstPause)
}
