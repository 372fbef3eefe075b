package redisbudget

import "time"

// NewAt is New with a clock in the place of that of Redis, and another pause.
func NewAt(o Options, clock func() time.Time, pause time.Duration) (*Limiter, error) {
	o.testTime, o.testPause = clock, pause
	return New(o)
}

// Lose has Redis count as away, as a request that fails does.
func (l *Limiter) Lose(cause error) { l.loseRedis(cause) }

// InDebt reports whether the limiter has debts of its own, and whether a request carries some.
func (l *Limiter) InDebt() (own, flying bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.seen {
		own, flying = own || s.debt.Tokens != 0, flying || s.flying.Tokens != 0
	}
	return own, flying
}
