package store_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/redisstore"
)

// within waits until something holds.
func within(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patient); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// holds tells whether Redis has a key of the first part.
func holds(c *redis.Client, o redisstore.Options, key string) bool {
	n, err := c.Exists(ctx, o.Prefix+"{store}:"+key).Result()
	return err == nil && n == 1
}

// amid does something to Redis while a gateway that has ended ten calls puts back
// what it knows after a loss: right after the fifth of them, and before the sixth. Their
// keys must start no second call then.
func amid(t *testing.T, s *redistest.Server, do func(c *redis.Client)) {
	t.Helper()
	p := lossy.New(t, s.Address())
	o := at(p.Address())
	g := join(t, o, testHooks{})
	const calls = 10
	for i := range calls {
		id := fmt.Sprint("call ", i)
		ended(t, g, newCall(id, "key of "+id))
	}
	c := s.Client()
	defer c.Close()
	must(t, c.FlushAll(ctx).Err())
	var done atomic.Bool
	p.Set(func(h *lossy.Faults) {
		// The server's reply has not arrived yet, so no further request was sent.
		h.RewriteReply = func(output []byte) []byte {
			if !done.Load() && holds(c, o, "call:call 4") {
				done.Store(true)
				do(c)
			}
			return output
		}
	})
	within(t, "it has happened", func() bool {
		_, _ = g.Get(ctx, "call 0", store.OfAnyone()) // by which the gateway notices
		return done.Load()
	})
	for i := range calls {
		id := fmt.Sprint("call ", i)
		if prior := claimed(t, g, newCall("second "+id, "key of "+id)); prior == nil || prior.ID != id {
			t.Errorf("the key of %q starts a second call", id)
		}
	}
}

// Redis is emptied once more while a gateway puts back what it knows: what was put back before
// is put back again.
func TestEmptiedWhileCallsArePutBack(t *testing.T) {
	amid(t, redistest.Start(t), func(c *redis.Client) { must(t, c.FlushAll(ctx).Err()) })
}

// A master takes over the data of another that was behind, and is a master again, while
// a gateway puts back what it knows.
func TestFollowedAnotherWhileCallsArePutBack(t *testing.T) {
	s, behind := redistest.Start(t, "--repl-diskless-sync-delay", "0"), redistest.Start(t, "--repl-diskless-sync-delay", "0")
	b := behind.Client()
	defer b.Close()
	follows := func(c *redis.Client, of *redistest.Server) {
		_, port, _ := strings.Cut(of.Address(), ":")
		must(t, c.ReplicaOf(ctx, "127.0.0.1", port).Err())
		within(t, "the replica has followed", func() bool {
			info, err := c.Info(ctx, "replication").Result()
			return err == nil && strings.Contains(info, "master_link_status:up")
		})
	}
	amid(t, s, func(c *redis.Client) {
		follows(b, s)
		must(t, b.ReplicaOf(ctx, "no", "one").Err())
		for i := 2; i < 5; i++ { // it had not come so far
			calls, err := b.Keys(ctx, fmt.Sprint("*call:call ", i)).Result()
			must(t, err)
			part, _, _ := strings.Cut(calls[0], "call:")
			key := hex.EncodeToString(store.KeyHash(newCall("", "").Scope, fmt.Sprint("key of call ", i)))
			must(t, b.Del(ctx, calls[0], part+"key:"+key).Err())
		}
		follows(c, behind)
		must(t, c.ReplicaOf(ctx, "no", "one").Err())
	})
}

// A call that Redis has lost unnoticed is put back when it ends,
// and stays ended after the next loss: else it would be pending for as long as its
// process lives.
func TestFinishOfACallThatRedisHasLost(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	g := join(t, o, testHooks{})
	c := s.Client()
	defer c.Close()
	for _, key := range []string{"", "k"} {
		id := dispatched(t, g, newCall("runs"+key, key), once)
		lost, err := c.Keys(ctx, "*"+id).Result()
		must(t, err)
		if key != "" {
			keys, err := c.Keys(ctx, "*key:*").Result()
			must(t, err)
			lost = append(lost, keys...)
		}
		must(t, c.Del(ctx, lost...).Err())
		for range 2 { // the second as where the first reply was lost
			if got, err := g.Finish(ctx, id, ending("a", "r")); err != nil || got.Step != store.Ended {
				t.Errorf("%q: %+v, %v", key, got, err)
			}
		}
		if _, err := g.Finish(ctx, id, ending("another", "r")); !errors.Is(err, store.ErrEnded) {
			t.Errorf("%q: ended twice: %v", key, err)
		}
		is := func(when string) {
			t.Helper()
			insist(t, func() error {
				got, err := g.Get(ctx, id, store.OfAnyone())
				if err == nil && got.Step != store.Ended {
					t.Errorf("%q, %s: %+v", key, when, got)
				}
				return err
			})
		}
		is("at once")
		must(t, c.FlushAll(ctx).Err())
		is("after the next loss")
	}
	if prior := claimed(t, g, newCall("second", "k")); prior == nil || prior.ID != "runsk" {
		t.Errorf("the key starts a second call: %+v", prior)
	}
	if _, err := g.Finish(ctx, "nobody", ending("a", "r")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a call that is nowhere: %v", err)
	}
}

// Where records of a log are missing that Redis has lost too, no gateway takes a key, until they are there again
// or the operator accepts that: also after a restart, and whatever is written meanwhile.
func TestGapInALog(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := s.Client()
	defer c.Close()
	for name, over := range map[string]func(log *nodeLog, accepted *atomic.Bool){
		"accepted": func(_ *nodeLog, accepted *atomic.Bool) { accepted.Store(true) },
		"put back": func(log *nodeLog, _ *atomic.Bool) {
			log.mu.Lock()
			defer log.mu.Unlock()
			log.gone = 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := at(s.Address())
			o.Replicas = 2
			hooks := testHooks{lease: 200 * time.Millisecond}
			var accepted atomic.Bool
			dir := t.TempDir()
			log := logOf(strings.ReplaceAll(dir, "/", "_"))
			gapped := o
			gapped.Log = log.options()
			gapped.Log.Accepts = func(time.Time) bool { return accepted.Load() }
			a, b := joining(t, dir, gapped, hooks), joining(t, t.TempDir(), o, hooks)
			a.wait(t, true)
			b.wait(t, true)
			ended(t, a, newCall("1", "k"))
			log.mu.Lock()
			log.gone = len(log.facts)
			log.mu.Unlock()
			must(t, c.FlushAll(ctx).Err())
			keyed := func(g *gateway, id string) error {
				_, err := g.Open(ctx, newCall(id, "key "+id))
				return err
			}
			refuse := func(when string) {
				t.Helper()
				for i, g := range []*gateway{a, b} {
					insist(t, func() error {
						_, err := g.Get(ctx, "1", store.OfAnyone())
						if errors.Is(err, store.ErrNotFound) {
							return nil
						}
						return err
					})
					id := fmt.Sprint(when, i)
					if err := keyed(g, id); err == nil || !strings.Contains(err.Error(), "accept-loss") && !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("%s: gateway %d: %v", when, i, err)
					}
					insist(t, func() error { _, err := g.Open(ctx, newCall(id, "")); return err })
					must(t, g.Settle(ctx, id))
				}
			}
			refuse("at once")
			for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
				log.write(store.Fact{Kind: store.OutcomeKnown, Call: store.Call{ID: "another"}})
			}
			refuse("later")
			must(t, a.Close())
			a = joining(t, dir, gapped, hooks)
			a.wait(t, true)
			refuse("after a restart")
			over(log, &accepted)
			for i, g := range []*gateway{a, b} {
				within(t, "keys are taken", func() bool { return keyed(g, fmt.Sprint("over", i)) == nil })
			}
		})
	}
}

// What one gateway's log says of an approval that another one has kept holds after a loss, whichever of both puts
// back first.
func TestUseOfAnApprovalOfAnotherAfterALoss(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	o.Replicas = 2
	p := lossy.New(t, s.Address())
	slow := o
	slow.URL = at(p.Address()).URL
	slow.Wait = brief
	a, b := joining(t, t.TempDir(), o, testHooks{}), joining(t, t.TempDir(), slow, testHooks{})
	a.wait(t, true)
	b.wait(t, true)
	now := newClock()
	now.ms.Store(time.Now().UnixMilli())
	used, revoked := voted(t, b, asked(t, b, question(t, now, "used", "p", `{"a":1}`, "refunds")), "ada", true), asked(t, b, question(t, now, "denied", "p", `{"a":2}`, "refunds"))
	// All that is left of it at a is its log.
	a.log.write(store.Fact{Kind: store.Executed, Call: store.Call{ID: "1", Task: store.Task{Tool: "t", Using: []string{used.ID}}}})
	a.log.write(store.Fact{Kind: store.ApprovalEnded, Approval: revoked.ID, Ended: approval.Ending{End: approval.EndDenied, By: "ada", At: time.Now()}})
	c := s.Client()
	defer c.Close()
	p.Set(func(h *lossy.Faults) { h.DropReplies = true })
	must(t, c.FlushAll(ctx).Err())
	within(t, "the first has put back", func() bool {
		_, cause := a.Ready()
		return cause != nil && strings.Contains(cause.Error(), "1 of 2")
	})
	p.Clear()
	a.wait(t, true)
	if got, err := a.Approval(ctx, used.ID); err != nil || got.Ran != "1" {
		t.Errorf("an approval may be used twice: %+v, %v", got, err)
	}
	if got, err := a.Approval(ctx, revoked.ID); err != nil || got.Ended.End != approval.EndDenied {
		t.Errorf("a denial is forgotten: %+v, %v", got, err)
	}
}

// Of two processes of one node, the later one serves and the other does not.
func TestTwoProcessesOfOneNode(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	o := at(s.Address())
	clock := newClock() // by which no lease ends while the machine stands still
	hooks := testHooks{now: clock.now, lease: 2500 * time.Millisecond}
	dir := t.TempDir()
	a := joining(t, dir, o, hooks)
	a.wait(t, true)
	time.Sleep(2*hooks.lease + 100*time.Millisecond) // from here on it takes the lease from nobody
	b := joining(t, dir, o, hooks)
	b.wait(t, true)
	a.wait(t, false)
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ready, _ := a.Ready(); ready {
			t.Fatal("both processes serve")
		}
	}
	if ready, cause := b.Ready(); !ready {
		t.Errorf("the later one does not serve: %v", cause)
	}
	if _, cause := a.Ready(); !errors.Is(cause, store.ErrSameNode) {
		t.Errorf("the other says %v", cause)
	}
	must(t, b.Close())
	clock.advance(hooks.lease)
	a.wait(t, true)
}

// A revocation whose reply was lost is one: the log is to have it, so that no loss brings the grant back.
func TestRevocationWithALostReply(t *testing.T) {
	t.Parallel()
	s, p, o, g, _ := divided(t)
	c := s.Client()
	defer c.Close()
	for i := range 5 {
		grant := approval.Grant{ID: fmt.Sprint("grant_", i), Key: "k", Until: time.Now().Add(time.Hour)}
		insist(t, func() error { return g.AddGrant(ctx, grant) })
		var lost atomic.Bool
		p.Set(func(h *lossy.Faults) {
			h.RewriteReply = func(reply []byte) []byte {
				over, err := c.ZScore(ctx, o.Prefix+"{store}:lapsing", grant.ID).Result()
				if err == nil && over <= float64(time.Now().UnixMicro()) && !lost.Swap(true) {
					return nil
				}
				return reply
			}
		})
		_, err := g.RevokeGrant(ctx, grant.ID)
		p.Clear()
		if !lost.Load() || err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %v, lost: %v", err, lost.Load())
		}
		g.wait(t, true)
	}
}

// A call that the log says was refused is not running where an old state has it so, and has no second outcome.
func TestRefusedCallOfAnOldState(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	c := s.Client()
	defer c.Close()
	dir := t.TempDir()
	g := joining(t, dir, o, testHooks{lease: 200 * time.Millisecond})
	g.wait(t, true)
	id := dispatched(t, g, newCall("1", "k"), once)
	old := stateOf(t, c, o.Prefix)
	g.log.write(store.Fact{Kind: store.NotExecuted, Call: store.Call{ID: id}})
	must(t, g.Close())
	must(t, c.FlushAll(ctx).Err())
	old.again(t, c, o.Prefix)
	must(t, c.Del(ctx, o.Prefix+"{store}:epoch").Err())
	again := joining(t, dir, o, testHooks{lease: 200 * time.Millisecond})
	again.wait(t, true)
	if calls := recovered(t, again); len(calls) != 0 {
		t.Errorf("recovered %+v", calls)
	}
	freed(t, again, newCall("2", "k"))
}
