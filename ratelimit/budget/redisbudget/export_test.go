package redisbudget

import "time"

// NewAt is New with a clock in the place of that of Redis, and another pause.
func NewAt(o Options, clock func() time.Time, pause time.Duration) (*Limiter, error) {
	o.testTime, o.testPause = clock, pause
	return New(o)
}

// Lose has Redis count as away, as a request that fails does.
func (l *Limiter) Lose(cause error) { l.loseRedis(cause) }

// HasUnsent reports whether the limiter has unsent amounts, and whether a request carries some.
func (l *Limiter) HasUnsent() (own, inFlight bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.seen {
		own, inFlight = own || s.unsent.Tokens != 0, inFlight || s.inFlight.Tokens != 0
	}
	return own, inFlight
}
