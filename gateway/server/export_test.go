package server

import "context"

// HeldBytes returns the bytes of bodies that a server counts.
func HeldBytes(s *Server) int64 { return s.bodyBytes.used() }

// Wait takes one as soon as it can be had.
func (p *Quota) Wait(ctx context.Context, caller string) bool { return p.wait(ctx, caller) }

// State is how much is taken, by how many, and how many wait.
func (p *Quota) State() (taken int64, holders, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken, len(p.perClient), len(p.waiting)
}

// WaitingFor is how many connections may wait under a limit of descriptors.
func WaitingFor(descriptors uint64) int { return waitingFor(descriptors) }

// Connections is how many connections a limit knows.
func Connections(l *ConnectionLimit) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Waiting is how many connections are open without a request that is being answered.
func (l *ConnectionLimit) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}
