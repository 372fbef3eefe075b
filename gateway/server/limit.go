package server

import (
	"context"
	"errors"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

// limitInFlight refuses a request while too many are being answered, in all or of the same
// caller. A request counts once its body has been read: a body that drips must not keep others
// out.
func (s *Server) limitInFlight(r Route) gin.HandlerFunc {
	return func(c *gin.Context) {
		if r.Pool == Free {
			c.Next()
			return
		}
		client := c.GetString(keyClient)
		in := s.pools.acquire(r.Pool, client)
		if in == nil && r.Completes != nil && r.Completes(c.MustGet(keyRequest).(Request)) {
			in = s.pools.acquire(Reserved, client)
		}
		if in == nil {
			r.Refuse(c, s.overloaded())
			return
		}
		defer func() { in.quota.release(client, 1) }()
		c.Set(keySlot, in)
		if r.Pool == Streams {
			ctx, done := s.untilDrained(c.Request.Context())
			defer done()
			c.Request = c.Request.WithContext(ctx)
		}
		c.Next()
	}
}

// Park makes a request of the pool Calls wait for another request of its client. It waits in
// the pool Streams, so that it takes no slot from that request, and its context ends when the
// server drains. Then it queues for a slot of Calls again. The refusal says that there was no
// room to wait, or no slot afterwards.
func (s *Server) Park(c *gin.Context, wait func(context.Context)) *refusal.Error {
	in, client := c.MustGet(keySlot).(*slot), c.GetString(keyClient)
	if !s.pools.streams.take(client, 1, 0) {
		return s.overloaded()
	}
	in.quota.release(client, 1)
	in.quota = s.pools.streams
	ctx, done := s.untilDrained(c.Request.Context())
	defer done()
	wait(ctx)
	if !s.pools.calls.wait(ctx, client) {
		if cause := c.Request.Context().Err(); errors.Is(cause, context.Canceled) {
			return refusal.New(refusal.Canceled, "The client left while the request waited.").WithCause(cause)
		}
		return s.overloaded()
	}
	in.quota.release(client, 1)
	in.quota = s.pools.calls
	return nil
}

// untilDrained returns a context that also ends when the server drains.
func (s *Server) untilDrained(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-s.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// extraBodyBytes is how many bytes beyond MaxBodyBytes bodies of a route may hold.
func (s *Server) extraBodyBytes(r Route) int64 {
	if r.Pool == Reserved {
		return s.options.MaxBodyBytes / reservedShare
	}
	return 0
}

// overloaded counts and returns the refusal of a request beyond a bound.
func (s *Server) overloaded() *refusal.Error {
	s.options.Metrics.Shed()
	refused := refusal.New(refusal.Overloaded, "Too many requests are being answered: wait 1000 ms, then send the same request again.")
	refused.RetryAfterMS = 1000
	return refused
}
