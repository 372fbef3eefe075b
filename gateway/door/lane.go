package door

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

// Lane says with what else a route shares its bound.
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
)

// share is the part of a bound that is reserved.
const share = 5

// reserve is a fifth of a bound, at least one.
func reserve(of int) int { return max(of/share, 1) }

// lanes are the slots of what is being answered.
type lanes struct{ calls, reserved, streams chan struct{} }

func newLanes(most int) lanes {
	return lanes{calls: make(chan struct{}, most), reserved: make(chan struct{}, reserve(most)), streams: make(chan struct{}, most)}
}

// of are the slots that a lane may take, the first that is free before the
// others.
func (l lanes) of(lane Lane) []chan struct{} {
	switch lane {
	case Reserved:
		return []chan struct{}{l.reserved, l.calls}
	case Streams:
		return []chan struct{}{l.streams}
	}
	return []chan struct{}{l.calls}
}

func (l lanes) inFlight() int { return len(l.calls) + len(l.reserved) + len(l.streams) }

// bound refuses what comes while too many requests are being answered. A body
// that drips must not keep others out: requests count once they are there.
func (d *Door) bound(r Route) gin.HandlerFunc {
	return func(c *gin.Context) {
		in := d.lanes.enter(r.Lane)
		if in == nil && r.Ends != nil && r.Ends(c.MustGet(keyAsked).(Asked)) {
			in = d.lanes.enter(Reserved)
		}
		if in == nil {
			r.Refuse(c, d.shed())
			return
		}
		defer func() { <-in.slots }()
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
func (l lanes) enter(lane Lane) *place {
	for _, s := range l.of(lane) {
		select {
		case s <- struct{}{}:
			return &place{s}
		default:
		}
	}
	return nil
}

// place is where a request has its slot.
type place struct{ slots chan struct{} }

// Aside has a request of the lane Calls wait for something that its client brings by
// another request. It waits in the lane Streams, so that it takes nothing from those
// who bring it, and its context ends when the door drains; then it takes its turn among
// calls again. A refusal says that there was no room to wait, or is no turn any more.
func (d *Door) Aside(c *gin.Context, wait func(context.Context)) *refusal.Error {
	in := c.MustGet(keyPlace).(*place)
	select {
	case d.lanes.streams <- struct{}{}:
	default:
		return d.shed()
	}
	<-in.slots
	in.slots = d.lanes.streams
	ctx, done := d.untilDrained(c.Request.Context())
	defer done()
	wait(ctx)
	select {
	case d.lanes.calls <- struct{}{}:
		<-in.slots
		in.slots = d.lanes.calls
		return nil
	case <-ctx.Done():
		return d.shed()
	}
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

// mostHeld bounds the bytes of all bodies, as a route may add to them.
func (d *Door) mostHeld(r Route) int64 {
	if r.Lane == Reserved {
		return d.options.MostHeld + d.options.MostHeld/share
	}
	return d.options.MostHeld
}

// shed is the refusal for what is too much.
func (d *Door) shed() *refusal.Error {
	d.options.Metrics.Shed()
	refused := refusal.New(refusal.Overloaded, "Too many requests are being answered: wait 1000 ms, then send the same request again.")
	refused.RetryAfterMS = 1000
	return refused
}
