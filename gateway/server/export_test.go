package server

import "context"

// Held is how many bytes of bodies a door counts.
func Held(d *Door) int64 { return d.held.held() }

// Pool is a bound that callers share.
type Pool struct{ *pool }

// NewPool returns one.
func NewPool(most int64) Pool { return Pool{newPool(most)} }

// Take takes some for somebody.
func (p Pool) Take(who string, n int64) bool { return p.take(who, n, 0) }

// Give gives some back.
func (p Pool) Give(who string, n int64) { p.give(who, n) }

// Await takes one as soon as it can be had.
func (p Pool) Await(ctx context.Context, who string) bool { return p.await(ctx, who) }

// State is how much is taken, by how many, and how many wait.
func (p Pool) State() (taken int64, holders, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken, len(p.by), len(p.waiting)
}
