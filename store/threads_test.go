package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
)

const day = 24 * time.Hour

var (
	pays  = history.Term{Tool: "pay"}
	paid  = history.Term{Caller: true, Kind: history.Sum, Tool: "pay", Member: "amount", Window: time.Hour}
	reads = history.Term{Kind: history.Results, Tool: "read"}
	owner = store.Scope{Principal: "p", Workspace: "w", Project: "q"}
)

func termsOf(t testing.TB, terms ...history.Term) *history.Terms {
	t.Helper()
	all, err := history.NewTerms(terms, func(pattern, tool string) bool { return pattern == tool })
	must(t, err)
	all.Labels = true
	return all
}

// eachLedger runs a test of threads in memory and on Redis, where the terms are kept.
func eachLedger(t *testing.T, b store.ThreadBounds, test func(*testing.T, *store.Engine, *clock, *history.Terms)) {
	terms := termsOf(t, pays, paid, reads)
	run := func(name string, open func(*testing.T, *clock) *store.Engine) {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			e := open(t, c)
			_, err := e.KeepTerms(ctx, terms, nil)
			must(t, err)
			test(t, e, c, terms)
		})
	}
	run("memory", func(_ *testing.T, c *clock) *store.Engine { return store.NewThreads(c.now, b) })
	run("redis", func(t *testing.T, c *clock) *store.Engine {
		o := at(redistest.Shared(t))
		o.Bounds.Threads = b
		return join(t, o, testHooks{now: c.now}).Engine
	})
}

func payment(t testing.TB, terms *history.Terms, amount string) history.Adds {
	t.Helper()
	a, err := terms.Adds("pay", map[string]any{"amount": json.Number(amount)}, nil, time.Time{})
	must(t, err)
	return a
}

// always reserves calls.
func always(adds ...history.Adds) func(history.Past) ([]history.Adds, error) {
	return func(history.Past) ([]history.Adds, error) { return adds, nil }
}

func reserve(t testing.TB, e *store.Engine, of store.ThreadKeys, adds ...history.Adds) []store.Reserved {
	t.Helper()
	r, err := e.Reserve(ctx, of, always(adds...))
	must(t, err)
	return r
}

// values are what a thread has of the terms of eachLedger, and its labels.
func values(t testing.TB, e *store.Engine, of store.ThreadKeys, terms *history.Terms) string {
	t.Helper()
	past, err := e.Past(ctx, of, true)
	must(t, err)
	return valuesOf(past, terms)
}

func valuesOf(past history.Past, terms *history.Terms) string {
	v := history.NewView(terms, nil, past, nil, history.Adds{})
	for _, term := range []history.Term{pays, paid, reads} {
		_, _ = v.Value(term.ID())
	}
	_, _ = v.Labels()
	return strings.NewReplacer("caller.sum('pay','amount','1h')", "paid", "thread.calls('pay')", "pays", "thread.results('read')", "reads", "thread.labels", "labels").Replace(strings.Join(v.Saw(), " "))
}

func is(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("found %q, expected %q", got, want)
	}
}

func TestThreads(t *testing.T) {
	eachLedger(t, store.ThreadBounds{}, func(t *testing.T, e *store.Engine, c *clock, terms *history.Terms) {
		one, other := store.KeysOf(owner, "one"), store.KeysOf(owner, "other")
		is(t, values(t, e, one, terms), "paid=0 pays=0 labels= reads=0")
		labelled := payment(t, terms, "2.5")
		labelled.Labels = []string{"untrusted"}
		r := reserve(t, e, one, labelled, payment(t, terms, "1"))
		if len(r) != 2 || r[1].Turn != r[0].Turn+1 || r[1].Caller != r[0].Caller+1 || r[0].Adds.At.IsZero() {
			t.Errorf("%+v", r)
		}
		is(t, values(t, e, one, terms), "paid=3.5 pays=2 labels=untrusted reads=0")
		is(t, values(t, e, other, terms), "paid=3.5 pays=0 labels= reads=0")
		is(t, values(t, e, store.KeysOf(store.Scope{Principal: "x", Workspace: "w", Project: "q"}, "one"), terms), "paid=0 pays=0 labels= reads=0")
		is(t, values(t, e, store.KeysOf(owner, ""), terms), "paid=3.5 pays=? labels=? reads=?")

		result, err := terms.ResultAdds("read", nil, nil, time.Time{})
		must(t, err)
		result.Labels = []string{"customer"}
		ended, err := e.EndResult(ctx, one, result)
		if must(t, err); ended.Turn != r[1].Turn+1 || ended.Caller != 0 {
			t.Errorf("%+v", ended)
		}
		is(t, values(t, e, one, terms), "paid=3.5 pays=2 labels=customer,untrusted reads=1")
		released, err := e.Release(ctx, one, r[0].Adds)
		if must(t, err); released.Turn != ended.Turn+1 || released.Caller != r[1].Caller+1 {
			t.Errorf("%+v", released)
		}
		is(t, values(t, e, one, terms), "paid=1 pays=1 labels=customer reads=1")
		c.advance(62 * time.Minute)
		is(t, values(t, e, one, terms), "paid=0 pays=1 labels=customer reads=1")

		nothing := errors.New("no")
		_, err = e.Reserve(ctx, one, func(history.Past) ([]history.Adds, error) { return []history.Adds{labelled}, nothing })
		refused(t, err, nothing)
		is(t, values(t, e, one, terms), "paid=0 pays=1 labels=customer reads=1")

		closing, err := e.CloseThread(ctx, one)
		if must(t, err); closing.Turn != released.Turn+1 || closing.Before || closing.At.IsZero() {
			t.Errorf("%+v", closing)
		}
		must(t, e.ReopenThread(ctx, one, closing.Turn))
		reserve(t, e, one, payment(t, terms, "1"))
		closing, err = e.CloseThread(ctx, one)
		must(t, err)
		if again, err := e.CloseThread(ctx, one); again.Turn != closing.Turn+1 || !again.Before || err != nil {
			t.Errorf("closed again: %+v, %v", again, err)
		}
		must(t, e.ReopenThread(ctx, one, closing.Turn)) // another has closed it since
		_, err = e.Reserve(ctx, one, always(payment(t, terms, "1")))
		refused(t, err, store.ErrThreadClosed)
		reserve(t, e, other, payment(t, terms, "1"))
	})
}

// TestReserveUnderABound: of many that want more than there is, exactly as many get it as may.
func TestReserveUnderABound(t *testing.T) {
	eachLedger(t, store.ThreadBounds{}, func(t *testing.T, e *store.Engine, _ *clock, terms *history.Terms) {
		const most, racers = 10, 40
		var got, denied atomic.Int64
		over := errors.New("over the bound")
		var all sync.WaitGroup
		for i := range racers {
			all.Go(func() {
				own := payment(t, terms, "100")
				of := store.KeysOf(owner, fmt.Sprint("thread", i%2))
				_, err := e.Reserve(ctx, of, func(past history.Past) ([]history.Adds, error) {
					n, err := history.NewView(terms, nil, past, nil, own).Value(paid.ID())
					if err == nil && n > most*100_000_000 {
						err = over
					}
					return []history.Adds{own}, err
				})
				switch {
				case err == nil:
					got.Add(1)
				case errors.Is(err, over):
					denied.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got.Load() != most || denied.Load() != racers-most {
			t.Errorf("%d were reserved and %d refused", got.Load(), denied.Load())
		}
		past, err := e.Past(ctx, store.KeysOf(owner, ""), true)
		must(t, err)
		is(t, valuesOf(past, terms), "paid=1000 pays=? labels=? reads=?")
	})
}

func TestThreadsAreFull(t *testing.T) {
	eachLedger(t, store.ThreadBounds{Threads: 12}, func(t *testing.T, e *store.Engine, c *clock, terms *history.Terms) {
		thread := func(principal string, i int) store.ThreadKeys {
			return store.KeysOf(store.Scope{Principal: principal}, fmt.Sprint(i))
		}
		open := func(principal string, i int) error {
			_, err := e.Reserve(ctx, thread(principal, i), always(payment(t, terms, "1")))
			return err
		}
		for _, principal := range []string{"a", "b", "c", "d"} {
			must(t, open(principal, 0)) // and the caller
			must(t, open(principal, 1))
			refused(t, open(principal, 2), store.ErrFull)
			must(t, open(principal, 1))
		}
		refused(t, open("e", 0), store.ErrFull)
		if _, err := e.EndResult(ctx, thread("e", 0), payment(t, terms, "1")); err != nil {
			t.Errorf("what a call has done that has run is refused: %v", err)
		}
		c.advance(8 * day)
		if n, err := e.SweepThreads(ctx, 100); n != 13 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		must(t, open("e", 0))
	})
}

func TestThreadsAreFullOfBytes(t *testing.T) {
	terms := termsOf(t, history.Term{Tool: "read", Keys: []string{"path"}})
	secret, err := history.NewSecret(make([]byte, 32))
	must(t, err)
	e := store.NewThreads(newClock().now, store.ThreadBounds{Bytes: 40_000})
	_, err = e.Past(ctx, store.KeysOf(owner, "t"), true)
	refused(t, err, store.ErrUnavailable)
	_, err = e.KeepTerms(ctx, terms, nil)
	must(t, err)
	of := store.KeysOf(owner, "t")
	for i := range 1000 {
		a, err := terms.Adds("read", map[string]any{"path": fmt.Sprint(i)}, secret, time.Time{})
		must(t, err)
		if _, err = e.Reserve(ctx, of, always(a)); err != nil {
			if refused(t, err, store.ErrFull); i < 200 {
				t.Errorf("full at %d values", i)
			}
			a, err = terms.Adds("read", map[string]any{"path": "0"}, secret, time.Time{})
			must(t, err)
			reserve(t, e, of, a) // does not grow
			return
		}
	}
	t.Error("a thread grows without a bound")
}

func TestThreadsExpire(t *testing.T) {
	eachLedger(t, store.ThreadBounds{Threads: 100}, func(t *testing.T, e *store.Engine, c *clock, terms *history.Terms) {
		plain, labelled, asked, closed := store.KeysOf(owner, "plain"), store.KeysOf(owner, "labelled"), store.KeysOf(owner, "asked"), store.KeysOf(owner, "closed")
		label := payment(t, terms, "1")
		label.Labels = []string{"untrusted"}
		reserve(t, e, plain, payment(t, terms, "1"))
		reserve(t, e, asked, payment(t, terms, "1"))
		r := reserve(t, e, labelled, label)
		if _, err := e.CloseThread(ctx, closed); err != nil {
			t.Fatal(err)
		}
		c.advance(4 * day)
		reserve(t, e, asked) // nothing is added, and it is in use
		c.advance(3 * day)
		sweep := func(want int) {
			t.Helper()
			if n, err := e.SweepThreads(ctx, 100); n != want || err != nil {
				t.Errorf("swept %d, %v, expected %d", n, err, want)
			}
		}
		check := func() {
			t.Helper()
			is(t, values(t, e, plain, terms), "paid=0 pays=0 labels= reads=0")
			is(t, values(t, e, labelled, terms), "paid=0 pays=0 labels=untrusted reads=0")
			is(t, values(t, e, asked, terms), "paid=0 pays=1 labels= reads=0")
		}
		check()
		c.advance(time.Hour) // rows are in hours
		sweep(4)             // and the caller
		check()
		sweep(0)
		if released, err := e.Release(ctx, labelled, r[0].Adds); err != nil || released.Turn != 0 {
			t.Errorf("%+v, %v", released, err)
		}
		_, err := e.Reserve(ctx, closed, always(payment(t, terms, "1")))
		refused(t, err, store.ErrThreadClosed)
		again := reserve(t, e, labelled, payment(t, terms, "1"))
		if again[0].Turn != r[0].Turn+1 {
			t.Errorf("the turn is %d, after %d", again[0].Turn, r[0].Turn)
		}
		is(t, values(t, e, labelled, terms), "paid=1 pays=1 labels=untrusted reads=0")
		c.advance(31 * day)
		is(t, values(t, e, labelled, terms), "paid=0 pays=0 labels= reads=0")
		sweep(4)
		sweep(0)
		reserve(t, e, closed, payment(t, terms, "1"))
	})
}

func TestTermsAreKeptSince(t *testing.T) {
	eachLedger(t, store.ThreadBounds{}, func(t *testing.T, e *store.Engine, c *clock, terms *history.Terms) {
		of := store.KeysOf(owner, "t")
		reserve(t, e, of, payment(t, terms, "1"))
		c.advance(time.Second)
		for _, keep := range []*history.Terms{termsOf(t, reads), terms} {
			_, err := e.KeepTerms(ctx, keep, nil)
			must(t, err)
		}
		is(t, values(t, e, of, terms), "paid=? pays=? labels= reads=0")
		c.advance(62 * time.Minute)
		is(t, values(t, e, of, terms), "paid=0 pays=? labels= reads=0")
		is(t, values(t, e, store.KeysOf(owner, "new"), terms), "paid=0 pays=0 labels= reads=0")
	})
}

// A gateway reads the time of Redis from its last reply, which may have come late.
func TestAClockBehindThatOfAnotherGateway(t *testing.T) {
	o, terms := at(redistest.Shared(t)), termsOf(t, pays, paid, reads)
	late, early := newClock(), newClock()
	early.advance(50 * time.Millisecond)
	a, b := join(t, o, testHooks{now: late.now}), join(t, o, testHooks{now: early.now})
	keeps := func(g *gateway) {
		_, err := g.KeepTerms(ctx, terms, nil)
		must(t, err)
	}
	before, behind, ahead := store.KeysOf(owner, "before"), store.KeysOf(store.Scope{Principal: "x"}, "t"), store.KeysOf(store.Scope{Principal: "y"}, "t")
	keeps(a)
	reserve(t, a.Engine, before, payment(t, terms, "1"))
	keeps(b)
	for _, g := range []*gateway{a, b} { // b may have let calls through which it did not count
		is(t, values(t, g.Engine, before, terms), "paid=? pays=? labels=? reads=?")
	}
	for _, latest := range []bool{true, false} {
		past, err := a.Past(ctx, behind, latest)
		must(t, err)
		is(t, valuesOf(past, terms), "paid=0 pays=0 labels= reads=0")
	}
	r := reserve(t, a.Engine, behind, payment(t, terms, "1"), payment(t, terms, "2"))
	reserve(t, b.Engine, ahead, payment(t, terms, "1"))
	for _, g := range []*gateway{a, b} {
		is(t, values(t, g.Engine, behind, terms), "paid=3 pays=2 labels= reads=0")
		is(t, values(t, g.Engine, ahead, terms), "paid=1 pays=1 labels= reads=0")
	}
	_, err := a.Release(ctx, behind, r[0].Adds)
	must(t, err)
	is(t, values(t, b.Engine, behind, terms), "paid=2 pays=1 labels= reads=0")
}

// fact is what the log says of a change.
func fact(t testing.TB, of store.ThreadKeys, r store.Reserved, undo bool) store.ThreadFact {
	t.Helper()
	f := store.ThreadFact{ThreadKeys: of, Turn: r.Turn, CallerTurn: r.Caller, Undo: undo, At: r.Adds.At}
	var err error
	f.Adds, err = history.ReadAdds(r.Adds.Texts())
	must(t, err)
	return f
}

// TestThreadsAreRecovered: a snapshot of any moment, and what the log says behind it, is what there was.
func TestThreadsAreRecovered(t *testing.T) {
	terms := termsOf(t, pays, paid, reads)
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := newClock()
		live := store.NewThreads(c.now, store.ThreadBounds{})
		_, err := live.KeepTerms(ctx, terms, nil)
		must(t, err)
		began, err := live.EncodeThreads(ctx, 0, "")
		must(t, err)
		var log []store.ThreadFact
		running := map[int]store.Reserved{}
		snapshots, ends := [][]byte{began}, []int{0}
		thread := func(i int) store.ThreadKeys {
			return store.KeysOf(store.Scope{Principal: fmt.Sprint("p", i%2)}, fmt.Sprint("t", i%6))
		}
		for i := range 80 {
			c.advance([]time.Duration{time.Millisecond, time.Minute, time.Hour, 3 * day}[r.IntN(4)])
			switch of := thread(i); r.IntN(5) {
			case 0:
				for j, reserved := range running {
					undone, err := live.Release(ctx, thread(j), reserved.Adds)
					must(t, err)
					log = append(log, fact(t, thread(j), undone, true))
					delete(running, j)
					break
				}
			case 1:
				result, err := terms.ResultAdds("read", nil, nil, time.Time{})
				must(t, err)
				ended, err := live.EndResult(ctx, of, result)
				must(t, err)
				log = append(log, fact(t, of, ended, false))
			case 2:
				_, err := live.SweepThreads(ctx, 100)
				must(t, err)
			default:
				a := payment(t, terms, fmt.Sprint(i))
				if r.IntN(4) == 0 {
					a.Labels = []string{[]string{"untrusted", "customer"}[r.IntN(2)]}
				}
				reserved := reserve(t, live, of, a)
				running[i] = reserved[0]
				log = append(log, fact(t, of, reserved[0], false))
				if n := len(log); r.IntN(2) == 0 && n > 1+ends[len(ends)-1] && !log[n-2].Undo { // two that were written at once
					log[n-1], log[n-2] = log[n-2], log[n-1]
				}
			}
			if r.IntN(8) == 0 {
				s, err := live.EncodeThreads(ctx, uint64(len(log)), "hash")
				must(t, err)
				snapshots, ends = append(snapshots, s), append(ends, len(log))
			}
		}
		for i, s := range snapshots {
			again := store.NewThreads(c.now, store.ThreadBounds{})
			seq, _, err := again.LoadThreads(ctx, s)
			if must(t, err); int(seq) != ends[i] {
				t.Errorf("the snapshot is of record %d, expected %d", seq, ends[i])
			}
			must(t, again.FoldThreads(ctx, log[max(0, ends[i]-r.IntN(5)):])) // some of which it has already
			must(t, again.SettleThreads(ctx, time.Time{}))
			_, err = again.KeepTerms(ctx, terms, nil)
			must(t, err)
			for j := range 6 {
				if got, want := values(t, again, thread(j), terms), values(t, live, thread(j), terms); got != want {
					t.Fatalf("seed %d, snapshot %d, thread %d: found %q, expected %q", seed, i, j, got, want)
				}
			}
		}
	}
}

func TestSnapshotsThatAreDamaged(t *testing.T) {
	c := newClock()
	e := store.NewThreads(c.now, store.ThreadBounds{})
	terms := termsOf(t, pays)
	_, err := e.KeepTerms(ctx, terms, nil)
	must(t, err)
	reserve(t, e, store.KeysOf(owner, "t"), payment(t, terms, "1"))
	whole, err := e.EncodeThreads(ctx, 7, "hash")
	must(t, err)
	for i := range whole {
		cut, changed := whole[:i], slices.Clone(whole)
		changed[i] ^= 1
		for _, b := range [][]byte{cut, changed} {
			if _, _, err := store.NewThreads(c.now, store.ThreadBounds{}).LoadThreads(ctx, b); !errors.Is(err, store.ErrSnapshot) {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
}

// TestALogThatIsNotWhole: a thread that may have been before is not taken for a new one until its labels would be over.
func TestALogThatIsNotWhole(t *testing.T) {
	terms := termsOf(t, pays, paid, reads)
	c := newClock()
	live := store.NewThreads(c.now, store.ThreadBounds{})
	_, err := live.KeepTerms(ctx, terms, nil)
	must(t, err)
	old, young := store.KeysOf(owner, "old"), store.KeysOf(owner, "young")
	reserve(t, live, old, payment(t, terms, "1"))
	c.advance(time.Hour)
	first := c.now()
	log := []store.ThreadFact{fact(t, old, reserve(t, live, old, payment(t, terms, "1"))[0], false), fact(t, young, reserve(t, live, young, payment(t, terms, "1"))[0], false)}

	e := store.NewThreads(c.now, store.ThreadBounds{})
	must(t, e.FoldThreads(ctx, log))
	must(t, e.SettleThreads(ctx, first))
	_, err = e.KeepTerms(ctx, terms, nil)
	must(t, err)
	is(t, values(t, e, old, terms), "paid=? pays=? labels=? reads=?")
	is(t, values(t, e, young, terms), "paid=? pays=1 labels= reads=0")
	is(t, values(t, e, store.KeysOf(owner, "lost"), terms), "paid=? pays=? labels=? reads=?")
	c.advance(62 * time.Minute)
	is(t, values(t, e, store.KeysOf(owner, "lost"), terms), "paid=0 pays=? labels=? reads=?")
	c.advance(30 * day)
	is(t, values(t, e, store.KeysOf(owner, "lost"), terms), "paid=0 pays=0 labels= reads=0")
}

// TestRedisLosesThreads: what Redis has lost of threads is not known, whether it is emptied or has an earlier state.
func TestRedisLosesThreads(t *testing.T) {
	s := redistest.Start(t)
	terms := termsOf(t, pays, paid, reads)
	g := join(t, at(s.Address()), testHooks{})
	_, err := g.KeepTerms(ctx, terms, nil)
	must(t, err)
	of := store.KeysOf(owner, "t")
	reserve(t, g.Engine, of, payment(t, terms, "1"))
	is(t, values(t, g.Engine, of, terms), "paid=1 pays=1 labels= reads=0")
	c := s.Client()
	defer c.Close()
	all := func() string {
		var found string
		insist(t, func() error {
			past, err := g.Past(ctx, of, true)
			found = valuesOf(past, terms)
			return err
		})
		return found
	}
	keys, err := c.Keys(ctx, "*epoch").Result()
	must(t, err)
	must(t, c.Set(ctx, keys[0], "another", 0).Err())
	is(t, all(), "paid=? pays=? labels=? reads=?")
	is(t, values(t, g.Engine, store.KeysOf(owner, "other"), terms), "paid=? pays=? labels=? reads=?")
	reserve(t, g.Engine, of, payment(t, terms, "1"))
	must(t, c.FlushAll(ctx).Err())
	is(t, all(), "paid=? pays=? labels=? reads=?")
}

// TestResultCountsOnce: where threads are kept with calls, the transition that ends a call adds what its result adds. Its reply may
// be lost, its process may die, and another may end the call as well.
func TestResultCountsOnce(t *testing.T) {
	terms := termsOf(t, pays, paid, reads)
	o := at(redistest.Shared(t))
	a, b := join(t, o, testHooks{}), join(t, o, testHooks{})
	for _, g := range []*gateway{a, b} {
		_, err := g.KeepTerms(ctx, terms, nil)
		must(t, err)
	}
	of := store.KeysOf(owner, "t")
	task := read
	task.Ledger = of.Thread
	adds, err := terms.ResultAdds("read", nil, nil, time.Time{})
	must(t, err)
	end := func(g *gateway, attempt string) (store.Call, error) {
		e := ending(attempt, "r")
		e.Adds = adds
		return g.Finish(ctx, "1", e)
	}
	dispatched(t, a, newCall("1", ""), task)
	first, err := end(a, "a")
	must(t, err)
	if texts := first.Counted.Adds; first.Counted.Turn == 0 || len(texts) != 2 || texts[1] != "thread.results('read')=1" {
		t.Errorf("counted %+v", first.Counted)
	}
	if again, err := end(a, "a"); err != nil || again.Counted.Turn != first.Counted.Turn || !slices.Equal(again.Counted.Adds, first.Counted.Adds) {
		t.Errorf("again: %+v, %v", again.Counted, err)
	}
	if _, err := end(b, "b"); !errors.Is(err, store.ErrEnded) {
		t.Errorf("of another: %v", err)
	}
	for _, g := range []*gateway{a, b} {
		is(t, values(t, g.Engine, of, terms), "paid=0 pays=0 labels= reads=1")
		if kept, err := g.Get(ctx, "1", store.OfRecovery()); err != nil || kept.Counted.Turn != first.Counted.Turn || !slices.Equal(kept.Counted.Adds, first.Counted.Adds) {
			t.Errorf("kept %+v, %v", kept.Counted, err)
		}
	}
}

// TestAClosingThatIsTakenBack: a closing that could not be recorded is not put back after a loss either.
func TestAClosingThatIsTakenBack(t *testing.T) {
	terms := termsOf(t, pays)
	g, empty := join(t, at(redistest.Shared(t)), testHooks{}), store.NewThreads(time.Now, store.ThreadBounds{})
	for _, e := range []*store.Engine{g.Engine, empty} {
		_, err := e.KeepTerms(ctx, terms, nil)
		must(t, err)
	}
	stays, reopened := store.KeysOf(owner, "stays"), store.KeysOf(owner, "reopened")
	_, err := g.CloseThread(ctx, stays)
	must(t, err)
	reserve(t, g.Engine, reopened, payment(t, terms, "1"))
	closing, err := g.CloseThread(ctx, reopened)
	must(t, err)
	must(t, g.ReopenThread(ctx, reopened, closing.Turn))
	must(t, empty.FoldThreads(ctx, g.RecentThreads()))
	for of, closed := range map[store.ThreadKeys]bool{stays: true, reopened: false} {
		if past, err := empty.Past(ctx, of, true); err != nil || past.Thread.Closed != closed {
			t.Errorf("closed: %t, expected %t: %v", past.Thread.Closed, closed, err)
		}
	}
}
