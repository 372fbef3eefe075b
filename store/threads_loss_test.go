package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/redisstore"
)

// teller is a gateway that keeps threads on a Redis, with its data folder: the log, and what it has known of the terms.
type teller struct {
	*gateway
	folder *tellerFolder
}

type tellerFolder struct {
	mu    sync.Mutex
	facts []store.ThreadFact
	kept  *history.Keeping
	// reads is called before each batch that the log passes; its error ends the reading.
	reads func() error
}

// write writes what a change has added, or taken away, unless it changed nothing.
func (f *tellerFolder) write(t testing.TB, of store.ThreadKeys, r store.Reserved, undo bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Turn > 0 || r.Caller > 0 {
		f.facts = append(f.facts, fact(t, of, r, undo))
	}
}

func (f *tellerFolder) log() redisstore.Log {
	return redisstore.Log{
		Mark: func() uint64 {
			f.mu.Lock()
			defer f.mu.Unlock()
			return uint64(len(f.facts))
		},
		Threads: func(_ context.Context, behind uint64, do func([]store.ThreadFact) error) (time.Time, error) {
			f.mu.Lock()
			facts, reads := slices.Clone(f.facts[behind:]), f.reads
			f.mu.Unlock()
			for some := range slices.Chunk(facts, 3) {
				if reads != nil {
					if err := reads(); err != nil {
						return time.Time{}, err
					}
				}
				if err := do(some); err != nil {
					return time.Time{}, err
				}
			}
			return time.Time{}, nil
		},
		Kept: func() (*history.Keeping, error) { return f.kept, nil },
	}
}

// tells starts a process of a gateway. It may wait for others.
func tells(t testing.TB, o redisstore.Options, node string, f *tellerFolder) teller {
	t.Helper()
	o.Log = f.log()
	return teller{joining(t, node, o, testHooks{}), f}
}

// keeps waits until the gateway keeps these terms.
func (g teller) keeps(t testing.TB, terms *history.Terms) {
	t.Helper()
	insist(t, func() (err error) { g.folder.kept, err = g.KeepTerms(ctx, terms, g.folder.kept); return err })
}

// tellers are two gateways that keep the same threads.
func tellers(t testing.TB, o redisstore.Options, terms *history.Terms) [2]teller {
	t.Helper()
	o.Replicas = 2
	both := [2]teller{tells(t, o, t.TempDir(), &tellerFolder{}), tells(t, o, t.TempDir(), &tellerFolder{})}
	for _, g := range both {
		g.wait(t, true)
		g.keeps(t, terms)
	}
	for i, g := range both { // what each knows, once both are known
		_, err := g.Past(ctx, threadNo(0), true)
		must(t, err)
		both[i].folder.kept = g.KeptTerms()
	}
	return both
}

func threadNo(i int) store.ThreadKeys {
	return store.KeysOf(store.Scope{Principal: fmt.Sprint("p", i%2)}, fmt.Sprint("t", i%4))
}

// lives has gateways make some changes.
func lives(t testing.TB, r *rand.Rand, terms *history.Terms, gateways ...teller) {
	t.Helper()
	for i := range 24 {
		g, of := gateways[r.IntN(len(gateways))], threadNo(r.IntN(4))
		switch r.IntN(4) {
		case 0:
			result, err := terms.ResultAdds("read", nil, nil, time.Time{})
			must(t, err)
			ended, err := g.EndResult(ctx, of, result)
			must(t, err)
			g.folder.write(t, of, ended, false)
		default:
			a := payment(t, terms, fmt.Sprint(i))
			if r.IntN(4) == 0 {
				a.Labels = []string{[]string{"untrusted", "customer"}[r.IntN(2)]}
			}
			a.Equal = 1 + uint64(i%3)
			one := reserve(t, g.Engine, of, a)[0]
			g.folder.write(t, of, one, false)
			if r.IntN(4) == 0 { // another gateway finds that it did not run
				g = gateways[r.IntN(len(gateways))]
				undone, err := g.Release(ctx, of, one.Adds)
				must(t, err)
				g.folder.write(t, of, undone, true)
			}
		}
	}
}

// tell is all that a gateway knows of the threads, once it knows it.
func (g teller) tell(t testing.TB, terms *history.Terms) (all string) {
	t.Helper()
	insist(t, func() error {
		all = ""
		for i := range 4 {
			past, err := g.Past(ctx, threadNo(i), true)
			if err != nil {
				return err
			}
			made, same := past.Thread.Equals(1, time.Time{})
			all += fmt.Sprintln(valuesOf(past, terms), past.Thread.Calls(), made, same)
		}
		return nil
	})
	return all
}

// losses are ways in which a Redis loses threads: each returns what it does once more has been written.
var losses = map[string]func(*testing.T, *redistest.Server) func(){
	"emptied": func(t *testing.T, s *redistest.Server) func() {
		return func() {
			c := s.Client()
			defer c.Close()
			must(t, c.FlushAll(ctx).Err())
		}
	},
	"restarted old": func(t *testing.T, s *redistest.Server) func() {
		c := s.Client()
		defer c.Close()
		must(t, c.Save(ctx).Err())
		return func() { s.Kill(); must(t, s.Start()) }
	},
}

// TestThreadsArePutBack: after a loss two gateways put back exactly what there was, before they serve.
func TestThreadsArePutBack(t *testing.T) {
	terms := termsOf(t, pays, paid, reads)
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			both := tellers(t, at(s.Address()), terms)
			r := rand.New(rand.NewPCG(7, 1))
			for range 2 {
				lives(t, r, terms, both[:]...)
				loses := lose(t, s)
				lives(t, r, terms, both[:]...)
				want := both[0].tell(t, terms)
				loses()
				for _, g := range both {
					if got := g.tell(t, terms); got != want {
						t.Fatalf("there was\n%s and is\n%s", want, got)
					}
				}
			}
		})
	}
}

// TestThreadsAfterAFailover: a replica that was behind is promoted.
func TestThreadsAfterAFailover(t *testing.T) {
	t.Parallel()
	terms := termsOf(t, pays, paid, reads)
	master, replica, between := behind(t)
	front := lossy.New(t, master.Address())
	both := tellers(t, at(front.Address()), terms)
	r := rand.New(rand.NewPCG(9, 1))
	lives(t, r, terms, both[:]...)
	between.Set(func(h *lossy.Faults) { h.DropReplies = true })
	lives(t, r, terms, both[:]...)
	want := both[0].tell(t, terms)
	c := replica.Client()
	defer c.Close()
	must(t, c.ReplicaOf(ctx, "no", "one").Err())
	front.Retarget(replica.Address())
	front.Cut()
	for _, g := range both {
		if got := g.tell(t, terms); got != want {
			t.Errorf("there was\n%s and is\n%s", want, got)
		}
	}
}

// TestAGatewayIsKilledWhileItPutsBack: it begins anew, and nothing counts twice; the other has begun meanwhile, and both are there at once.
func TestAGatewayIsKilledWhileItPutsBack(t *testing.T) {
	t.Parallel()
	terms := termsOf(t, pays, paid, reads)
	s := redistest.Start(t)
	o := at(s.Address())
	both := tellers(t, o, terms)
	lives(t, rand.New(rand.NewPCG(3, 1)), terms, both[:]...)
	want := both[0].tell(t, terms)
	reads, died := 0, make(chan struct{})
	f := both[1].folder
	f.mu.Lock()
	f.reads = func() error {
		if reads++; reads < 3 {
			return nil
		}
		if reads == 3 {
			close(died)
		}
		return errors.New("it is killed")
	}
	f.mu.Unlock()
	c := s.Client()
	defer c.Close()
	must(t, c.FlushAll(ctx).Err())
	<-died
	must(t, both[1].Close())
	if _, err := both[0].Past(ctx, threadNo(0), true); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a gateway serves before the other has put back what it knows: %v", err)
	}
	o.Replicas, f.reads = 2, nil
	again := tells(t, o, both[1].node, f)
	again.keeps(t, terms)
	for _, g := range []teller{both[0], again} {
		if got := g.tell(t, terms); got != want {
			t.Errorf("there was\n%s and is\n%s", want, got)
		}
	}
}

// TestAGatewayComesBackLater: while it is away, what it may have written is unknown, and threads live on; when it is back, its part is added to
// them. Where it does not come back, the operator accepts that.
func TestAGatewayComesBackLater(t *testing.T) {
	terms := termsOf(t, pays, paid, reads)
	for name, comes := range map[string]bool{"it comes back": true, "the loss is accepted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			o := at(s.Address())
			both := tellers(t, o, terms)
			r := rand.New(rand.NewPCG(5, 1))
			behind := time.Minute                                                                               // the clock of Redis is another one
			live := store.NewThreads(func() time.Time { return time.Now().Add(-behind) }, store.ThreadBounds{}) // what there would be without the loss
			_, err := live.KeepTerms(ctx, terms, nil)
			must(t, err)
			behind = 0
			lives(t, r, terms, both[:]...)
			for _, g := range both { // what follows is of one gateway alone
				must(t, g.Close())
			}
			must(t, live.FoldThreads(ctx, slices.Concat(both[0].folder.facts, both[1].folder.facts)))
			must(t, live.SettleThreads(ctx, time.Time{}))
			c := s.Client()
			defer c.Close()
			must(t, c.FlushAll(ctx).Err())

			one := tells(t, o, both[0].node, both[0].folder)
			one.keeps(t, terms)
			for i := range 5 { // the last thread is a new one
				of := threadNo(i)
				if i == 4 {
					of = store.KeysOf(owner, "new")
				}
				is(t, values(t, one.Engine, of, terms), "paid=? pays=? labels=? reads=?")
				for _, e := range []*store.Engine{live, one.Engine} {
					reserved := reserve(t, e, of, payment(t, terms, "1"))[0]
					if e != live {
						one.folder.write(t, of, reserved, false)
					}
				}
				is(t, values(t, one.Engine, of, terms), "paid=? pays=? labels=? reads=?")
			}
			if !comes {
				must(t, one.AcceptLoss(ctx, func(time.Time) bool { return true }))
				is(t, values(t, one.Engine, store.KeysOf(owner, "new"), terms), "paid=1 pays=1 labels= reads=0")
				is(t, values(t, one.Engine, store.KeysOf(owner, "newer"), terms), "paid=1 pays=0 labels= reads=0")
				return
			}
			other := tells(t, o, both[1].node, both[1].folder)
			other.keeps(t, terms)
			want := (teller{&gateway{Store: &redisstore.Store{Engine: live}}, nil}).tell(t, terms)
			for range 2 {
				for _, g := range []teller{one, other} { // each may serve before the other
					got := ""
					within(t, "both have put back what they know", func() bool { got = g.tell(t, terms); return !strings.Contains(got, "?") })
					if got != want {
						t.Errorf("there would be\n%s and is\n%s", want, got)
					}
				}
				is(t, values(t, one.Engine, store.KeysOf(owner, "new"), terms), "paid=1 pays=1 labels= reads=0")
				must(t, c.FlushAll(ctx).Err()) // and once more, all that there was since
			}
		})
	}
}
