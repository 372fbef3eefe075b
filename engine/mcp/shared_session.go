package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/internal/safe"
)

const (
	openTime       = 30 * time.Second // for a session to begin over HTTP
	firstBackoff   = 200 * time.Millisecond
	maxBackoff     = 5 * time.Second
	maxBackoffWait = time.Second // a call waits as long for a backoff to end; if it takes longer, it is refused at once
)

// sharedSession holds the one session with a server, which all calls share, and opens
// another after it has ended.
type sharedSession struct {
	client   *Client
	endpoint endpoint
	used     atomic.Int64 // when, in nanoseconds
	calls    int          // calls that use it now; under the client's lock
	unprobed bool         // its program ends on a request before initialize; only connectSafely uses it

	mu      sync.Mutex
	closed  bool
	current *session
	pending *pendingOpen
	pauses  backoff.ExponentialBackOff // between failures in a row
	retryAt time.Time
}

// pendingOpen is a session that is being opened, for all calls that wait for it.
type pendingOpen struct {
	done    chan struct{}
	session *session
	err     error
}

// errBackingOff refuses a call while the session is not reopened after failures.
const errBackingOff refuse.Reason = "it has failed lately and is given some time"

// errClosed is a session whose client is closed, or whose server was removed.
const errClosed refuse.Reason = "the gateway has ended the session"

func (l *sharedSession) touch()                       { l.used.Store(time.Now().UnixNano()) }
func (l *sharedSession) lastUse() time.Time           { return time.Unix(0, l.used.Load()) }
func (l *sharedSession) usedBefore(at time.Time) bool { return l.lastUse().Before(at) }

// get returns the session once it is open. A caller that stops waiting does not stop the
// opening for others.
func (l *sharedSession) get(ctx context.Context) (*session, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, errClosed
	}
	if s := l.current; s != nil {
		l.mu.Unlock()
		return s, nil
	}
	o := l.pending
	if o == nil {
		pause := max(time.Until(l.retryAt), 0)
		if pause > maxBackoffWait {
			l.mu.Unlock()
			return nil, errBackingOff
		}
		o = &pendingOpen{done: make(chan struct{})}
		l.pending = o
		if !l.client.spawn(func() { l.open(o, pause) }) {
			l.pending = nil
			l.mu.Unlock()
			return nil, errClosed
		}
	}
	l.mu.Unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open opens a session after a pause.
func (l *sharedSession) open(o *pendingOpen, pause time.Duration) {
	defer close(o.done)
	limit := openTime
	if l.endpoint.target == nil {
		limit = l.endpoint.startTime
	}
	ctx, cancel := context.WithTimeout(l.client.ctx, limit+pause)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
	o.session, o.err = l.connectSafely(ctx)
	if l.endpoint.target == nil && errors.Is(o.err, context.DeadlineExceeded) {
		o.err = refuse.Reason(fmt.Sprintf("its program did not answer within %s of its start; if it is still being downloaded, as by npx or uvx at first, give it a longer start_timeout",
			duration.Spell(limit)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = nil
	if o.err != nil {
		l.backOff()
		return
	}
	s := o.session
	if l.closed || !l.client.spawn(func() { l.watch(s) }) {
		o.session, o.err = nil, errClosed
		s.connection.disconnect()
		s.connection.closeSession()
		return
	}
	l.current = s
}

// connectSafely opens a session, and contains panics. A program that ends before it has one may be one that
// ends on the request before initialize: it is started once more without it, and henceforth if that works.
func (l *sharedSession) connectSafely(ctx context.Context) (s *session, err error) {
	defer safe.Catch(func(panicked error) { s, err = nil, refuse.Reason(panicked.Error()) })
	s, err = l.connect(ctx)
	if ended := new(programEnd); errors.As(err, &ended) && !l.unprobed {
		l.unprobed = true
		s, err = l.connect(ctx)
	}
	l.unprobed = l.unprobed && err == nil
	return s, err
}

func (l *sharedSession) connect(ctx context.Context) (*session, error) {
	c, err := l.dial()
	if err != nil {
		return nil, err
	}
	return openSession(ctx, l, c)
}

// backOff delays the next opening after a session that did not open, or that ended
// without a response. The session must be locked.
func (l *sharedSession) backOff() {
	l.retryAt = time.Now().Add(l.pauses.NextBackOff())
}

// watch waits until a session ends, and closes it.
func (l *sharedSession) watch(s *session) {
	<-s.connection.ended()
	if c, ok := s.connection.(*local); ok && c.endCause() != nil && l.client.options.Logger != nil {
		l.client.options.Logger.Warn("the program of a tool server has ended; the next call starts it anew", "server", l.endpoint.server,
			"cause", reason(c.endCause()))
	}
	l.drop(s)
	s.connection.closeSession()
}

// drop forgets a session, and disconnects it when the requests in it have ended. The next call opens another.
func (l *sharedSession) drop(s *session) {
	defer s.retire() // once it is not handed out any more
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != s {
		return
	}
	l.current = nil
	if s.answered.Load() {
		l.pauses.Reset()
	} else {
		l.backOff()
	}
}

// close ends the session for good.
func (l *sharedSession) close() {
	l.mu.Lock()
	s := l.current
	l.closed, l.current = true, nil
	l.mu.Unlock()
	if s != nil {
		s.connection.disconnect()
	}
}

// reason says why a session could not be opened, for the operator.
func reason(err error) string {
	if without := new(credentialError); errors.As(err, &without) {
		return without.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not answer in time"
	}
	return outbound.DescribeError(err)
}

// newPauses doubles the pause with each failure in a row, up to a maximum.
func newPauses(first, most time.Duration) backoff.ExponentialBackOff {
	return backoff.ExponentialBackOff{InitialInterval: first, Multiplier: 2, MaxInterval: most}
}
