package server

import (
	"context"
	"slices"
	"sync"
)

// Quota is a bound of slots or of bytes that all callers share. No caller ever holds more than
// half of it, even alone: slots cannot be taken back, and a caller that filled the bound would
// leave nothing for the next. It is safe for concurrent use.
type Quota struct {
	mu        sync.Mutex
	limit     int64
	taken     int64
	perClient map[string]int64 // what each holds
	waiting   []*waiter        // the first comes first
}

// waiter is a request in the queue for a slot.
type waiter struct {
	client  string
	granted chan struct{} // closed once it is theirs
}

// NewQuota returns a bound of which nothing is taken.
func NewQuota(most int64) *Quota { return &Quota{limit: most, perClient: map[string]int64{}} }

// half returns how much one caller may hold of a bound: all of a bound of one.
func half(most int64) int64 { return max(most/2, 1) }

// Take takes n for a client, all or nothing.
func (p *Quota) Take(client string, n int64) bool { return p.take(client, n, 0) }

// take is Take, as if the limit were larger by more.
func (p *Quota) take(client string, n, more int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tryTake(client, n, more)
}

// tryTake is take, under mu.
func (p *Quota) tryTake(client string, n, more int64) bool {
	if p.taken+n > p.limit+more || p.perClient[client]+n > half(p.limit+more) {
		return false
	}
	p.taken += n
	p.perClient[client] += n
	return true
}

// Release gives back n of a client, and grants free slots to waiters in their order.
func (p *Quota) Release(caller string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
	if p.perClient[caller] -= n; p.perClient[caller] == 0 {
		delete(p.perClient, caller)
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(t *waiter) bool {
		if !p.tryTake(t.client, 1, 0) {
			return false
		}
		close(t.granted)
		return true
	})
}

// wait takes one for a client as soon as one is free. It returns false if the context ends
// first.
func (p *Quota) wait(ctx context.Context, client string) bool {
	p.mu.Lock()
	if p.tryTake(client, 1, 0) {
		p.mu.Unlock()
		return true
	}
	t := &waiter{client, make(chan struct{})}
	p.waiting = append(p.waiting, t)
	p.mu.Unlock()
	select {
	case <-t.granted:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	at := slices.Index(p.waiting, t)
	if at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
	p.mu.Unlock()
	if at < 0 { // it was given at the same moment
		p.Release(client, 1)
	}
	return false
}

// used is how much of the pool is taken.
func (p *Quota) used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// countedBody counts the bytes of a body in a quota. They count longer than they are read: the
// values that a face has read mostly point into them.
type countedBody struct {
	quota         *Quota
	bytes         int64
	untilAnswered bool // and not only until the answer begins
}

// take counts n bytes more for a client, which may hold extra bytes more than others.
func (b *countedBody) take(client string, n, extra int64) bool {
	if n > 0 && !b.quota.take(client, n, extra) {
		return false
	}
	b.bytes += n
	return true
}

// release gives the bytes back. It is safe to call twice.
func (b *countedBody) release(client string) {
	if b.bytes > 0 {
		b.quota.Release(client, b.bytes)
		b.bytes = 0
	}
}
