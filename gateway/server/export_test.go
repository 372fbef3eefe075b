package server

import "context"

// HeldBytes is how many bytes of bodies a door counts.
func HeldBytes(d *Server) int64 { return d.held.held() }

// Quota is a bound that callers share.
type Quota struct{ *quota }

// NewQuota returns one.
func NewQuota(most int64) Quota { return Quota{newQuota(most)} }

// Take takes some for somebody.
func (p Quota) Take(who string, n int64) bool { return p.take(who, n, 0) }

// Give gives some back.
func (p Quota) Give(who string, n int64) { p.give(who, n) }

// Await takes one as soon as it can be had.
func (p Quota) Await(ctx context.Context, who string) bool { return p.await(ctx, who) }

// State is how much is taken, by how many, and how many wait.
func (p Quota) State() (taken int64, holders, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken, len(p.by), len(p.waiting)
}
