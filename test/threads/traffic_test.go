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
	way     int
	first   int // the number of its first answer; the others follow
	answers [][]call
	turns   int // which were asked for
}

// round is what happens at once, behind some time.
type round struct {
	advance time.Duration
	asked   []*asked
	then    string // restart or kill; empty: nothing
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
			a := &asked{way: r.IntN(len(unsessioned())), first: answer}
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

// deployment is a gateway that may be restarted, and what it is asked.
type deployment struct {
	t      *testing.T
	rules  []rule
	config func() *configs.Config
	gate   *gate
	now    atomic.Int64 // of the ledger, where it is not the machine's
	count  atomic.Int64 // a clock that counts
	mu     sync.Mutex
	ways   []way
	asked  map[int]*asked
	times  map[int]times
	onDisk bool
	killed []*gate // they end their calls, of which nobody hears
}

// gate is a gateway.
type gate struct {
	*office
	dir     string
	runtime *app.Runtime
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
func (w *deployment) open(dir string) *gate {
	w.t.Helper()
	g := &gate{dir: dir, office: &office{t: w.t}}
	c := w.config()
	if dir == "" {
		ledger := store.NewThreads(func() time.Time { return time.Unix(0, w.now.Load()) }, store.ThreadBounds{})
		g.Fixture = facetest.New(w.t, facetest.Options{
			Config: c,
			Engine: facetest.ToolFunc(func(c tool.Call) (tool.Result, error) { return tools{}.Run(context.Background(), c) }),
			Change: func(g *gateway.Config, d *calls.Deps) {
				g.Identity, g.Limits, d.Ledger, d.RecordContent = byName{}, c.Limits, ledger, audit.Arguments
			},
		})
		terms, _, err := g.Executor.Config().Terms()
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
	if w.onDisk {
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
func (w *deployment) restart(kill bool) {
	old := w.gate
	dir := old.dir
	if kill {
		dir = w.t.TempDir()
		copyFolder(w.t, old.dir, dir)
		w.killed = append(w.killed, old)
	} else if err := old.runtime.Close(); err != nil {
		w.t.Error(err)
	}
	w.gate = w.open(dir)
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

// log is what the gateway has recorded.
func (w *deployment) log() (all []audit.Record) {
	if w.gate.runtime == nil {
		return w.gate.Journal.Records()
	}
	files, err := audit.Files(w.gate.dir)
	if err == nil {
		_, err = audit.Read(func(r audit.Record) error {
			all = append(all, r)
			return nil
		}, files...)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// run tells the traffic to a deployment, and checks what its logs say.
func run(t *testing.T, kept string, rules []rule, rounds []round) error {
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
	w.config = func() *configs.Config {
		return facetest.Config(t, map[string]string{
			"callgate.yaml": main, "tools.yaml": trafficTools, "approvals.yaml": "rules: {one: {}}\nwait: 0s\n", "policy.csv": strings.Join(rows, "\n") + "\n",
			"hooks.yaml": "hooks: [{name: no, at: [call], patterns: [{name: no, regex: FORBIDDEN}]}]\n", "limits.yaml": "tools: {web.fetch: {rate: 1/h, burst: 8}}\n",
			"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [.]}}}}\n",
		})
	}
	dir := ""
	if kept == "file" {
		dir, w.onDisk = t.TempDir(), true
	}
	w.gate = w.open(dir)
	for _, one := range rounds {
		w.now.Add(int64(one.advance))
		var all sync.WaitGroup
		for _, a := range one.asked {
			g := w.gate
			all.Go(func() { w.send(g, a) })
		}
		if one.then == "kill" {
			time.Sleep(time.Millisecond)
			w.restart(true)
		}
		all.Wait()
		for _, a := range one.asked {
			for i := range a.answers {
				if at, ok := w.times[a.first+i]; ok {
					at.killed = one.then == "kill"
					w.times[a.first+i] = at
				}
			}
		}
		if one.then == "restart" {
			w.restart(false)
		}
	}
	if err := w.gate.Executor.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.gate.runtime != nil {
		if err := w.gate.runtime.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range w.killed {
		_ = g.runtime.Close() // what it kept is not there any more
	}
	withheld := map[string]string{}
	for _, a := range w.asked {
		for _, c := range a.calls {
			withheld[fmt.Sprintf("%x", sha256.Sum256([]byte(c.arguments)))] = c.arguments
		}
	}
	b, err := read(rules, labelsOf, withheld, len(w.killed) > 0, w.log())
	if err == nil {
		err = b.check(w.times)
	}
	if err == nil {
		t.Logf("%d calls are judged", b.judged)
	} else {
		var trace []string
		for _, r := range w.log() {
			if r.Tool != "" {
				trace = append(trace, fmt.Sprintf("%s %s %s by %s in %s: %s %s %s turn %d, %d adds %q undo %q saw %q", r.Event, r.Tool, r.Arguments, r.Principal, r.Thread, r.Mode, r.Code, r.Outcome, r.Turn, r.CallerTurn, r.Adds, r.Undo, r.Saw))
			}
		}
		return fmt.Errorf("%w\nrows:\n%s\nlog:\n%s", err, strings.Join(rows, "\n"), strings.Join(trace, "\n"))
	}
	return nil
}

// TestReference draws policies and traffic, and says of every decision in the logs what it must have been and what it must have
// seen. CALLGATE_REFERENCE is how many seeds it draws of each place where threads are kept, CALLGATE_REFERENCE_SEED the first.
func TestReference(t *testing.T) {
	seeds, first := 10, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("CALLGATE_REFERENCE")); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("CALLGATE_REFERENCE_SEED"), 10, 64); err == nil {
		first = n
	}
	for _, kept := range []string{"clock", "file"} {
		t.Run(kept, func(t *testing.T) {
			for seed := first; seed < first+uint64(seeds); seed++ {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					draw := rand.New(rand.NewPCG(seed, 0))
					rules := randomRules(draw)
					rounds := randomRounds(draw, kept)
					err := run(t, kept, rules, rounds)
					if err == nil {
						return
					}
					for i := len(rounds) - 1; i >= 0; i-- { // what can be left out
						if less := slices.Delete(slices.Clone(rounds), i, i+1); len(less) > 0 {
							if e := run(t, kept, rules, less); e != nil {
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
