package server

import (
	"context"
	"errors"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

// Lane says with what else a route shares its bound. Of every bound one caller has at
// most half.
type Lane int

const (
	// Calls are judged and executed. At most MostInFlight of them are answered at
	// the same time.
	Calls Lane = iota
	// Reserved is for what ends calls, or asks how they ended: it has a fifth of
	// MostInFlight, at least one, for itself, so that calls that saturate the
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

// share is the part of a bound that is reserved.
const share = 5

// reserve is a fifth of a bound, at least one.
func reserve(of int) int { return max(of/share, 1) }

// lanes are the slots of what is being answered.
type lanes struct{ calls, reserved, streams *pool }

func newLanes(most int) lanes {
	return lanes{calls: newPool(int64(most)), reserved: newPool(int64(reserve(most))), streams: newPool(int64(most))}
}

// of are the slots that a lane may take, the first that is free before the
// others.
func (l lanes) of(lane Lane) []*pool {
	switch lane {
	case Reserved:
		return []*pool{l.reserved, l.calls}
	case Streams:
		return []*pool{l.streams}
	}
	return []*pool{l.calls}
}

func (l lanes) inFlight() int { return int(l.calls.held() + l.reserved.held() + l.streams.held()) }

// bound refuses what comes while too many requests are being answered, or too many of
// the same caller. A body that drips must not keep others out: requests count once
// they are there.
func (d *Door) bound(r Route) gin.HandlerFunc {
	return func(c *gin.Context) {
		if r.Lane == Free {
			c.Next()
			return
		}
		who := c.GetString(keyWho)
		in := d.lanes.enter(r.Lane, who)
		if in == nil && r.Ends != nil && r.Ends(c.MustGet(keyAsked).(Asked)) {
			in = d.lanes.enter(Reserved, who)
		}
		if in == nil {
			r.Refuse(c, d.shed())
			return
		}
		defer func() { in.slots.give(who, 1) }()
		c.Set(keyPlace, in)
		if r.Lane == Streams {
			ctx, done := d.untilDrained(c.Request.Context())
			defer done()
			c.Request = c.Request.WithContext(ctx)
		}
		c.Next()
	}
}

// enter takes a slot of a lane; nil where none is free.
func (l lanes) enter(lane Lane, who string) *place {
	for _, slots := range l.of(lane) {
		if slots.take(who, 1, 0) {
			return &place{slots}
		}
	}
	return nil
}

// place is where a request has its slot.
type place struct{ slots *pool }

// Aside has a request of the lane Calls wait for something that its client brings by
// another request. It waits in the lane Streams, so that it takes nothing from those
// who bring it, and its context ends when the door drains; then it takes its turn among
// calls again. A refusal says that there was no room to wait, or is no turn any more.
func (d *Door) Aside(c *gin.Context, wait func(context.Context)) *refusal.Error {
	in, who := c.MustGet(keyPlace).(*place), c.GetString(keyWho)
	if !d.lanes.streams.take(who, 1, 0) {
		return d.shed()
	}
	in.slots.give(who, 1)
	in.slots = d.lanes.streams
	ctx, done := d.untilDrained(c.Request.Context())
	defer done()
	wait(ctx)
	if !d.lanes.calls.await(ctx, who) {
		if cause := c.Request.Context().Err(); errors.Is(cause, context.Canceled) {
			return refusal.New(refusal.Canceled, "The client left while the request waited.").WithCause(cause)
		}
		return d.shed()
	}
	in.slots.give(who, 1)
	in.slots = d.lanes.calls
	return nil
}

// untilDrained is a context that ends when the door drains, too.
func (d *Door) untilDrained(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-d.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// moreHeld is how many bytes beyond MostHeld bodies of a route may hold.
func (d *Door) moreHeld(r Route) int64 {
	if r.Lane == Reserved {
		return d.options.MostHeld / share
	}
	return 0
}

// shed is the refusal for what is too much.
func (d *Door) shed() *refusal.Error {
	d.options.Metrics.Shed()
	refused := refusal.New(refusal.Overloaded, "Too many requests are being answered: wait 1000 ms, then send the same request again.")
	refused.RetryAfterMS = 1000
	return refused
}
