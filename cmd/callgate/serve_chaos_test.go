package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/internal/testkit/lossy"
)

// clockTime is how a time of the day is told.
const clockTime = "15:04:05.000"

// decisionTime is what no decision of a guard may exceed.
const decisionTime = 250 * time.Millisecond

// recoveryTimeout is how long a test waits until sentinels, which may have to agree anew and
// take eight seconds to correct a server that came back as a master, have put things
// in order.
const recoveryTimeout = 3 * time.Minute

// TestChaos does harm to a Redis under Sentinel, at random, under load, while two
// gateways keep their calls and count their limits on it. Sentinel, and not a switch
// of the test's own, decides on the failovers: what must hold is what holds while it
// is wrong about who lives, and two servers take themselves for masters.
//
// A call of the effect once reached its tool at most once, and no key started a second call;
// every call that was accepted has its one outcome, in one of the two logs; what was
// answered with a result has that outcome, and its key gives it again; the logs
// verify; and no guard took longer than it may to decide.
//
// CALLGATE_CHAOS says how often harm is done, one time each three seconds; it holds
// the decisions to their time too: but for what their gateway was held up by a machine
// that does much else. CALLGATE_CHAOS_SEED repeats a draw.
func TestChaos(t *testing.T) {
	long := os.Getenv("CALLGATE_CHAOS") != ""
	few := 6
	if testing.Short() {
		few = 3
	}
	harms := rounds(t, "CALLGATE_CHAOS", few)
	seed := rand.Uint64()
	if text := os.Getenv("CALLGATE_CHAOS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("CALLGATE_CHAOS_SEED: found %q; expected a number", text)
		}
	}
	t.Logf("the seed is %d", seed)
	pair := newPair(t)
	tool := newRecordingTool()
	server := httptest.NewServer(tool)
	defer server.Close()
	times := newStopwatch(t)
	l := &chaosLoad{results: map[int]string{}, codes: map[string]int{}, over: make(chan struct{})}
	dirs := []string{quickDir(t), quickDir(t)}
	var pids []int
	for i, dir := range dirs {
		g := serveGateIn(t, dir, chaosConfig(t, server.URL, fmt.Sprint(times.url, "/", i), pair), usualWaits, usualDrain)
		l.gates, pids = append(l.gates, g), append(pids, g.cmd.Process.Pid)
	}
	for _, g := range l.gates {
		g.awaitShared(t)
		eventually(t, "calls are kept on Redis", func() bool { return g.operators(t).Calls == "" })
	}

	held := newStalls(t, pids...)
	c := &chaos{redisPair: pair, load: l, rand: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}}
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() { l.run(t) })
	}
	still := sync.OnceFunc(func() {
		close(l.over)
		clients.Wait()
	})
	defer still()
	began := time.Now()
	c.served(t)
	for n := range harms {
		if long {
			time.Sleep(time.Until(began.Add(time.Duration(n) * 3 * time.Second)))
		}
		c.strike(t)
	}
	c.awaitPair(t)
	c.served(t)
	still()
	took := time.Since(began).Round(time.Second)
	l.finish(t)
	// Together: one that lives on would see to what the other has left.
	for _, g := range l.gates {
		g.client.CloseIdleConnections()
		g.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, g := range l.gates {
		if code := g.code(t); code != exitAccepted {
			t.Errorf("exit code %d", code)
		}
	}

	book := l.settle(t, tool, dirs)
	limits, calls, log, lost := times.longest(t, held, pids)
	t.Logf("seed %d, %d harms in %v (%s): %s; longest decision of the limits %v, of the store %v, of the log %v; a thread of a gateway waited for a processor for %v at most",
		seed, harms, took, counted(c.done), book, limits, calls, log, held.longest())
	if t.Failed() {
		t.Logf("what was done, and when: %s", strings.Join(c.history, "; "))
	}
	if lost > 0 || limits.n == 0 || calls.n == 0 {
		t.Errorf("the times of %d calls were lost", lost)
	}
	if long {
		for of, s := range map[string]span{"limits": limits, "store": calls, "log": log} {
			if n := s.over - s.excused; n > 0 {
				t.Errorf("%d decisions of the %s took longer than %v, up to %v, and their gateway could run", n, of, decisionTime, s.longest)
			}
		}
	}
}

// chaosConfig is sharedSteady on a pair, which confirms dispatches, with limits that
// are asked and never reached, and traces, which tell how long that took.
func chaosConfig(t testing.TB, url, traces string, pair *redisPair) (config string) {
	t.Helper()
	config, _ = steadyConfig(t, url, "")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	var sentinels []string
	for _, s := range pair.sentinels {
		sentinels = append(sentinels, strconv.Quote(s.address()))
	}
	before, _, _ := strings.Cut(string(text), "data_dir:")
	for path, text := range map[string]string{
		config: before + fmt.Sprintf("redis: {sentinel: {master: %s, addresses: [%s]}}\n", pairName, strings.Join(sentinels, ", ")) +
			"store: {kind: redis, replicas: 2, min_redis_replicas: 1}\ntelemetry: {traces: {endpoint: " + strconv.Quote(traces) + "}}\n# end\n",
		filepath.Join(filepath.Dir(config), "limits.yaml"): "caller: {rate: 1000000/s}\ndefault: {rate: 1000000/s, concurrency: 100000}\ntools: {steady: {rate: 1000000/s}, look: {rate: 1000000/s}}\non_store_loss: local\nreplicas: 2\n# end\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// chaosLoad asks both gateways, and remembers what it was told.
type chaosLoad struct {
	gates  []*gate
	over   chan struct{}   // closed when no more is to be asked
	served [2]atomic.Int64 // results, by gateway

	mu      sync.Mutex
	next    int
	results map[int]string // call ids of what was answered with a result, by n
	codes   map[string]int // other answers
	open    []chaosCall    // of a key, and not answered yet
	pending []string       // ids of calls without a key whose answer is to come
	slowest time.Duration  // of the answers that say that a guard is away
}

// chaosCall is one call of a tool; without a key it is asked for once.
type chaosCall struct {
	n         int
	tool, key string
}

func (l *chaosLoad) isOver() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// draw is another call: most act once, and most have a key.
func (l *chaosLoad) draw() chaosCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := chaosCall{n: l.next, tool: "steady"}
	l.next++
	if c.n%4 == 3 {
		c.tool = "look"
	}
	if c.n%5 > 0 {
		c.key = fmt.Sprint("chaos-", c.n)
	}
	return c
}

// run asks for one call after the other, at either gateway, and for what has a key
// again until it is answered, for a while; the rest is left for the end. Of what was
// answered some is asked once more.
func (l *chaosLoad) run(t testing.TB) {
	for !l.isOver() {
		c := l.draw()
		answered := l.ask(t, c)
		for tries := 0; c.key != "" && !answered && tries < 20 && !l.isOver(); tries++ {
			time.Sleep(time.Duration(20+rand.IntN(60)) * time.Millisecond)
			answered = l.ask(t, c)
		}
		if c.key != "" && !answered {
			l.mu.Lock()
			l.open = append(l.open, c)
			l.mu.Unlock()
		}
		if c.key != "" && answered && rand.IntN(4) == 0 {
			l.ask(t, c)
		}
		time.Sleep(time.Duration(10+rand.IntN(40)) * time.Millisecond)
	}
}

// ask asks for a call once, and tells whether the answer is the last word.
func (l *chaosLoad) ask(t testing.TB, c chaosCall) (answered bool) {
	headers := []string{"Content-Type", "text/plain"}
	if c.key != "" {
		headers = append(headers, "Idempotency-Key", c.key)
	}
	at := rand.IntN(len(l.gates))
	g := l.gates[at]
	began := time.Now()
	r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", numbered(c.tool, c.n), headers...)
	took := time.Since(began)
	if err != nil {
		t.Errorf("%+v: %v", c, err)
		return false
	}
	id := r.header.Get("Callgate-Call-Id")
	code := r.code()
	l.mu.Lock()
	defer l.mu.Unlock()
	before, had := l.results[c.n]
	switch {
	case isResult(r):
		l.served[at].Add(1)
		if had && before != id {
			t.Errorf("%+v: answered by %s, and by %s before", c, id, before)
		}
		l.results[c.n] = id
		return true
	case r.status == http.StatusAccepted:
		l.codes["pending"]++
		if c.key == "" {
			l.pending = append(l.pending, id)
		}
		return false
	case code == "store_unavailable", code == "limiter_unavailable", code == "audit_unavailable",
		code == "rate_limited", code == "caller_rate_limited": // a bucket that begins empty is so for some microseconds
		l.codes[code]++
		l.slowest = max(l.slowest, took)
		return false
	case code == "call_in_progress" && c.key != "" && !had:
		l.codes[code]++
		return false
	case code == "outcome_unknown" && !had:
		l.codes[code]++
		return true
	}
	t.Errorf("%+v, answered with %q before: %d %s", c, before, r.status, r.body)
	return true
}

// finish asks for what was not answered until it is.
func (l *chaosLoad) finish(t testing.TB) {
	deadline := time.Now().Add(recoveryTimeout)
	open := l.open
	var asking sync.WaitGroup
	for worker := range 8 {
		asking.Go(func() {
			for i := worker; i < len(open); i += 8 {
				for !l.ask(t, open[i]) {
					if time.Now().After(deadline) {
						t.Errorf("%+v is never answered", open[i])
						return
					}
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	asking.Wait()
	for _, id := range l.pending {
		for {
			r := l.gates[0].ask(t, http.MethodGet, "/v1/calls/"+id, "")
			if r.status == http.StatusOK && !strings.Contains(r.body, `"state":"pending"`) {
				break
			}
			if r.status == http.StatusNotFound { // Redis was emptied since: the result is gone, the outcome is in the log
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("the call %s never ends: %d %s", id, r.status, r.body)
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// settle holds what the tool saw, and what was answered, against both logs, and says
// it in figures.
func (l *chaosLoad) settle(t testing.TB, tool *recordingTool, dirs []string) string {
	t.Helper()
	tools, outcomes := map[string]string{}, map[string][]audit.Outcome{}
	records := map[string][]string{} // of each call, in words
	for gate, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "callgate-data", "audit*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no log in %s: %v", dir, err)
		}
		if _, err := audit.Read(func(r audit.Record) error {
			records[r.CallID] = append(records[r.CallID], fmt.Sprintf("%s %s of gateway %d at %s", r.Event, r.Outcome, gate, r.Time.Local().Format(clockTime)))
			if r.Event == audit.Ending {
				outcomes[r.CallID] = append(outcomes[r.CallID], r.Outcome)
			} else if r.Verdict == audit.ToolCall {
				tools[r.CallID] = r.Tool
			}
			return nil
		}, files...); err != nil {
			t.Errorf("the log does not verify: %v", err)
		}
	}
	tool.mu.Lock()
	defer tool.mu.Unlock()
	twice, second, undecided, missing := 0, 0, 0, 0
	for id, n := range tool.calls {
		if tools[id] == "" {
			undecided++
			t.Errorf("the call %s reached the tool and is in no log", id)
		}
		if tools[id] == "steady" && n > 1 {
			twice++
			t.Errorf("the call %s, which acts once, reached the tool %d times", id, n)
		}
	}
	for n, by := range tool.numbers {
		if len(by) > 1 {
			second++
			t.Errorf("the key of %d started the calls %v", n, by)
			for id := range by {
				t.Logf("%s: %s", id, strings.Join(records[id], ", "))
			}
		}
	}
	each := map[string]int{}
	for id, name := range tools {
		if len(outcomes[id]) != 1 {
			missing++
			t.Errorf("the call %s of %s has the outcomes %v, and reached the tool %d times: %s", id, name, outcomes[id], tool.calls[id], strings.Join(records[id], ", "))
			continue
		}
		each[string(outcomes[id][0])]++
	}
	for id := range outcomes {
		if tools[id] == "" {
			t.Errorf("the call %s has an outcome and no decision", id)
		}
	}
	for n, id := range l.results {
		if o := outcomes[id]; len(o) != 1 || o[0] != audit.Result {
			t.Errorf("the call %s of %d was answered with a result, and has the outcomes %v", id, n, o)
		}
	}
	if len(l.results) == 0 {
		t.Error("nothing was answered")
	}
	return fmt.Sprintf("%d asked for, %d calls accepted, %d reached the tool, %d answered with a result; outcomes: %s; other answers: %s, the longest of a guard that is away %v; acted twice %d, keys that started a second call %d, without a decision %d, without their one outcome %d",
		l.next, len(tools), len(tool.calls), len(l.results), counted(each), counted(l.codes), l.slowest.Round(time.Millisecond), twice, second, undecided, missing)
}

// counted says how often what was.
func counted(by map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprint(what, " ", by[what]))
	}
	return strings.Join(parts, ", ")
}

// chaos does harm to a pair.
type chaos struct {
	*redisPair
	load *chaosLoad
	rand *rand.Rand
	bag  []harm
	done map[string]int
	// history are the harms with their times.
	history []string
}

// harm is one way to do it.
type harm struct {
	name string
	do   func(c *chaos, t testing.TB)
}

// harms are all of them. Each leaves both servers running, and the relays whole.
func harmsOf() []harm {
	return []harm{
		{"pause", func(c *chaos, t testing.TB) {
			what := []string{"ALL", "WRITE"}[c.rand.IntN(2)]
			_, _ = c.one().try(time.Second, fmt.Sprintf("CLIENT PAUSE %d %s", c.between(50, 1500).Milliseconds(), what))
		}},
		{"stop the master", func(c *chaos, t testing.TB) { c.freeze(t, c.leader(), c.between(50, 3000)) }},
		{"stop the replica", func(c *chaos, t testing.TB) { c.freeze(t, 1-c.leader(), c.between(50, 2000)) }},
		{"kill the master", func(c *chaos, t testing.TB) { c.killed(t, c.leader()) }},
		{"kill the replica", func(c *chaos, t testing.TB) { c.killed(t, 1-c.leader()) }},
		{"fail over", func(c *chaos, t testing.TB) { c.failOver(t) }},
		{"switch", func(c *chaos, t testing.TB) {
			_, _ = c.sentinels[c.rand.IntN(3)].try(time.Second, "SENTINEL FAILOVER "+pairName) // refused while one is under way
		}},
		{"drop replies", func(c *chaos, t testing.TB) { c.spoil(30, 700, func(h *lossy.Faults) { h.DropReplies = true }) }},
		{"half-open", func(c *chaos, t testing.TB) {
			c.spoil(30, 700, func(h *lossy.Faults) { h.DropRequests, h.DropReplies = true, true })
		}},
		{"cut", func(c *chaos, t testing.TB) { c.relays[c.leader()].Cut() }},
		{"slow replies", func(c *chaos, t testing.TB) {
			slow := c.between(5, 150)
			c.spoil(100, 1000, func(h *lossy.Faults) { h.DelayReplies = slow })
		}},
		{"late questions", func(c *chaos, t testing.TB) {
			late := c.between(50, 1500)
			c.spoil(50, 500, func(h *lossy.Faults) { h.DelayRequests = late })
		}},
		{"forget scripts", func(c *chaos, t testing.TB) { _, _ = c.one().try(time.Second, "SCRIPT FLUSH") }},
		{"empty", func(c *chaos, t testing.TB) { _, _ = c.one().try(time.Second, "FLUSHALL") }},
	}
}

// between draws a time, in milliseconds.
func (c *chaos) between(least, most int) time.Duration {
	return time.Duration(least+c.rand.IntN(most-least)) * time.Millisecond
}

// leader is the master, or who was it.
func (c *chaos) leader() int { return max(0, c.master()) }

func (c *chaos) one() *redisServer { return c.servers[c.leader()] }

// strike does the next harm. Every kind comes before one comes again. Of four times
// it is not waited once until everything is well again.
func (c *chaos) strike(t testing.TB) {
	t.Helper()
	if len(c.bag) == 0 {
		c.bag = harmsOf()
		c.rand.Shuffle(len(c.bag), func(i, j int) { c.bag[i], c.bag[j] = c.bag[j], c.bag[i] })
	}
	h := c.bag[0]
	c.bag = c.bag[1:]
	c.done[h.name]++
	began := time.Now()
	h.do(c, t)
	c.history = append(c.history, fmt.Sprintf("%s %s to %s", h.name, began.Format(clockTime), time.Now().Format(clockTime)))
	time.Sleep(c.between(50, 800))
	if c.rand.IntN(4) > 0 {
		c.served(t)
	}
}

// freeze stops a server for a while.
func (c *chaos) freeze(t testing.TB, at int, long time.Duration) {
	t.Helper()
	c.servers[at].signal(t, syscall.SIGSTOP)
	time.Sleep(long)
	c.servers[at].signal(t, syscall.SIGCONT)
}

// killed kills a server and starts it anew: at once, or a little later. It knows
// nothing then. Where it was the master and is fast, its replica forgets all too.
func (c *chaos) killed(t testing.TB, at int) {
	t.Helper()
	c.servers[at].kill(t)
	time.Sleep(c.between(0, 600))
	c.revive(t, at)
}

// failOver kills the master, and starts it again when the other has its place.
func (c *chaos) failOver(t testing.TB) {
	t.Helper()
	at := c.leader()
	c.servers[at].kill(t)
	for deadline := time.Now().Add(15 * time.Second); c.master() == at && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	c.revive(t, at)
}

// revive starts a server that was killed, as what the sentinels take it for.
func (c *chaos) revive(t testing.TB, at int) {
	t.Helper()
	if c.master() == 1-at && c.masters(1-at) {
		c.start(t, at, 1-at)
		return
	}
	c.start(t, at, -1)
}

// spoil does harm to what is said to one of the servers, mostly the master.
func (c *chaos) spoil(least, most int, how func(*lossy.Faults)) {
	at := c.leader()
	if c.rand.IntN(4) == 0 {
		at = 1 - at
	}
	c.relays[at].Set(how)
	time.Sleep(c.between(least, most))
	c.relays[at].Clear()
}

// awaitPair waits until one of the two is the master, and the other follows.
func (c *chaos) awaitPair(t testing.TB) {
	t.Helper()
	c.await(t, "one server follows the other", func() bool {
		at := c.master()
		if at < 0 || !c.masters(at) {
			return false
		}
		reply, err := c.servers[at].try(time.Second, "INFO replication")
		return err == nil && strings.Contains(reply, "connected_slaves:1\r\n") && strings.Contains(reply, "state=online")
	})
}

// served waits until both gateways have answered with a result since.
func (c *chaos) served(t testing.TB) {
	t.Helper()
	var before [2]int64
	for i := range before {
		before[i] = c.load.served[i].Load()
	}
	c.await(t, "both gateways serve", func() bool {
		return c.load.served[0].Load() > before[0] && c.load.served[1].Load() > before[1]
	})
}

func (c *chaos) await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(recoveryTimeout); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			for i, s := range c.servers {
				reply, err := s.try(time.Second, "ROLE", "INFO replication")
				t.Logf("server %d: %.600q %v", i, reply, err)
			}
			for i, g := range c.load.gates {
				t.Logf("gateway %d: %+v", i, g.operators(t))
			}
			t.Fatalf("waited in vain until %s; done: %s", what, counted(c.done))
		}
	}
}

// stopwatch is a collector of traces that looks at nothing but how long it took to
// decide.
type stopwatch struct {
	url   string
	mu    sync.Mutex
	steps map[string][]step // by the span that they are of
	bad   int
}

type step struct {
	gate       int // the last part of the path that its gateway posts to
	name       string
	start, end time.Time
}

// span is how long decisions of one kind took. The time that their gateway was held up is not
// held against them.
type span struct {
	n, over, excused int
	longest          time.Duration
}

func (s span) String() string {
	return fmt.Sprintf("%v of %d, over %v %d (%d of them while their gateway was held up)", s.longest.Round(time.Millisecond), s.n, decisionTime, s.over, s.excused)
}

func newStopwatch(t testing.TB) *stopwatch {
	s := &stopwatch{steps: map[string][]step{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *stopwatch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gate, noGate := strconv.Atoi(path.Base(r.URL.Path))
	body, err := io.ReadAll(r.Body)
	var data wire.TracesData
	if err == nil {
		err = proto.Unmarshal(body, &data)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || noGate != nil {
		s.bad++
	}
	for _, resource := range data.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, p := range scope.Spans {
				of := string(p.ParentSpanId)
				s.steps[of] = append(s.steps[of], step{gate, p.Name, time.Unix(0, int64(p.StartTimeUnixNano)), time.Unix(0, int64(p.EndTimeUnixNano))})
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// longest are the longest decisions: of the limits, of the store until the tool is
// called, and of the log. Lost are exports that could not be read.
func (s *stopwatch) longest(t testing.TB, held *stalls, pids []int) (limits, calls, log span, lost int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, steps := range s.steps {
		slices.SortFunc(steps, func(a, b step) int { return a.start.Compare(b.start) })
		for _, p := range steps {
			if p.name == "execute" {
				break // what follows ends the call
			}
			of := map[string]*span{"identity": &limits, "rate": &limits, "store": &calls, "log": &log}[p.name]
			if of == nil {
				continue
			}
			took := p.end.Sub(p.start)
			of.n++
			of.longest = max(of.longest, took)
			if took <= decisionTime {
				continue
			}
			of.over++
			waited := held.during(pids[p.gate], p.start, p.end)
			if took-waited <= decisionTime {
				of.excused++
			}
			t.Logf("%s of gateway %d took %v from %s on, for %v of which the gateway was held up", p.name, p.gate, took, p.start.Format(clockTime), waited)
		}
	}
	return limits, calls, log, s.bad
}
