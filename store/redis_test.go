package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/redisstore"
)

// claimed tells whether a key has started a call, and fails if that cannot be
// told in time.
func claimed(t testing.TB, s calls, c store.Call) *store.Call {
	t.Helper()
	for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		prior, err := s.Open(ctx, c)
		if err == nil {
			return prior
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// freed waits until a key can be claimed again.
func freed(t testing.TB, s calls, c store.Call) {
	t.Helper()
	for end := time.Now().Add(patient); claimed(t, s, c) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the key was not given back")
		}
	}
}

// slowest remembers the longest that anything took.
type slowest struct{ d atomic.Int64 }

func (s *slowest) time(f func()) {
	start := time.Now()
	f()
	for d := int64(time.Since(start)); ; {
		was := s.d.Load()
		if d <= was || s.d.CompareAndSwap(was, d) {
			return
		}
	}
}

// check is for what waits without an end: the bound itself is 250 ms, ten times that
// here, and nothing tells how long a busy machine takes beside it.
func (s *slowest) check(t testing.TB) {
	t.Helper()
	if d := time.Duration(s.d.Load()); d > patient {
		t.Errorf("a decision took %v", d)
	}
}

// The winner knows its claim again though the first answer was lost.
func TestALostReply(t *testing.T) {
	s := redistest.Start(t)
	p := lossy.New(t, s.Address())
	g := join(t, at(p.Address()), testHooks{})
	for i := range 20 {
		id := fmt.Sprint(i)
		p.Set(func(h *lossy.Faults) { h.CutNextReply = i%2 == 0 })
		if prior, err := g.Open(ctx, newCall(id, id)); prior != nil || err != nil {
			// The link may have been lost with another connection: then it is refused.
			refused(t, err, store.ErrUnavailable)
			g.wait(t, true)
			continue
		}
		p.Set(func(h *lossy.Faults) { h.CutNextReply = i%2 == 1 })
		if err := g.Dispatch(ctx, id, once); err != nil {
			refused(t, err, store.ErrUnavailable)
			g.wait(t, true)
			continue
		}
		c, err := g.Get(ctx, id, store.OfAnyone())
		for end := time.Now().Add(patient); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			c, err = g.Get(ctx, id, store.OfAnyone())
		}
		if err != nil || c.Attempts != 1 || c.Step != store.Dispatched {
			t.Errorf("got %+v, %v", c, err)
		}
	}
}

// Redis hears and is not heard: the call is refused in time, and its key given
// back.
func TestRepliesVanish(t *testing.T) {
	t.Parallel()
	s, p, o, g, other := divided(t)
	c := s.Client()
	defer c.Close()
	ended(t, g, newCall("first", "first")) // Redis knows the scripts from here on
	var slow slowest
	for name, send := range map[string]func(id string) error{
		"keyed":   func(id string) error { return g.Dispatch(ctx, id, once) },
		"unkeyed": func(id string) error { return g.Dispatch(ctx, id, once) },
		"opening": func(id string) error { _, err := g.Open(ctx, newCall(id, id)); return err },
	} {
		// A question may need a new connection, which then fails before it is asked.
		for try, received := 0, false; !received; try++ {
			if try == 50 {
				t.Fatalf("%s: Redis does not hear it", name)
			}
			id := fmt.Sprint(name, try)
			switch name {
			case "keyed":
				claimed(t, g, newCall(id, id))
			case "unkeyed":
				claimed(t, g, newCall(id, ""))
			}
			p.Set(func(h *lossy.Faults) { h.DropReplies = true })
			slow.time(func() { refused(t, send(id), store.ErrUnavailable) })
			step := stepOf(c, o, id)
			received = name == "opening" && step != "" || step == store.Dispatched
			p.Clear()
			g.wait(t, true)
			for end := time.Now().Add(patient); received; time.Sleep(10 * time.Millisecond) {
				if _, err := other.Get(ctx, id, store.OfAnyone()); errors.Is(err, store.ErrNotFound) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%s was refused, and not taken back", id)
				}
			}
			g.Settle(ctx, id)
			if name != "unkeyed" {
				freed(t, other, newCall("second "+id, id))
			}
		}
	}
	slow.check(t)
}

// A call whose key has become another's is not dispatched.
func TestALostClaim(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	g, other := join(t, o, testHooks{}), join(t, o, testHooks{})
	c := s.Client()
	defer c.Close()
	opened(t, g, newCall("1", "k"))
	keys, err := c.Keys(ctx, "*key:*").Result()
	must(t, err)
	must(t, c.Del(ctx, keys...).Err())
	opened(t, other, newCall("2", "k"))
	refused(t, g.Dispatch(ctx, "1", once), store.ErrNotOwner)
	must(t, other.Dispatch(ctx, "2", once))
}

// Redis stands still: nobody waits, and it serves again by itself.
func TestAPause(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	o := at(s.Address())
	o.Wait = brief
	g, other := join(t, o, testHooks{}), join(t, o, testHooks{})
	ended(t, g, newCall("before", "before"))
	c := s.Client()
	defer c.Close()
	const pause = 6 * time.Second
	start := time.Now()
	must(t, c.Do(ctx, "client", "pause", pause.Milliseconds(), "all").Err())
	var slow slowest
	for i := range 40 { // the first of them waits its time, the others are told at once
		slow.time(func() {
			if prior, err := g.Open(ctx, newCall(fmt.Sprint(i), "k")); err == nil && prior == nil && time.Since(start) < pause {
				t.Error("claimed in a Redis that stands still")
			}
		})
	}
	slow.check(t)
	g.wait(t, true)
	freed(t, other, newCall("after", "k"))
	if prior := claimed(t, other, newCall("again", "before")); prior == nil || prior.Step != store.Ended {
		t.Errorf("got %+v", prior)
	}
}

// Gateways put back the calls that Redis has lost, and before that nothing is
// claimed.
func TestARestart(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	o.Replicas = 2
	a := joining(t, t.TempDir(), o, testHooks{})
	if ready, cause := a.Ready(); ready || !strings.Contains(cause.Error(), "1 of 2 gateways") {
		t.Fatalf("ready with one gateway of two: %v, %v", ready, cause)
	}
	b := join(t, o, testHooks{})
	a.wait(t, true)
	for name, lose := range map[string]func(){
		"emptied":   func() { c := s.Client(); defer c.Close(); must(t, c.FlushAll(ctx).Err()) },
		"restarted": func() { s.Kill(); must(t, s.Start()) },
	} {
		id := func(what string) string { return name + " " + what }
		scope := newCall("", "").Scope
		for _, g := range []*gateway{a, b} {
			ended(t, g, newCall(id("ended"+g.node), id("ended"+g.node)))
			dispatched(t, g, newCall(id("runs"+g.node), id("runs"+g.node)), once)
			must(t, g.Update(ctx, dispatched(t, g, newCall(id("waits"+g.node), id("waits"+g.node)), once), store.Defer{Until: time.Now().Add(time.Hour)}))
			free := ended(t, g, newCall(id("free"+g.node), ""))
			must(t, g.Settle(ctx, free))
		}
		lose()
		// Nobody takes over what another has restored and still runs.
		for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
			for _, g := range []*gateway{a, b} {
				if calls, err := g.Recover(ctx, store.Abandoned, 100); len(calls) != 0 {
					t.Errorf("%s: calls of a process that lives were taken over: %d, %v", name, len(calls), err)
				}
			}
		}
		// Each other's keys, from the first moment on.
		for _, g := range []*gateway{a, b} {
			for _, of := range []*gateway{b, a} {
				for _, what := range []string{"ended", "runs", "waits"} {
					prior := claimed(t, g, newCall(id("second"+what+g.node+of.node), id(what+of.node)))
					if prior == nil {
						t.Errorf("%s: the key of the call that %s starts a second one", name, what)
						continue
					}
					if prior.Scope != scope || what == "ended" && string(prior.Answer.Result) != "r" || what == "waits" && prior.Step != store.Waiting {
						t.Errorf("%s: got %+v", name, prior)
					}
				}
			}
		}
		for _, g := range []*gateway{a, b} {
			if _, err := g.Finish(ctx, id("runs"+g.node), ending("a", "late")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A process that starts while Redis is away refuses, and serves when it comes.
func TestRedisComesLater(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	g := joining(t, t.TempDir(), at(s.Address()), testHooks{})
	_, err := g.Open(ctx, newCall("1", "k"))
	refused(t, err, store.ErrUnavailable)
	must(t, s.Start())
	g.wait(t, true)
	ended(t, g, newCall("2", "k"))
}

// behind starts a master and a replica that hears nothing any more.
func behind(t *testing.T) (master, replica *redistest.Server, between *lossy.Proxy) {
	t.Helper()
	master, replica = redistest.Start(t, "--repl-ping-replica-period", "1", "--repl-diskless-sync-delay", "0"), redistest.Start(t)
	between = lossy.New(t, master.Address())
	c := replica.Client()
	defer c.Close()
	_, port, _ := strings.Cut(between.Address(), ":")
	must(t, c.ReplicaOf(ctx, "127.0.0.1", port).Err())
	for end := time.Now().Add(patient); ; time.Sleep(20 * time.Millisecond) {
		info, err := c.Info(ctx, "replication").Result()
		if err == nil && strings.Contains(info, "master_link_status:up") {
			return master, replica, between
		}
		if time.Now().After(end) {
			t.Fatalf("the replica does not come up: %v", err)
		}
	}
}

// Nothing is dispatched that no replica has.
func TestWaitForReplicas(t *testing.T) {
	master, _, between := behind(t)
	o := at(master.Address())
	o.MinRedisReplicas = 1
	g, other := join(t, o, testHooks{}), join(t, o, testHooks{})
	for end := time.Now().Add(patient); ; time.Sleep(20 * time.Millisecond) {
		id := fmt.Sprint("1-", time.Now().UnixNano())
		claimed(t, g, newCall(id, id))
		if err := g.Dispatch(ctx, id, once); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	between.Set(func(h *lossy.Faults) { h.DropReplies = true })
	id := "2"
	if prior := claimed(t, g, newCall(id, "k2")); prior != nil {
		t.Fatalf("got %+v", prior)
	}
	var slow slowest
	slow.time(func() { refused(t, g.Dispatch(ctx, id, once), store.ErrUnavailable) })
	slow.check(t)
	g.Settle(ctx, id)
	freed(t, other, newCall("3", "k2"))
}

// A replica that was behind is promoted. The gateways know what it does not.
func TestFailoverWithoutWaiting(t *testing.T) {
	master, replica, between := behind(t)
	front := lossy.New(t, master.Address())
	o := at(front.Address())
	o.Replicas = 2
	a := joining(t, t.TempDir(), o, testHooks{})
	b := join(t, o, testHooks{})
	a.wait(t, true)
	between.Set(func(h *lossy.Faults) { h.DropReplies = true })
	dispatched(t, a, newCall("1", "k"), once)
	c := replica.Client()
	defer c.Close()
	must(t, c.ReplicaOf(ctx, "no", "one").Err())
	front.Retarget(replica.Address())
	front.Cut()
	if prior := claimed(t, b, newCall("2", "k")); prior == nil || prior.ID != "1" {
		t.Errorf("the key started a second call: %+v", prior)
	}
	_, err := a.Get(ctx, "1", store.OfAnyone())
	for end := time.Now().Add(patient); errors.Is(err, store.ErrUnavailable) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, err = a.Get(ctx, "1", store.OfAnyone()) // it has not noticed, or not met the new master yet
	}
	if err != nil {
		t.Errorf("lost: %v", err)
	}
}

// Sentinel promotes a replica, while calls continue.
func TestFailoverOfSentinel(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Start(t, "--repl-diskless-sync-delay", "0"), redistest.Start(t)
	c := replica.Client()
	defer c.Close()
	_, port, _ := strings.Cut(master.Address(), ":")
	must(t, c.ReplicaOf(ctx, "127.0.0.1", port).Err())
	s := redistest.StartSentinel(t, master)
	watch := redis.NewSentinelClient(&redis.Options{Addr: s.Address()})
	defer watch.Close()
	for end := time.Now().Add(3 * patient); ; time.Sleep(50 * time.Millisecond) {
		if replicas, err := watch.Replicas(ctx, redistest.Master).Result(); err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok" {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%v, %v", replicas, err)
		}
	}
	o := redisstore.Options{Options: redisconn.Options{Sentinel: redisconn.Sentinel{Master: redistest.Master, Addresses: []string{s.Address()}}, Prefix: redistest.Prefix()}, MinRedisReplicas: 1}
	g := join(t, o, testHooks{})
	var kept []string
	for i := range 20 {
		id := fmt.Sprint(i)
		opened(t, g, newCall(id, "key "+id))
		if err := g.Dispatch(ctx, id, once); err == nil {
			kept = append(kept, id)
		}
	}
	if len(kept) == 0 {
		t.Fatal("nothing was dispatched")
	}
	master.Kill()
	for end := time.Now().Add(6 * patient); ; time.Sleep(50 * time.Millisecond) {
		now, err := watch.GetMasterAddrByName(ctx, redistest.Master).Result()
		if err == nil && len(now) == 2 && now[1] != port {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the replica is not promoted: %v, %v", now, err)
		}
	}
	for _, id := range kept {
		if prior := claimed(t, g, newCall("second "+id, "key "+id)); prior == nil || prior.ID != id {
			t.Errorf("key %s starts a second call", id)
		}
	}
}

// Answers that belong to other questions, and values of another kind.
func TestRedisLies(t *testing.T) {
	s := redistest.Start(t)
	p := lossy.New(t, s.Address())
	o := at(p.Address())
	g := join(t, o, testHooks{})
	id := opened(t, g, newCall("1", ""))
	opened(t, join(t, redisstore.Options{Options: redisconn.Options{URL: at(s.Address()).URL, Prefix: o.Prefix}}, testHooks{}), newCall("other", "k"))
	lies := map[string]func([]byte) []byte{
		"ok":     func([]byte) []byte { return []byte("+OK\r\n") },
		"nil":    func([]byte) []byte { return []byte("$-1\r\n") },
		"array":  func([]byte) []byte { return []byte("*2\r\n$2\r\nok\r\n$5\r\ntoken\r\n") },
		"error":  func([]byte) []byte { return []byte("-ERR odd\r\n") },
		"number": func([]byte) []byte { return []byte(":1\r\n") },
		"rank":   func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("opened"), []byte("closed")) },
	}
	for name, lie := range lies {
		p.Set(func(h *lossy.Faults) { h.RewriteReply = lie })
		if prior, err := g.Open(ctx, newCall("2", "k")); err == nil {
			t.Errorf("%s: believed %+v", name, prior)
		}
		if name != "rank" {
			if err := g.Dispatch(ctx, id, once); err == nil {
				t.Errorf("%s: dispatched", name)
			}
		}
		p.Clear()
		g.wait(t, true)
	}
	c := s.Client()
	defer c.Close()
	keys, err := c.Keys(ctx, "*key:*").Result()
	must(t, err)
	for _, k := range keys {
		must(t, c.Set(ctx, k, "nobody", 0).Err())
	}
	if prior, err := g.Open(ctx, newCall("3", "k")); err == nil {
		t.Errorf("a claim without its call is believed: %+v", prior)
	}
}

func TestScriptsAreForgotten(t *testing.T) {
	s := redistest.Start(t)
	g := join(t, at(s.Address()), testHooks{})
	c := s.Client()
	defer c.Close()
	for i := range 3 {
		must(t, c.ScriptFlush(ctx).Err())
		ended(t, g, newCall(fmt.Sprint(i), fmt.Sprint(i)))
	}
}

// Redis has no room: calls are refused, and what is there stays.
func TestRedisIsFull(t *testing.T) {
	s := redistest.Start(t)
	g := join(t, at(s.Address()), testHooks{})
	ended(t, g, newCall("1", "k"))
	c := s.Client()
	defer c.Close()
	must(t, c.ConfigSet(ctx, "maxmemory", "1").Err())
	_, err := g.Open(ctx, newCall("2", "k2"))
	refused(t, err, store.ErrUnavailable)
	if got, err := g.Get(ctx, "1", store.Of("p")); err == nil && string(got.Answer.Result) != "r" {
		t.Errorf("got %+v", got)
	}
	must(t, c.ConfigSet(ctx, "maxmemory", "0").Err())
	freed(t, g, newCall("3", "k2"))
}

func TestUnfitRedis(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	defer c.Close()
	must(t, c.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err())
	must(t, c.ConfigSet(ctx, "requirepass", "secret-of-redis").Err())
	url := func(u string) func() string { return func() string { return u } }
	for name, o := range map[string]redisstore.Options{
		"eviction": {Options: redisconn.Options{URL: url("redis://:secret-of-redis@" + s.Address())}, Node: "n"},
		"no node":  {Options: redisconn.Options{URL: url("redis://" + s.Address())}},
		"two":      {Options: redisconn.Options{URL: url("redis://" + s.Address()), Cluster: []string{"a:1"}}, Node: "n"},
		"none":     {Node: "n"},
		"options":  {Options: redisconn.Options{URL: url("redis://:secret-of-redis@" + s.Address() + "?max_retries=3")}, Node: "n"},
		"scheme":   {Options: redisconn.Options{URL: url("http://:secret-of-redis@" + s.Address())}, Node: "n"},
		"master":   {Options: redisconn.Options{Sentinel: redisconn.Sentinel{Addresses: []string{"a:1"}}}, Node: "n"},
		"negative": {Options: redisconn.Options{URL: url("redis://" + s.Address())}, MinRedisReplicas: -1, Node: "n"},
	} {
		r, err := redisstore.New(ctx, o)
		if err == nil {
			r.Close()
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := redisstore.New(ctx, redisstore.Options{Options: redisconn.Options{URL: url("redis://:wrong-secret@" + s.Address())}, Node: "n"})
	must(t, err)
	defer r.Close()
	if ready, cause := r.Ready(); ready || strings.Contains(cause.Error(), "secret") {
		t.Errorf("%v, %v", ready, cause)
	}
}

// Watchers here see a call that another process finishes, and a process that remembers an earlier
// step of it goes by what Redis has.
func TestFinishedElsewhere(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	a, b := join(t, o, testHooks{}), join(t, o, testHooks{})
	id := dispatched(t, a, newCall("1", ""), once)
	must(t, a.Update(ctx, id, store.Defer{Until: time.Now().Add(time.Hour)}))
	w, err := a.Watch(id)
	must(t, err)
	defer w.Stop()
	got, err := b.Finish(ctx, id, ending("callback", "r"))
	if err != nil || got.Task.Tool != once.Tool || got.Task.Thread != "t" {
		t.Errorf("got %+v, %v", got, err)
	}
	select {
	case <-w.Changed:
	case <-time.After(patient):
		t.Error("not told")
	}
	if _, err := a.Finish(ctx, id, ending("expiry", "expired")); err == nil {
		t.Error("finished twice")
	}
	must(t, a.Update(ctx, id, store.Deliver{Principal: "p"}))
	refused(t, b.Update(ctx, id, store.Deliver{Principal: "p"}), store.ErrDelivered)
	second := dispatched(t, a, newCall("2", ""), once)
	must(t, a.Update(ctx, second, store.Defer{Until: time.Now().Add(time.Hour)}))
	if _, err := b.Finish(ctx, second, ending("callback", "r")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := a.Sweep(ctx, 100); err != nil {
			t.Fatal(err)
		}
	}
}

// crash starts a process that dispatches, and kills it.
func crash(t *testing.T, dir string, o redisstore.Options) (steps map[string]string, unfinished int) {
	t.Helper()
	s := spawn(t, "redis", dir, "crashed", o)
	steps = map[string]string{}
	for line := range s.lines {
		if line[0] == "error" {
			t.Fatal(line[1])
		}
		if line[0] == "holds" {
			break
		}
		steps[line[1]] = line[0]
	}
	must(t, s.cmd.Process.Signal(syscall.SIGKILL))
	s.said(t)
	_ = s.cmd.Wait()
	for _, step := range steps {
		if step != "ended" {
			unfinished++
		}
	}
	return steps, unfinished
}

// The calls of a process that was killed are taken over, each by one other.
func TestTakeover(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	o := at(s.Address())
	var all []*gateway
	for range 3 {
		all = append(all, join(t, o, testHooks{}))
	}
	steps, want := crash(t, t.TempDir(), o)
	start := time.Now()
	taken := map[string]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, g := range all {
		group.Go(func() {
			for end := start.Add(3 * patient); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				calls, err := g.Recover(ctx, store.Abandoned, 3)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, c := range calls {
					taken[c.ID]++
					if steps[c.ID] != string(c.Step) {
						t.Errorf("%s was %s, is %s", c.ID, steps[c.ID], c.Step)
					}
				}
				n := len(taken)
				mu.Unlock()
				if n >= want {
					return
				}
			}
		})
	}
	group.Wait()
	if len(taken) != want {
		t.Errorf("%d of %d calls were taken over", len(taken), want)
	}
	for id, n := range taken {
		if n != 1 {
			t.Errorf("%s was taken over %d times", id, n)
		}
	}
	freed(t, all[0], newCall("second", "key crashed-0 ")) // another key
	if prior := claimed(t, all[0], newCall("third", "key crashed-0")); prior == nil {
		t.Error("the key of a call that has ended is free")
	}
}

// What a gateway has opened and not dispatched is its own as long as it lives; when it has left, it is nobody's, and
// the key is free.
func TestOpenedCallsOfAnotherGateway(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	clock := newClock()
	hooks := testHooks{now: clock.now, lease: time.Minute}
	a, b := join(t, o, hooks), join(t, o, hooks)
	clock.advance(2 * hooks.lease) // from here on leases of others count
	within(t, "a renews its lease", func() bool {
		lease, err := a.Lease(ctx)
		return err == nil && lease.Until.After(clock.now())
	})
	keyed, unkeyed := opened(t, a, newCall("keyed", "k")), opened(t, a, newCall("unkeyed", ""))
	looks := func() {
		if calls, err := b.Recover(ctx, store.Abandoned, 10); len(calls) > 0 || err != nil {
			t.Errorf("taken over: %+v, %v", calls, err)
		}
	}
	looks()
	must(t, a.Dispatch(ctx, unkeyed, once))
	looks()
	if prior := claimed(t, b, newCall("other", "k")); prior == nil || prior.ID != keyed {
		t.Errorf("the key has started %+v", prior)
	}
	if _, err := a.Finish(ctx, unkeyed, ending("a", "r")); err != nil {
		t.Fatal(err)
	}
	must(t, a.Close())
	clock.advance(2 * hooks.lease)
	within(t, "the key is free", func() bool {
		looks()
		_, err := b.Get(ctx, keyed, store.OfAnyone())
		return errors.Is(err, store.ErrNotFound)
	})
	freed(t, b, newCall("other", "k"))
}

// A gateway is stopped for longer than its lease. What it ran is another's then, whatever it believes when it goes on,
// and it serves again.
func TestStoppedForLongerThanItsLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	o := at(s.Address())
	g := join(t, o, testHooks{lease: stoppedLease})
	dir := t.TempDir()
	child := spawn(t, "stopped", dir, "", o)
	if line := <-child.lines; line[0] != "holds" {
		t.Fatalf("got %q", line)
	}
	must(t, child.cmd.Process.Signal(syscall.SIGSTOP))
	var taken []string
	within(t, "both calls are taken over", func() bool {
		calls, err := g.Recover(ctx, store.Abandoned, 10)
		must(t, err)
		for _, c := range calls {
			taken = append(taken, c.ID)
		}
		return len(taken) >= 2
	})
	if slices.Sort(taken); !slices.Equal(taken, []string{"ended", "taken"}) {
		t.Errorf("taken over: %q", taken)
	}
	if _, err := g.Finish(ctx, "ended", ending("recovery", "r")); err != nil {
		t.Fatal(err)
	}
	must(t, os.WriteFile(filepath.Join(dir, resumed), nil, 0o600))
	must(t, child.cmd.Process.Signal(syscall.SIGCONT))
	if line := <-child.lines; line[0] != "dispatched" {
		t.Errorf("got %q", line)
	}
	if c, err := g.Get(ctx, "ended", store.OfAnyone()); err != nil || string(c.Answer.Result) != "r" || c.FinishedBy != "recovery" {
		t.Errorf("got %+v, %v", c, err)
	}
	must(t, g.Update(ctx, "taken", store.Redispatch{}))
}

// How often a call was dispatched outlives Redis, as long as its process does. Of what is left of it in a log
// nothing is dispatched again.
func TestAttemptsAfterALoss(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	hooks := testHooks{lease: 500 * time.Millisecond}
	a := join(t, o, hooks)
	taken := dispatched(t, a, newCall("taken", "k"), read)
	must(t, a.Close())
	b := join(t, o, hooks)
	own := dispatched(t, b, newCall("own", ""), read)
	must(t, b.Update(ctx, own, store.Redispatch{}))
	within(t, "taking over", func() bool {
		calls, err := b.Recover(ctx, store.Abandoned, 10)
		return err == nil && len(calls) == 1 && calls[0].ID == taken
	})
	for range 2 {
		must(t, b.Update(ctx, taken, store.Redispatch{}))
	}
	client := s.Client()
	defer client.Close()
	must(t, client.FlushAll(ctx).Err())
	for id, want := range map[string]int{taken: 3, own: 2} {
		insist(t, func() error {
			got, err := b.Get(ctx, id, store.OfAnyone())
			if err == nil && got.Attempts != want {
				t.Errorf("%s: %d attempts, want %d", id, got.Attempts, want)
			}
			return err
		})
	}
	must(t, b.Close())
	must(t, client.FlushAll(ctx).Err())
	again := joining(t, a.node, o, hooks)
	again.wait(t, true)
	within(t, "recovering", func() bool {
		calls, err := again.Recover(ctx, store.Abandoned, 10)
		return err == nil && len(calls) == 1 && calls[0].ID == taken
	})
	refused(t, again.Update(ctx, taken, store.Redispatch{}), store.ErrDispatched)
}

// The next process of a node takes over from one that was killed at once.
func TestRestartTakesOver(t *testing.T) {
	s := redistest.Start(t)
	o := at(s.Address())
	dir := t.TempDir()
	steps, want := crash(t, dir, o)
	g := joining(t, dir, o, testHooks{})
	g.wait(t, true)
	calls, err := g.Recover(ctx, store.Abandoned, 1000)
	if err != nil || len(calls) != want {
		t.Fatalf("%d of %d calls, %v", len(calls), want, err)
	}
	for _, c := range calls {
		if _, err := g.Finish(ctx, c.ID, ending("recovery", "unknown")); err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
	}
	if calls, err := g.Recover(ctx, store.Abandoned, 1000); len(calls) != 0 || err != nil {
		t.Errorf("taken over twice: %d, %v", len(calls), err)
	}
	for id := range steps {
		if c, err := g.Get(ctx, id, store.OfRecovery()); err != nil || c.Step != store.Ended {
			t.Errorf("%s is %s, %v", id, c.Step, err)
		}
	}
}

// Two processes race for the same keys.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	o := at(s.Address())
	a, b := spawn(t, "race", t.TempDir(), "a", o), spawn(t, "race", t.TempDir(), "b", o)
	won := map[string]int{}
	for _, s := range []*spawned{a, b} {
		for line := range s.lines {
			if line[0] == "error" {
				t.Error(line[1])
				continue
			}
			won[line[1]]++
		}
	}
	for k := range raceKeys {
		if n := won[fmt.Sprint("key", k)]; n != 1 {
			t.Errorf("key %d started %d calls", k, n)
		}
	}
}

func TestOnChange(t *testing.T) {
	s := redistest.Start(t)
	changes := make(chan bool, 100)
	o := at(s.Address())
	o.OnChange = func(ready bool, cause error) {
		if ready == (cause != nil) {
			t.Errorf("ready %v, %v", ready, cause)
		}
		changes <- ready
	}
	g := join(t, o, testHooks{})
	s.Kill()
	for _, want := range []bool{false, true} {
		for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
			_, _ = g.Open(context.Background(), newCall("1", "k"))
			select {
			case got := <-changes:
				if got != want {
					t.Errorf("got %v", got)
				}
			default:
				if time.Now().After(end) {
					t.Fatal("not told")
				}
				continue
			}
			break
		}
		if !want {
			must(t, s.Start())
		}
	}
}
