package outbound

import (
	"context"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	maxAttempts   = 3
	firstPause    = 100 * time.Millisecond
	longestPause  = time.Second
	maxRetryAfter = 2 * time.Second // a tool that asks for more is not waited for
)

// attempts are those of one call.
type attempts struct {
	breaker *breaker
	attempt func() (tool.Result, *Failure)
	call    tool.Call

	made   int
	result tool.Result // of the last attempt
	last   *Failure    // of the last attempt; nil if it has a result
}

// withRetries makes the attempts of a call while its breaker lets them through. If the
// breaker opens in between, the last failure is reported.
func withRetries(ctx context.Context, call tool.Call, breaker *breaker,
	attempt func() (tool.Result, *Failure)) (tool.Result, *refusal.Error) {
	a := attempts{breaker: breaker, attempt: attempt, call: call}
	if failure := a.try(); failure != nil && refuse.Retryable(call.Effect) {
		again := a // apart, so that a call without failure takes no memory for it
		again.retry(ctx, failure)
		a = again
	} else if failure != nil && a.last.untaken && !a.call.IsStopped() {
		_ = a.try()
	}
	a.result.Attempts = a.made
	if a.last != nil {
		return a.result, a.last.refusal
	}
	return a.result, nil
}

// try makes an attempt. Its error, nil for a result, tells package backoff whether and when
// another may follow.
func (a *attempts) try() error {
	result, failure, tried := a.breaker.attempt(a.attempt)
	switch {
	case tried:
		if failure == nil || !failure.uncounted {
			a.made++
		}
		// A repetition that the end of the call's time cuts short says nothing of the tool: the failure
		// before it does.
		if a.last == nil || failure == nil || failure.refusal.Code != refusal.ToolTimeout {
			a.result, a.last = result, failure
		}
	case a.made == 0:
		a.breaker.reportRefused()
		a.last = &Failure{refusal: refuse.Unavailable("%s has not answered lately: its breaker is open, so nothing was sent", a.call.Tool)}
	}
	switch {
	case a.last == nil:
		return nil
	case !tried, !a.last.retry, a.last.retryAfter > maxRetryAfter:
		return backoff.Permanent(a.last)
	case a.last.retryAfter > 0:
		return &backoff.RetryAfterError{Duration: a.last.retryAfter}
	default:
		return a.last
	}
}

// retry repeats try after its first failure, until there is a result, or no other attempt
// could give one or may be made. Of a call that was stopped meanwhile the last failure stands: it may have acted.
func (a *attempts) retry(ctx context.Context, failure error) {
	deadline, _ := ctx.Deadline()
	// The result of Retry is not needed: the last attempt has it.
	_, _ = backoff.Retry(ctx, func() (struct{}, error) {
		err := failure
		switch failure = nil; {
		case err != nil:
		case a.call.IsStopped():
			err = backoff.Permanent(a.last)
		default:
			err = a.try()
		}
		return struct{}{}, err
	},
		backoff.WithBackOff(&backoff.ExponentialBackOff{
			InitialInterval: firstPause, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: longestPause,
		}),
		backoff.WithMaxTries(maxAttempts),
		backoff.WithMaxElapsedTime(time.Until(deadline)),
	)
}

// transientStatus reports whether a later attempt may get another status than one that came with a pause; 0: with none.
func transientStatus(code int, pause time.Duration) bool {
	switch code {
	case http.StatusForbidden:
		return pause > 0
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
