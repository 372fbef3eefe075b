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

// amid does something to Redis while a gateway that has ended ten calls reads its
// journal in after a loss: right after the fifth of them, and before the sixth. Their
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

// Redis is emptied once more while a journal is being read in: what was put in before
// is put in again.
func TestEmptiedWhileAJournalIsReadIn(t *testing.T) {
	amid(t, redistest.Start(t), func(c *redis.Client) { must(t, c.FlushAll(ctx).Err()) })
}

// A master takes over the data of another that was behind, and is a master again, while
// a journal is being read in.
func TestFollowedAnotherWhileAJournalIsReadIn(t *testing.T) {
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

// A call that Redis has lost without its journal's being read in ends in the journal,
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
