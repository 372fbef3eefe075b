package ratelimit

import (
	"container/heap"
	"strings"
	"time"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// maxBuckets is how many buckets of one kind are kept: about 7 MiB with the longest
// names.
const maxBuckets = 1 << 14

// table holds the buckets of one kind, bounded. Only a bucket that is full again is
// evicted, since a new one would be the same. If none is full, a name that may be
// invented must wait until one is.
type table struct {
	byName map[charge.Name]*bucket
	byFull byFull
}

// find returns the bucket of a charge, with its budget, and makes it if there is none;
// nil if there is no room. A new bucket is full or, if empty is not nil, was empty then.
func (t *table) find(a *charge.Charge, now instant, capacity int, empty *time.Time) *bucket {
	if found, ok := t.byName[a.Name]; ok {
		if found.budget != a.Budget {
			found.reconfigure(a.Budget, now)
			found.undivided = a.Undivided
			found.key = found.full
			heap.Fix(&t.byFull, found.index)
		}
		return found
	}
	if len(t.byFull) >= capacity {
		if t.soonest().full <= now.ns {
			delete(t.byName, heap.Pop(&t.byFull).(*bucket).name)
		} else if !a.Listed {
			return nil
		}
	}
	if t.byName == nil {
		t.byName = make(map[charge.Name]*bucket)
	}
	// The name may be a small part of a large body, which it would keep alive.
	made := newBucket(charge.Name{First: strings.Clone(a.Name.First), Second: strings.Clone(a.Name.Second)}, a.Budget, now)
	made.undivided = a.Undivided
	if empty != nil {
		made.drain(*empty, now)
	}
	made.key = made.full
	t.byName[made.name] = made
	heap.Push(&t.byFull, made)
	return made
}

// soonest returns the bucket that is full soonest. A take only makes its bucket full later and
// leaves the heap alone; here those at its root are put where they belong.
func (t *table) soonest() *bucket {
	for {
		root := t.byFull[0]
		if root.key == root.full {
			return root
		}
		root.key = root.full
		heap.Fix(&t.byFull, 0)
	}
}

// waitForRoom is the smallest number of milliseconds after which a full table has room
// for a new name.
func (t *table) waitForRoom(raw time.Time, now instant) int64 {
	return ceilMillis(now.at.Sub(raw), time.Duration(t.soonest().full-now.ns))
}

// byFull is a heap by the keys of buckets, each of which is full then or later.
type byFull []*bucket

func (h byFull) Len() int           { return len(h) }
func (h byFull) Less(i, j int) bool { return h[i].key < h[j].key }

func (h byFull) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for container/heap.
func (h *byFull) Push(x any) {
	b := x.(*bucket)
	b.index = len(*h)
	*h = append(*h, b)
}

// Pop is for container/heap.
func (h *byFull) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
