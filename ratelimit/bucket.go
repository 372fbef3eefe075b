package ratelimit

import (
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// instant is a point of the limiter's own time, which never runs backwards: as a
// time, and in nanoseconds since the limiter began.
type instant struct {
	at time.Time
	ns int64
}

// bucket is one token bucket. The lock of the set that holds it guards it.
type bucket struct {
	name    charge.Name
	limiter rate.Limiter
	budget  Budget

	// Derived from the budget.
	limit    float64 // tokens a second
	interval int64   // nanoseconds a token, rounded up
	margin   int64   // bound of clearlyHasToken, nanoseconds, rounded down

	// full is when the bucket holds its burst again, in nanoseconds since the
	// limiter began: never too early, and late by less than a nanosecond for
	// each token. A full bucket is as good as a new one.
	full  int64
	index int   // in the table's heap
	key   int64 // by which the heap orders it: full, or an earlier value of it

	// granted counts the tokens taken since DrainGrants was last called; undivided is
	// the budget of which this bucket has one replica's share: see Share.
	granted   int64
	undivided Budget
}

func newBucket(n charge.Name, to Budget, now instant) *bucket {
	b := &bucket{name: n, full: now.ns}
	b.configure(to)
	b.limiter = *rate.NewLimiter(rate.Limit(b.limit), to.Burst)
	return b
}

func (b *bucket) configure(to Budget) {
	b.budget, b.limit = to, to.Rate.PerSecond()
	b.interval = int64(math.Ceil(1e9 / b.limit))
	b.margin = int64(math.Floor(float64(to.Burst-2) / b.limit * 1e9))
}

// reconfigure changes the budget. The bucket keeps its tokens, cut to the new burst.
func (b *bucket) reconfigure(to Budget, now instant) {
	b.configure(to)
	b.limiter.SetLimitAt(now.at, rate.Limit(b.limit))
	b.limiter.SetBurstAt(now.at, to.Burst)
	b.updateFull(now)
}

// drain empties a new bucket as of a time before now.
func (b *bucket) drain(at time.Time, now instant) {
	b.limiter.AllowN(at, b.budget.Burst)
	b.updateFull(now)
}

// updateFull computes when the bucket is full.
func (b *bucket) updateFull(now instant) {
	missing := float64(b.budget.Burst) - b.limiter.TokensAt(now.at)
	b.full = addClamped(now.ns, int64(math.Ceil(missing/b.limit*1e9)))
}

// take takes a token, and reports whether there was one.
func (b *bucket) take(now instant) bool {
	if !b.limiter.AllowN(now.at, 1) {
		return false
	}
	b.full = addClamped(max(b.full, now.ns), b.interval)
	return true
}

// clearlyHasToken reports, without asking the limiter, that the bucket holds a token
// and has held it for the time of one token, which is the margin for rounding.
func (b *bucket) clearlyHasToken(now instant) bool { return b.full-now.ns <= b.margin }

// deficit is the time until a bucket with so many tokens holds one, cut to whole
// nanoseconds: the comparison by which rate.Limiter itself admits.
func (b *bucket) deficit(tokens float64) time.Duration {
	return max(0, time.Duration((1-tokens)/b.limit*1e9))
}

// waitMillis is the smallest number of milliseconds, at least 1, after which the
// bucket admits, if nothing is taken from it meanwhile. raw is the clock's
// time, which may stand before now.
func (b *bucket) waitMillis(tokens float64, raw time.Time, now instant) int64 {
	admits := func(ms int64) bool {
		return b.deficit(b.limiter.TokensAt(raw.Add(time.Duration(ms)*time.Millisecond))) == 0
	}
	ms := ceilMillis(now.at.Sub(raw), b.deficit(tokens))
	// The division may round across a millisecond; what counts is the answer
	// that will be given then.
	if ms > 1 && admits(ms-1) {
		ms--
	} else if !admits(ms) {
		ms++
	}
	return ms
}

// ceilMillis is a sum of durations in milliseconds, rounded up, at least 1.
func ceilMillis(gap, d time.Duration) int64 {
	ns := addClamped(int64(gap), int64(d))
	return max(1, ns/int64(time.Millisecond)+min(1, ns%int64(time.Millisecond)))
}

// addClamped adds nanoseconds, add at least 0, without overflow.
func addClamped(ns, add int64) int64 {
	if ns > math.MaxInt64-add {
		return math.MaxInt64
	}
	return ns + add
}
