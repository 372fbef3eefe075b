package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callgate/callgate/internal/safe"
)

const (
	// minRetryDelay and maxRetryDelay bound the time to the next fetch after one that
	// failed; it doubles in between.
	minRetryDelay = time.Second
	maxRetryDelay = 30 * time.Second
)

// Start fetches the first keys: it returns nil once there is a usable one, and an error if
// there is none within StartupTimeout, or before the context ends. With StartWithoutKeys it
// makes one attempt and returns nil; Run tries again.
func (t *TokenVerifier) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.opts.StartupTimeout)
	defer cancel()
	for tries := 1; ; tries++ {
		_ = t.fetch(ctx) // Ready returns its error
		err := t.Ready()
		if err == nil || t.opts.StartWithoutKeys {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-t.opts.After(t.retryDelay(tries)):
		}
	}
}

// AdoptKeys takes over the keys of another verifier, with their age, if both have the same
// source, so that the configuration can change while the source cannot be reached. Call it
// before Start and Run; Run then fetches at once.
func (t *TokenVerifier) AdoptKeys(from *TokenVerifier) {
	if from == nil || !t.opts.sameSource(from.opts) {
		return
	}
	if set := from.keys.Load(); set != nil {
		t.keys.Store(set)
		t.adopted = true
	}
}

// Run keeps the keys fresh until the context ends, and then returns nil. It is
// an error to run it twice at a time.
func (t *TokenVerifier) Run(ctx context.Context) error {
	if !t.running.CompareAndSwap(false, true) {
		return errors.New("identity: the keys are kept fresh already")
	}
	defer t.running.Store(false)
	now := t.opts.Now()
	due, calm, failures := now, now, 0
	if t.keys.Load() != nil && !t.adopted {
		due, calm = now.Add(t.jitter(t.opts.Refresh)), now.Add(minRefetchInterval)
	}
	requested := t.refreshRequested
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-requested:
			// Anybody can cause this with a made-up kid. Only the first request counts, so
			// that repeated ones cannot postpone the fetch.
			requested = nil
			if due.After(calm) {
				due = calm
			}
			continue
		case <-t.opts.After(due.Sub(t.opts.Now())):
		}
		if err := t.fetch(ctx); ctx.Err() != nil {
			return nil
		} else if err != nil {
			failures++
		} else {
			failures = 0
			t.clearRefreshRequest()
		}
		requested = t.refreshRequested
		now = t.opts.Now()
		due, calm = now.Add(t.jitter(t.opts.Refresh)), now.Add(minRefetchInterval)
		if failures > 0 {
			due = now.Add(t.retryDelay(failures))
		}
	}
}

// clearRefreshRequest drops a request from before the last fetch.
func (t *TokenVerifier) clearRefreshRequest() {
	select {
	case <-t.refreshRequested:
	default:
	}
}

// jitter varies a duration by a tenth either way, so that many processes do
// not ask at once.
func (t *TokenVerifier) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*t.opts.Random()))
}

// retryDelay is the time to wait after so many failures in a row.
func (t *TokenVerifier) retryDelay(failures int) time.Duration {
	return t.jitter(min(minRetryDelay<<min(failures-1, 16), maxRetryDelay, t.opts.Refresh))
}

// load gets a key set from the source.
func (t *TokenVerifier) load(ctx context.Context) (set *keySet, err error) {
	defer safe.RecoverZero(&set, &err)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	document, err := t.source.fetch(ctx)
	if err != nil {
		return nil, err
	}
	return parseKeys(document)
}

// fetch gets the keys and puts them in use. If that fails, the keys from before stay.
func (t *TokenVerifier) fetch(ctx context.Context) error {
	t.fetchMu.Lock()
	defer t.fetchMu.Unlock()
	set, err := t.load(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err() // the caller has left, and the source is not at fault
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", t.source.name, err)
		failure := err
		t.lastError.Store(&failure)
		set = t.keys.Load()
	} else {
		set.confirmedAt = t.opts.Now()
		t.lastError.Store(nil)
		t.keys.Store(set)
	}
	if t.opts.OnRefresh != nil {
		result := RefreshResult{Err: err}
		if set != nil {
			result.Keys, result.Unusable = len(set.keys), set.unusable
		}
		t.opts.OnRefresh(result)
	}
	return err
}
