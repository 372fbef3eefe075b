package ratelimit

import (
	"fmt"
	"time"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// MaxBuckets is how many buckets of a kind a Local remembers.
const MaxBuckets = maxBuckets

// NewLocalOf returns a Local that remembers so many buckets of a kind, and as many windows.
func NewLocalOf(clock func() time.Time, capacity int) *Local {
	return newLocal(clock, capacity, capacity)
}

// Check tells whether every table is in order: each bucket known by its name
// and at its place, none with a key below that of the one above it, or beyond its own time.
func (l *Local) Check() error {
	for _, s := range []*bucketSet{&l.calls, &l.callers} {
		for k, t := range s.tables {
			if len(t.byFull) != len(t.byName) {
				return fmt.Errorf("kind %d: %d buckets in the heap, %d by name", k, len(t.byFull), len(t.byName))
			}
			for i, b := range t.byFull {
				if b.index != i || t.byName[b.name] != b || t.byFull[(max(i, 1)-1)/2].key > b.key || b.key > b.full {
					return fmt.Errorf("kind %d: bucket %d of %d is out of place", k, i, len(t.byFull))
				}
			}
		}
	}
	return nil
}

// Sizes are the numbers of buckets of each kind, and of agents with calls in
// flight.
func (l *Local) Sizes() (buckets [charge.Kinds]int, inFlight int) {
	for k := range buckets {
		buckets[k] = len(l.calls.tables[k].byName) + len(l.callers.tables[k].byName)
	}
	return buckets, len(l.calls.inFlight)
}
