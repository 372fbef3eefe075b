package redislimit

import (
	"context"
	"time"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// NewWithClock returns a limiter that goes by a clock that the test moves, keeps
// its buckets long beyond their time, and its leases as long as it runs.
func NewWithClock(ctx context.Context, o Options, fakeTime func() time.Time) (*Limiter, []string, error) {
	o.Wait = Patient * callTimeout
	return newLimiter(ctx, o, testHooks{clock: fakeTime, lease: 10_000 * time.Hour, extraTTL: time.Hour})
}

// How many times as long as in use Redis has for everything: where a test is not about
// time, longer than any machine takes; where it waits for what does not come, as long
// as a machine under load may need for what does.
const (
	Patient = 300
	Waits   = 10
)

// SharedAgain bounds how long Redis is not shared after it has come back: a look at it
// may have begun just before, the next one comes after a pause, and each takes so long
// at most.
const SharedAgain = connectTimeout + maxPause + connectTimeout

// NewWithSlack returns a limiter that waits so many times as long as in use.
func NewWithSlack(ctx context.Context, o Options, slack int) (*Limiter, []string, error) {
	o.Wait = time.Duration(slack) * callTimeout
	return New(ctx, o)
}

// NewWithLease returns a limiter whose leases last so long.
func NewWithLease(ctx context.Context, o Options, lease time.Duration) (*Limiter, []string, error) {
	o.Wait = Patient * callTimeout
	return newLimiter(ctx, o, testHooks{lease: lease})
}

// InFlight is how many calls of an agent hold a slot through this gateway.
func (r *Limiter) InFlight(agent string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inFlight[agent])
}

// Undebited is the number of grants that Redis was not debited with yet.
func (r *Limiter) Undebited() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.undebited)
}

// Answer reads a reply of the script that takes.
func Answer(reply, id string, buckets int) (admitted bool, ms int64, by int, err error) {
	out, ms, by, err := parseReply(reply, id, buckets)
	return out == charge.Taken, ms, by, err
}

// KeyOf is the key of an agent's bucket.
func KeyOf(prefix, agent string) string {
	_, key := bucketKey(prefix, charge.Agents, charge.Name{First: charge.BoundedName(agent)})
	return key
}

// SlotsKeyOf is the key of an agent's slots.
func SlotsKeyOf(prefix, agent string) string { return slotsKey(prefix, charge.BoundedName(agent)) }
