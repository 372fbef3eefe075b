package store

import (
	"context"
	"time"
)

// NewMemoryOf is NewMemory with bounds.
func NewMemoryOf(now func() time.Time, bounds Bounds) *Memory { return NewBoundedMemory(now, bounds) }

// Before makes a File call f before each commit.
func (o FileOptions) Before(f func() error) FileOptions {
	o.beforeCommit = f
	return o
}

// NewRedisOf is NewRedis with a clock in place of Redis' own, unless it is nil,
// and another lease; fake tells that no Redis answers, but what stands in for
// one. It waits longer than NewRedis does: a machine that is busy with other tests
// is not what is tested.
func NewRedisOf(ctx context.Context, o RedisOptions, now func() time.Time, lease time.Duration, standIn bool) (*Redis, error) {
	if lease == 0 {
		lease = leaseTime
	}
	return newRedis(ctx, o, testHooks{now: now, lease: lease, fake: standIn, timeouts: defaultTimeouts().scaledTo(10 * decisionWait)})
}

// Retractions is how many calls are to be given back.
func (r *Redis) Retractions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.retractions)
}
