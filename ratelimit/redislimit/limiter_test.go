package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/redislimit"
	"github.com/callgate/callgate/refusal"
)

func TestOptionsThatAreRefused(t *testing.T) {
	const password = "hunter2"
	at := func(u string) func() string { return func() string { return u } }
	cases := map[string]redisconn.Options{
		"nothing":            {},
		"two":                {URL: at("redis://127.0.0.1:1"), Cluster: []string{"127.0.0.1:1"}},
		"no master":          {Sentinel: redisconn.Sentinel{Addresses: []string{"127.0.0.1:1"}}},
		"no sentinels":       {Sentinel: redisconn.Sentinel{Master: "m"}},
		"another scheme":     {URL: at("http://u:" + password + "@127.0.0.1:1")},
		"no scheme":          {URL: at(password + "@127.0.0.1:1")},
		"not a url":          {URL: at("redis://u:" + password + "@[::1:6379/%zz")},
		"options in it":      {URL: at("redis://u:" + password + "@127.0.0.1:1?max_retries=3")},
		"no database":        {URL: at("redis://u:" + password + "@127.0.0.1:1/one")},
		"skips the checks":   {URL: at("rediss://u:" + password + "@127.0.0.1:1?skip_verify=true")},
		"empty":              {URL: at("")},
		"a socket of a file": {URL: at("unix:///tmp/" + password)},
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := redislimit.New(context.Background(), redislimit.Options{Options: o, Clock: time.Now})
			if err == nil {
				t.Fatal("accepted")
			}
			if text := fmt.Sprint(err, warnings) + fmt.Sprintf("%+v %#v", o, o); strings.Contains(text, password) {
				t.Errorf("the password is in %s", text)
			}
		})
	}
	if _, _, err := redislimit.New(context.Background(), redislimit.Options{Options: redisconn.Options{URL: at("redis://127.0.0.1:1")}}); err == nil {
		t.Error("accepted without a clock")
	}
	var absent *redislimit.Limiter
	_, err := absent.Take(context.Background(), &ratelimit.Limits{}, limittest.Alpha)
	limittest.Refused(t, err, refusal.LimiterUnavailable)
	limittest.Refused(t, absent.Caller(context.Background(), &ratelimit.Limits{}, "c"), refusal.LimiterUnavailable)
}

// A Redis that forgets in order to make room is not one to count in; one that
// may not be asked is, with a warning.
func TestWhatRedisSaysOfItself(t *testing.T) {
	s := redistest.Start(t)
	configure(t, s, "maxmemory-policy", "allkeys-lru")
	_, _, err := redislimit.NewWithSlack(context.Background(), optionsFor(s.Address()), redislimit.Patient)
	if err == nil || !strings.Contains(err.Error(), "found maxmemory-policy allkeys-lru, expected noeviction") {
		t.Fatalf("got %v", err)
	}
	configure(t, s, "maxmemory-policy", "noeviction")
	command(t, s, "acl", "setuser", "limiter", "on", ">hunter2", "~*", "+@all", "-info", "-config")
	o := optionsFor(s.Address())
	o.URL = func() string { return "redis://limiter:hunter2@" + s.Address() }
	r, warnings, err := redislimit.NewWithSlack(context.Background(), o, redislimit.Patient)
	opened(t, r, warnings, err)
	if text := strings.Join(warnings, "\n"); len(warnings) != 2 || !strings.Contains(text, "maxmemory-policy cannot be read") || !strings.Contains(text, "INFO is forbidden") {
		t.Errorf("got %q", warnings)
	}
	limittest.Admitted(t, r, limittest.OnlyAgent(limittest.Budget("1/h", 1)), limittest.Alpha)

	o.URL = func() string { return "redis://limiter:hunter3@" + s.Address() }
	wrong, warnings, err := redislimit.NewWithSlack(context.Background(), o, redislimit.Patient)
	if err != nil || len(warnings) != 1 || strings.Contains(warnings[0], "hunter") || !strings.Contains(warnings[0], "WRONGPASS") {
		t.Fatalf("got %v, %q", err, warnings)
	}
	_ = wrong.Close()
}

// A foreign value under one of our keys refuses the calls that need it, and no others.
func TestAKeyOfAnotherForm(t *testing.T) {
	address := redistest.Shared(t)
	o := optionsFor(address)
	r, warnings, err := redislimit.NewWithSlack(context.Background(), o, redislimit.Patient)
	opened(t, r, warnings, err)
	c := redis.NewClient(&redis.Options{Addr: address})
	defer c.Close()
	ctx := context.Background()
	limits := local(limittest.Budget("1/h", 3), 1)
	limits.Default.Budget = &ratelimit.Budget{Rate: limittest.RateOf("1/h"), Burst: 3}
	spoil := map[string]func(key string) error{
		"a list":        func(key string) error { return c.LPush(ctx, key, "1").Err() },
		"words":         func(key string) error { return c.Set(ctx, key, "full", 0).Err() },
		"empty":         func(key string) error { return c.Set(ctx, key, "", 0).Err() },
		"three figures": func(key string) error { return c.Set(ctx, key, "1 2 3", 0).Err() },
		"a fraction":    func(key string) error { return c.Set(ctx, key, "1 2.5 3 4", 0).Err() },
		"a space more":  func(key string) error { return c.Set(ctx, key, "1 2 3 4 ", 0).Err() },
		"six figures":   func(key string) error { return c.Set(ctx, key, "1 2 3 4 5 6", 0).Err() },
	}
	for name, f := range spoil {
		key := redislimit.KeyOf(o.Prefix, "Analyst")
		if err := f(key); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, err := r.Take(ctx, limits, limittest.Alpha)
			e := limittest.Refused(t, err, refusal.LimiterUnavailable)
			if strings.Contains(e.Error(), "Analyst") {
				t.Errorf("%s: %v", name, e)
			}
		}
		if shared, cause := r.Shared(); !shared {
			t.Errorf("%s: Redis is taken to be away: %v", name, cause)
		}
		c.Del(ctx, key)
	}
	// A kind of key that holds slots, and holds none.
	limits.Default.Concurrency = new(3)
	if err := c.Set(ctx, redislimit.SlotsKeyOf(o.Prefix, "Analyst"), "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	_, err = r.Take(ctx, limits, limittest.Alpha)
	limittest.Refused(t, err, refusal.LimiterUnavailable)
	c.Del(ctx, redislimit.SlotsKeyOf(o.Prefix, "Analyst"))
	if n := limittest.Drain(r, limits, limittest.Alpha, 9); n != 3 {
		t.Errorf("%d admitted, want 3: a refused call took something", n)
	}
}

// While replicas disagree about the figures, as in the moment of an edit, none
// takes a bucket for full that is so by the figures of another: together they
// let pass no more than the quicker rate and the larger burst.
func TestFiguresDisagree(t *testing.T) {
	r, warnings, err := redislimit.NewWithSlack(context.Background(), optionsFor(redistest.Shared(t)), redislimit.Patient)
	opened(t, r, warnings, err)
	slow, quick := limittest.OnlyTool(limittest.Budget("1/h", 5)), limittest.OnlyTool(limittest.Budget("1000/s", 1))
	if n := limittest.Drain(r, slow, limittest.Alpha, 9); n != 5 {
		t.Fatalf("%d admitted at first, want 5", n)
	}
	for round := range 3 {
		for try := 0; limittest.Drain(r, quick, limittest.Alpha, 1) == 0; try++ {
			if try == 10_000 {
				t.Fatal("the quick bucket does not fill")
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond) // full again, by its own figures
		if n := limittest.Drain(r, slow, limittest.Alpha, 9); n > 1 {
			t.Errorf("round %d: %d admitted, want at most the 1 that the quick bucket holds", round, n)
		}
	}
}

// Keys are bounded, whatever the names, and go when they say nothing.
func TestKeysAreBoundedAndGo(t *testing.T) {
	address := redistest.Shared(t)
	o := optionsFor(address)
	r, warnings, err := redislimit.NewWithSlack(context.Background(), o, redislimit.Patient)
	opened(t, r, warnings, err)
	c := redis.NewClient(&redis.Options{Addr: address})
	defer c.Close()
	ctx := context.Background()
	limits := limittest.OnlyDefault(limittest.Budget("100/s", 3))
	limits.Default.Concurrency = new(3)
	b := limittest.Budget("100/s", 3)
	limits.Caller = &b
	names := []string{"a", "a}b", "{a}", "a/b", strings.Repeat("x", 65), strings.Repeat("y", 100_000), "é", "a b", "a\r\nb", "\x00"}
	for _, n := range names {
		limittest.Admitted(t, r, limits, limittest.KeyOf(n, "t", "p")).Release()
		if err := r.Caller(ctx, limits, n); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := c.Keys(ctx, o.Prefix+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if len(key) > 150 || strings.ContainsAny(key, "\x00\r\n é") || strings.Count(key, "{") != 1 || strings.Count(key, "}") != 1 {
			t.Errorf("key %q", key)
		}
		if ttl := c.PTTL(ctx, key).Val(); ttl == -1 && !strings.Contains(key, "probe") {
			t.Errorf("key %q does not expire: %v", key, ttl)
		}
	}
	for range 6000 {
		keys, _ = c.Keys(ctx, o.Prefix+"{[acpt]/*").Result()
		if len(keys) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("still there: %q", keys)
}

// A slot is held as long as the call runs, however long, and not for long when
// its gateway is gone.
func TestLeases(t *testing.T) {
	t.Parallel()
	o := optionsFor(redistest.Shared(t))
	// It is renewed in time also where the machine stands still for five seconds.
	const length = 8 * time.Second
	open := func() *redislimit.Limiter {
		r, warnings, err := redislimit.NewWithLease(context.Background(), o, length)
		return opened(t, r, warnings, err)
	}
	dies, lives := open(), open()
	limits := &ratelimit.Limits{Default: ratelimit.Allowance{Concurrency: new(2)}}
	lease, held := limittest.Admitted(t, dies, limits, limittest.Alpha), limittest.Admitted(t, lives, limits, limittest.Alpha)
	for began := time.Now(); time.Since(began) < length+time.Second; time.Sleep(20 * time.Millisecond) {
		_, err := lives.Take(context.Background(), limits, limittest.Alpha)
		limittest.Refused(t, err, refusal.ConcurrencyLimited)
	}
	_ = dies.Close() // renews no more
	var second ratelimit.Lease
	err := errors.New("not asked yet")
	for tries := 0; err != nil; tries++ {
		if tries > 6000 {
			t.Fatal("the slot of a gateway that died does not come back")
		}
		time.Sleep(10 * time.Millisecond)
		second, err = lives.Take(context.Background(), limits, limittest.Alpha)
	}
	lease.Release()
	_, err = lives.Take(context.Background(), limits, limittest.Alpha)
	limittest.Refused(t, err, refusal.ConcurrencyLimited)
	second.Release()
	held.Release()
	limittest.Admitted(t, lives, limits, limittest.Alpha).Release()
}

// allSent waits until Redis has answered what this gateway has asked so far, and what
// followed from the answers: all that goes to one node goes in turn.
func allSent(t testing.TB, replicas ...*redislimit.Limiter) {
	t.Helper()
	for _, r := range replicas {
		for range 2 {
			limittest.Admitted(t, r, limittest.OnlyAgent(limittest.Budget("1000000/s", 1_000_000)), limittest.KeyOf("Fence", "web.search", "alpha"))
		}
	}
}

// A caller that goes away before the answer gets nothing, and takes nothing.
func TestTheCallerGoesAway(t *testing.T) {
	s := redistest.Start(t)
	r, p := through(t, s, redislimit.Patient)
	limits := limittest.OnlyAgent(limittest.Budget("1/h", 2))
	limits.Default.Concurrency = new(2)
	p.Set(func(h *lossy.Faults) { h.DelayReplies = 60 * time.Millisecond })
	for range 4 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		_, err := r.Take(ctx, limits, limittest.Alpha)
		cancel()
		if e := limittest.Refused(t, err, refusal.LimiterUnavailable); !errors.Is(e, context.DeadlineExceeded) {
			t.Fatalf("got %v", e)
		}
		allSent(t, r) // until it is given back
	}
	p.Set(func(h *lossy.Faults) { h.DelayReplies = 0 })
	if shared, cause := r.Shared(); !shared {
		t.Errorf("Redis is taken to be away: %v", cause)
	}
	for range 2 {
		limittest.Admitted(t, r, limits, limittest.Alpha)
	}
}

// Close ends what was started, and what is asked afterwards is refused.
func TestClose(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := redistest.Start(t)
	r, warnings, err := redislimit.NewWithSlack(context.Background(), optionsFor(s.Address()), redislimit.Patient)
	opened(t, r, warnings, err)
	limits := local(limittest.Budget("1/s", 5), 1)
	limits.Default.Concurrency = new(5)
	lease := limittest.Admitted(t, r, limits, limittest.Alpha)
	_ = r.Close()
	_ = r.Close()
	lease.Release()
	_, err = r.Take(context.Background(), limits, limittest.Alpha)
	limittest.Refused(t, err, refusal.LimiterUnavailable)

	away, _, err := redislimit.NewWithSlack(context.Background(), optionsFor("127.0.0.1:1"), redislimit.Patient)
	if err != nil {
		t.Fatal(err)
	}
	_ = away.Close()
	_, err = away.Take(context.Background(), limits, limittest.Alpha)
	limittest.Refused(t, err, refusal.LimiterUnavailable)
	s.Kill()
	leaks.None(t, before)
}

// More calls than the queue holds are refused at once, not kept.
func TestTheQueueIsBounded(t *testing.T) {
	s := redistest.Start(t)
	r, p := through(t, s, redislimit.Waits)
	p.Set(func(h *lossy.Faults) { h.DelayReplies = 80 * time.Millisecond })
	limits := limittest.OnlyAgent(limittest.Budget("1000000/s", 1_000_000))
	var group sync.WaitGroup
	var full atomic.Int64
	for range 20_000 {
		group.Go(func() {
			_, err := r.Take(context.Background(), limits, limittest.Alpha)
			var e *refusal.Error
			if errors.As(err, &e) && strings.Contains(e.Error(), "queue to Redis is full") {
				full.Add(1)
			}
		})
	}
	group.Wait()
	if full.Load() == 0 {
		t.Skip("the machine was too slow to fill the queue")
	}
}

// Replicas that share a Redis share a limit.
func TestReplicasShareALimit(t *testing.T) {
	o := optionsFor(redistest.Shared(t))
	var replicas [3]*redislimit.Limiter
	for i := range replicas {
		r, warnings, err := redislimit.NewWithSlack(context.Background(), o, redislimit.Patient)
		replicas[i] = opened(t, r, warnings, err)
	}
	limits := limittest.Combined(limittest.Budget("1/h", 100), limittest.Budget("1/h", 90), limittest.Budget("1/h", 80), limittest.Budget("1/h", 70))
	limits.Default.Concurrency = new(3)
	var group sync.WaitGroup
	var passed, inFlight atomic.Int64
	for i := range 12 {
		group.Go(func() {
			for range 60 {
				lease, err := replicas[i%3].Take(context.Background(), limits, limittest.Alpha)
				if err != nil {
					continue
				}
				if n := inFlight.Add(1); n > 3 {
					t.Errorf("%d calls at the same time, want at most 3", n)
				}
				passed.Add(1)
				inFlight.Add(-1)
				lease.Release()
			}
		})
	}
	group.Wait()
	allSent(t, replicas[:]...) // the last releases
	if n := passed.Load() + int64(limittest.Drain(replicas[0], limits, limittest.Alpha, 100)); n != 70 {
		t.Errorf("%d admitted, want 70", n)
	}
}
