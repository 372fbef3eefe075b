package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/redisstore"
)

var ctx = context.Background()

// calls is what a gateway needs of a store.
type calls interface {
	Open(context.Context, store.Call) (*store.Call, error)
	Dispatch(context.Context, string, store.Task) error
	Update(context.Context, string, store.Change) error
	Finish(context.Context, string, store.Ending) (store.Call, error)
	Settle(context.Context, string) error
	Get(ctx context.Context, id string, whose store.Whose) (store.Call, error)
	Watch(string) (*store.Watch, error)
	Recover(context.Context, store.Reason, int) ([]store.Call, error)
	Sweep(context.Context, int) (int, error)
}

var (
	_ calls = (*store.Memory)(nil)
	_ calls = (*boltstore.Store)(nil)
	_ calls = (*redisstore.Store)(nil)
)

type backend func(testing.TB, func() time.Time, store.Bounds) calls

var backends = map[string]backend{
	"memory": func(_ testing.TB, now func() time.Time, b store.Bounds) calls { return store.NewBoundedMemory(now, b) },
	"file": func(t testing.TB, now func() time.Time, b store.Bounds) calls {
		return openFile(t, t.TempDir(), boltstore.Options{Now: now, Bounds: b})
	},
	"unkeyed in memory": func(t testing.TB, now func() time.Time, b store.Bounds) calls {
		return openFile(t, t.TempDir(), boltstore.Options{Now: now, Bounds: b, UnkeyedInMemory: true})
	},
	"redis": func(t testing.TB, now func() time.Time, b store.Bounds) calls {
		o := at(redistest.Shared(t))
		o.Bounds = b
		return join(t, o, testHooks{now: now}).Store
	},
	"cluster": func(t testing.TB, now func() time.Time, b store.Bounds) calls {
		nodes := redistest.Cluster(t)

		return join(t, redisstore.Options{Options: redisconn.Options{Cluster: nodes[:1], Prefix: redistest.Prefix()}, Bounds: b}, testHooks{now: now}).Store
	},
	"sentinel": func(t testing.TB, now func() time.Time, b store.Bounds) calls {
		address := redistest.Sentinel(t)
		return join(t, redisstore.Options{Options: redisconn.Options{Sentinel: redisconn.Sentinel{Master: redistest.Master, Addresses: []string{address}}, Prefix: redistest.Prefix()}, Bounds: b}, testHooks{now: now}).Store
	},
}

// patient is how long a test waits for the disk: it is not what is tested.
const patient = 30 * time.Second

func openFile(t testing.TB, dir string, o boltstore.Options) *boltstore.Store {
	t.Helper()
	if o.Wait == 0 {
		o.Wait = patient
	}
	f, err := boltstore.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// clock is a time that a test sets.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(1_700_000_000_000)
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// each runs a test for every backend, which wait for their disks and servers together.
func each(t *testing.T, b store.Bounds, test func(*testing.T, calls, *clock)) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			test(t, open(t, c.now, b), c)
		})
	}
}

var (
	once = store.Task{Tool: "payments.refund", Version: "1.0.0", Agent: "Analyst", Effect: "once", Arguments: []byte(`{"a": 1}`), Thread: "t"}
	read = store.Task{Tool: "web.search", Version: "1.0.0", Agent: "Analyst", Effect: "read", Arguments: []byte(`{"q":"x"}`)}
)

func newCall(id, key string) store.Call {
	return store.Call{ID: id, Key: key, Digest: "d", Scope: store.Scope{Principal: "p", Workspace: "w", Project: "q"}}
}

func ending(attempt, result string) store.Ending {
	return store.Ending{State: store.Done, Answer: store.Answer{Result: []byte(result), Status: 200}, Attempt: attempt}
}

// opened opens a call that no other has the key of.
func opened(t testing.TB, s calls, c store.Call) string {
	t.Helper()
	if prior, err := s.Open(ctx, c); prior != nil || err != nil {
		t.Fatalf("open %s: %+v, %v", c.ID, prior, err)
	}
	return c.ID
}

func dispatched(t testing.TB, s calls, c store.Call, task store.Task) string {
	t.Helper()
	id := opened(t, s, c)
	must(t, s.Dispatch(ctx, id, task))
	return id
}

func ended(t testing.TB, s calls, c store.Call) string {
	t.Helper()
	id := dispatched(t, s, c, once)
	if _, err := s.Finish(ctx, id, ending(id, "r")); err != nil {
		t.Fatal(err)
	}
	return id
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOneKeyOneCall(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, _ *clock) {
		var won atomic.Int64
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				id := fmt.Sprint("racer", i)
				prior, err := s.Open(ctx, newCall(id, "k"))
				switch {
				case err != nil:
					t.Error(err)
				case prior == nil:
					won.Add(1)
					if err := s.Dispatch(ctx, id, once); err != nil {
						t.Error(err)
					}
				case prior.State != store.Pending || prior.Digest != "d":
					t.Errorf("got %+v", prior)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d calls for one key", won.Load())
		}
		for i, other := range []store.Scope{{"x", "w", "q"}, {"p", "x", "q"}, {"p", "w", "x"}, {"p", "wq", ""}} {
			c := newCall(fmt.Sprint("other", i), "k")
			c.Scope = other
			opened(t, s, c)
		}
	})
}

// One process opens and dispatches, over and over, while others do.
func TestKeysUnderLoad(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, _ *clock) {
		const keys, racers = 50, 8
		var won [keys]atomic.Int64
		var all sync.WaitGroup
		for r := range racers {
			all.Go(func() {
				for k := range keys {
					id := fmt.Sprintf("%d-%d", r, k)
					prior, err := s.Open(ctx, newCall(id, fmt.Sprint(k)))
					if err != nil {
						t.Error(err)
					}
					if prior != nil || err != nil {
						continue
					}
					won[k].Add(1)
					if err := s.Dispatch(ctx, id, once); err != nil {
						t.Error(err)
					}
					if _, err := s.Finish(ctx, id, ending("a", "r")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		for k := range keys {
			if won[k].Load() != 1 {
				t.Errorf("key %d has started %d calls", k, won[k].Load())
			}
		}
	})
}

// The request of every call is found by its id, whether it has a key or not.
func TestDigests(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, c *clock) {
		for _, key := range []string{"", "k"} {
			id := "id" + key
			requested := func(at store.Step) {
				t.Helper()
				if got, err := s.Get(ctx, id, store.Of("p")); err != nil || got.Step != at || got.Digest != "d" || got.Scope != newCall(id, key).Scope || got.Key != key {
					t.Errorf("%s, with the key %q: %+v, %v", at, key, got, err)
				}
			}
			opened(t, s, newCall(id, key))
			requested(store.Opened)
			must(t, s.Dispatch(ctx, id, once))
			requested(store.Dispatched)
			must(t, s.Update(ctx, id, store.Defer{Until: c.now().Add(time.Hour)}))
			requested(store.Waiting)
			if _, err := s.Finish(ctx, id, ending("a", "r")); err != nil {
				t.Error(err)
			}
			requested(store.Ended)
		}
	})
}

func TestLifeOfACall(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, c *clock) {
		id := opened(t, s, newCall("1", "k"))
		opened(t, s, newCall("1", "k")) // the same again
		if got, err := s.Get(ctx, id, store.Of("p")); err != nil || got.State != store.Pending || got.Step != store.Opened {
			t.Errorf("got %+v, %v", got, err)
		}
		for _, other := range []string{"", "q"} {
			_, err := s.Get(ctx, id, store.Of(other))
			refused(t, err, store.ErrNotFound)
		}
		for name, f := range map[string]func() error{
			"defer":      func() error { return s.Update(ctx, id, store.Defer{Until: c.now()}) },
			"redispatch": func() error { return s.Update(ctx, id, store.Redispatch{}) },
			"deliver":    func() error { return s.Update(ctx, id, store.Deliver{Principal: "p"}) },
			"finish":     func() error { _, err := s.Finish(ctx, id, ending("a", "r")); return err },
			"effect":     func() error { return s.Dispatch(ctx, id, store.Task{Effect: "Once"}) },
		} {
			if f() == nil {
				t.Errorf("%s of an opened call", name)
			}
		}
		must(t, s.Dispatch(ctx, id, once))
		refused(t, s.Dispatch(ctx, id, once), store.ErrDispatched)
		refused(t, s.Update(ctx, id, store.Redispatch{}), store.ErrDispatched)
		must(t, s.Settle(ctx, id)) // has no effect
		if got, err := s.Get(ctx, id, store.OfAnyone()); err != nil || got.Step != store.Dispatched || string(got.Task.Arguments) != `{"a": 1}` || got.Task.Thread != "t" || got.Attempts != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
		must(t, s.Update(ctx, id, store.Defer{Until: c.now().Add(time.Hour)}))
		refused(t, s.Update(ctx, id, store.Defer{Until: c.now()}), store.ErrDispatched)
		if prior, err := s.Open(ctx, newCall("2", "k")); err != nil || prior == nil || prior.ID != "1" || prior.State != store.Pending || prior.Step != store.Waiting {
			t.Errorf("got %+v, %v", prior, err)
		}
		got, err := s.Finish(ctx, id, ending("a", "r"))
		if err != nil || got.State != store.Done || string(got.Answer.Result) != "r" || got.Answer.Status != 200 {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err := s.Finish(ctx, id, ending("a", "r")); err != nil || got.Step != store.Ended {
			t.Errorf("the same attempt again: %+v, %v", got, err)
		}
		got, err = s.Finish(ctx, id, ending("b", "other"))
		refused(t, err, store.ErrEnded)
		if string(got.Answer.Result) != "r" {
			t.Errorf("got %+v", got)
		}
		refused(t, s.Update(ctx, id, store.Defer{Until: c.now()}), store.ErrEnded)
		refused(t, s.Dispatch(ctx, id, once), store.ErrEnded)
		must(t, s.Settle(ctx, id))
		prior, err := s.Open(ctx, newCall("2", "k"))
		if err != nil || prior == nil || prior.State != store.Done || string(prior.Answer.Result) != "r" || prior.Task.Arguments != nil {
			t.Errorf("got %+v, %v", prior, err)
		}
		c.advance(store.Retention - time.Millisecond)
		if prior, _ := s.Open(ctx, newCall("2", "k")); prior == nil {
			t.Error("a key is kept too short")
		}
		c.advance(time.Millisecond)
		_, err = s.Get(ctx, id, store.Of("p"))
		refused(t, err, store.ErrNotFound)
		dispatched(t, s, newCall("2", "k"), once) // the key is free, swept or not
		if _, err := s.Finish(ctx, "3", ending("a", "r")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

func TestSettleFreesTheKey(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, _ *clock) {
		for i := range 3 {
			id := opened(t, s, newCall(fmt.Sprint(i), "k"))
			must(t, s.Settle(ctx, id))
			must(t, s.Settle(ctx, id))
			if err := s.Dispatch(ctx, id, once); err == nil {
				t.Error("dispatched what was dropped")
			}
		}
		opened(t, s, newCall("last", "k"))
	})
}

// Many finish and many deliver: one does.
func TestExactlyOnce(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, _ *clock) {
		id := dispatched(t, s, newCall("1", ""), once)
		must(t, s.Update(ctx, id, store.Defer{Until: time.UnixMilli(0)}))
		var finished, delivered atomic.Int64
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				_, err := s.Finish(ctx, id, ending(fmt.Sprint(i), fmt.Sprint(i)))
				if err == nil {
					finished.Add(1)
				} else {
					refused(t, err, store.ErrEnded)
				}
				err = s.Update(ctx, id, store.Deliver{Principal: "p"})
				if err == nil {
					delivered.Add(1)
				} else {
					refused(t, err, store.ErrDelivered)
				}
			})
		}
		all.Wait()
		if finished.Load() != 1 || delivered.Load() != 1 {
			t.Errorf("finished %d times, delivered %d times", finished.Load(), delivered.Load())
		}
		refused(t, s.Update(ctx, id, store.Deliver{Principal: "q"}), store.ErrNotFound)
		// One that is finished and delivered at once.
		id = dispatched(t, s, newCall("2", ""), once)
		e := ending("a", "r")
		e.Deliver = true
		if _, err := s.Finish(ctx, id, e); err != nil {
			t.Fatal(err)
		}
		refused(t, s.Update(ctx, id, store.Deliver{Principal: "p"}), store.ErrDelivered)
	})
}

func TestRedispatch(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, _ *clock) {
		id := dispatched(t, s, newCall("1", ""), read)
		for want := 2; want < 4; want++ {
			must(t, s.Update(ctx, id, store.Redispatch{}))
			if got, err := s.Get(ctx, id, store.Of("p")); err != nil || got.Attempts != want {
				t.Errorf("%d attempts, %v; want %d", got.Attempts, err, want)
			}
		}
		ended(t, s, newCall("2", ""))
		refused(t, s.Update(ctx, "2", store.Redispatch{}), store.ErrEnded)
	})
}

func TestExpire(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, c *clock) {
		for i := range 5 {
			id := dispatched(t, s, newCall(fmt.Sprint(i), ""), once)
			must(t, s.Update(ctx, id, store.Defer{Until: c.now().Add(time.Duration(i) * time.Hour)}))
		}
		dispatched(t, s, newCall("runs", ""), once)
		due := func(want int) []store.Call {
			t.Helper()
			calls, err := s.Recover(ctx, store.Expired, 10)
			if err != nil || len(calls) != want {
				t.Errorf("got %+v, %v, want %d", calls, err, want)
			}
			return calls
		}
		due(1)
		c.advance(2 * time.Hour)
		for _, call := range due(3) {
			if call.Task.Tool != once.Tool || call.Step != store.Waiting {
				t.Errorf("got %+v", call)
			}
			if _, err := s.Finish(ctx, call.ID, ending("expiry", "r")); err != nil {
				t.Error(err)
			}
		}
		due(0)
		c.advance(1000 * time.Hour) // a pending call is never lost
		if swept, err := s.Sweep(ctx, 100); swept != 3 || err != nil {
			t.Errorf("swept %d, %v", swept, err)
		}
		due(2)
		if calls, err := s.Recover(ctx, store.Expired, 1); len(calls) != 1 || err != nil {
			t.Errorf("got %+v, %v", calls, err)
		}
		if got, err := s.Get(ctx, "runs", store.OfAnyone()); err != nil || got.Step != store.Dispatched {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// Of expired calls those are recovered first that have waited longest, in the order of their time.
func TestTheOldestExpireFirst(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, c *clock) {
		for i := range 20 {
			id := dispatched(t, s, newCall(fmt.Sprintf("%02d", i*7%20), ""), once)
			must(t, s.Update(ctx, id, store.Defer{Until: c.now().Add(time.Duration(i*7%20) * time.Second)}))
		}
		c.advance(time.Minute)
		for _, want := range [][]string{{"00", "01", "02"}, {"03", "04", "05"}} {
			due, err := s.Recover(ctx, store.Expired, 3)
			must(t, err)
			var ids []string
			for _, call := range due {
				ids = append(ids, call.ID)
				if _, err := s.Finish(ctx, call.ID, ending("expiry", "r")); err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(ids, want) {
				t.Errorf("recovered %q, want %q", ids, want)
			}
		}
	})
}

// An attempt that was not told that it has ended the call, and does so again without handing the
// result over, has handed nothing over: the result is there to be delivered, once.
func TestAnUnconfirmedEndingDeliversNothing(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, _ *clock) {
		for _, key := range []string{"", "k"} {
			id := dispatched(t, s, newCall("id"+key, key), once)
			finish := func(attempt string, deliver, want bool) {
				t.Helper()
				e := ending(attempt, "r")
				e.Deliver = deliver
				if got, err := s.Finish(ctx, id, e); err != nil && !errors.Is(err, store.ErrEnded) || got.Delivered != want {
					t.Errorf("%s with the key %q, deliver %v: delivered %v, %v; want %v", attempt, key, deliver, got.Delivered, err, want)
				}
			}
			finish("a", true, true)
			finish("a", true, true)
			finish("b", false, true) // another attempt takes nothing back
			finish("a", false, false)
			if got, err := s.Get(ctx, id, store.Of("p")); err != nil || got.Delivered || string(got.Answer.Result) != "r" {
				t.Errorf("got %+v, %v", got, err)
			}
			must(t, s.Update(ctx, id, store.Deliver{Principal: "p"}))
			refused(t, s.Update(ctx, id, store.Deliver{Principal: "p"}), store.ErrDelivered)
			finish("a", false, true) // and what was delivered since stays so
		}
		if swept, err := s.Sweep(ctx, 100); err != nil || swept != 0 {
			t.Errorf("swept %d, %v", swept, err)
		}
	})
}

func TestRecoverNeedsAReason(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, _ *clock) {
		for _, reason := range []store.Reason{0, store.Owed + 1} {
			if calls, err := s.Recover(ctx, reason, 10); err == nil {
				t.Errorf("recovered %+v for the reason %d", calls, reason)
			}
		}
	})
}

// quiet checks that nobody was woken. A store that others share wakes once those who watch something new: it may have
// changed before the store looked at it first.
func quiet(t *testing.T, s calls, w *store.Watch, woken string) {
	t.Helper()
	if _, shared := s.(*redisstore.Store); shared {
		return
	}
	select {
	case <-w.Changed:
		t.Error(woken)
	default:
	}
}

func TestWatch(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, c *clock) {
		id := dispatched(t, s, newCall("1", ""), once)
		other, err := s.Watch("other")
		must(t, err)
		defer other.Stop()
		for _, change := range []func() error{
			func() error { return s.Update(ctx, id, store.Defer{Until: c.now()}) },
			func() error { _, err := s.Finish(ctx, id, ending("a", "r")); return err },
		} {
			var watches []*store.Watch
			for range 3 {
				w, err := s.Watch(id)
				must(t, err)
				watches = append(watches, w)
			}
			watches[0].Stop()
			quiet(t, s, watches[1], "it has not changed")
			must(t, change())
			for _, w := range watches[1:] {
				select {
				case <-w.Changed:
				case <-time.After(patient):
					t.Error("not told")
				}
				w.Stop()
			}
		}
		quiet(t, s, other, "another's change")
	})
}

func TestWatchesAreBounded(t *testing.T) {
	s := store.NewMemory(time.Now)
	var watches []*store.Watch
	for range 1 << 20 {
		w, err := s.Watch("1")
		if err != nil {
			refused(t, err, store.ErrFull)
			break
		}
		watches = append(watches, w)
	}
	if len(watches) == 1<<20 {
		t.Fatal("no bound")
	}
	for _, w := range watches {
		w.Stop()
		w.Stop()
	}
	w, err := s.Watch("1")
	must(t, err)
	w.Stop()
}

// Calls with a key and pending calls are never evicted; calls without a key are, the oldest
// first.
func TestFull(t *testing.T) {
	each(t, store.Bounds{Calls: 8, PrincipalPercent: 100}, func(t *testing.T, s calls, c *clock) {
		for i := range 5 {
			ended(t, s, newCall(fmt.Sprint("key", i), fmt.Sprint(i)))
		}
		dispatched(t, s, newCall("pending", ""), once)
		// A shared store makes room behind the answer to a call, so more calls may have to end until it has.
		var newest string
		for i := 0; ; i++ {
			newest = ended(t, s, newCall(fmt.Sprint("free", i), ""))
			c.advance(time.Second)
			if i < 29 {
				continue
			}
			_, err := s.Get(ctx, "free5", store.Of("p"))
			if errors.Is(err, store.ErrNotFound) {
				break
			}
			if must(t, err); i == 10_000 {
				t.Fatal("free5 was never evicted")
			}
		}
		for _, id := range []string{"key0", "key4", "pending", newest} {
			if _, err := s.Get(ctx, id, store.Of("p")); err != nil {
				t.Errorf("%s was given up: %v", id, err)
			}
		}
		opened(t, s, newCall("last", "last"))
		opened(t, s, newCall("least", "least"))
		// The pending call may be kept apart from those of keys, or count among them.
		_, err := s.Open(ctx, newCall("most", "most"))
		if err == nil {
			_, err = s.Open(ctx, newCall("more", "more"))
		}
		refused(t, err, store.ErrFull)
		if prior, err := s.Open(ctx, newCall("more", "0")); prior == nil || err != nil {
			t.Errorf("a full store does not answer: %v", err)
		}
		must(t, s.Settle(ctx, "last"))
		opened(t, s, newCall("more", "more"))
	})
}

func TestFullOfBytes(t *testing.T) {
	each(t, store.Bounds{Bytes: 10_000, PrincipalPercent: 100}, func(t *testing.T, s calls, c *clock) {
		big := string(make([]byte, 3000))
		for i := range 10 {
			id := dispatched(t, s, newCall(fmt.Sprint("free", i), ""), once)
			if _, err := s.Finish(ctx, id, ending("a", big)); err != nil {
				t.Fatal(err)
			}
			c.advance(time.Second)
		}
		n := 0
		for ; n < 10; n++ {
			c := newCall(fmt.Sprint("key", n), fmt.Sprint("key", n))
			if _, err := s.Open(ctx, c); err != nil {
				refused(t, err, store.ErrFull)
				break
			}
			must(t, s.Dispatch(ctx, c.ID, once))
			if _, err := s.Finish(ctx, c.ID, ending("a", big)); err != nil {
				t.Fatal(err)
			}
		}
		if n < 3 || n > 4 {
			t.Errorf("%d calls of 3000 bytes fit into 10000", n)
		}
	})
}

// One principal fills its part, and no more.
func TestPrincipalsLeaveEachOtherRoom(t *testing.T) {
	each(t, store.Bounds{Calls: 20, PrincipalPercent: 25}, func(t *testing.T, s calls, c *clock) {
		of := func(principal, id, key string) store.Call {
			call := newCall(id, key)
			call.Scope.Principal = principal
			return call
		}
		ended(t, s, of("quiet", "quiet", ""))
		for i := range 40 {
			ended(t, s, of("loud", fmt.Sprint("loud", i), ""))
			c.advance(time.Second)
		}
		if _, err := s.Get(ctx, "quiet", store.Of("quiet")); err != nil {
			t.Errorf("another's call was given up: %v", err)
		}
		n := 0
		for ; n < 20; n++ {
			if _, err := s.Open(ctx, of("loud", fmt.Sprint("key", n), fmt.Sprint(n))); err != nil {
				refused(t, err, store.ErrFull)
				break
			}
		}
		if n != 5 {
			t.Errorf("one of twenty has %d calls, want a quarter", n)
		}
		opened(t, s, of("quiet", "still", "k"))
	})
}

func TestSweep(t *testing.T) {
	each(t, store.Bounds{Calls: 12, PrincipalPercent: 100}, func(t *testing.T, s calls, c *clock) {
		for round := range 3 {
			for i := range 10 {
				ended(t, s, newCall(fmt.Sprint(round, "-", i), fmt.Sprint(i)))
			}
			c.advance(store.Retention)
			total := 0
			for {
				n, err := s.Sweep(ctx, 3)
				must(t, err)
				if total += n; n == 0 {
					break
				}
			}
			if total != 10 {
				t.Errorf("swept %d", total)
			}
		}
	})
}

// The rows of a call go with it: who reads an index one row at a time, from its beginning, finds the calls that there
// are.
func TestRowsGoWithTheirCalls(t *testing.T) {
	each(t, store.Bounds{Calls: 4, PrincipalPercent: 100}, func(t *testing.T, s calls, c *clock) {
		waiting := func(id, key string) {
			must(t, s.Update(ctx, dispatched(t, s, newCall(id, key), once), store.Defer{Until: c.now().Add(time.Minute)}))
		}
		for round := range 3 {
			key := fmt.Sprint("key", round)
			waiting(fmt.Sprint(round, " waited"), key)
			if _, err := s.Finish(ctx, fmt.Sprint(round, " waited"), ending("a", "r")); err != nil {
				t.Fatal(err)
			}
			ended(t, s, newCall(fmt.Sprint(round, " ended"), ""))
			must(t, s.Settle(ctx, opened(t, s, newCall(fmt.Sprint(round, " settled"), "settled"))))
			for _, id := range []string{"a", "b", "c", "d", "e"} { // more than there is room for: the oldest of them make it
				ended(t, s, newCall(fmt.Sprint(round, " evicted ", id), ""))
			}
			c.advance(store.Retention)
			within(t, "all are swept, or were evicted", func() bool {
				_, err := s.Sweep(ctx, 1)
				must(t, err)
				return !slices.ContainsFunc([]string{"waited", "ended", "settled", "evicted a", "evicted b", "evicted c", "evicted d", "evicted e"}, func(id string) bool {
					_, err := s.Get(ctx, fmt.Sprint(round, " ", id), store.OfRecovery())
					return !errors.Is(err, store.ErrNotFound)
				})
			})
			id := fmt.Sprint(round, " waits")
			waiting(id, key)
			listed, err := s.(interface {
				Unfinished(ctx context.Context, after string, limit int) ([]store.Call, error)
			}).Unfinished(ctx, "", 1)
			if err != nil || len(listed) != 1 || listed[0].ID != id {
				t.Errorf("unfinished: %+v, %v", listed, err)
			}
			c.advance(time.Minute)
			expired, err := s.Recover(ctx, store.Expired, 1)
			if err != nil || len(expired) != 1 || expired[0].ID != id {
				t.Errorf("expired: %+v, %v", expired, err)
			}
			if _, err := s.Finish(ctx, id, ending("a", "r")); err != nil {
				t.Fatal(err)
			}
			c.advance(store.Retention)
			if n, err := s.Sweep(ctx, 1); n != 1 || err != nil {
				t.Errorf("swept %d, %v", n, err)
			}
		}
	})
}

// A call that is being judged is nobody else's: neither recovery nor a sweep takes it for abandoned, however long it is
// open.
func TestOpenedCallsAreNotAbandoned(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, c *clock) {
		ids := []string{opened(t, s, newCall("keyed", "k")), opened(t, s, newCall("unkeyed", ""))}
		for range 2 {
			c.advance(2 * store.Retention)
			for _, reason := range []store.Reason{store.Abandoned, store.Owed, store.Expired} {
				if calls, err := s.Recover(ctx, reason, 10); len(calls) > 0 || err != nil {
					t.Errorf("%v: recovered %+v, %v", reason, calls, err)
				}
			}
			if n, err := s.Sweep(ctx, 10); n > 0 || err != nil {
				t.Errorf("swept %d, %v", n, err)
			}
		}
		for _, id := range ids {
			must(t, s.Dispatch(ctx, id, once))
		}
	})
}

func TestCallsNeedAnID(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, _ *clock) {
		if _, err := s.Open(ctx, store.Call{}); err == nil {
			t.Error("opened a call without an id")
		}
		id := opened(t, s, newCall("1", ""))
		if _, err := s.Open(ctx, newCall(id, "k")); err == nil {
			t.Error("opened two calls with one id")
		}
		for _, id := range []string{"\x00", "a\x00b", "\xff", " ", strings.Repeat("x", 1024)} {
			if id = ended(t, s, newCall(id, "key of "+id)); len(id) == 1024 {
				_, err := s.Get(ctx, id, store.OfAnyone())
				must(t, err)
			}
		}
		must(t, s.Dispatch(ctx, id, once))
		for _, e := range []store.Ending{{}, {State: store.Pending, Attempt: "a"}, {State: store.Done}} {
			if _, err := s.Finish(ctx, id, e); err == nil {
				t.Errorf("finished with %+v", e)
			}
		}
	})
}

func canceled() (context.Context, context.CancelFunc) {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	return gone, cancel
}

// A key is free a day after, swept or not, and however much is still to sweep.
func TestAKeyIsFreeInTime(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, c *clock) {
		for i := range 40 {
			ended(t, s, newCall(fmt.Sprint("first", i), fmt.Sprint(i)))
		}
		c.advance(store.Retention)
		ended(t, s, newCall("second", "39"))
		if got, err := s.Get(ctx, "second", store.Of("p")); err != nil || got.Step != store.Ended {
			t.Errorf("got %+v, %v", got, err)
		}
		if prior, err := s.Open(ctx, newCall("third", "39")); err != nil || prior == nil || prior.ID != "second" {
			t.Errorf("got %+v, %v", prior, err)
		}
	})
}

// TestSetMetadata: what is noted of a call that waits, or has ended, stands there until
// something else does; the end takes the place of what was noted before it.
func TestSetMetadata(t *testing.T) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, c *clock) {
		is := func(when, id, want string) {
			t.Helper()
			if got, err := s.Get(ctx, id, store.OfAnyone()); err != nil || string(got.Metadata) != want {
				t.Errorf("%s: found the note %q and %v, expected %q", when, got.Metadata, err, want)
			}
		}
		for _, key := range []string{"", "k"} {
			id := dispatched(t, s, newCall("noted"+key, key), once)
			note := func(at store.Step, was, note string) error {
				return s.Update(ctx, id, store.SetMetadata{At: at, Was: []byte(was), Metadata: []byte(note)})
			}
			if err := note(store.Waiting, "", "early"); err == nil {
				t.Error("a call that neither waits nor has ended was noted of")
			}
			must(t, s.Update(ctx, id, store.Defer{Until: c.now().Add(time.Hour)}))
			watch, err := s.Watch(id)
			must(t, err)
			must(t, note(store.Waiting, "", "first"))
			<-watch.Changed
			watch.Stop()
			is("first", id, "first")
			refused(t, note(store.Waiting, "", "of one who has not read the first"), store.ErrConflict)
			is("after one that was refused", id, "first")
			must(t, note(store.Waiting, "first", "second, and longer"))
			is("second", id, "second, and longer")
			must(t, note(store.Waiting, "first", "second, and longer"))
			if err := note(store.Ended, "second, and longer", "of an end"); err == nil {
				t.Error("a call that waits was noted of as one that has ended")
			}
			e := ending("a", "r")
			e.Metadata = []byte("last")
			if got, err := s.Finish(ctx, id, e); err != nil || string(got.Metadata) != "last" {
				t.Errorf("finish: %+v, %v", got, err)
			}
			must(t, s.Settle(ctx, id))
			refused(t, note(store.Waiting, "last", "late"), store.ErrEnded)
			must(t, note(store.Ended, "last", "after"))
			refused(t, note(store.Ended, "last", "of another who has read the same"), store.ErrConflict)
			is("after the end", id, "after")
			must(t, s.Update(ctx, id, store.SetMetadata{At: store.Ended, Was: []byte("after")}))
			is("nothing", id, "")

			id = dispatched(t, s, newCall("replaced"+key, key+key), once)
			must(t, s.Update(ctx, id, store.Defer{Until: c.now().Add(time.Hour)}))
			must(t, note(store.Waiting, "", "before the end"))
			if _, err := s.Finish(ctx, id, ending("a", "r")); err != nil {
				t.Fatal(err)
			}
			is("an end without a note", id, "")
		}
		if err := s.Update(ctx, "nobody", store.SetMetadata{At: store.Ended, Metadata: []byte("x")}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a call that is not there: %v", err)
		}
	})
}
