package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/store"
)

var (
	ctx    = context.Background()
	begins = time.UnixMilli(1_700_000_000_000)
)

// either is a store of calls.
type either interface {
	Open(context.Context, store.Call) (*store.Call, error)
	Dispatch(context.Context, string, store.Task) error
	Update(context.Context, string, store.Change) error
	Finish(context.Context, string, store.Ending) (store.Call, error)
	Settle(context.Context, string) error
	Get(context.Context, string, store.Whose) (store.Call, error)
	Watch(string) (*store.Watch, error)
	Recover(context.Context, store.Reason, int) ([]store.Call, error)
	Unfinished(context.Context, string, int) ([]store.Call, error)
	Sweep(context.Context, int) (int, error)
}

// plain is a call as a caller sees it, wherever it is kept.
func plain(c store.Call) store.Call {
	c.Owner = ""
	for _, b := range []*[]byte{&c.Metadata, &c.Answer.Result, &c.Task.Arguments} {
		if len(*b) == 0 {
			*b = nil
		}
	}
	if len(c.Task.Using) == 0 {
		c.Task.Using = nil
	}
	return c
}

var strangeIDs = []string{"", " ", "a b", "\x00", "\xff\xfe", "call_ä", strings.Repeat("x", 300), strings.Repeat("long", 5000)}

// Calls that are kept in memory, and leave it where they wait, are what a store in memory says of them,
// whatever is done with them and in whatever order.
func TestBriefIsLikeMemory(t *testing.T) {
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 1))
		now := begins
		clock := func() time.Time { return now }
		file, err := Open(t.TempDir(), Options{UnkeyedInMemory: true, Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		both := [2]either{store.NewMemory(clock), file}
		ids := slices.Clone(strangeIDs)
		for i := range 24 {
			ids = append(ids, fmt.Sprint("call_", i))
		}
		left := map[string]bool{}
		text := func(most int) []byte { return bytes.Repeat([]byte("r"), random.IntN(most+1)) }
		one := func(of ...string) string { return of[random.IntN(len(of))] }
		for step := range 6000 {
			id := one(ids...)
			principal := one("p", "q", "")
			var did string
			var do func(either) (any, error)
			switch n := random.IntN(100); {
			case n < 25:
				c := store.Call{ID: id, Digest: one("d", "d", "e"), Scope: store.Scope{Principal: principal, Workspace: "w", Project: "x"}}
				if left[id] {
					continue // a gateway gives no id twice
				}
				did, do = "open", func(s either) (any, error) { prior, err := s.Open(ctx, c); return prior == nil, err }
			case n < 45:
				task := store.Task{Tool: "a.b", Version: "1", Agent: "A", Effect: one("read", "once", "idempotent", "none"), Arguments: text(600), Group: one("", "g")}
				did, do = "dispatch", func(s either) (any, error) { return nil, s.Dispatch(ctx, id, task) }
			case n < 48:
				did, do = "redispatch", func(s either) (any, error) { return nil, s.Update(ctx, id, store.Redispatch{}) }
			case n < 50:
				until := now.Add(time.Duration(random.IntN(100)) * time.Minute)
				did, do = "wait", func(s either) (any, error) {
					err := s.Update(ctx, id, store.Defer{Until: until})
					if err == nil && !left[id] {
						left[id], ids = true, append(ids, fmt.Sprint("later_", step))
					}
					return nil, err
				}
			case n < 56:
				change := store.SetMetadata{At: store.Step(one("waiting", "ended", "ended", "opened")), Was: []byte(one("", "m", "n")), Metadata: []byte(one("", "m", "n"))}
				did, do = "note", func(s either) (any, error) { return nil, s.Update(ctx, id, change) }
			case n < 64:
				did, do = "deliver", func(s either) (any, error) { return nil, s.Update(ctx, id, store.Deliver{Principal: principal}) }
			case n < 78:
				e := store.Ending{
					State: store.State(one("done", "done", "unknown", "pending")), Attempt: one("a", "a", "b", ""), Deliver: random.IntN(3) > 0, Awaited: random.IntN(4) == 0,
					Answer: store.Answer{Result: text(3000), Status: 200}, Metadata: []byte(one("", "m")),
				}
				if random.IntN(40) == 0 {
					e.Answer.Result = text(60_000)
				}
				did, do = "finish", func(s either) (any, error) { c, err := s.Finish(ctx, id, e); return plain(c), err }
			case n < 81:
				did, do = "settle", func(s either) (any, error) { return nil, s.Settle(ctx, id) }
			case n < 94:
				whose := store.Of(principal)
				if random.IntN(3) == 0 {
					whose = store.OfAnyone()
				}
				did, do = "get", func(s either) (any, error) { c, err := s.Get(ctx, id, whose); return plain(c), err }
			case n < 96:
				limit := random.IntN(6)
				list := func(c []store.Call, err error) (any, error) {
					var names []string
					for i := range c {
						names = append(names, fmt.Sprint(c[i].ID, c[i].Step))
					}
					return names, err
				}
				did, do = "list", func(s either) (any, error) { return list(s.Unfinished(ctx, id, limit)) }
				if random.IntN(2) == 0 {
					did, do = "expired", func(s either) (any, error) { return list(s.Recover(ctx, store.Expired, limit)) }
				}
			default:
				now = now.Add(time.Duration(random.IntN(8)) * time.Hour)
				did, do = "sweep", func(s either) (any, error) { _, err := s.Sweep(ctx, 1000); return nil, err }
			}
			var was [2]bool // notified
			var said [2]any
			var errs [2]error
			for i, s := range both {
				w, err := s.Watch(id)
				if err != nil {
					t.Fatal(err)
				}
				said[i], errs[i] = do(s)
				select {
				case <-w.Changed:
					was[i] = true
				default:
				}
				w.Stop()
			}
			if !reflect.DeepEqual(said[0], said[1]) || was[0] && !was[1] || (errs[0] == nil) != (errs[1] == nil) || !errors.Is(errs[1], errs[0]) && errs[0].Error() != errs[1].Error() {
				t.Fatalf("seed %d, step %d: %s %.40q:\n%+v, %v, told %v\n%+v, %v, told %v", seed, step, did, id, said[0], errs[0], was[0], said[1], errs[1], was[1])
			}
			if step%50 == 0 {
				verify(t, &file.brief.ended)
			}
		}
	}
}

// verify compares everything that is counted and linked with what it is of.
func verify(t *testing.T, e *ended) {
	t.Helper()
	inUse, inBlocks := 0, 0
	counted := map[*queue]*queue{}
	for n := range e.slots {
		s := &e.slots[n]
		if s.size == 0 {
			continue
		}
		inUse++
		if e.index[s.hash] != uint32(n) {
			t.Fatalf("slot %d is not in the index", n)
		}
		if s.first != 0 {
			inBlocks += blocksFor(s.size)
		} else if len(e.large[uint32(n)]) != s.size {
			t.Fatalf("slot %d has no bytes", n)
		}
		for _, q := range e.queuesOf(s) {
			if counted[q] == nil {
				counted[q] = &queue{}
			}
			counted[q].calls++
			counted[q].bytes += s.room()
		}
	}
	if inUse != len(e.index) {
		t.Fatalf("%d slots, %d in the index", inUse, len(e.index))
	}
	free := 0
	for b := e.blocks.free; b != 0; b = e.blocks.next(b) {
		free++
	}
	if free+inBlocks != int(e.blocks.used) {
		t.Fatalf("%d blocks are free, %d have calls, %d were used", free, inBlocks, e.blocks.used)
	}
	check := func(q *queue, i int) {
		t.Helper()
		calls, last := 0, uint32(0)
		for n := q.oldest; n != 0; n = e.slots[n].places[i].newer {
			if e.slots[n].places[i].older != last {
				t.Fatalf("slot %d is behind %d, not %d", n, e.slots[n].places[i].older, last)
			}
			calls, last = calls+1, n
		}
		want := queue{q.oldest, q.newest, 0, 0}
		if is := counted[q]; is != nil {
			want.calls, want.bytes = is.calls, is.bytes
		}
		if *q != want || calls != q.calls || last != q.newest {
			t.Fatalf("a queue says %+v and has %d calls to %d; there are %+v", *q, calls, last, want)
		}
	}
	for c := range e.queues {
		check(&e.queues[c], 0)
	}
	for principal, n := range e.principals {
		if e.shares[n].principal != principal {
			t.Fatalf("the share of %q is that of %q", principal, e.shares[n].principal)
		}
		for c := range e.shares[n].queues {
			check(&e.shares[n].queues[c], 1)
		}
	}
}

// Of each class the oldest make room, for those of the same principal beyond its share, and in all.
func TestWhatMakesRoom(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, bounds := range []store.Bounds{{Calls: 40, Bytes: 64 << 10, PrincipalPercent: 25}, {Calls: 100_000, Bytes: 40 << 10, PrincipalPercent: 40}, {Calls: 1, Bytes: 1}} {
		b := newBrief(store.NewEngine(nil, store.Process{}, time.Now, bounds), "", func() time.Time { return begins }, bounds)
		e := &b.ended
		type kept struct {
			call store.Call
			room int64
		}
		var model [classes][]kept
		for step := range 2000 {
			c := store.Call{
				ID: fmt.Sprint("call_", step), Scope: store.Scope{Principal: fmt.Sprint("p", min(random.IntN(8), random.IntN(8)))}, State: store.Done, Step: store.Ended, FinishedBy: "a",
				Opened: begins, Ended: begins, Delivered: random.IntN(4) > 0, Answer: store.Answer{Result: bytes.Repeat([]byte{byte(step)}, random.IntN(2000)), Status: 200},
			}
			if random.IntN(50) == 0 {
				c.Answer.Result = bytes.Repeat([]byte{byte(step)}, random.IntN(80<<10))
			}
			awaited := random.IntN(5) == 0
			of := owed
			if c.Delivered && !awaited {
				of = handed
			}
			e.add(&c, awaited)
			room := e.slots[e.queues[of].newest].room()
			own, all := e.bounds[of].PerPrincipal(), e.bounds[of]
			for _, fit := range []func(kept) bool{func(k kept) bool { return k.call.Scope == c.Scope }, func(kept) bool { return true }} {
				within := all
				if fit(kept{call: c}) && !fit(kept{call: store.Call{Scope: store.Scope{Principal: "nobody"}}}) {
					within = own
				}
				for {
					calls, bytes, oldest := 0, int64(0), -1
					for i, k := range model[of] {
						if fit(k) {
							calls, bytes = calls+1, bytes+k.room
							if oldest < 0 {
								oldest = i
							}
						}
					}
					if oldest < 0 || calls < within.Calls && bytes+room <= within.Bytes {
						break
					}
					model[of] = slices.Delete(model[of], oldest, oldest+1)
				}
			}
			model[of] = append(model[of], kept{c, room})
			verify(t, e)
			if n := len(model[0]) + len(model[1]); n != len(e.index) {
				t.Fatalf("step %d: %d calls are kept, want %d", step, len(e.index), n)
			}
			for _, k := range slices.Concat(model[0], model[1]) {
				if n, got, err := e.get(k.call.ID, begins); err != nil || n == 0 || !reflect.DeepEqual(plain(got), plain(k.call)) {
					t.Fatalf("step %d: %s is %d, %+v, %v", step, k.call.ID, n, got, err)
				}
			}
		}
		if swept := e.sweep(begins.Add(store.Retention), 1<<20); swept != len(model[0])+len(model[1]) || len(e.index)+len(e.large)+len(e.principals) > 0 {
			t.Errorf("swept %d; left: %d, %d large, %d principals", swept, len(e.index), len(e.large), len(e.principals))
		}
		verify(t, e)
	}
}

// A call whose id has the hash of another's is not taken for that one.
func TestTwoIDsWithOneHash(t *testing.T) {
	b := newBrief(store.NewEngine(nil, store.Process{}, time.Now, store.Bounds{}), "", func() time.Time { return begins }, store.Bounds{})
	c := store.Call{ID: "one", Step: store.Ended, State: store.Done, Ended: begins, Scope: store.Scope{Principal: "p"}}
	b.ended.add(&c, false)
	n, _, _ := b.ended.get("one", begins)
	s := b.ended.slots[n]
	b.ended.remove(n)
	c.ID = "other"
	b.ended.add(&c, false)
	n, _, _ = b.ended.get("other", begins)
	b.ended.index[s.hash] = n
	if _, err := b.get(ctx, "one"); !errors.Is(err, errElsewhere) {
		t.Errorf("found another call: %v", err)
	}
}

// Many use the same calls, of which most make room for others: each is finished once, delivered once
// at most, and read as a whole.
func TestBriefUnderLoad(t *testing.T) {
	b := newBrief(store.NewEngine(nil, store.Process{}, time.Now, store.Bounds{}), "", time.Now, store.Bounds{Calls: 60, Bytes: 1 << 20, PrincipalPercent: 50})
	const each = 400
	var finished, delivered [each]atomic.Int64
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range each {
				id, principal := fmt.Sprint("call_", i), fmt.Sprint("p", i%3)
				_ = b.open(ctx, store.Call{ID: id, Scope: store.Scope{Principal: principal}})
				_ = b.dispatch(ctx, id, store.Task{Effect: "read"})
				e := store.Ending{State: store.Done, Attempt: fmt.Sprint(g), Answer: store.Answer{Result: []byte(strings.Repeat(id, i)), Status: g}, Deliver: g%2 == 0}
				if _, err := b.finish(ctx, id, e); err == nil {
					finished[i].Add(1)
					if e.Deliver {
						delivered[i].Add(1)
					}
				}
				if err := b.update(ctx, id, store.Deliver{Principal: principal}); err == nil {
					delivered[i].Add(1)
				}
				if c, err := b.get(ctx, id); err == nil && c.Step == store.Ended && (c.ID != id || string(c.Answer.Result) != strings.Repeat(id, i)) {
					t.Errorf("%s: read %+v", id, c)
				}
				_ = b.unfinished("", 3)
			}
		})
	}
	all.Wait()
	verify(t, &b.ended)
	for i := range each {
		// A call that has made room may be opened again.
		if f, d := finished[i].Load(), delivered[i].Load(); f == 0 || d > f {
			t.Errorf("call %d: finished %d times, delivered %d times", i, f, d)
		}
	}
	runtime.KeepAlive(b)
}

// A call takes nothing of the heap once as many are kept as there may be.
func TestKeptCallsDoNotGrow(t *testing.T) {
	b := newBrief(store.NewEngine(nil, store.Process{}, time.Now, store.Bounds{}), "", time.Now, store.Bounds{})
	n := 0
	run := func(calls int) {
		for range calls {
			n++
			id := fmt.Sprintf("call_%026d", n)
			if err := errors.Join(b.open(ctx, store.Call{ID: id, Scope: store.Scope{Principal: fmt.Sprint(n % 5)}}), b.dispatch(ctx, id, store.Task{Effect: "read"})); err != nil {
				t.Fatal(err)
			}
			if _, err := b.finish(ctx, id, store.Ending{State: store.Done, Attempt: "a", Deliver: true, Answer: store.Answer{Result: make([]byte, 400)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	run(26_000)
	before := heap()
	run(26_000)
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if most := int(b.ended.blocks.used) * blockBytes; most > HandedBytes {
		t.Errorf("%d bytes are in blocks", most)
	}
	runtime.KeepAlive(b)
}
