package redislimit

import (
	"context"
	"time"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// NewRedisOf returns a Redis that goes by a clock that the test moves, keeps
// its buckets long beyond their time, and its leases as long as it runs.
func NewRedisOf(ctx context.Context, o RedisOptions, fakeTime func() time.Time) (*Redis, []string, error) {
	o.Wait = Patient * callTimeout
	return newRedis(ctx, o, testHooks{clock: fakeTime, lease: 10_000 * time.Hour, extraTTL: time.Hour})
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

// NewRedisSlack returns a Redis that waits so many times as long as in use.
func NewRedisSlack(ctx context.Context, o RedisOptions, slack int) (*Redis, []string, error) {
	o.Wait = time.Duration(slack) * callTimeout
	return NewRedis(ctx, o)
}

// NewRedisLeasing returns a Redis whose leases last so long.
func NewRedisLeasing(ctx context.Context, o RedisOptions, lease time.Duration) (*Redis, []string, error) {
	o.Wait = Patient * callTimeout
	return newRedis(ctx, o, testHooks{lease: lease})
}

// InFlight is how many calls of an agent hold a slot through this gateway.
func (r *Redis) InFlight(agent string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inFlight[agent])
}

// Undebited is the number of grants that Redis was not debited with yet.
func (r *Redis) Undebited() int {
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
