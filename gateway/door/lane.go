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
	slots := d.lanes.of(r.Lane)
	return func(c *gin.Context) {
		for _, s := range slots {
			select {
			case s <- struct{}{}:
				defer func() { <-s }()
				if r.Lane == Streams {
					defer d.untilDrained(c)()
				}
				c.Next()
				return
			default:
			}
		}
		r.Refuse(c, d.shed())
	}
}

// untilDrained lets the context of a request end when the door drains.
func (d *Door) untilDrained(c *gin.Context) (done func()) {
	ctx, cancel := context.WithCancel(c.Request.Context())
	c.Request = c.Request.WithContext(ctx)
	go func() {
		select {
		case <-d.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	return cancel
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
