// Package deadline bounds work that mostly ends at once: its contexts end in time like those
// of context.WithTimeout, and set a timer only for a caller that waits for their end; its
// connections and alarms change a timer only where it is to end earlier.
package deadline

import (
	"context"
	"sync"
	"time"
)

// Context ends at its deadline, with its parent, or when it is cancelled. Unlike one of
// package context it may say that it was cancelled where it had ended before and nobody had
// asked. It is safe for concurrent use.
type Context struct {
	parent context.Context
	at     time.Time

	mu    sync.Mutex
	err   error           // once it is known to have ended
	timed context.Context // the same with a timer, once Done was called
	stop  context.CancelFunc
}

// WithTimeout returns a context that ends after a time. Cancel it once its work has ended.
func WithTimeout(parent context.Context, timeout time.Duration) *Context {
	return At(parent, time.Now().Add(timeout))
}

// At returns a context that ends at a time. Cancel it once its work has ended.
func At(parent context.Context, at time.Time) *Context { return new(Context).begin(parent, at) }

// WithTimeout is the function of that name, in the memory of c where c is the zero value. Work that
// has room for its contexts saves their allocations; whoever was given c may keep it. It must not be
// called twice at the same time.
func (c *Context) WithTimeout(parent context.Context, timeout time.Duration) *Context {
	if c.parent != nil {
		return WithTimeout(parent, timeout)
	}
	return c.begin(parent, time.Now().Add(timeout))
}

func (c *Context) begin(parent context.Context, at time.Time) *Context {
	if outer, ok := parent.Deadline(); ok && outer.Before(at) {
		at = outer
	}
	c.parent, c.at = parent, at
	return c
}

// Cancel ends the context.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Where nobody waits, the clock is not read: most work ends in time.
	if c.err == nil && (c.stop == nil || c.ended() == nil) {
		c.err = context.Canceled
	}
	if c.stop != nil {
		c.stop()
	}
}

// ended is why the context has ended; nil where it has not.
func (c *Context) ended() error {
	switch {
	case c.err != nil:
	case c.timed != nil:
		if !time.Now().Before(c.at) {
			<-c.timed.Done() // its timer is due, and may not have run yet
		}
		c.err = c.timed.Err()
	case c.parent.Err() != nil:
		c.err = c.parent.Err()
	case !time.Now().Before(c.at):
		c.err = context.DeadlineExceeded
	}
	return c.err
}

// Deadline is the earlier one of its own and its parent's.
func (c *Context) Deadline() (time.Time, bool) { return c.at, true }

// Err tells why the context has ended.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended()
}

// Done is closed when the context ends. The first call sets a timer.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		ended := c.ended()
		c.timed, c.stop = context.WithDeadline(c.parent, c.at)
		if ended != nil {
			c.stop()
		}
	}
	return c.timed.Done()
}

// Value is the parent's. Contexts made from this one find the one with the timer by it.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	from := c.parent
	if c.timed != nil {
		from = c.timed
	}
	c.mu.Unlock()
	return from.Value(key)
}
