package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/budgettest"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/redislimit"
	"github.com/callgate/callgate/refusal"
)

// patience is how long these tests wait for what must come.
const patience = time.Minute

// longBudgets reports whether the long form of a test is asked for (make budgets).
func longBudgets() bool { return os.Getenv("CALLGATE_BUDGETS") == "long" }

func optionsOf(address, prefix string) redislimit.Options {
	return redislimit.Options{
		Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: prefix}, Clock: time.Now, Wait: patience,
	}
}

func open(t testing.TB, o redislimit.Options) *redislimit.Limiter {
	t.Helper()
	r, warnings, err := redislimit.New(t.Context(), o)
	return opened(t, r, warnings, err)
}

// monthly is one budget for everything.
func monthly(tokens int64, replicas int) (*budget.Set, []budget.Charge) {
	set := budgettest.One(tokens)
	set.Replicas = replicas
	return set, set.Charges(budget.Scope{})
}

func codeOf(err error) refusal.Code {
	var refused *refusal.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

func spentOf(t testing.TB, l budget.Limiter, charges []budget.Charge) int64 {
	t.Helper()
	states, err := l.Read(t.Context(), charges)
	if err != nil {
		t.Fatal(err)
	}
	return states[0].Spent.Tokens
}

// until waits for something.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// TestAgainstOracle: the limiter on Redis is an oracle of sums in a map.
func TestBudgetsAgainstOracle(t *testing.T) {
	address := redistest.Shared(t)
	budgettest.CheckAgainstOracle(t, func(t *rapid.T, clock *limittest.Clock) budget.Limiter {
		l, _, err := redislimit.NewWithClock(t.Context(), optionsOf(address, redistest.Prefix()), clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	})
}

// TestSpentTogether: reservations and settlements in one batch are decided as the same ones one after
// the other.
func TestSpentTogether(t *testing.T) {
	address := redistest.Shared(t)
	rapid.Check(t, func(rt *rapid.T) {
		now := func() time.Time { return budgettest.Begin }
		var limiters []*redislimit.Limiter
		for range 2 {
			l, _, err := redislimit.NewWithClock(t.Context(), optionsOf(address, redistest.Prefix()), now)
			if err != nil {
				rt.Fatal(err)
			}
			defer l.Close()
			limiters = append(limiters, l)
		}
		amount := func(name string, most int64) budget.Amount {
			return budget.Amount{Tokens: rapid.Int64Range(0, most).Draw(rt, name), Micros: rapid.Int64Range(0, most).Draw(rt, name)}
		}
		var budgets []budget.Charge
		for i := range 4 {
			limit := amount("limit", 400)
			limit.Tokens++
			b := &budget.Budget{Name: fmt.Sprintf("b%d", i), Per: budget.PerAll, Window: budget.Month, Zone: time.UTC, Limit: limit}
			budgets = append(budgets, budget.Charge{Budget: b})
		}
		var together, single []budget.Reservation
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			actual := make([]budget.Amount, len(together))
			for i := range actual {
				actual[i] = amount("actual", 60)
				single[i].Settle(actual[i])
			}
			charges, amounts := make([][]budget.Charge, rapid.IntRange(1, 150).Draw(rt, "requests")), []budget.Amount(nil)
			for i := range charges {
				first := rapid.IntRange(0, 3).Draw(rt, "first")
				charges[i] = budgets[first:rapid.IntRange(first+1, 4).Draw(rt, "end")]
				amounts = append(amounts, amount("amount", 40))
			}
			holds, errs := limiters[0].SpendTogether(t.Context(), together, actual, charges, amounts)
			together, single = nil, nil
			for i := range charges {
				want, refused := limiters[1].Reserve(t.Context(), nil, charges[i], amounts[i])
				if fmt.Sprint(errs[i]) != fmt.Sprint(refused) {
					rt.Fatalf("request %d of %d: got %v, want %v", i, len(charges), errs[i], refused)
				}
				if refused == nil {
					together, single = append(together, holds[i]), append(single, want)
				}
			}
			got, err1 := limiters[0].Read(t.Context(), budgets)
			want, err2 := limiters[1].Read(t.Context(), budgets)
			if err1 != nil || err2 != nil || !slices.Equal(got, want) {
				rt.Fatalf("got %+v, %v; want %+v, %v", got, err1, want, err2)
			}
		}
	})
}

// TestTwoReplicas: two gateways that share a budget never spend more than it, whatever the requests
// come to, and both know the same afterwards.
func TestTwoReplicas(t *testing.T) {
	requests := 2_000
	if longBudgets() {
		requests = 10_000
	}
	const amount = 70
	limit := int64(requests) * amount / 4
	prefix, address := redistest.Prefix(), redistest.Shared(t)
	a, b := open(t, optionsOf(address, prefix)), open(t, optionsOf(address, prefix))
	_, charges := monthly(limit, 0)
	start := make(chan struct{})
	var group sync.WaitGroup
	var held, settled, refused atomic.Int64
	for i := range requests {
		l := []*redislimit.Limiter{a, b}[i%2]
		group.Go(func() {
			<-start
			r, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: amount})
			switch {
			case codeOf(err) == refusal.RateLimited:
				refused.Add(1)
				return
			case err != nil:
				t.Error(err)
				return
			}
			if at := held.Add(amount); at > limit { // it is added late, and taken off early
				t.Errorf("%d of %d is spent or held", at, limit)
			}
			actual := int64(i % (amount + 1))
			settled.Add(actual)
			held.Add(actual - amount)
			r.Settle(budget.Amount{Tokens: actual})
			r.Settle(budget.Amount{}) // which does not count
		})
	}
	close(start)
	group.Wait()
	if got := spentOf(t, a, charges); got != settled.Load() || got > limit || got != spentOf(t, b, charges) {
		t.Errorf("counted %d, spent %d of %d; %d refused", got, settled.Load(), limit, refused.Load())
	}
}

// TestReservationsNeverExceedTheBudget: nothing is settled, so each grant counts whole: as many fit as
// fit, and not one more.
func TestReservationsNeverExceedTheBudget(t *testing.T) {
	prefix, address := redistest.Prefix(), redistest.Shared(t)
	a, b := open(t, optionsOf(address, prefix)), open(t, optionsOf(address, prefix))
	_, charges := monthly(1000, 0)
	var group sync.WaitGroup
	var granted atomic.Int64
	for i := range 300 {
		l := []*redislimit.Limiter{a, b}[i%2]
		group.Go(func() {
			if _, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 7}); err == nil {
				granted.Add(1)
			} else if codeOf(err) != refusal.RateLimited {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if granted.Load() != 1000/7 {
		t.Errorf("granted %d, expected %d", granted.Load(), 1000/7)
	}
}

// TestWindowsFollowRedis: gateways whose clocks differ by months agree on the window, which is that of
// Redis, also when their clocks are set while they run.
func TestWindowsFollowRedis(t *testing.T) {
	prefix, address := redistest.Prefix(), redistest.Shared(t)
	early, late := optionsOf(address, prefix), optionsOf(address, prefix)
	early.Clock = func() time.Time { return time.Now().AddDate(0, -3, 0) }
	var months atomic.Int64
	months.Store(1)
	late.Clock = func() time.Time { return time.Now().AddDate(0, int(months.Load()), 0) }
	_, charges := monthly(10, 0)
	all := []*redislimit.Limiter{open(t, early), open(t, late), open(t, optionsOf(address, prefix))}
	months.Store(5)
	for i, l := range all {
		if _, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 4}); i < 2 && err != nil || i == 2 && codeOf(err) != refusal.RateLimited {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestRedisGone: while Redis is gone nothing is granted; what was held is settled when it is back,
// and a Redis that was emptied gets back what was spent.
func TestRedisGone(t *testing.T) {
	server := redistest.Start(t)
	o := optionsOf(server.Address(), "x:")
	a := open(t, o)
	b := open(t, o)
	set, charges := monthly(1000, 0)
	reserve := func(l budget.Limiter, tokens int64) (budget.Reservation, error) {
		return l.Reserve(t.Context(), set, charges, budget.Amount{Tokens: tokens})
	}
	if _, err := reserve(b, 300); err != nil {
		t.Fatal(err)
	}
	held, err := reserve(a, 500)
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if _, err := reserve(a, 1); codeOf(err) != refusal.LimiterUnavailable {
		t.Errorf("Redis is gone: %v", err)
	}
	held.Settle(budget.Amount{Tokens: 100}) // its reservation is lost, so it stays charged
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	// b knows 300, and a knows 800. Whichever comes first, the budget has 200 left.
	until(t, "what was spent is back", func() bool {
		states, err := a.Read(context.Background(), charges)
		return err == nil && states[0].Spent.Tokens == 800
	})
	until(t, "b has found Redis", func() bool {
		_, err := reserve(b, 201)
		return codeOf(err) == refusal.RateLimited
	})
	if _, err := reserve(b, 200); err != nil {
		t.Error(err)
	}
	if _, err := reserve(a, 1); codeOf(err) != refusal.RateLimited {
		t.Errorf("the budget is spent: %v", err)
	}
}

// TestRedisEmptied: a Redis that forgets everything in the middle gets back what each gateway has
// seen, whichever comes first, and grants nothing twice: neither to those that were there nor to one that
// starts before anybody has met the loss.
func TestRedisEmptied(t *testing.T) {
	for first := range 2 {
		server := redistest.Start(t)
		limiters := []*redislimit.Limiter{open(t, optionsOf(server.Address(), "x:")), open(t, optionsOf(server.Address(), "x:"))}
		_, charges := monthly(1000, 0)
		reserve := func(l budget.Limiter, tokens int64) error {
			_, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: tokens})
			return err
		}
		if err := errors.Join(reserve(limiters[0], 300), reserve(limiters[1], 400)); err != nil {
			t.Fatal(err)
		}
		limits := limittest.OnlyAgent(limittest.Budget("1/h", 5))
		if n := limittest.Drain(limiters[0], limits, limittest.Alpha, 2); n != 2 {
			t.Fatalf("%d admitted, want 2", n)
		}
		slots := &ratelimit.Limits{Default: ratelimit.Allowance{Concurrency: new(1)}}
		limittest.Admitted(t, limiters[0], slots, limittest.Alpha)
		command(t, server, "flushall")
		limiters = append(limiters, open(t, optionsOf(server.Address(), "x:")))
		for _, l := range []*redislimit.Limiter{limiters[first], limiters[1-first], limiters[2]} {
			if n := limittest.Drain(l, limits, limittest.Alpha, 9); n != 0 {
				t.Errorf("%d first: %d admitted of a limit that was lost, want none", first, n)
			}
			if shared, cause := l.Shared(); !shared {
				t.Errorf("not shared: %v", cause)
			}
		}
		if err := errors.Join(reserve(limiters[first], 50), reserve(limiters[1-first], 50)); err != nil {
			t.Fatal(err)
		}
		if got := spentOf(t, limiters[0], charges); got != 800 {
			t.Errorf("%d first: found %d spent, expected 800", first, got)
		}
		// The gateway that has a call in flight has leased its slot anew before its next request.
		_, err := limiters[2].Take(t.Context(), slots, limittest.Alpha)
		limittest.Refused(t, err, refusal.ConcurrencyLimited)
		for i, l := range limiters {
			if err := reserve(l, 201); codeOf(err) != refusal.RateLimited {
				t.Errorf("%d first, then %d: %v", first, i, err)
			}
		}
	}
}

// TestEmptiedWhileNobodyAsks: a gateway meets it that Redis was emptied though nobody calls it, so that one
// that starts afterwards grants nothing twice.
func TestEmptiedWhileNobodyAsks(t *testing.T) {
	server := redistest.Start(t)
	idle := open(t, optionsOf(server.Address(), "x:"))
	limits := limittest.OnlyAgent(limittest.Budget("1/h", 5))
	if n := limittest.Drain(idle, limits, limittest.Alpha, 2); n != 2 {
		t.Fatalf("%d admitted, want 2", n)
	}
	command(t, server, "flushall")
	client := server.Client()
	defer func() { _ = client.Close() }()
	until(t, "the gateway has met it", func() bool { return client.DBSize(t.Context()).Val() > 0 })
	if n := limittest.Drain(open(t, optionsOf(server.Address(), "x:")), limits, limittest.Alpha, 9); n != 0 {
		t.Errorf("%d admitted, want none", n)
	}
}

// TestRedisIsBackWithAnOldState: what one gateway has seen is put back also where others, which have not
// seen it, have used the old state by then; and a gateway that starts meanwhile, of which nobody is left
// that knows of the restart, grants nothing of the old buckets.
func TestRedisIsBackWithAnOldState(t *testing.T) {
	server := redistest.Start(t, "--dbfilename", "dump.rdb")
	proxy := lossy.New(t, server.Address())
	o := optionsOf(proxy.Address(), "x:")
	o.Wait = 500 * time.Millisecond
	knowing, other := open(t, o), open(t, optionsOf(server.Address(), "x:"))
	_, charges := monthly(1000, 0)
	reserve := func(l budget.Limiter, tokens int64) error {
		_, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: tokens})
		return err
	}
	limits := limittest.OnlyAgent(limittest.Budget("1/h", 5))
	if n := limittest.Drain(other, limits, limittest.Alpha, 2); n != 2 {
		t.Fatalf("%d admitted, want 2", n)
	}
	if err := errors.Join(reserve(other, 10), reserve(knowing, 300)); err != nil {
		t.Fatal(err)
	}
	command(t, server, "save")
	if err := reserve(knowing, 400); err != nil {
		t.Fatal(err)
	}
	proxy.Set(func(h *lossy.Faults) { h.DropRequests = true })
	server.Kill()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	started := open(t, optionsOf(server.Address(), "x:"))
	if n := limittest.Drain(started, limits, limittest.Alpha, 9); n != 0 {
		t.Errorf("%d admitted of an old bucket, want none", n)
	}
	until(t, "the other one has found Redis", func() bool { return reserve(other, 1) == nil })
	for range 20 {
		if err := reserve(other, 1); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Clear()
	until(t, "what was spent is back", func() bool {
		states, err := knowing.Read(context.Background(), charges)
		return err == nil && states[0].Spent.Tokens >= 10+300+400+21
	})
	if got := spentOf(t, other, charges); got != 10+300+400+21 {
		t.Errorf("found %d spent", got)
	}
}

// TestSettledAgainInAnOldState: the reply to a settlement is lost, and so is what Redis has counted since a
// while before. The settlement, which comes again, takes nothing of what another gateway has spent since
// then, whichever of the two gateways finds Redis first.
func TestSettledAgainInAnOldState(t *testing.T) {
	for first := range 2 {
		server := redistest.Start(t, "--dbfilename", "dump.rdb")
		var limiters [2]*redislimit.Limiter
		var proxies [2]*lossy.Proxy
		for i := range limiters {
			proxies[i] = lossy.New(t, server.Address())
			o := optionsOf(proxies[i].Address(), "x:")
			o.Wait = 500 * time.Millisecond
			limiters[i] = open(t, o)
		}
		_, charges := monthly(1000, 0)
		reserve := func(l budget.Limiter, tokens int64) budget.Reservation {
			t.Helper()
			held, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: tokens})
			if err != nil {
				t.Fatal(err)
			}
			return held
		}
		held := reserve(limiters[0], 50)
		command(t, server, "save")
		proxies[0].Set(func(h *lossy.Faults) { h.DropReplies = true })
		held.Settle(budget.Amount{Tokens: 20})
		reserve(limiters[1], 25).Settle(budget.Amount{Tokens: 25})
		for _, p := range proxies {
			p.Set(func(h *lossy.Faults) { h.DropRequests = true })
		}
		server.Kill()
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{first, 1 - first} {
			proxies[i].Clear()
			until(t, "a gateway has found Redis", func() bool {
				_, err := limiters[i].Read(context.Background(), charges)
				return err == nil
			})
		}
		if got := spentOf(t, limiters[0], charges); got < 45 {
			t.Errorf("%d first: found %d spent of 45", first, got)
		}
	}
}

// TestRedisSlow: a Redis that does not answer in time grants nothing; a reservation that it may have
// made is cancelled afterwards.
func TestRedisSlow(t *testing.T) {
	server := redistest.Start(t)
	o := optionsOf(server.Address(), "x:")
	o.Wait = 300 * time.Millisecond
	l := open(t, o)
	set, charges := monthly(1000, 0)
	until(t, "Redis has answered once", func() bool {
		r, err := l.Reserve(t.Context(), set, charges, budget.Amount{Tokens: 900})
		if err == nil {
			r.Settle(budget.Amount{Tokens: 10})
		}
		return err == nil
	})
	server.Signal(t, syscall.SIGSTOP)
	if _, err := l.Reserve(t.Context(), set, charges, budget.Amount{Tokens: 500}); codeOf(err) != refusal.LimiterUnavailable {
		t.Errorf("Redis stands still: %v", err)
	}
	server.Signal(t, syscall.SIGCONT)
	until(t, "the reservation is cancelled", func() bool {
		states, err := l.Read(context.Background(), charges)
		return err == nil && states[0].Spent.Tokens == 10
	})
}

// TestAlone: with on_store_loss local each gateway grants its part of what is left while Redis is
// away, and Redis is charged with that afterwards, once.
func TestAlone(t *testing.T) {
	server := redistest.Start(t)
	a := open(t, optionsOf(server.Address(), "x:"))
	stranger := open(t, optionsOf(server.Address(), "x:"))
	set, charges := monthly(1000, 2)
	reserve := func(l budget.Limiter, tokens int64) (budget.Reservation, error) {
		return l.Reserve(t.Context(), set, charges, budget.Amount{Tokens: tokens})
	}
	if _, err := reserve(a, 600); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	first, err := reserve(a, 150) // of (1000-600)/2
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reserve(a, 51); codeOf(err) != refusal.RateLimited {
		t.Errorf("more than its part: %v", err)
	}
	first.Settle(budget.Amount{Tokens: 100})
	first.Settle(budget.Amount{})
	if _, err := reserve(a, 100); err != nil {
		t.Error(err)
	}
	if _, err := reserve(stranger, 1); codeOf(err) != refusal.LimiterUnavailable {
		t.Errorf("a gateway that knows nothing of the window: %v", err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "Redis is charged", func() bool {
		states, err := a.Read(context.Background(), charges)
		return err == nil && states[0].Spent.Tokens == 800
	})
	if r, err := reserve(a, 200); err != nil {
		t.Error(err)
	} else {
		r.Settle(budget.Amount{})
	}
	if got := spentOf(t, a, charges); got != 800 {
		t.Errorf("found %d spent, expected 800", got)
	}
}

// TestForeignKey: a key that holds something else refuses the requests that need it.
func TestForeignKey(t *testing.T) {
	server := redistest.Start(t)
	l := open(t, optionsOf(server.Address(), "x:"))
	_, charges := monthly(1000, 1)
	if _, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 1}); err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	defer func() { _ = client.Close() }()
	keys, err := client.Keys(t.Context(), "x:{budgets}*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	if ttl := client.TTL(t.Context(), keys[0]).Val(); ttl <= 0 {
		t.Errorf("the key lives for %s", ttl)
	}
	if err := client.Set(t.Context(), keys[0], "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 1}); codeOf(err) != refusal.LimiterUnavailable {
		t.Errorf("found %v", err)
	}
}

// TestCluster: budgets of different names are taken together on a cluster too.
func TestBudgetsOnACluster(t *testing.T) {
	nodes := redistest.Cluster(t)
	l := open(t, redislimit.Options{Options: redisconn.Options{Cluster: nodes, Prefix: redistest.Prefix()}, Clock: time.Now, Wait: patience})
	var charges []budget.Charge
	for i := range 8 {
		b := budget.Budget{Name: fmt.Sprintf("b%d", i), Per: budget.PerAgent, Window: budget.Month, Zone: time.UTC, Limit: budget.Amount{Tokens: 100 - int64(i)}}
		charges = append(charges, budget.Charge{Budget: &b, Subject: fmt.Sprintf("agent %d", i)})
	}
	r, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 90})
	if err != nil {
		t.Fatal(err)
	}
	r.Settle(budget.Amount{Tokens: 3})
	if _, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 91}); codeOf(err) != refusal.RateLimited {
		t.Errorf("the last one has 90 left: %v", err)
	}
	if got := spentOf(t, l, charges); got != 3 {
		t.Errorf("found %d spent", got)
	}
}

// TestCloseLeavesNothing: what waits is sent, and nothing runs afterwards.
func TestCloseLeavesNothing(t *testing.T) {
	address, prefix := redistest.Shared(t), redistest.Prefix()
	before := goleak.IgnoreCurrent()
	l, _, err := redislimit.New(t.Context(), optionsOf(address, prefix))
	if err != nil {
		t.Fatal(err)
	}
	_, charges := monthly(10, 0)
	if _, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 4}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	leaks.None(t, before)
	if _, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 4}); codeOf(err) != refusal.LimiterUnavailable {
		t.Errorf("found %v", err)
	}
}

// TestForeignKeyAtTheEnd: where a key was overwritten while a request ran, its settlement ends with
// that, and Redis does not count as away for the others.
func TestForeignKeyAtTheEnd(t *testing.T) {
	server := redistest.Start(t)
	l := open(t, optionsOf(server.Address(), "x:"))
	_, charges := monthly(1000, 0)
	r, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	defer func() { _ = client.Close() }()
	keys, err := client.Keys(t.Context(), "x:{budgets}*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	if err := client.Set(t.Context(), keys[0], "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r.Settle(budget.Amount{})
	other := *charges[0].Budget
	other.Name = "other"
	if _, err := l.Reserve(t.Context(), nil, []budget.Charge{{Budget: &other}}, budget.Amount{Tokens: 1}); err != nil {
		t.Errorf("another budget: %v", err)
	}
}

// TestReservationsOfTheDead: what a gateway had reserved when it ended stays reserved, and every
// gateway sees it; names are those that a gateway has charged itself.
func TestReservationsOfTheDead(t *testing.T) {
	prefix, address := redistest.Prefix(), redistest.Shared(t)
	dead, alive := open(t, optionsOf(address, prefix)), open(t, optionsOf(address, prefix))
	_, charges := monthly(1000, 0)
	if _, err := dead.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 300}); err != nil {
		t.Fatal(err)
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if used := alive.Used(); len(used) != 0 {
		t.Errorf("it has charged nothing, and knows %v", used)
	}
	r, err := alive.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 50})
	if err != nil {
		t.Fatal(err)
	}
	r.Settle(budget.Amount{Tokens: 20})
	states, err := alive.Read(t.Context(), charges)
	if err != nil || states[0].Spent.Tokens != 320 || states[0].Reserved.Tokens != 300 {
		t.Errorf("found %+v, %v", states, err)
	}
	if used := alive.Used(); len(used) != 1 || used[0] != charges[0].Counter() {
		t.Errorf("it knows %v", used)
	}
}

// TestRepliesOfReservations: anything but exactly a reply to this request is an error, and tells nothing
// of what is spent.
func TestRepliesOfReservations(t *testing.T) {
	for _, c := range []struct {
		reply string
		taken bool
		full  int
		known int64
	}{
		{"id 1 e/1/70/5/70/5 e/1/70/5/70/5 1793491200000000", true, 0, 70},
		{"id full/2 e/1/70/5/70/5 - 1793491200000000", false, 2, 70},
		{"id window - - 1793491200000000", false, 0, 0},
		{"id foreign e/1/7/0/7/0 foreign 1793491200000000", false, 0, 7},
	} {
		taken, full, known, err := redislimit.ReserveReply(c.reply, "id")
		if err != nil || taken != c.taken || full != c.full || known.Tokens != c.known {
			t.Errorf("%q: %v, %d, %+v, %v", c.reply, taken, full, known, err)
		}
	}
	const good = "e/1/70/5/70/5"
	for _, reply := range []string{
		"", "id", "id 1", "id 1 1793491200000000", "id 1 - 1793491200000000", "id 1 - - ", "id 1 - - now", "id 1 - - 1 1", "other 1 - - 1",
		"id full/3 - - 1", "id full/0 - - 1", "id full - - 1", "id full/-1 - - 1", "id ok - - 1", "id crowded - - 1", "id 2 - - 1", "id 0/5/1 - - 1",
		"id 1 e/1/70/5/70 " + good + " 1", "id 1 e/1/70/5/70/5/5 " + good + " 1", "id 1 /1/70/5/70/5 " + good + " 1", "id 1 e/-1/70/5/70/5 " + good + " 1",
		"id 1 e/1/-70/5/70/5 " + good + " 1", "id 1 e/1/7e2/5/70/5 " + good + " 1", "id 1 e/1/1000000000000001/5/70/5 " + good + " 1", "id 1 " + good + " nothing 1",
	} {
		if taken, full, known, err := redislimit.ReserveReply(reply, "id"); err == nil {
			t.Errorf("%q is taken for a reply: %v, %d, %+v", reply, taken, full, known)
		}
	}
}

// TestUserOfTheManual: a user with the commands that the manual names can count limits and budgets, and
// is denied nothing.
func TestUserOfTheManual(t *testing.T) {
	page, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	find := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindSubmatch(page)
		if found == nil {
			t.Fatalf("the page has no %s", pattern)
		}
		return string(found[1])
	}
	server := redistest.Start(t)
	user := []any{"acl", "setuser", "callgate", "on", ">hunter2", "~x:*"}
	for _, right := range strings.Fields(find(`(?m)^    user callgate on .*(-@all .*)$`) + " " + find("need also `(.*)`")) {
		user = append(user, right)
	}
	command(t, server, user...)
	o := optionsOf(server.Address(), "x:")
	o.URL = func() string { return "redis://callgate:hunter2@" + server.Address() }
	r, warnings, err := redislimit.New(t.Context(), o)
	opened(t, r, warnings, err)
	_, charges := monthly(1000, 0)
	held, err := r.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 10})
	if err != nil {
		t.Fatal(err)
	}
	held.Settle(budget.Amount{Tokens: 4})
	if spent := spentOf(t, r, charges); spent != 4 || len(warnings) > 0 {
		t.Errorf("%d spent, %q", spent, warnings)
	}
}
