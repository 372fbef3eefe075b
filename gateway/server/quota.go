package server

import (
	"context"
	"slices"
	"sync"
)

// quota is a bound that everybody shares: of slots, or of bytes. Nobody ever holds more
// than half of it, whether others are there or not: what is held cannot be taken back,
// so that a bound which one caller may fill has nothing left for the next.
type quota struct {
	mu      sync.Mutex
	most    int64
	taken   int64
	by      map[string]int64 // what each holds
	waiting []*turn          // the first comes first
}

// turn is who waits for a slot.
type turn struct {
	who   string
	taken chan struct{} // closed once it is theirs
}

func newQuota(most int64) *quota { return &quota{most: most, by: map[string]int64{}} }

// half is what one caller may hold of a bound; of a bound of one that is all.
func half(most int64) int64 { return max(most/2, 1) }

// take takes n for somebody, where the pool is larger by more than its bound. It takes
// all or nothing.
func (p *quota) take(who string, n, more int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fits(who, n, more)
}

// fits is take, under mu.
func (p *quota) fits(who string, n, more int64) bool {
	if p.taken+n > p.most+more || p.by[who]+n > half(p.most+more) {
		return false
	}
	p.taken += n
	p.by[who] += n
	return true
}

// give gives back what somebody holds. Those who wait come before those who come.
func (p *quota) give(who string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
	if p.by[who] -= n; p.by[who] == 0 {
		delete(p.by, who)
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(t *turn) bool {
		if !p.fits(t.who, 1, 0) {
			return false
		}
		close(t.taken)
		return true
	})
}

// await takes one for somebody, as soon as it can be had. It is false where the context
// ended before.
func (p *quota) await(ctx context.Context, who string) bool {
	p.mu.Lock()
	if p.fits(who, 1, 0) {
		p.mu.Unlock()
		return true
	}
	t := &turn{who, make(chan struct{})}
	p.waiting = append(p.waiting, t)
	p.mu.Unlock()
	select {
	case <-t.taken:
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
		p.give(who, 1)
	}
	return false
}

// held is how much of the pool is taken.
func (p *quota) held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
