package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/redisstore"
)

// state is what Redis held at some moment.
type state map[string]string

// stateOf is what it holds now, below a prefix.
func stateOf(t testing.TB, c *redis.Client, prefix string) state {
	t.Helper()
	keys, err := c.Keys(ctx, prefix+"*").Result()
	must(t, err)
	s := state{}
	for _, key := range keys {
		// A call that has expired meanwhile is gone.
		if s[key], err = c.Dump(ctx, key).Result(); errors.Is(err, redis.Nil) {
			delete(s, key)
		} else {
			must(t, err)
		}
	}
	return s
}

// again puts Redis back to a state, at once, as where a replica is promoted that was
// behind.
func (s state) again(t testing.TB, c *redis.Client, prefix string) {
	t.Helper()
	keys, err := c.Keys(ctx, prefix+"*").Result()
	must(t, err)
	_, err = c.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		for _, key := range keys {
			if _, known := s[key]; !known {
				tx.Del(ctx, key)
			}
		}
		for key, value := range s {
			tx.RestoreReplace(ctx, key, 0, value)
		}
		return nil
	})
	must(t, err)
}

// stepOf is the step of a call as Redis has it; empty: it has none.
func stepOf(c *redis.Client, o redisstore.Options, id string) store.Step {
	head, err := c.HGet(ctx, o.Prefix+"{store}:call:"+id, "h").Result()
	if err != nil {
		return ""
	}
	for _, step := range []store.Step{store.Opened, store.Dispatched, store.Waiting, store.Ended} {
		if strings.Contains(head, string(step)) {
			return step
		}
	}
	return ""
}

// recovered returns the abandoned calls that a gateway has.
func recovered(t testing.TB, g *gateway) (calls []store.Call) {
	t.Helper()
	insist(t, func() (err error) {
		calls, err = g.Recover(ctx, store.Abandoned, 100)
		return err
	})
	return calls
}

// insist asks until the store can be relied on: a connection that was cut may not
// have been missed yet.
func insist(t testing.TB, question func() error) {
	t.Helper()
	for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		err := question()
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrUnavailable) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// running dispatches a call, under the first of some ids with which that succeeds.
func running(t testing.TB, g *gateway, id string, key bool) (as string) {
	t.Helper()
	try := 0
	insist(t, func() error {
		try++
		c := newCall(fmt.Sprint(id, "-", try), "")
		if as = c.ID; key {
			c.Key = c.ID
		}
		if _, err := g.Open(ctx, c); err != nil {
			return err
		}
		return g.Dispatch(ctx, as, once)
	})
	return as
}

// A retracted or ended call is so again after Redis has forgotten it.
func TestOrphansAreRetracted(t *testing.T) {
	t.Parallel()
	s, p, o, g, other := divided(t)
	c := s.Client()
	defer c.Close()

	ended(t, g, newCall("first", "first")) // Redis knows the scripts from here on
	opened(t, g, newCall("opened", "k1"))
	before := stateOf(t, c, o.Prefix)
	must(t, g.Settle(ctx, "opened"))
	before.again(t, c, o.Prefix)
	recovered(t, g)
	freed(t, other, newCall("after opened", "k1"))

	// Redis hears the dispatch and is not heard. A question may need a new
	// connection, which then fails before it is asked.
	received := false
	for try := 0; !received; try++ {
		if try == 50 {
			t.Fatal("Redis does not hear it")
		}
		id := fmt.Sprint("refused", try)
		claimed(t, g, newCall(id, id))
		p.Set(func(h *lossy.Faults) { h.DropReplies = true })
		refused(t, g.Dispatch(ctx, id, once), store.ErrUnavailable)
		if received = stepOf(c, o, id) == store.Dispatched; received {
			before = stateOf(t, c, o.Prefix)
		}
		p.Clear()
		g.wait(t, true)
		_ = g.Settle(ctx, id) // what that cannot say now is said later
		freed(t, other, newCall("second "+id, id))
		must(t, other.Settle(ctx, "second "+id))
		if received {
			before.again(t, c, o.Prefix)
			// It may have run, for all that Redis says: the log knows better.
			if calls := recovered(t, g); len(calls) != 1 || calls[0].ID != id || calls[0].Step != store.Dispatched {
				t.Errorf("recovered %+v", calls)
			}
		}
	}

	id := running(t, g, "ended", true)
	before = stateOf(t, c, o.Prefix)
	insist(t, func() error { _, err := g.Finish(ctx, id, ending("a", "r")); return err })
	before.again(t, c, o.Prefix)
	if prior := claimed(t, other, newCall("after "+id, id)); prior == nil || prior.ID != id {
		t.Fatalf("the key of a call that has ended started another: %+v", prior)
	}
	if calls := recovered(t, g); len(calls) != 1 || calls[0].ID != id {
		t.Errorf("recovered %+v", calls)
	}

	// A running call is never an orphan.
	runs, free, waits := running(t, g, "runs", true), running(t, g, "free", false), running(t, g, "waits", true)
	insist(t, func() error { return g.Update(ctx, waits, store.Defer{Until: time.Now().Add(time.Hour)}) })
	claimed(t, g, newCall("judged", "k6"))
	for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		insist(t, func() error {
			calls, err := g.Recover(ctx, store.Abandoned, 100)
			if len(calls) > 0 {
				t.Errorf("recovered %+v", calls)
			}
			return err
		})
	}
	for _, id := range []string{runs, free} {
		insist(t, func() error { _, err := g.Finish(ctx, id, ending("a", "r")); return err })
	}
	for id, step := range map[string]store.Step{waits: store.Waiting, runs: store.Ended} {
		insist(t, func() error {
			c, err := other.Get(ctx, id, store.OfAnyone())
			if err == nil && c.Step != step {
				t.Errorf("%s is %s", id, c.Step)
			}
			return err
		})
	}
	if prior := claimed(t, other, newCall("second", "k6")); prior == nil || prior.ID != "judged" {
		t.Errorf("the key of a call that is judged: %+v", prior)
	}
}

// A question that arrives long after it was given up, and after the call was taken
// back, holds its key for a moment only.
func TestLateRequest(t *testing.T) {
	t.Parallel()
	s, p, o, g, other := divided(t)
	ended(t, g, newCall("first", "first")) // Redis knows the scripts from here on
	late := make(chan struct{})
	arrive := sync.OnceFunc(func() { close(late) })
	defer arrive()
	p.Set(func(h *lossy.Faults) { h.HoldRequests = late })
	_, err := g.Open(ctx, newCall("1", "k"))
	refused(t, err, store.ErrUnavailable)
	p.Set(func(h *lossy.Faults) { h.HoldRequests = nil }) // for what is asked from now on
	g.wait(t, true)
	for end := time.Now().Add(patient); g.Retractions() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the call is not taken back")
		}
	}
	arrive()
	c := s.Client()
	defer c.Close()
	// It arrives now, unless it has and was removed at the same moment.
	key := o.Prefix + "{store}:call:1"
	for end := time.Now().Add(2 * time.Second); c.Exists(ctx, key).Val() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	freed(t, other, newCall("2", "k"))
}

// An instance that is the master again, with what the other one held meanwhile, is
// used once every gateway has put back what it knows.
func TestBackOnTheFirstMaster(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	o.Replicas = 2
	a := joining(t, t.TempDir(), o, testHooks{})
	b := join(t, o, testHooks{})
	a.wait(t, true)
	dispatched(t, b, newCall("1", "k"), once)
	must(t, b.Close())
	c := s.Client()
	defer c.Close()
	must(t, c.Del(ctx, o.Prefix+"{store}:call:1").Err())
	must(t, c.Set(ctx, o.Prefix+"{store}:epoch", "another/epoch", 0).Err())
	a.wait(t, false)
	for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		ready, cause := a.Ready()
		if ready {
			t.Fatal("used without what the other knows")
		}
		if strings.Contains(cause.Error(), "1 of 2 gateways") {
			break
		}
		if time.Now().After(end) {
			t.Fatal(cause)
		}
	}
	second := joining(t, b.node, o, testHooks{})
	second.wait(t, true)
	a.wait(t, true)
	if prior := claimed(t, a, newCall("2", "k")); prior == nil || prior.ID != "1" {
		t.Errorf("the key started a second call: %+v", prior)
	}
}

// An answer that nobody was given outlives a loss, though its call has no key.
func TestUndeliveredResultsAreKept(t *testing.T) {
	s := redistest.Start(t)
	g := join(t, at(s.Address()), testHooks{})
	c := s.Client()
	defer c.Close()
	ended(t, g, newCall("owed", ""))
	given := dispatched(t, g, newCall("given", ""), once)
	e := ending("a", "r")
	e.Deliver = true
	if _, err := g.Finish(ctx, given, e); err != nil {
		t.Fatal(err)
	}
	must(t, c.FlushAll(ctx).Err())
	found := func(id string) (store.Call, error) {
		for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
			call, err := g.Get(context.Background(), id, store.Of("p"))
			if !errors.Is(err, store.ErrUnavailable) || time.Now().After(end) {
				return call, err
			}
		}
	}
	if call, err := found("owed"); err != nil || string(call.Answer.Result) != "r" {
		t.Errorf("got %+v, %v", call, err)
	}
	refused(t, g.Update(ctx, given, store.Deliver{Principal: "p"}), store.ErrDelivered)
	must(t, g.Update(ctx, "owed", store.Deliver{Principal: "p"}))
}

// A gateway that ends a call, gets no confirmation, and hands nothing over, has delivered
// nothing.
func TestFinishWithALostReply(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := lossy.New(t, s.Address())
	o := at(p.Address())
	o.Wait = brief
	g := join(t, o, testHooks{})
	c := s.Client()
	defer c.Close()
	ended(t, g, newCall("first", "first")) // Redis knows the scripts from here on
	// A question may need a new connection, which then fails before it is asked.
	received, id := false, ""
	for try := 0; !received; try++ {
		if try == 50 {
			t.Fatal("Redis does not hear it")
		}
		id = running(t, g, fmt.Sprint("unheard", try), false)
		e := ending("a", "r")
		e.Deliver = true
		p.Set(func(h *lossy.Faults) { h.DropReplies = true })
		_, err := g.Finish(ctx, id, e)
		refused(t, err, store.ErrUnavailable)
		received = stepOf(c, o, id) == store.Ended
		p.Clear()
		g.wait(t, true)
	}
	insist(t, func() error {
		c, err := g.Finish(ctx, id, ending("a", "r"))
		if err == nil && c.Delivered {
			t.Errorf("got %+v", c)
		}
		return err
	})
	for i, want := range []bool{true, false} {
		insist(t, func() error {
			err := g.Update(ctx, id, store.Deliver{Principal: "p"})
			first := err == nil
			if errors.Is(err, store.ErrDelivered) {
				err = nil
			}
			if err == nil && first != want {
				t.Errorf("delivery %d: %v", i, first)
			}
			return err
		})
		insist(t, func() error { _, err := g.Finish(ctx, id, ending("a", "r")); return err })
	}
}

// A master that was a replica for a moment, and has lost by that what its replica had
// not heard, is used once every gateway has put back what it knows, though it is the same.
func TestFailoverAndBack(t *testing.T) {
	t.Parallel()
	master, replica, between := behind(t)
	o := at(master.Address())
	o.Replicas = 2
	a := joining(t, t.TempDir(), o, testHooks{})
	b := join(t, o, testHooks{})
	a.wait(t, true)
	between.Set(func(h *lossy.Faults) { h.DropReplies = true })
	dispatched(t, b, newCall("1", "k"), once)
	first, second := master.Client(), replica.Client()
	defer first.Close()
	defer second.Close()
	must(t, second.ReplicaOf(ctx, "no", "one").Err())
	must(t, first.ReplicaOf(ctx, "127.0.0.1", fmt.Sprint(replica.Port)).Err())
	for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		info, err := first.Info(ctx, "replication").Result()
		if err == nil && strings.Contains(info, "master_link_status:up") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the master does not follow: %v", err)
		}
	}
	a.wait(t, false)
	b.wait(t, false)
	must(t, first.ReplicaOf(ctx, "no", "one").Err())
	for _, g := range []*gateway{a, b} {
		if prior := claimed(t, g, newCall("2", "k")); prior == nil || prior.ID != "1" {
			t.Errorf("the key started a second call: %+v", prior)
		}
	}
}
