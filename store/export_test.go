package store

import (
	"context"
	"time"
)

// NewMemoryOf is NewMemory with bounds.
func NewMemoryOf(now func() time.Time, bounds Bounds) *Memory { return newMemory(now, bounds) }

// Before makes a File call f before each commit.
func (o FileOptions) Before(f func() error) FileOptions {
	o.before = f
	return o
}

// NewRedisOf is NewRedis with a clock in place of Redis' own, unless it is nil,
// and another lease; standIn tells that no Redis answers, but what stands in for
// one.
func NewRedisOf(ctx context.Context, o RedisOptions, now func() time.Time, lease time.Duration, standIn bool) (*Redis, error) {
	if lease == 0 {
		lease = leaseTime
	}
	return newRedis(ctx, o, seams{now: now, lease: lease, standIn: standIn})
}
