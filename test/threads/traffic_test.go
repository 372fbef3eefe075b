package threads_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

const trafficTools = `tools:
  - {name: pay.refund, labels: [], run: {type: demo}, input_schema: {type: object, required: [n, amount, currency], properties: {n: {type: integer}, amount: {type: number, minimum: 0}, currency: {type: string}}}}
  - {name: pay.charge, labels: [], run: {type: demo}, input_schema: {type: object, required: [n, amount, currency], properties: {n: {type: integer}, amount: {type: number, minimum: 0}, currency: {type: string}}}}
  - {name: files.read, labels: [], run: {type: demo}, input_schema: {type: object, required: [n, path], properties: {n: {type: integer}, path: {type: string}}}}
  - {name: files.write, labels: [], run: {type: demo}, input_schema: {type: object, required: [n, path], properties: {n: {type: integer}, path: {type: string}}}}
  - {name: web.fetch, labels: [{label: untrusted, unless_hosts: [docs.example]}], run: {type: demo}, input_schema: {type: object, required: [n], properties: {n: {type: integer}, url: {type: string}}}}
  - {name: crm.read, labels: [customer], run: {type: demo}, input_schema: {type: object, required: [n], properties: {n: {type: integer}}}}
  - {name: note.take, run: {type: demo}, input_schema: {type: object, required: [n], properties: {n: {type: integer}}}}
  - {name: clock.now, labels: [], run: {type: demo}, input_schema: {type: object, required: [n], properties: {n: {type: integer}}}}
`

// labelsOf are those that a call of one of these tools adds.
func labelsOf(tool string, args map[string]any) []string {
	switch {
	case tool == "crm.read":
		return []string{"customer"}
	case tool == "note.take", tool == "web.fetch" && args["url"] != "https://docs.example/a":
		return []string{"untrusted"}
	}
	return nil
}

// pick is one of some things.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomTerm is one that a condition about a tool may have.
func randomTerm(r *rand.Rand, tool string) term {
	t := term{caller: r.IntN(4) == 0, member: pick(r, "calls", "calls", "sum", "results"), tool: pick(r, "pay.refund", "pay.*", "files.read", "files.*", "web.fetch", "crm.read", "*")}
	if t.caller && t.member == "results" {
		t.member = "calls"
	}
	if t.member == "sum" {
		t.tool, t.of = pick(r, "pay.refund", "pay.charge", "pay.*"), "amount"
	}
	group, _, _ := strings.Cut(t.tool, ".")
	if key := map[string]string{"pay": "currency", "files": "path"}[group]; key != "" && r.IntN(2) == 0 {
		if t.key = key; !strings.HasPrefix(tool, group) || r.IntN(4) == 0 {
			t.value = map[string]string{"currency": "EUR", "path": "a"}[key]
		}
	}
	if t.caller || r.IntN(3) == 0 {
		t.window = pick(r, "1m", "30m", "1h", "24h", "7d")
		t.windowLength = map[string]time.Duration{"1m": time.Minute, "30m": 30 * time.Minute, "1h": time.Hour, "24h": 24 * time.Hour, "7d": 168 * time.Hour}[t.window]
	}
	return t
}

func randomCondition(r *rand.Rand, tool string, depth int) *condition {
	switch kind := r.IntN(10); {
	case kind < 3 && depth < 2:
		return &condition{op: pick(r, "&&", "||"), left: randomCondition(r, tool, depth+1), right: randomCondition(r, tool, depth+1)}
	case kind == 3 && depth < 2:
		return &condition{op: "!", left: randomCondition(r, tool, depth+1)}
	case kind < 6:
		return &condition{op: "in", label: pick(r, "untrusted", "customer"), term: term{member: "labels"}}
	}
	c := &condition{op: pick(r, "<", "<=", "==", "!=", ">=", ">", "<=", ">"), term: randomTerm(r, tool), bound: strconv.Itoa(r.IntN(5))}
	if c.term.member == "sum" {
		c.bound = pick(r, "2", "5", "10.5", "20", "0.25")
	}
	return c
}

func randomRules(r *rand.Rand) []rule {
	var rules []rule
	for range 1 + r.IntN(6) {
		about := pick(r, "pay.refund", "pay.refund", "pay.*", "files.write", "files.write", "files.*", "web.fetch", "clock.now", "*")
		rules = append(rules, rule{about, randomCondition(r, about, 0), pick(r, "deny", "deny", "allow", "ask:one")})
	}
	if r.IntN(4) > 0 {
		rules = append(rules, rule{tool: "*", effect: "allow"})
	} else {
		rules = append(rules, rule{"*", randomCondition(r, "*", 0), "allow"}, rule{tool: "files.*", effect: "allow"}, rule{tool: "web.fetch", effect: "allow"})
	}
	return rules
}

// asked is a request of the traffic: what its model answers, one answer after the other.
type asked struct {
	step
	gate, way int
	first     int // the number of its first answer; the others follow
	answers   [][]call
	turns     int // which were asked for
}

// round is what happens at once, behind some time.
type round struct {
	advance time.Duration
	asked   []*asked
	then    string // restart or kill, of the gateway of the first request; empty: nothing
}

// unsessioned are the ways by which a thread has the name that a request gives it, and a call ends with its request.
func unsessioned() []way {
	return slices.DeleteFunc(ways(), func(w way) bool { return w.session || w.asks || w.run != "" })
}

// randomRounds is the traffic of a seed.
func randomRounds(r *rand.Rand, kept string) (all []round) {
	answer := 0
	for range 4 + r.IntN(16) {
		var one round
		if r.IntN(4) == 0 {
			one.advance = pick(r, time.Second, 31*time.Second, time.Minute, 61*time.Second, 20*time.Minute, 61*time.Minute, 13*time.Hour)
		}
		for range pick(r, 1, 1, 1, 2, 3) {
			a := &asked{way: r.IntN(len(unsessioned())), gate: r.IntN(2), first: answer}
			a.by, a.thread = pick(r, "ada", "ada", "ada", "bob", "one"), pick(r, "s", "s", "s", "t")
			switch r.IntN(15) {
			case 0, 1, 2:
				a.thread, a.ancestors = a.thread+".sub", a.thread
			case 3:
				a.thread = ""
			}
			w := unsessioned()[a.way]
			answers := 1
			if !w.single && !w.handsOver {
				answers = 1 + r.IntN(2)
			}
			for range answers {
				var made []call
				count := 1
				if !w.single {
					count = pick(r, 1, 1, 2, 3)
				}
				for place := range count {
					made = append(made, randomCall(r, answer*10+place))
				}
				a.answers = append(a.answers, made)
				a.calls = append(a.calls, made...)
				answer++
			}
			one.asked = append(one.asked, a)
		}
		if kept != "clock" && r.IntN(6) == 0 {
			one.then = pick(r, "restart", "kill")
		}
		all = append(all, one)
	}
	return all
}

func randomCall(r *rand.Rand, n int) call {
	name := pick(r, "pay.refund", "pay.refund", "pay.charge", "files.read", "files.write", "files.write", "web.fetch", "crm.read", "note.take", "clock.now")
	args := fmt.Sprintf(`"n":%d`, n)
	group, _, _ := strings.Cut(name, ".")
	switch left := r.IntN(25) == 0; {
	case left && group != "crm": // a member is missing
	case group == "pay":
		args += fmt.Sprintf(`,"amount":%s,"currency":%q`, pick(r, "1", "1", "2", "0", "0.5", "10.5", "0.000001", "0.0000005", "3e0", "9e9"), pick(r, "EUR", "EUR", "USD"))
		if r.IntN(2) == 0 {
			args = strings.Replace(args, "9e9", "1", 1)
		}
	case group == "files":
		args += fmt.Sprintf(`,"path":%q`, pick(r, "a", "a", "b", "FORBIDDEN"))
	case name == "web.fetch":
		args += fmt.Sprintf(`,"url":%q`, pick(r, "https://docs.example/a", "https://a.example/"))
	}
	return call{tool: name, arguments: "{" + args + "}"}
}

// deployment is one or two gateways, and what they are asked.
type deployment struct {
	t      *testing.T
	rules  []rule
	config func(redis string) *configs.Config
	gates  []*gate
	timed  bool // the ledger is in memory, and has the time of now
	now    atomic.Int64
	count  atomic.Int64 // a clock that counts
	mu     sync.Mutex
	ways   []way
	asked  map[int]*asked
	times  map[int]times
	killed []*gate // they end their calls, of which nobody hears
}

// gate is a gateway.
type gate struct {
	*office
	dir     string
	runtime *app.Runtime
	ready   func() bool
	proxy   *lossy.Proxy
}

// tools runs the calls: some fail, and some do not end in time.
type tools struct{}

var numbered = regexp.MustCompile(`"n":(\d+)`)

func (tools) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	n, _ := strconv.Atoi(numbered.FindStringSubmatch(string(c.Arguments))[1])
	switch n / 10 % 11 {
	case 3:
		return tool.Result{}, refusal.New(refusal.ToolFailed, "It failed.")
	case 5:
		return tool.Result{}, refusal.New(refusal.ToolTimeout, "It took too long.")
	case 7:
		return tool.Result{}, fmt.Errorf("cut off")
	case 9:
		time.Sleep(time.Duration(n%3) * time.Millisecond)
	}
	return tool.Result{Body: []byte(`{}`), JSON: true}, nil
}

// open opens a gateway whose data is in dir, or, where dir is empty, one in memory by the clock of the deployment.
func (w *deployment) open(dir, redis string) *gate {
	w.t.Helper()
	g := &gate{dir: dir, office: &office{t: w.t}}
	if redis != "" {
		g.proxy = lossy.New(w.t, redis)
		redis = fmt.Sprintf("CALLGATE_TEST_REDIS_%d", g.proxy.Port())
		w.t.Setenv(redis, "redis://"+g.proxy.Address())
	}
	c := w.config(redis)
	if dir == "" {
		ledger := store.NewThreads(func() time.Time { return time.Unix(0, w.now.Load()) }, store.ThreadBounds{})
		g.Fixture = facetest.New(w.t, facetest.Options{
			Config: c,
			Engine: facetest.ToolFunc(func(c tool.Call) (tool.Result, error) { return tools{}.Run(context.Background(), c) }),
			Change: func(g *gateway.Config, d *calls.Deps) {
				g.Identity, g.Limits, d.Ledger, d.RecordContent = byName{}, c.Limits, ledger, audit.Arguments
			},
		})
		terms, _, err := g.Executor.Kernel.Config().Terms()
		if err == nil {
			_, err = ledger.KeepTerms(w.t.Context(), terms, nil)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	} else {
		c.DataDir = dir
		r, err := app.Open(w.t.Context(), c, byName{}, app.Options{Logger: slog.New(slog.DiscardHandler), Wait: time.Minute, ChangeDeps: func(d calls.Deps) calls.Deps {
			d.Engine, d.IdleWorkers = tools{}, 0
			g.ready = func() bool { return d.Secret() != nil && g.knowsStops() }
			return d
		}})
		if err != nil {
			w.t.Fatal(err)
		}
		g.runtime = r
		g.Fixture = &facetest.Fixture{Server: facetest.NewServer(r.Executor), Executor: r.Executor, Logger: slog.New(slog.DiscardHandler)}
	}
	g.mount(w.answer)
	return g
}

// streams finds requests of a stream.
var streams = regexp.MustCompile(`"stream":\s*true`)

// knowsStops reports whether the gateway has read what operators have stopped: until then it refuses everything.
func (g *gate) knowsStops() bool {
	caller, err := g.Executor.Kernel.AdmitQuery(g.t.Context(), gateway.Request{Credential: "ada", Subject: gateway.Subject{Agent: "Analyst"}})
	if err != nil {
		g.t.Fatal(err)
	}
	return !caller.StopsTool("clock.now")
}

// ready waits until all gateways know the past of threads and the stops, and so can store calls: replicas wait for each other.
func (w *deployment) ready() {
	for _, g := range w.gates {
		for g.ready != nil && !g.ready() {
			time.Sleep(time.Millisecond)
		}
	}
}

var marked = regexp.MustCompile(`#(\d+)#`)

// answer is the model.
func (w *deployment) answer(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id, _ := strconv.Atoi(string(marked.FindSubmatch(body)[1]))
	w.mu.Lock()
	a := w.asked[id]
	var made []call
	if a.turns < len(a.answers) {
		made = a.answers[a.turns]
		w.begin(a.first+a.turns, len(made))
	}
	if a.turns > 0 && a.turns <= len(a.answers) {
		w.end(a.first + a.turns - 1)
	}
	a.turns++
	w.mu.Unlock()
	write(rw, r.URL.Path, streams.Match(body), made)
}

func (w *deployment) begin(answer, calls int) {
	w.times[answer] = times{begun: int(w.count.Add(1)), ended: 1 << 40, now: w.clock(), calls: calls}
}

func (w *deployment) end(answer int) {
	if at, ok := w.times[answer]; ok && at.ended == 1<<40 {
		at.ended = int(w.count.Add(1))
		w.times[answer] = at
	}
}

func (w *deployment) clock() time.Time {
	if !w.timed {
		return time.Time{}
	}
	return time.Unix(0, w.now.Load())
}

// send sends a request to a gateway, and waits for the answer.
func (w *deployment) send(g *gate, a *asked) {
	w.mu.Lock()
	a.turns, a.asks = 0, fmt.Sprintf("#%d#", a.first)
	w.asked[a.first] = a
	if w.ways[a.way].single {
		w.begin(a.first, 1)
	}
	w.mu.Unlock()
	w.ways[a.way].send(g.office, &a.step)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range a.answers {
		w.end(a.first + i)
	}
}

// restart ends a gateway and starts it again, or kills it while the requests of a round are on their way: what its folder has at
// that moment, and nothing else, is what it starts from.
func (w *deployment) restart(i int, kill bool, redis string) {
	old := w.gates[i]
	dir := old.dir
	if kill {
		if old.proxy != nil {
			old.proxy.Retarget("127.0.0.1:1")
			old.proxy.Cut()
		}
		dir = w.t.TempDir()
		copyFolder(w.t, old.dir, dir)
	}
	if kill {
		w.killed = append(w.killed, old)
	} else if err := old.runtime.Close(); err != nil {
		w.t.Error(err)
	}
	w.gates[i] = w.open(dir, redis)
	w.ready()
}

// copyFolder copies the files of a data folder, the snapshots first, so that none knows more than the log.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	var names []string
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(names, func(a, b string) int { return strings.Compare(filepath.Ext(b), filepath.Ext(a)) })
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			continue // it is a file for a moment
		}
		rel, _ := filepath.Rel(from, name)
		target := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// logs are those of all gateways.
func (w *deployment) logs() (all [][]audit.Record) {
	for _, g := range w.gates {
		if g.runtime == nil {
			all = append(all, g.Journal.Records())
			continue
		}
		files, err := audit.Files(g.dir)
		if err != nil {
			w.t.Fatal(err)
		}
		var log []audit.Record
		if _, err := audit.Read(func(r audit.Record) error {
			log = append(log, r)
			return nil
		}, files...); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, log)
	}
	return all
}

// unsure says since when, by the clock that counts, a thread or a caller may have changes in Redis whose records are lost: since
// a call was cut off by a kill that has no decision in the logs.
func (w *deployment) unsure(redis bool) map[string]int {
	since := map[string]int{}
	if !redis {
		return since // the logs are what is known
	}
	decided := map[string]bool{}
	for _, log := range w.logs() {
		for _, r := range log {
			decided[r.ArgumentsSHA256] = true
		}
	}
	for _, a := range w.asked {
		for i, answer := range a.answers {
			at := w.times[a.first+i]
			if !at.killed || !slices.ContainsFunc(answer, func(c call) bool { return !decided[fmt.Sprintf("%x", sha256.Sum256([]byte(c.arguments)))] }) {
				continue
			}
			m := &made{Record: audit.Record{Principal: a.by, Thread: a.thread}}
			for _, list := range []string{m.thread(), m.caller()} {
				if before, known := since[list]; !known || at.begun < before {
					since[list] = at.begun
				}
			}
		}
	}
	return since
}

// run tells the traffic to a deployment, and checks what its logs say.
func run(t *testing.T, kept string, redis string, rules []rule, rounds []round) error {
	t.Helper()
	var rows []string
	for _, r := range rules {
		row := r.String()
		if r.when != nil {
			row = strings.Replace(row, `"`+r.when.source()+`"`, `"`+strings.ReplaceAll(r.when.source(), `"`, `""`)+`"`, 1)
		}
		rows = append(rows, row)
	}
	w := &deployment{t: t, rules: rules, ways: unsessioned(), asked: map[int]*asked{}, times: map[int]times{}}
	w.now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	main := "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\nhooks: hooks.yaml\naudit: {record: arguments}\nthreads: {labels: [untrusted, customer], default_labels: [untrusted]}\n"
	prefix, limits := redistest.Prefix(), ""
	if redis != "" {
		limits = "replicas: 2\n"
	}
	w.config = func(redis string) *configs.Config {
		main := main
		if redis != "" {
			main += "redis: {url: \"env:" + redis + "\", prefix: \"" + prefix + "\"}\nstore: {kind: redis, replicas: 2}\n"
		}
		return facetest.Config(t, map[string]string{
			"callgate.yaml": main, "tools.yaml": trafficTools, "approvals.yaml": "rules: {one: {}}\nwait: 0s\n", "policy.csv": strings.Join(rows, "\n") + "\n",
			"hooks.yaml": "hooks: [{name: no, at: [call], patterns: [{name: no, regex: FORBIDDEN}]}]\n", "limits.yaml": limits + "tools: {web.fetch: {rate: 1/h, burst: 8}}\n",
			"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [.]}}}}\n",
		})
	}
	switch kept {
	case "clock":
		w.timed = true
		w.gates = []*gate{w.open("", "")}
	case "file":
		w.gates = []*gate{w.open(t.TempDir(), "")}
	default:
		w.gates = []*gate{w.open(t.TempDir(), redis), w.open(t.TempDir(), redis)}
	}
	w.ready()
	for _, one := range rounds {
		w.now.Add(int64(one.advance))
		var all sync.WaitGroup
		for _, a := range one.asked {
			g := w.gates[a.gate%len(w.gates)]
			all.Go(func() { w.send(g, a) })
		}
		if one.then == "kill" {
			time.Sleep(time.Millisecond)
			w.restart(one.asked[0].gate%len(w.gates), true, redis)
		}
		all.Wait()
		for _, a := range one.asked {
			for i := range a.answers {
				if at, ok := w.times[a.first+i]; ok {
					at.killed = one.then == "kill" && a.gate%len(w.gates) == one.asked[0].gate%len(w.gates)
					w.times[a.first+i] = at
				}
			}
		}
		if one.then == "restart" {
			w.restart(one.asked[0].gate%len(w.gates), false, redis)
		}
	}
	for _, g := range w.gates {
		if err := g.Executor.Kernel.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g.runtime != nil {
			if err := g.runtime.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, g := range w.killed {
		if g.proxy != nil { // it ends nothing without its Redis
			g.proxy.Retarget(redis)
		}
		_ = g.runtime.Close() // what it kept is not there any more
	}
	withheld := map[string]string{}
	for _, a := range w.asked {
		for _, c := range a.calls {
			withheld[fmt.Sprintf("%x", sha256.Sum256([]byte(c.arguments)))] = c.arguments
		}
	}
	b, err := read(rules, labelsOf, withheld, len(w.killed) > 0, w.unsure(redis != ""), w.logs()...)
	if err == nil {
		err = b.check(w.times)
	}
	if err == nil {
		t.Logf("%d calls are judged, %d are skipped", b.judged, b.skipped)
	} else {
		var trace []string
		for _, log := range w.logs() {
			for _, r := range log {
				if r.Tool != "" {
					trace = append(trace, fmt.Sprintf("%s %s %s by %s in %s: %s %s %s turn %d, %d adds %q undo %q saw %q", r.Event, r.Tool, r.Arguments, r.Principal, r.Thread, r.Mode, r.Code, r.Outcome, r.Turn, r.CallerTurn, r.Adds, r.Undo, r.Saw))
				}
			}
		}
		return fmt.Errorf("%w\nrows:\n%s\nlog:\n%s", err, strings.Join(rows, "\n"), strings.Join(trace, "\n"))
	}
	return nil
}

// TestReference draws policies and traffic, and says of every decision in the logs what it must have been and what it must have
// seen. CALLGATE_REFERENCE is how many seeds it draws of each place where threads are kept, CALLGATE_REFERENCE_SEED the first.
func TestReference(t *testing.T) {
	count := map[string]int{"clock": 10, "file": 10, "redis": 5}
	extra := map[string][]uint64{"clock": {111}, "redis": {880019}} // a call at the edge of a window; a hook, where another gateway has changed the past
	first := uint64(1)
	if n, err := strconv.Atoi(os.Getenv("CALLGATE_REFERENCE")); err == nil {
		count, extra = map[string]int{"clock": n, "file": n, "redis": n}, nil
	}
	if n, err := strconv.ParseUint(os.Getenv("CALLGATE_REFERENCE_SEED"), 10, 64); err == nil {
		first = n
	}
	for _, kept := range []string{"clock", "file", "redis"} {
		t.Run(kept, func(t *testing.T) {
			address := ""
			if kept == "redis" {
				redistest.Require(t)
				if !app.Has(configs.RedisLimiter) {
					t.Skipf("skipped: this program was built without %s", configs.RedisLimiter)
				}
				address = redistest.Start(t).Address()
			}
			seeds := extra[kept]
			for i := range count[kept] {
				seeds = append(seeds, first+uint64(i))
			}
			for _, seed := range seeds {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					draw := rand.New(rand.NewPCG(seed, 0))
					rules := randomRules(draw)
					rounds := randomRounds(draw, kept)
					err := run(t, kept, address, rules, rounds)
					if err == nil {
						return
					}
					for i := len(rounds) - 1; i >= 0; i-- { // what can be left out
						if less := slices.Delete(slices.Clone(rounds), i, i+1); len(less) > 0 {
							if e := run(t, kept, address, rules, less); e != nil {
								rounds, err = less, e
							}
						}
					}
					t.Fatalf("seed %d, %d rounds: %v", seed, len(rounds), err)
				})
			}
		})
	}
}
