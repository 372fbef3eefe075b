package boltstore

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/internal/codec"
)

// ended are calls of this process that have ended, as bytes: a gateway that has answered a million of
// them is no larger than one that has answered some thousand.
//
// They are of two classes, each with bounds of its own, in all and for each principal. Beyond a bound
// the oldest of the class make room, so that a result which waits to be fetched never makes room for
// one that was handed over, nor a call of a principal within its share for those of another beyond its
// own. The call that is added is kept, whatever its size; where that is more than the bound, alone.
type ended struct {
	seed   maphash.Seed
	index  map[uint64]uint32 // the slot of an id, by its hash
	slots  []slot            // the first is none
	free   uint32            // the first slot that is free; the others follow as newer
	queues [classes]queue
	bounds [classes]store.Bounds

	principals map[string]uint32
	shares     []share
	unused     []uint32 // shares

	blocks  blocks
	large   map[uint32][]byte // records that are not in blocks, by their slots
	scratch []byte
}

// class says which bounds hold for a call.
type class uint8

const (
	// handed calls are those whose result was handed over, and for which nobody comes back.
	handed class = iota
	// owed calls are all others.
	owed
	classes
)

const (
	// briefCalls and briefBytes bound the calls that run, and beside them those that are owed.
	briefCalls = 100_000
	briefBytes = 256 << 20
	// handedCalls and HandedBytes bound the calls that were handed over. Those of them that take at
	// most a part in handedParts of the bytes are in blocks, outside of the heap.
	handedCalls = 25_000
	HandedBytes = 16 << 20
	handedParts = 8
)

// slot says where a call is.
type slot struct {
	hash   uint64
	ended  int64  // in Unix milliseconds
	size   int    // of its record
	head   int    // of them without the result
	first  uint32 // of its blocks; 0: its record is in large
	share  uint32
	class  class
	kept   bool     // somebody comes back for it, handed over or not
	places [2]place // among all of its class, and among those of its principal
}

// place is one in a queue.
type place struct{ older, newer uint32 }

// queue are calls in the order in which they make room.
type queue struct {
	oldest, newest uint32
	calls          int
	bytes          int64
}

// share is what a principal has.
type share struct {
	principal string
	queues    [classes]queue
}

// newEnded returns none. owner is what has them.
func newEnded(owner *brief, bounds store.Bounds) ended {
	all := bounds.WithDefaults(briefCalls, briefBytes)
	some := bounds.WithDefaults(handedCalls, HandedBytes)
	some.Calls, some.Bytes = min(some.Calls, handedCalls), min(some.Bytes, HandedBytes)
	return ended{
		seed: maphash.MakeSeed(), index: map[uint64]uint32{}, slots: make([]slot, 1),
		bounds:     [classes]store.Bounds{handed: some, owed: all},
		principals: map[string]uint32{}, blocks: newBlocks(owner, int(some.Bytes/blockBytes)), large: map[uint32][]byte{},
	}
}

// find returns the slot of a call; 0: there is none.
func (e *ended) find(id string) uint32 {
	n := e.index[maphash.String(e.seed, id)]
	if n == 0 {
		return 0
	}
	begin := min(e.slots[n].size, 1+binary.MaxVarintLen64+len(id))
	e.scratch = slices.Grow(e.scratch[:0], begin)[:begin]
	e.read(n, e.scratch)
	if string(codec.CallID(e.scratch)) != id {
		return 0
	}
	return n
}

// read fills to with the beginning of a record, or all of it.
func (e *ended) read(n uint32, to []byte) {
	if first := e.slots[n].first; first != 0 {
		e.blocks.read(first, to)
		return
	}
	copy(to, e.large[n])
}

// get returns a call and its slot; 0: there is none.
func (e *ended) get(id string, now time.Time) (n uint32, call store.Call, err error) {
	if n = e.find(id); n == 0 {
		return 0, store.Call{}, nil
	}
	record, head := make([]byte, e.slots[n].size), e.slots[n].head
	e.read(n, record)
	if call, err = codec.DecodeCall(record[:head]); err != nil {
		return 0, store.Call{}, store.Unavailable(err)
	}
	if call.Outlived(now) {
		return 0, store.Call{}, nil
	}
	call.Answer.Result = record[head:]
	return n, call, nil
}

// add adds a call, in the place of any that has its id. Another call whose id has the same hash is
// given up for it. kept says that somebody comes back for it.
func (e *ended) add(call *store.Call, kept bool) {
	e.scratch = codec.AppendCall(e.scratch[:0], *call)
	head, result := e.scratch, call.Answer.Result
	s := slot{hash: maphash.String(e.seed, call.ID), ended: call.Ended.UnixMilli(), size: len(head) + len(result), head: len(head),
		class: owed, kept: kept}
	if call.Delivered && !kept {
		s.class = handed
	}
	if n := e.index[s.hash]; n != 0 {
		e.remove(n)
	}
	bounds := e.bounds[s.class]
	if own, ok := e.principals[call.Scope.Principal]; ok {
		e.makeRoom(&e.shares[own].queues[s.class], bounds.PerPrincipal(), s.room())
	}
	e.makeRoom(&e.queues[s.class], bounds, s.room())
	s.share = e.shareOf(call.Scope.Principal)

	n := e.free
	if n != 0 {
		e.free = e.slots[n].places[0].newer
	} else {
		n = uint32(len(e.slots))
		e.slots = append(e.slots, slot{})
	}
	if s.class == handed && s.room() <= bounds.Bytes/handedParts {
		s.first = e.blocks.write(head, result)
	} else {
		e.large[n] = append(append(make([]byte, 0, s.size), head...), result...)
	}
	e.slots[n], e.index[s.hash] = s, n
	for i, q := range e.queuesOf(&e.slots[n]) {
		e.slots[n].places[i] = place{older: q.newest}
		if q.newest != 0 {
			e.slots[q.newest].places[i].newer = n
		} else {
			q.oldest = n
		}
		q.newest = n
		q.calls++
		q.bytes += s.room()
	}
	if cap(e.scratch) > 64<<10 {
		e.scratch = nil
	}
}

// room is what a call takes of the bytes.
func (s *slot) room() int64 { return int64(blocksFor(s.size)) * blockBytes }

// queuesOf returns the queues that a call is in.
func (e *ended) queuesOf(s *slot) [2]*queue {
	return [2]*queue{&e.queues[s.class], &e.shares[s.share].queues[s.class]}
}

// shareOf returns the share of a principal.
func (e *ended) shareOf(principal string) uint32 {
	n, ok := e.principals[principal]
	if ok {
		return n
	}
	if last := len(e.unused) - 1; last >= 0 {
		n, e.unused = e.unused[last], e.unused[:last]
		e.shares[n] = share{principal: principal}
	} else {
		n = uint32(len(e.shares))
		e.shares = append(e.shares, share{principal: principal})
	}
	e.principals[principal] = n
	return n
}

// makeRoom removes the oldest calls of a queue for one that is added.
func (e *ended) makeRoom(q *queue, bounds store.Bounds, room int64) {
	for q.oldest != 0 && (q.calls >= bounds.Calls || q.bytes+room > bounds.Bytes) {
		e.remove(q.oldest)
	}
}

// remove removes a call.
func (e *ended) remove(n uint32) {
	s := &e.slots[n]
	for i, q := range e.queuesOf(s) {
		at := s.places[i]
		if at.older != 0 {
			e.slots[at.older].places[i].newer = at.newer
		} else {
			q.oldest = at.newer
		}
		if at.newer != 0 {
			e.slots[at.newer].places[i].older = at.older
		} else {
			q.newest = at.older
		}
		q.calls--
		q.bytes -= s.room()
	}
	if of := &e.shares[s.share]; of.queues[handed].calls == 0 && of.queues[owed].calls == 0 {
		delete(e.principals, of.principal)
		*of = share{}
		e.unused = append(e.unused, s.share)
	}
	if s.first != 0 {
		e.blocks.release(s.first)
	} else {
		delete(e.large, n)
	}
	delete(e.index, s.hash)
	*s = slot{places: [2]place{{newer: e.free}}}
	e.free = n
}

// change puts a call in the place of what it was.
func (e *ended) change(n uint32, call *store.Call) { e.add(call, e.slots[n].kept) }

// sweep removes at most limit calls that have been kept for store.Retention. One that was changed since
// it ended, which nobody finds any more, may stay for as long behind others.
func (e *ended) sweep(now time.Time, limit int) (swept int) {
	until := now.Add(-store.Retention).UnixMilli()
	for i := range e.queues {
		for q := &e.queues[i]; q.oldest != 0 && e.slots[q.oldest].ended <= until && swept < limit; swept++ {
			e.remove(q.oldest)
		}
	}
	return swept
}
