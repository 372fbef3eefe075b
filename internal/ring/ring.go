// Package ring keeps the values of the keys that came last.
package ring

import "sync"

// Ring has at most a number of keys. It is safe for concurrent use.
type Ring[K comparable, V any] struct {
	most int

	mu    sync.Mutex
	kept  map[K]kept[V]
	order []K // by their places; a key that was taken out leaves its place behind
	next  int // the place of the oldest, once all are used
}

type kept[V any] struct {
	value V
	place int
}

// New returns an empty ring.
func New[K comparable, V any](most int) *Ring[K, V] {
	return &Ring[K, V]{most: most, kept: map[K]kept[V]{}}
}

// Put keeps a value. A key that is new pushes out the oldest one where there is no room.
func (r *Ring[K, V]) Put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, there := r.kept[key]; there {
		r.kept[key] = kept[V]{value, was.place}
		return
	}
	place := len(r.order)
	if place < r.most {
		r.order = append(r.order, key)
	} else {
		place = r.next
		if oldest := r.order[place]; r.kept[oldest].place == place {
			delete(r.kept, oldest)
		}
		r.order[place] = key
		r.next = (place + 1) % r.most
	}
	r.kept[key] = kept[V]{value, place}
}

// Get returns the value of a key, and whether it is kept.
func (r *Ring[K, V]) Get(key K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, there := r.kept[key]
	return k.value, there
}

// Delete takes a key out.
func (r *Ring[K, V]) Delete(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, key)
}
