package server

import (
	"context"
	"errors"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

// Pool says with what else a route shares its bound. Of every bound one caller has at
// most half.
type Pool int

const (
	// Calls are judged and executed. At most MaxInFlight of them are answered at
	// the same time.
	Calls Pool = iota
	// Reserved is for what ends calls, or asks how they ended: it has a fifth of
	// MaxInFlight, at least one, for itself, so that calls that saturate the
	// gateway can still be completed and looked up. Where that is taken, it shares
	// what calls leave free.
	Reserved
	// Streams wait for a call to end. They do little, and for long: there are as
	// many of them as calls, and they take nothing from the others. Their context
	// ends when the door drains.
	Streams
	// Free is for what is answered at once, to anybody: it takes nothing that others
	// need, so that nobody is kept out by those who ask for it.
	Free
)

// reservedShare is the part of a bound that is reserved.
const reservedShare = 5

// reservedOf is a fifth of a bound, at least one.
func reservedOf(of int) int { return max(of/reservedShare, 1) }

// pools are the slots of what is being answered.
type pools struct{ calls, reserved, streams *quota }

func newPools(most int) pools {
	return pools{calls: newQuota(int64(most)), reserved: newQuota(int64(reservedOf(most))), streams: newQuota(int64(most))}
}

// quotas are the slots that a lane may take, the first that is free before the
// others.
func (l pools) quotas(lane Pool) []*quota {
	switch lane {
	case Reserved:
		return []*quota{l.reserved, l.calls}
	case Streams:
		return []*quota{l.streams}
	}
	return []*quota{l.calls}
}

func (l pools) inFlight() int { return int(l.calls.used() + l.reserved.used() + l.streams.used()) }

// limitInFlight refuses what comes while too many requests are being answered, or too many of
// the same caller. A body that drips must not keep others out: requests count once
// they are there.
func (s *Server) limitInFlight(r Route) gin.HandlerFunc {
	return func(c *gin.Context) {
		if r.Pool == Free {
			c.Next()
			return
		}
		who := c.GetString(keyClient)
		in := s.pools.acquire(r.Pool, who)
		if in == nil && r.Completes != nil && r.Completes(c.MustGet(keyRequest).(Request)) {
			in = s.pools.acquire(Reserved, who)
		}
		if in == nil {
			r.Refuse(c, s.overloaded())
			return
		}
		defer func() { in.quota.release(who, 1) }()
		c.Set(keySlot, in)
		if r.Pool == Streams {
			ctx, done := s.untilDrained(c.Request.Context())
			defer done()
			c.Request = c.Request.WithContext(ctx)
		}
		c.Next()
	}
}

// acquire takes a slot of a lane; nil where none is free.
func (l pools) acquire(lane Pool, who string) *slot {
	for _, slots := range l.quotas(lane) {
		if slots.take(who, 1, 0) {
			return &slot{slots}
		}
	}
	return nil
}

// slot is where a request has its slot.
type slot struct{ quota *quota }

// Park has a request of the lane Calls wait for something that its client brings by
// another request. It waits in the lane Streams, so that it takes nothing from those
// who bring it, and its context ends when the door drains; then it takes its turn among
// calls again. A refusal says that there was no room to wait, or is no turn any more.
func (s *Server) Park(c *gin.Context, wait func(context.Context)) *refusal.Error {
	in, who := c.MustGet(keySlot).(*slot), c.GetString(keyClient)
	if !s.pools.streams.take(who, 1, 0) {
		return s.overloaded()
	}
	in.quota.release(who, 1)
	in.quota = s.pools.streams
	ctx, done := s.untilDrained(c.Request.Context())
	defer done()
	wait(ctx)
	if !s.pools.calls.wait(ctx, who) {
		if cause := c.Request.Context().Err(); errors.Is(cause, context.Canceled) {
			return refusal.New(refusal.Canceled, "The client left while the request waited.").WithCause(cause)
		}
		return s.overloaded()
	}
	in.quota.release(who, 1)
	in.quota = s.pools.calls
	return nil
}

// untilDrained is a context that ends when the door drains, too.
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

// overloaded is the refusal for what is too much.
func (s *Server) overloaded() *refusal.Error {
	s.options.Metrics.Shed()
	refused := refusal.New(refusal.Overloaded, "Too many requests are being answered: wait 1000 ms, then send the same request again.")
	refused.RetryAfterMS = 1000
	return refused
}
