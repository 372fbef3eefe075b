package server

import (
	"context"
	"slices"
	"sync"
)

// quota is a bound of slots or of bytes that all callers share. No caller ever holds more than
// half of it, even alone: slots cannot be taken back, and a caller that filled the bound would
// leave nothing for the next.
type quota struct {
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

func newQuota(most int64) *quota { return &quota{limit: most, perClient: map[string]int64{}} }

// half returns how much one caller may hold of a bound: all of a bound of one.
func half(most int64) int64 { return max(most/2, 1) }

// take takes n for a client, all or nothing, as if the limit were larger by more.
func (p *quota) take(client string, n, more int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tryTake(client, n, more)
}

// tryTake is take, under mu.
func (p *quota) tryTake(client string, n, more int64) bool {
	if p.taken+n > p.limit+more || p.perClient[client]+n > half(p.limit+more) {
		return false
	}
	p.taken += n
	p.perClient[client] += n
	return true
}

// release gives back n of a client, and grants free slots to waiters in their order.
func (p *quota) release(caller string, n int64) {
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
func (p *quota) wait(ctx context.Context, client string) bool {
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
		p.release(client, 1)
	}
	return false
}

// used is how much of the pool is taken.
func (p *quota) used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// countedBody counts the bytes of a body in a quota. They count longer than they are read: the
// values that a face has read mostly point into them.
type countedBody struct {
	quota         *quota
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
		b.quota.release(client, b.bytes)
		b.bytes = 0
	}
}
