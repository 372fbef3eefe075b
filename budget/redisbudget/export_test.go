package redisbudget

import "time"

// NewAt is New with a clock in the place of that of Redis, and another pause.
func NewAt(o Options, clock func() time.Time, pause time.Duration) (*Limiter, error) {
	o.testTime, o.testPause = clock, pause
	return New(o)
}
