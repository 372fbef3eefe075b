package outbound

import (
	"context"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	maxAttempts   = 3
	firstPause    = 100 * time.Millisecond
	longestPause  = time.Second
	maxRetryAfter = 2 * time.Second // a tool that asks for more is not waited for
)

// withRetries makes the attempts of a call while its breaker lets them through. If the
// breaker opens in between, the last failure is reported.
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
			last = &Failure{refusal: refuse.Unavailable("%s has not answered lately: its breaker is open, so nothing was sent", call.Tool)}
		}
		return tried
	}
	if refuse.Retryable(call.Effect) {
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

// retryLoop repeats try until there is a result, or no other attempt could give one or
// may be made. last is the failure of the last attempt.
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

// transientStatus reports whether a later attempt may get another status.
func transientStatus(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
