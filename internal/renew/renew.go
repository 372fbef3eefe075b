// Package renew keeps values that are fetched and that expire, such as tokens: it fetches a value
// once for all that wait for it, and again before it expires, while the old one is still used.
package renew

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/safe"
)

const (
	// pauseAfterFailure is how long nothing is fetched after a fetch that failed: those who ask in
	// between get its error.
	pauseAfterFailure = time.Second
	// pauseAfterDrop is how long after a dropped value none is dropped, so that a server
	// that accepts none does not make the gateway fetch without end.
	pauseAfterDrop = 10 * time.Second
)

// ErrClosed is a fetch after Close.
var ErrClosed = errors.New("the gateway ends, so nothing is fetched")

// Group runs fetches. The zero value is usable.
type Group struct {
	mu      sync.Mutex
	ctx     context.Context // of all fetches; nil before the first
	cancel  context.CancelFunc
	closed  bool
	running sync.WaitGroup
}

// start runs a fetch, or reports that the group is closed.
func (g *Group) start(run func(context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if g.ctx == nil {
		g.ctx, g.cancel = context.WithCancel(context.Background())
	}
	ctx := g.ctx
	g.running.Go(func() { run(ctx) })
	return true
}

// Close ends the fetches that run, and waits for them. Values that are there are still returned
// until they expire.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	if g.cancel != nil {
		g.cancel()
	}
	g.mu.Unlock()
	g.running.Wait()
}

// Fetched is a value with its times.
type Fetched[T any] struct {
	Value T
	Renew time.Time // from then on it is fetched again, and still used
	Until time.Time // from then on it is not used
}

// Source says how a value is fetched.
type Source[T any] struct {
	Group   *Group
	Now     func() time.Time
	Timeout time.Duration // of one fetch
	// Fetch must end soon after its context.
	Fetch func(context.Context) (Fetched[T], error)
	// Failed is told of a fetch that failed while an earlier value is still used, with the time
	// until which it is; nil ignores it. It must not block.
	Failed func(err error, until time.Time)
}

// Value is one value. It is safe for concurrent use.
type Value[T comparable] struct {
	source Source[T]

	mu        sync.Mutex
	current   Fetched[T]
	present   bool
	fetching  *fetch[T]
	failure   error // of the last fetch; nil if it succeeded
	nextFetch time.Time
	nextDrop  time.Time
}

// fetch is one fetch, for all that wait for it.
type fetch[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// New returns a value that is fetched when it is asked for first.
func New[T comparable](source Source[T]) *Value[T] { return &Value[T]{source: source} }

// Get returns the value. It waits for a fetch only if there is none that may still be used; a caller
// that stops waiting does not stop the fetch for others. Those who wait for a fetch get its value
// even if that expires at once.
func (v *Value[T]) Get(ctx context.Context) (T, error) {
	v.mu.Lock()
	now := v.source.Now()
	if v.present && now.Before(v.current.Until) {
		if !now.Before(v.current.Renew) && v.fetching == nil && !now.Before(v.nextFetch) {
			v.begin()
		}
		defer v.mu.Unlock()
		return v.current.Value, nil
	}
	var none T
	if v.fetching == nil {
		if v.failure != nil && now.Before(v.nextFetch) {
			defer v.mu.Unlock()
			return none, v.failure
		}
		if !v.begin() {
			v.mu.Unlock()
			return none, ErrClosed
		}
	}
	f := v.fetching
	v.mu.Unlock()
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// begin begins a fetch, unless the group is closed. The value must be locked.
func (v *Value[T]) begin() bool {
	f := &fetch[T]{done: make(chan struct{})}
	if !v.source.Group.start(func(ctx context.Context) { v.run(ctx, f) }) {
		return false
	}
	v.fetching = f
	return true
}

func (v *Value[T]) run(ctx context.Context, f *fetch[T]) {
	ctx, cancel := context.WithTimeout(ctx, v.source.Timeout)
	defer cancel()
	fetched, err := v.fetchSafely(ctx)
	v.mu.Lock()
	v.fetching, v.failure = nil, err
	f.value, f.err = fetched.Value, err
	kept, until := v.present, v.current.Until
	if err != nil {
		v.nextFetch = v.source.Now().Add(pauseAfterFailure)
	} else {
		v.current, v.present = fetched, true
	}
	v.mu.Unlock()
	close(f.done)
	if err != nil && kept && v.source.Failed != nil {
		v.source.Failed(err, until)
	}
}

func (v *Value[T]) fetchSafely(ctx context.Context) (fetched Fetched[T], err error) {
	defer safe.Recover(&err)
	return v.source.Fetch(ctx)
}

// Drop stops the use of a value that its receiver did not accept. It reports whether another one may
// be accepted: false, if one was dropped lately and this is the one that came after it.
func (v *Value[T]) Drop(value T) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch now := v.source.Now(); {
	case !v.present || v.current.Value != value:
		return true // another one is fetched next, or is there
	case now.Before(v.nextDrop):
		return false
	default:
		v.present, v.nextDrop = false, now.Add(pauseAfterDrop)
		return true
	}
}
