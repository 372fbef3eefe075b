package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/history"
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
		_, err := g.Past(ctx, threadNo(0))
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
			past, err := g.Past(ctx, threadNo(i))
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
			s := redistest.Start(t)
			both := tellers(t, at(s.Address()), terms)
			r := rand.New(rand.NewPCG(7, 1))
			for range 3 {
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
