package server

import (
	"context"
	"errors"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

// Slot is that of a request in flight. The zero value is that of no request.
type Slot struct {
	server *Server
	c      *gin.Context
}

// Park makes a request of the pool Calls wait for another request of its client. It waits in
// the pool Streams, so that it takes no slot from that request, and its context ends when the
// server drains. Then it queues for a slot of Calls again. The refusal says that there was no
// room to wait, or no slot afterwards.
func (s *Server) Park(c *gin.Context, wait func(context.Context)) *refusal.Error {
	w := responseOf(c)
	client := w.client
	if !s.pools.streams.take(client, 1, 0) {
		return s.overloaded()
	}
	w.slot.Release(client, 1)
	w.slot = s.pools.streams
	ctx, done := s.untilDrained(c.Request.Context())
	defer done()
	wait(ctx)
	if !s.pools.calls.wait(ctx, client) {
		if cause := c.Request.Context().Err(); errors.Is(cause, context.Canceled) {
			return refusal.New(refusal.Canceled, "The client left while the request waited.").WithCause(cause)
		}
		return s.overloaded()
	}
	w.slot.Release(client, 1)
	w.slot = s.pools.calls
	return nil
}

// Park is Server.Park for the request that has the slot. Without one it just waits, until ctx
// ends.
func (s Slot) Park(ctx context.Context, wait func(context.Context)) *refusal.Error {
	if s.server == nil {
		wait(ctx)
		return nil
	}
	return s.server.Park(s.c, wait)
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
