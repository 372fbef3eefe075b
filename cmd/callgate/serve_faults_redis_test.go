package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/lossy"
)

// sharers are gateways that keep their calls, and count their limits, on one
// Redis. Every call acts once and has a number, and a key that is its own.
type sharers struct {
	tool  *recordingTool
	gates []*gate
	dirs  []string
	last  int
}

// share starts so many gateways on the Redis that a line of the configuration
// names, and waits until they can rely on it.
func share(t testing.TB, n int, redis, more string) *sharers {
	t.Helper()
	s := &sharers{tool: newRecordingTool()}
	server := httptest.NewServer(s.tool)
	t.Cleanup(server.Close)
	config, _ := effectsConfig(t, server.URL, "")
	main := "server: {" + anyPort + "}\nredis: {" + redis + "}\nstore: {kind: redis, replicas: " + strconv.Itoa(n) + more + "}\n# end\n"
	limits := fmt.Sprintf("tools: {once: {rate: 10000/s, burst: 10000}}\non_store_loss: local\nreplicas: %d\n# end\n", n)
	for name, text := range map[string]string{config: main, filepath.Join(filepath.Dir(config), "limits.yaml"): limits} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		dir := quickDir(t)
		s.dirs, s.gates = append(s.dirs, dir), append(s.gates, serveGateIn(t, dir, config, somewhatLong()))
	}
	s.ready(t)
	return s
}

// later tells answers after which a call can be sent again: nothing was executed,
// or it still runs. Without Redis a gateway has its share alone, of buckets that
// begin empty.
func later(r reply) bool {
	return busy(r) || r.code() == "call_in_progress" || r.code() == "rate_limited"
}

func at(address string) string { return "url: \"redis://" + address + "\"" }

// ready waits until every gateway can keep calls and shares its limits.
func (s *sharers) ready(t testing.TB) {
	t.Helper()
	for _, g := range s.gates {
		eventually(t, "Redis can be relied on", func() bool { o := g.operators(t); return o.Calls == "" && o.Limits == "" })
	}
}

// next is the number of another call.
func (s *sharers) next() int { s.last++; return s.last }

// try sends a call to one of the gateways.
func (s *sharers) try(g, n int) (reply, error) {
	of := s.gates[g%len(s.gates)]
	return of.try(http.MethodPost, "http://"+of.listen+"/v1/calls", numbered("once", n), "Content-Type", "text/plain", "Idempotency-Key", fmt.Sprint("key-", n))
}

func (s *sharers) send(t testing.TB, g, n int) reply {
	t.Helper()
	r, err := s.try(g, n)
	if err != nil {
		t.Fatalf("call %d: %v", n, err)
	}
	return r
}

// refused holds new calls, sent to each gateway, to be refused for want of a
// store, and not to reach their tool; and returns them, and how long the slowest
// refusal took.
func (s *sharers) refused(t testing.TB, when string) (numbers []int, slowest time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for range 8 {
		n := s.next()
		numbers = append(numbers, n)
		asking.Go(func() {
			before := time.Now()
			r, err := s.try(n, n)
			mu.Lock()
			defer mu.Unlock()
			slowest = max(slowest, time.Since(before))
			if err != nil || r.status != http.StatusServiceUnavailable || r.code() != "store_unavailable" {
				t.Errorf("%s: call %d: %d %s, %v; want store_unavailable", when, n, r.status, r.body, err)
			}
		})
	}
	asking.Wait()
	for _, n := range numbers {
		if hits := s.tool.of(n); hits != 0 {
			t.Errorf("%s: call %d reached its tool %d times", when, n, hits)
		}
	}
	return numbers, slowest
}

// acted waits until every gateway answers the keys of calls with one and the same
// result, and holds each to have reached its tool once.
func (s *sharers) acted(t testing.TB, when string, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		calls := map[string]bool{}
		for g := range s.gates {
			eventually(t, fmt.Sprintf("%s: call %d has its result at gateway %d", when, n, g), func() bool {
				r := s.send(t, g, n)
				if !isResult(r) && !later(r) {
					t.Fatalf("%s: call %d: %d %s", when, n, r.status, r.body)
				}
				calls[r.header.Get("Callgate-Call-Id")] = calls[r.header.Get("Callgate-Call-Id")] || isResult(r)
				return isResult(r)
			})
		}
		results := 0
		for _, result := range calls {
			if result {
				results++
			}
		}
		if hits := s.tool.of(n); hits != 1 || results != 1 {
			t.Errorf("%s: call %d reached its tool %d times, and has %d results", when, n, hits, results)
		}
	}
}

// stop ends the gateways, and holds their logs to have each call's one outcome.
func (s *sharers) stop(t testing.TB) {
	t.Helper()
	for i, g := range s.gates {
		if code := g.stop(t); code != exitAccepted {
			t.Errorf("gateway %d: exit code %d", i, code)
		}
		readLedger(t, filepath.Join(s.dirs[i], "callgate-data"))
	}
	for n := 1; n <= s.last; n++ {
		if hits := s.tool.of(n); hits > 1 {
			t.Errorf("call %d, which acts once, reached its tool %d times", n, hits)
		}
	}
}

// goneFrom holds operators to read that Redis is away.
func (s *sharers) goneFrom(t testing.TB) {
	t.Helper()
	for i, g := range s.gates {
		eventually(t, "operators read that Redis is away", func() bool {
			o := g.operators(t)
			return o.Ready && o.Calls != "" && o.Limits != "" && g.counts(t, "callgate_limits_local", "1")
		})
		eventually(t, fmt.Sprintf("the log of gateway %d says so", i), func() bool {
			return strings.Contains(g.stderr.String(), "calls cannot be stored on Redis, and are not executed")
		})
	}
}

// TestRedisIsRefused kills Redis: nothing is executed until it is back, and then
// what was done before is known, though Redis itself has forgotten it.
func TestRedisIsRefused(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	s := share(t, 2, at(redis.address()), "")
	before := s.next()
	s.acted(t, "before", before)
	redis.kill(t)
	during, slowest := s.refused(t, "while Redis is refused")
	s.goneFrom(t)
	if r := s.send(t, 0, before); r.code() != "store_unavailable" {
		t.Errorf("a key from before: %d %s", r.status, r.body)
	}
	redis.start(t)
	s.ready(t)
	s.acted(t, "when it is back", append(during, before)...)
	s.stop(t)
	t.Logf("%d calls refused, the slowest within %v; all acted once when it was back", len(during), slowest.Round(time.Millisecond))
}

// TestRedisIsSlow has Redis stand still. It does later what it was asked then, and
// no key is lost by it.
func TestRedisIsSlow(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	s := share(t, 2, at(redis.address()), "")
	s.acted(t, "before", s.next())
	running := s.gates[0].goroutines(t)
	redis.signal(t, syscall.SIGSTOP)
	during, slowest := s.refused(t, "while Redis stands still")
	s.goneFrom(t)
	more, at := s.refused(t, "when that is known")
	redis.signal(t, syscall.SIGCONT)
	s.ready(t)
	s.acted(t, "when it continues", append(during, more...)...)
	eventually(t, "nothing has piled up", func() bool {
		s.gates[0].client.CloseIdleConnections()
		return s.gates[0].goroutines(t) <= running+20
	})
	s.stop(t)
	t.Logf("%d calls refused, the slowest within %v; when it was known, within %v", len(during)+len(more), slowest.Round(time.Millisecond), at.Round(time.Millisecond))
}

// TestRepliesAreLost loses what Redis answers, by cutting the connection and by
// silence, at any step of a call: what asked knows its own claim again, or gives
// it back, and no key starts two calls.
func TestRepliesAreLost(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	between := lossy.New(t, redis.address())
	s := share(t, 2, at(between.Address()), "")
	var numbers []int
	lost := 0
	for name, harm := range map[string]func(*lossy.Faults){
		"cut":    func(h *lossy.Faults) { h.CutNextReply = true },
		"silent": func(h *lossy.Faults) { h.DropReplies = true },
		"lost":   func(h *lossy.Faults) { h.DropRequests = true },
		"late":   func(h *lossy.Faults) { h.DelayReplies = time.Second },
	} {
		for round := range 3 {
			n := s.next()
			numbers = append(numbers, n)
			if round > 0 { // before and after the call has begun
				between.Set(harm)
			}
			answer := make(chan reply, 1)
			go func() {
				r, err := s.try(n, n)
				if err != nil {
					t.Errorf("%s: call %d: %v", name, n, err)
				}
				answer <- r
			}()
			if round == 0 {
				time.Sleep(time.Millisecond)
				between.Set(harm)
			}
			r := <-answer
			switch {
			case isResult(r):
			case later(r):
				lost++
			default:
				t.Errorf("%s: call %d: %d %s", name, n, r.status, r.body)
			}
			between.Clear()
			s.ready(t)
		}
	}
	s.acted(t, "when replies arrive again", numbers...)
	s.stop(t)
	t.Logf("%d calls, %d of which were refused for a reply that was lost; each acted once", len(numbers), lost)
}

// TestNoReplicaHasIt takes the replica away, by which a dispatch must be confirmed,
// and then the master, which sentinels replace. Nothing is dispatched that no replica
// has, so the one that is promoted knows every key.
func TestNoReplicaHasIt(t *testing.T) {
	t.Parallel()
	pair := newPair(t)
	var sentinels []string
	for _, s := range pair.sentinels {
		sentinels = append(sentinels, strconv.Quote(s.address()))
	}
	s := share(t, 2, "sentinel: {master: "+pairName+", addresses: ["+strings.Join(sentinels, ", ")+"]}", ", min_redis_replicas: 1")
	numbers := []int{s.next(), s.next()}
	s.acted(t, "before", numbers...)
	pair.servers[1].kill(t)
	eventually(t, "a call without a replica is refused", func() bool {
		numbers = append(numbers, s.next())
		return s.send(t, 0, s.last).code() == "store_unavailable"
	})
	refused, _ := s.refused(t, "without a replica")
	pair.start(t, 1, 0)
	s.acted(t, "with a replica again", append(numbers, refused...)...)
	if os.Getenv(longFaults) == "" {
		s.stop(t)
		return // TestChaos fails over in the short form
	}
	pair.servers[0].kill(t)
	pair.failedOver(t, 1)
	pair.start(t, 0, 1)
	s.acted(t, "after the failover", append(numbers, refused...)...)
	s.stop(t)
}

// TestRedisForgets empties Redis, starts it anew with nothing on its disk, and
// leaves it no room: what was done before is known to the gateways.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	s := share(t, 2, at(redis.address()), "")
	var numbers []int
	for name, forget := range map[string]func(){
		"emptied": func() { redis.ask(t, "FLUSHALL") },
		"killed": func() {
			redis.kill(t)
			redis.start(t)
		},
		"full": func() {
			redis.ask(t, "CONFIG SET maxmemory 1")
			s.refused(t, "without room")
			redis.ask(t, "CONFIG SET maxmemory 0")
		},
	} {
		for range 4 {
			n := s.next()
			numbers = append(numbers, n)
			s.acted(t, "before it was "+name, n)
		}
		forget()
		s.acted(t, "after it was "+name, numbers...)
	}
	s.stop(t)
	t.Logf("%d keys, asked for at both gateways across three losses; each acted once", len(numbers))
}

// TestScriptsAreTaken removes the scripts of Redis, which callers do not notice, and then
// the right to run any, which is said.
func TestScriptsAreTaken(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	s := share(t, 1, at(redis.address()), "")
	for range 5 {
		redis.ask(t, "SCRIPT FLUSH")
		n := s.next()
		s.acted(t, "after SCRIPT FLUSH", n)
	}
	if strings.Contains(s.gates[0].stderr.String(), "Redis is away") {
		t.Errorf("scripts that were forgotten are a loss: %s", s.gates[0].stderr.String())
	}
	redis.ask(t, "ACL SETUSER default -script")
	redis.ask(t, "SCRIPT FLUSH") // refused, if it was taken
	s.acted(t, "without SCRIPT", s.next())
	redis.ask(t, "ACL SETUSER default -eval -evalsha")
	during, _ := s.refused(t, "without scripts")
	g := s.gates[0]
	if r := g.call(t, numbered("once", 0)); !later(r) { // without a key it asks for a limit first
		t.Errorf("without scripts: %d %s", r.status, r.body)
	}
	eventually(t, "operators read that it is forbidden", func() bool {
		o := g.operators(t)
		return strings.Contains(o.Calls, "NOPERM") && strings.Contains(o.Limits, "NOPERM") && g.counts(t, "callgate_limits_local", "1")
	})
	redis.ask(t, "ACL SETUSER default +@all")
	s.ready(t)
	s.acted(t, "when they are allowed again", during...)
	s.stop(t)
}

// TestRedisLies has Redis answer something else than it was asked. Nothing of it
// is believed: no tool is called for it.
func TestRedisLies(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	between := lossy.New(t, redis.address())
	s := share(t, 1, at(between.Address()), "")
	s.acted(t, "before", s.next())
	say := func(text string) func([]byte) []byte { return func([]byte) []byte { return []byte(text) } }
	var last []byte
	var mu sync.Mutex
	for name, lie := range map[string]func([]byte) []byte{
		"ok":      say("+OK\r\n"),
		"nil":     say("$-1\r\n"),
		"a token": say("*2\r\n$2\r\nok\r\n$5\r\ntoken\r\n"),
		"a map":   say("%1\r\n+ok\r\n:1\r\n"),
		"error":   say("-ERR odd\r\n"),
		"number":  say(":1\r\n"),
		"noise":   say("\x00\xff\r\n"),
		"long":    say("$2147483647\r\nok"),
		"longest": say("$9223372036854775805\r\nok"),
		"many":    say("*9223372036854775805\r\n:1\r\n"),
		"deep":    say(strings.Repeat("*1\r\n", 1<<20)),
		"endless": say("+" + strings.Repeat("x", 1<<20)),
		"other": func(b []byte) []byte { // the answer to the question before
			mu.Lock()
			defer mu.Unlock()
			before := last
			last = bytes.Clone(b)
			return before
		},
	} {
		between.Set(func(h *lossy.Faults) { h.RewriteReply = lie })
		during, _ := s.refused(t, name)
		between.Clear()
		s.ready(t)
		s.acted(t, "after "+name, during...)
	}
	if peak := s.gates[0].memory(t, "VmHWM"); peak > 512<<20 {
		t.Errorf("it has taken %s", mebibytes(peak))
	}
	s.stop(t)
}
