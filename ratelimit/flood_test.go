package ratelimit_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/detector"
	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A million names that are made up, of agents and of callers, cost little
// memory, and change nothing for the one that is known.
func TestAMillionNames(t *testing.T) {
	detector.OneGoroutine(t)
	const names, every = 1_000_000, 10
	clk := limittest.NewClock(limittest.Epoch)
	l := ratelimit.NewLocal(clk.Now)
	limits := limittest.OnlyDefault(limittest.Budget("5/s", 10))
	limits.Default.Concurrency = new(8)
	caller := limittest.Budget("50/s", 100)
	limits.Caller = &caller
	before := heapInUse()

	const seconds = names / 50_000
	var refusedNames, known, knownCaller int
	for i := range names {
		clk.Move(20 * time.Microsecond) // 50 000 new names a second
		// As long as a name can be that is kept as it is.
		name := fmt.Sprintf("%064d", i)
		if lease, err := l.Take(context.Background(), limits, limittest.KeyOf(name, "web.search", "alpha")); err != nil {
			refusedNames++
		} else {
			lease.Release()
		}
		if err := l.Caller(context.Background(), limits, name); err != nil {
			refusedNames++
		}
		if i%every == 0 { // 5000 a second, of which 5 and 50 may pass
			if lease, err := l.Take(context.Background(), limits, limittest.Alpha); err == nil {
				known++
				lease.Release()
			}
			if err := l.Caller(context.Background(), limits, "192.0.2.1"); err == nil {
				knownCaller++
			}
		}
	}
	after := heapInUse()
	if grown := int64(after) - int64(before); grown > 32<<20 {
		t.Errorf("the heap grew by %d bytes, want less than 32 MiB", grown)
	} else {
		t.Logf("the heap grew by %.1f MiB", float64(grown)/(1<<20))
	}
	if refusedNames != 0 {
		t.Errorf("%d questions of names that were new were refused", refusedNames)
	}
	// The burst, and what the rate brings.
	if want := 10 + 5*seconds; known < want-1 || known > want {
		t.Errorf("%d calls of the known agent admitted, want %d", known, want)
	}
	if want := 100 + 50*seconds; knownCaller < want-1 || knownCaller > want {
		t.Errorf("%d requests of the known caller admitted, want %d", knownCaller, want)
	}
	buckets, inFlight := l.Sizes()
	for kind, n := range buckets {
		if n > ratelimit.MaxBuckets {
			t.Errorf("kind %d: %d buckets", kind, n)
		}
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if inFlight != 0 {
		t.Errorf("%d agents with calls in flight, want none", inFlight)
	}
	runtime.KeepAlive(l)
}

// While every bucket is busy, new names are refused for exactly as long as it
// takes, known ones are served, and nobody gets a second burst.
func TestNoRoom(t *testing.T) {
	const room = 100
	clk := limittest.NewClock(limittest.Epoch)
	l := ratelimit.NewLocalOf(clk.Now, room)
	limits := limittest.OnlyDefault(limittest.Budget("1/s", 5))
	agent := func(i int) ratelimit.Key { return limittest.KeyOf(fmt.Sprintf("agent%d", i), "web.search", "alpha") }

	for i := range 1000 {
		clk.MoveMS(1)
		_, err := l.Take(context.Background(), limits, agent(i))
		if i < room {
			if err != nil {
				t.Fatalf("name %d: %v", i, err)
			}
			continue
		}
		// The first bucket was used at 1 ms, and is full a second later.
		e := limittest.Refused(t, err, refusal.RateLimited)
		if want := int64(1001 - (i + 1)); e.RetryAfterMS != want {
			t.Fatalf("name %d: wait %d ms, want %d", i, e.RetryAfterMS, want)
		}
	}
	if n := limittest.Drain(l, limits, agent(99), 9); n != 4 {
		t.Errorf("a known name: %d admitted, want the 4 that are left", n)
	}
	// The wait is rounded up, and includes what the clock stepped back.
	clk.Move(-time.Minute - time.Microsecond)
	_, err := l.Take(context.Background(), limits, agent(4999))
	if e := limittest.Refused(t, err, refusal.RateLimited); e.RetryAfterMS != 60_002 {
		t.Errorf("wait %d ms, want 60002", e.RetryAfterMS)
	}
	clk.Move(time.Minute + time.Microsecond)
	clk.MoveMS(1) // 1001 ms: name 0 is full again, name 1 not yet
	limittest.Admitted(t, l, limits, agent(5000))
	_, err = l.Take(context.Background(), limits, agent(5001))
	if e := limittest.Refused(t, err, refusal.RateLimited); e.RetryAfterMS != 1 {
		t.Errorf("wait %d ms, want 1", e.RetryAfterMS)
	}
	clk.MoveMS(1)
	limittest.Admitted(t, l, limits, agent(5001))
	if buckets, _ := l.Sizes(); buckets[0] != room {
		t.Errorf("%d buckets, want %d", buckets[0], room)
	}

	// The names in the limits are not made up: they always have room.
	_, err = l.Take(context.Background(), limits, agent(5002))
	limittest.Refused(t, err, refusal.RateLimited)
	limits = limittest.OnlyDefault(limittest.Budget("1/s", 5))
	limits.Agents = map[string]ratelimit.Agent{"agent5002": {}, "agent5003": {}}
	for _, key := range []ratelimit.Key{agent(5002), agent(5003)} {
		if n := limittest.Drain(l, limits, key, 9); n != 5 {
			t.Errorf("%s: %d admitted, want its burst of 5", key.Agent, n)
		}
	}
}

// Names that are pushed out and come back never get more than the limit, in
// any order and however scarce the room is.
func TestPushedOutNamesGetNoMore(t *testing.T) {
	const room, names, burst = 4, 9, 3
	clk := limittest.NewClock(limittest.Epoch)
	l := ratelimit.NewLocalOf(clk.Now, room)
	limits := limittest.OnlyDefault(limittest.Budget("10/s", burst))
	var times [names][]time.Time
	total := 0
	for step := range 20_000 {
		clk.MoveMS(int64(step * step % 23))
		i := step * 7919 % 104729 % names
		if _, err := l.Take(context.Background(), limits, limittest.KeyOf(fmt.Sprint(i), "t", "")); err == nil {
			times[i] = append(times[i], clk.Now())
			total++
		}
		if err := l.Check(); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	for i := range times {
		limittest.OverAdmission(t, times[i], 10, burst)
	}
	// In 220 s four buckets bring up to 8800: the room is used, not closed.
	if total < 4000 {
		t.Errorf("%d admitted in all", total)
	}
}

// Names that come when others have long been idle take their place in order.
func TestIdleNamesMakeRoom(t *testing.T) {
	clk := limittest.NewClock(limittest.Epoch)
	l := ratelimit.NewLocalOf(clk.Now, 7)
	limits := limittest.OnlyDefault(limittest.Budget("1/s", 10))
	for i := range 100 {
		clk.Move(time.Hour)
		for range 1 + i%3 {
			limittest.Admitted(t, l, limits, limittest.KeyOf(fmt.Sprint(i), "t", ""))
		}
		if err := l.Check(); err != nil {
			t.Fatalf("name %d: %v", i, err)
		}
	}
}

// Room follows figures that change: it is where a bucket is full soonest now.
func TestRoomFollowsTheFigures(t *testing.T) {
	clk := limittest.NewClock(limittest.Epoch)
	l := ratelimit.NewLocalOf(clk.Now, 3)
	slow, fast := limittest.OnlyDefault(limittest.Budget("1/h", 10)), limittest.OnlyDefault(limittest.Budget("1/s", 10))
	for _, name := range []string{"a", "b", "c"} {
		limittest.Admitted(t, l, slow, limittest.KeyOf(name, "t", ""))
		clk.MoveMS(1)
	}
	limittest.Admitted(t, l, fast, limittest.KeyOf("c", "t", "")) // two short, at 1/s
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Take(context.Background(), fast, limittest.KeyOf("d", "t", ""))
	if e := limittest.Refused(t, err, refusal.RateLimited); e.RetryAfterMS < 1999 || e.RetryAfterMS > 2000 {
		t.Fatalf("wait %d ms, want 2000", e.RetryAfterMS)
	}
	clk.MoveMS(2000)
	limittest.Admitted(t, l, fast, limittest.KeyOf("d", "t", ""))
}

// Long names, and names that are a small part of something long, cost no more
// than others.
func TestLongNamesCostNoMore(t *testing.T) {
	const names, size = 1000, 64 << 10
	l := ratelimit.NewLocal(func() time.Time { return limittest.Epoch })
	b := limittest.Budget("1/h", 5)
	limits := limittest.OnlyDefault(b)
	limits.Caller = &b
	before := heapInUse()
	for i := range names {
		body := fmt.Sprintf("%0*d", size, i)
		for _, name := range []string{body, body[size-10:]} {
			limittest.Admitted(t, l, limits, limittest.KeyOf(name, "t", ""))
			if err := l.Caller(context.Background(), limits, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if grown := int64(heapInUse()) - int64(before); grown > 8<<20 {
		t.Errorf("%d names of %d bytes: the heap grew by %d bytes", 2*names, size, grown)
	}
	runtime.KeepAlive(l)
}
