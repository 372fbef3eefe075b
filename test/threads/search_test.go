package threads_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/maphash"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/testkit/detector"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// The search takes requests of one thread through the kernel at one gateway or two, in every order of what they read,
// commit and write down, with tools that run in between. Gateways crash and start anew, commits arrive late or get no reply,
// and the store that they share loses what it had. Judgements, transitions and folds are those of the gateway; the back end, the log
// and what runs a call are the search's.

var searchAll = flag.Bool("search", false, "search all states, with more faults at once")

const searchTools = `tools:
  - {name: pay, labels: [], run: {type: demo}, input_schema: {type: object}}
  - {name: fetch, labels: [untrusted], run: {type: demo}, input_schema: {type: object}}
  - {name: write, labels: [], run: {type: demo}, input_schema: {type: object}}
  - {name: read, labels: [], run: {type: demo}, input_schema: {type: object}}
  - {name: publish, labels: [], run: {type: demo}, input_schema: {type: object}}
`

// mostPays is the bound of searchPolicy.
const mostPays = 2

const searchPolicy = `p, Analyst, *, pay, "thread.calls('pay') <= 2 && caller.calls('pay', '1h') <= 2", allow
p, Analyst, *, write, "'untrusted' in thread.labels", deny
p, Analyst, *, publish, thread.results('read') > 0, allow
p, Analyst, *, fetch, , allow
p, Analyst, *, write, , allow
p, Analyst, *, read, , allow
`

var (
	payTerm    = history.Term{Tool: "pay"}
	resultTerm = history.Term{Kind: history.Results, Tool: "read"}
)

// machine has what all worlds of a search share: kernels, which keep nothing of a call behind it.
type machine struct {
	*world  // that is looked at
	kernels []*gateway.Kernel
	doors   []gateway.Door
	terms   *history.Terms
}

func newMachine(t *testing.T, gateways int) *machine {
	t.Helper()
	c := facetest.Config(t, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\nthreads: {labels: [untrusted], default_labels: [untrusted]}\n",
		"tools.yaml":    searchTools, "policy.csv": searchPolicy,
	})
	m := &machine{world: &world{}}
	for i := range gateways {
		config := &gateway.Config{
			Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: &ratelimit.Limits{Replicas: 1},
			Defaults: gateway.Subject(c.Defaults), Threads: gateway.Threads{DefaultLabels: c.Threads.DefaultLabels},
		}
		now := func() time.Time { return m.now() }
		k, door, err := gateway.NewWithDoor(config, gateway.Deps{
			Limiter: ratelimit.NewLocal(now), Journal: log{m, i}, Ledger: ledger{m, i}, Now: now,
			NewID: func() string { m.current.ids++; return fmt.Sprint("call_", m.current.name, m.current.ids) },
		})
		if err != nil {
			t.Fatal(err)
		}
		m.kernels, m.doors = append(m.kernels, k), append(m.doors, door)
		if m.terms, _, err = config.Terms(); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// world is one order of what happens, as far as it has come.
type world struct {
	m       *machine
	engines []*store.Engine
	records map[store.Key]store.Record
	before  []map[store.Key]store.Record // earlier ones, to which a store may fall back
	epoch   int
	ticks   int // commits and losses: each takes a microsecond
	rev     store.Rev
	logs    [][]audit.Record
	known   []map[store.Key]store.Record // what each engine has read or written last
	made    [][]store.ThreadFact         // what each gateway has changed since it started: its log may not say so yet
	saved   []byte                       // the snapshot of threads that are in memory
	late    []transit
	actors  []*actor
	current *actor
	yield   chan struct{}

	local                                          bool // one gateway, in whose memory the threads are
	losses, wipes, crashes, logFaults, offs, fails int  // that are left
	faulty                                         bool // a reply, a process or a state was lost
	least                                          int  // payments, of which so many run at least where nothing is lost
	attempts, dispatched, ended, delivered         map[string]int
	off                                            map[string]bool // calls that were called off
	wrong                                          string

	shortcut string
}

// transit is a commit that is on its way.
type transit struct {
	commit store.Commit
	epoch  int
}

// actor is a request, or a gateway that saves its threads.
type actor struct {
	name    string
	node    int
	tools   []string // of the calls of one answer
	do      func(*actor)
	resume  chan string
	at      string // empty: it has ended; "start": it has not begun
	dead    bool
	ids     int
	viewed  uint64 // what it has judged by, and read what it has found since
	read    uint64
	pending *store.Commit
	epoch   int  // in which it has read last
	reserve bool // it is at its reservation
	warned  bool // whose label had been delivered when that read
}

func (w *world) breaks(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

func (w *world) now() time.Time {
	return time.UnixMicro(1_700_000_000_000_000 + int64(w.ticks)).UTC()
}

// gate waits until the actor is let go on, and returns how. What is not an actor does not wait.
func (w *world) gate(at string) string {
	a := w.current
	if a == nil {
		return at
	}
	switch {
	case a.dead:
		runtime.Goexit()
	case a.at == "start":
		a.at = "begun"
		return at
	}
	a.at = at
	w.yield <- struct{}{}
	how := <-a.resume
	if a.dead {
		runtime.Goexit()
	}
	a.finds(how)
	return how
}

// finds notes something on which it depends what the actor does next.
func (a *actor) finds(what any) { a.read = maphash.Comparable(seed, [2]any{a.read, what}) }

func (w *world) add(a *actor) {
	a.name, a.at, a.resume = fmt.Sprint(len(w.actors)), "start", make(chan string)
	w.actors = append(w.actors, a)
}

// lets lets an actor go on until its next gate.
func (w *world) lets(a *actor, how string) {
	if a.at == "start" {
		go func() {
			defer func() { a.at = ""; w.yield <- struct{}{} }()
			<-a.resume
			if !a.dead {
				a.do(a)
			}
		}()
	}
	w.current = a
	a.resume <- how
	<-w.yield
	w.current = nil
}

// kills ends an actor where it is.
func (w *world) kills(a *actor) {
	if a.at != "" && a.at != "start" {
		a.dead = true
		w.lets(a, "")
	}
	a.at = ""
}

// request is an answer of a model, which makes calls.
func (w *world) request(node int, tools ...string) {
	w.add(&actor{node: node, tools: tools, do: w.judge})
}

var errCalledOff = refusal.New(refusal.Overloaded, "Not now.")

func (w *world) judge(a *actor) {
	ctx := context.Background()
	r := gateway.Request{Thread: "t"}
	for _, tool := range a.tools {
		r.Inputs = append(r.Inputs, gateway.Input{Native: &gateway.NativeCall{Name: tool, Arguments: []byte("{}")}})
	}
	d := w.m.kernels[a.node].Judge(ctx, r)
	defer d.Release()
	if refused := d.Refusal(); refused != nil {
		return
	}
	if a.read = 0; a.warned && slices.Contains(a.tools, "write") {
		w.breaks("%s passes behind the delivery of what labels its thread", a.name)
	}
	approved, refused := w.m.doors[a.node].Approve(d, gateway.ModeCall)
	if refused != nil {
		w.breaks("not approved: %v", refused)
		return
	}
	if w.gate("dispatch") == "off" {
		w.offs--
		for _, one := range approved {
			w.off[one.Call().ID()] = true
			one.Call().RecordNotRun(errCalledOff)
		}
		return
	}
	for i, one := range approved {
		tool, c := a.tools[i], one.Call()
		if w.dispatched[tool]++; w.dispatched["pay"] > mostPays {
			w.breaks("%d payments run", w.dispatched["pay"])
		}
		outcome := c.Outcome(audit.ToolCall)
		outcome.Outcome = audit.Result
		if w.shortcut == "result before its end" {
			_ = c.AddResult(ctx, outcome.Outcome, &store.Ending{}, nil)
		}
		if tool != "pay" && w.gate("end") == "fail" {
			w.fails--
			outcome.Outcome = audit.Failed
		} else {
			w.ended[tool]++
		}
		var ending store.Ending
		if err := c.AddResult(ctx, outcome.Outcome, &ending, nil); err != nil {
			w.breaks("the result of %s is not kept: %v", a.name, err)
		}
		c.RecordResult(&outcome, ending.Counted)
		if w.logs[a.node] = append(w.logs[a.node], outcome); outcome.Outcome != audit.Result {
			continue
		}
		if tool != "fetch" {
			continue
		}
		w.gate("deliver")
		w.delivered[tool]++
		if w.shortcut == "label after its delivery" {
			if _, err := w.engines[a.node].EndResult(ctx, keysOfThread, history.Adds{Labels: []string{"untrusted"}}); err != nil {
				w.breaks("%v", err)
			}
		}
	}
}

var keysOfThread = store.KeysOf(store.Scope{Workspace: "acme", Project: "alpha"}, "thread t")

// save is a gateway that saves the threads in its memory, as a start needs them.
func (w *world) save(a *actor) {
	seq := uint64(len(w.logs[0]))
	w.gate("save")
	b, err := w.engines[0].EncodeThreads(context.Background(), seq, "")
	if err != nil {
		w.breaks("%v", err)
	}
	w.gate("replace")
	w.saved = b
}

// log is the audit log of a gateway.
type log struct {
	*machine
	node int
}

func (l log) Append(_ context.Context, r audit.Record) error {
	at := "log"
	if r.Event == audit.Ending {
		at = "log the end"
	}
	if r.Verdict == audit.ToolCall && l.gate(at) == "no log" {
		l.logFaults--
		return errors.New("no log")
	}
	l.logs[l.node] = append(l.logs[l.node], r)
	return nil
}

// ledger is that of a gateway.
type ledger struct {
	*machine
	node int
}

func (l ledger) Past(ctx context.Context, of store.ThreadKeys, latest bool) (history.Past, error) {
	return l.engines[l.node].Past(ctx, of, latest)
}

func (l ledger) Reserve(ctx context.Context, of store.ThreadKeys, decide func(history.Past) ([]history.Adds, error)) ([]store.Reserved, error) {
	a := l.current
	for _, tool := range a.tools {
		l.attempts[tool]++
	}
	a.reserve, a.viewed = true, a.read
	defer func() { a.reserve = false }()
	if l.shortcut == "label after its delivery" {
		own := decide
		decide = func(past history.Past) ([]history.Adds, error) {
			adds, err := own(past)
			for i := range adds {
				adds[i].Labels = nil
			}
			return adds, err
		}
	}
	reserved, err := l.engines[l.node].Reserve(ctx, of, decide)
	for _, r := range reserved {
		l.makes(l.node, r, false)
	}
	return reserved, err
}

// makes notes what a gateway has changed.
func (w *world) makes(node int, r store.Reserved, undo bool) {
	if r.Turn > 0 || r.Caller > 0 {
		w.made[node] = append(w.made[node], store.ThreadFact{ThreadKeys: keysOfThread, At: r.Adds.At, Turn: r.Turn, CallerTurn: r.Caller, Adds: r.Adds, Undo: undo})
	}
}

func (l ledger) Release(ctx context.Context, of store.ThreadKeys, adds history.Adds) (store.Reserved, error) {
	if l.shortcut == "released twice" {
		_, _ = l.engines[l.node].Release(ctx, of, adds)
	}
	r, err := l.engines[l.node].Release(ctx, of, adds)
	if err == nil {
		l.makes(l.node, r, true)
	}
	return r, err
}

func (l ledger) EndResult(ctx context.Context, of store.ThreadKeys, adds history.Adds) (store.Reserved, error) {
	r, err := l.engines[l.node].EndResult(ctx, of, adds)
	if err == nil {
		l.makes(l.node, r, false)
	}
	return r, err
}

func (l ledger) CloseThread(ctx context.Context, of store.ThreadKeys) (store.Closing, error) {
	return l.engines[l.node].CloseThread(ctx, of)
}

func (l ledger) ReopenThread(ctx context.Context, of store.ThreadKeys, turn uint64) error {
	return l.engines[l.node].ReopenThread(ctx, of, turn)
}

// backend is the back end of a gateway: shared, or its memory.
type backend struct {
	*world
	known map[store.Key]store.Record
}

func (b backend) View(_ context.Context, keys []store.Key, _ bool, found []store.Record) ([]store.Record, error) {
	b.gate("read")
	a := b.current
	if a != nil && a.reserve {
		a.read = a.viewed
	}
	for _, key := range keys {
		found = append(found, b.records[key])
		b.known[key] = b.records[key]
		if a != nil {
			a.finds(describe(key, b.records[key].Value))
		}
	}
	if a != nil {
		if a.epoch = b.epoch; a.reserve {
			a.warned = b.delivered["fetch"] > 0
		}
	}
	return found, nil
}

func (b backend) Scan(_ context.Context, index store.Index, behind, to store.Row, limit int, found []store.Row) ([]store.Row, error) {
	b.gate("scan")
	compare := func(r, s store.Row) int {
		return cmp.Or(cmp.Compare(r.At, s.At), strings.Compare(r.ID, s.ID))
	}
	var all []store.Row
	for _, r := range b.records {
		for _, e := range store.Entries(r.Value, nil) {
			if e.Index == index && compare(e.Row, behind) > 0 && compare(e.Row, to) < 0 {
				all = append(all, e.Row)
			}
		}
	}
	slices.SortFunc(all, compare)
	if a := b.current; a != nil {
		a.finds(fmt.Sprint(all))
	}
	return append(found, all[:min(limit, len(all))]...), nil
}

func (b backend) Commit(_ context.Context, c *store.Commit) (store.Outcome, error) {
	a := b.current
	if a == nil {
		return b.commit(c), nil
	}
	if a.pending, a.epoch = c, b.epoch; a.reserve {
		a.read = a.viewed
	}
	for _, r := range c.Changes {
		a.finds(describe(r.Key, r.Was.Value))
	}
	how := b.gate("commit")
	a.pending = nil
	outcome := store.Conflicted
	switch {
	case a.epoch != b.epoch:
		return outcome, store.ErrUnavailable
	case how == "late":
		b.losses--
		b.faulty = true
		b.late = append(b.late, transit{store.Commit{Changes: slices.Clone(c.Changes)}, b.epoch})
		return outcome, store.ErrUnavailable
	}
	outcome = b.commit(c)
	a.finds(outcome)
	if a.reserve {
		a.warned = b.delivered["fetch"] > 0
	}
	for _, r := range c.Changes {
		if b.known[r.Key] = b.records[r.Key]; outcome == store.Conflicted {
			delete(b.known, r.Key)
		}
	}
	if how == "no reply" {
		b.losses--
		b.faulty = true
		return store.Conflicted, store.ErrUnavailable
	}
	return outcome, nil
}

// commit makes a commit where nobody has changed what it was decided by.
func (w *world) commit(c *store.Commit) store.Outcome {
	if w.conflicts(c) && w.shortcut != "reserved without a version" {
		return store.Conflicted
	}
	w.ticks++
	w.rev++
	c.Rev = w.rev
	w.before = append(w.before, maps.Clone(w.records))
	for i := range c.Changes {
		switch r := &c.Changes[i]; r.Now {
		case r.Was.Value:
		case nil:
			delete(w.records, r.Key)
		default:
			w.records[r.Key] = store.Record{Rev: w.rev, Value: r.Now}
		}
	}
	return store.Committed
}

func (w *world) conflicts(c *store.Commit) bool {
	return slices.ContainsFunc(c.Changes, func(r store.Replacement) bool { return w.records[r.Key].Rev != r.Was.Rev })
}

// engine is a new one of a gateway.
func (w *world) engine(node int) *store.Engine {
	p, b := store.Process{}, store.Bounds{}.WithDefaults(1<<40, 1<<40)
	if !w.local {
		p = store.Process{Node: fmt.Sprint("n", node), Name: fmt.Sprint("n", node, "/", w.ticks)}
	}
	w.known[node] = map[store.Key]store.Record{}
	return store.NewEngine(backend{w, w.known[node]}, p, w.now, b)
}

// starts has a gateway begin, or begin anew.
func (w *world) starts(node int) {
	ctx := context.Background()
	e := w.engine(node)
	w.engines[node], w.made[node] = e, nil
	if !w.local {
		e.InEpoch(fmt.Sprint(w.epoch))
		w.must(e.Renew(ctx, time.Hour, 0, fmt.Sprint(w.epoch), false))
	} else if w.saved != nil {
		seq, _, err := e.LoadThreads(ctx, w.saved)
		w.must(err)
		facts := w.facts(w.logs[0][seq:])
		if w.shortcut == "folded twice" {
			for _, f := range facts {
				f.Turn += 1000
				facts = append(facts, f)
			}
		}
		w.must(e.FoldThreads(ctx, facts))
		w.must(e.SettleThreads(ctx, time.Time{}))
	}
	_, err := e.KeepTerms(ctx, w.m.terms, nil)
	w.must(err)
}

func (w *world) must(err error) {
	if err != nil {
		w.breaks("%v", err)
	}
}

// facts are what records say.
func (w *world) facts(records []audit.Record) (facts []store.ThreadFact) {
	for i := range records {
		r := &records[i]
		if r.Ledger == "" {
			continue
		}
		f := store.ThreadFact{ThreadKeys: keysOfThread, At: r.Time, Turn: r.Turn, CallerTurn: r.CallerTurn, Undo: len(r.Undo) > 0}
		texts := r.Adds
		if f.Undo {
			texts = r.Undo
		}
		var err error
		if f.Adds, err = history.ReadAdds(texts); err != nil {
			w.breaks("%v", err)
		}
		facts = append(facts, f)
	}
	return facts
}

// crash ends a process with all that it does, and another one starts.
func (w *world) crash(node int) {
	w.crashes--
	w.faulty = true
	for _, a := range w.actors {
		if a.node == node && a.at != "start" {
			w.kills(a)
		}
	}
	if w.local {
		w.records = map[store.Key]store.Record{}
	}
	w.starts(node)
	if !w.local {
		return
	}
	pays, read, labels := 0, 0, false
	for i := range w.logs[0] {
		r := &w.logs[0][i]
		text := strings.Join(r.Adds, " ")
		labels = labels || strings.Contains(text, "label:untrusted") && !w.off[r.CallID]
		if strings.Contains(text, "thread.calls('pay')") && !w.off[r.CallID] {
			pays++
		}
		if strings.Contains(text, "thread.results('read')") {
			read++
		}
	}
	paid, results, labelled, known := w.kept()
	switch {
	case !known:
		w.breaks("a complete log leaves something unknown")
	case paid < pays || results < read || labels && !labelled:
		w.breaks("the log has %d payments, %d results and labels: %t; recovered %d, %d and %t", pays, read, labels, paid, results, labelled)
	}
}

// kept is what is kept of the thread now. To ask changes nothing, also where the ledger notes what was lost: engines that share a
// store are not asked, since they remember what they have read.
func (w *world) kept() (pays, results int, labelled, known bool) {
	was, own := *w, w.known[0]
	w.records = maps.Clone(w.records)
	defer func() {
		w.records, w.before, w.ticks, w.rev, w.known[0] = was.records, was.before, was.ticks, was.rev, own
	}()
	e := w.engines[0]
	if !w.local {
		e = w.engine(0)
		e.InEpoch(fmt.Sprint(w.epoch))
		if _, err := e.KeepTerms(context.Background(), w.m.terms, nil); err != nil {
			return 0, 0, false, false
		}
	}
	past, err := e.Past(context.Background(), keysOfThread, true)
	if err != nil {
		return 0, 0, false, false
	}
	v := history.NewView(w.m.terms, nil, past, nil, history.Adds{})
	n, e1 := v.Value(payTerm.ID())
	m, e2 := v.Value(resultTerm.ID())
	labels, e3 := v.Labels()
	return int(n), int(m), len(labels) > 0, e1 == nil && e2 == nil && e3 == nil
}

// wipe has the shared store fall back to what it had, or to nothing.
func (w *world) wipe(to int) {
	w.wipes--
	w.faulty = true
	w.epoch++
	w.ticks++
	w.late = nil
	w.records = map[store.Key]store.Record{}
	if to < len(w.before) {
		w.records = maps.Clone(w.before[to])
	}
	for node := range w.engines {
		w.putBack(node, false)
	}
	for node, e := range w.engines {
		w.putBack(node, true)
		e.InEpoch(fmt.Sprint(w.epoch))
		w.must(e.Renew(context.Background(), time.Hour, 0, fmt.Sprint(w.epoch), false))
	}
}

// putBack has a gateway put back what its log and its memory say: what was added, or what was undone.
func (w *world) putBack(node int, undone bool) {
	ctx, e := context.Background(), w.engines[node]
	a := history.Attempt{Gateway: fmt.Sprint("n", node), Name: "a", Instance: fmt.Sprint(w.epoch)}
	facts := slices.Concat(w.facts(w.logs[node]), w.made[node])
	facts = slices.DeleteFunc(facts, func(f store.ThreadFact) bool { return f.Undo != undone })
	if !undone {
		kept, err := e.LoseThreads(ctx, e.KeptTerms(), a)
		if w.must(err); !kept {
			w.breaks("nothing was kept")
		}
	}
	if w.shortcut != "not put back" {
		w.must(e.FoldThreads(ctx, facts))
	}
	if undone {
		w.must(e.PutBackThreads(ctx, a, time.Time{}))
	}
}

// choices are what can happen next.
func (w *world) choices() (all []string) {
	may := func(left int, how ...any) {
		if left > 0 {
			all = append(all, fmt.Sprint(how...))
		}
	}
	for i, a := range w.actors {
		if a.at == "" {
			continue
		}
		may(1, "lets ", i, " ", a.at)
		switch a.at {
		case "commit":
			if a.reserve {
				may(w.losses, "lets ", i, " no reply")
				may(w.losses, "lets ", i, " late")
			}
		case "log":
			may(w.logFaults, "lets ", i, " no log")
		case "dispatch":
			may(w.offs, "lets ", i, " off")
		case "end":
			may(w.fails, "lets ", i, " fail")
		}
	}
	if len(all) == 0 {
		return nil // everybody has ended
	}
	for node := range w.engines {
		if slices.ContainsFunc(w.actors, func(a *actor) bool { return a.node == node && a.at != "" && a.at != "start" }) {
			may(w.crashes, "crash ", node)
		}
	}
	for i := max(0, len(w.before)-4); i < len(w.before)+1; i++ {
		may(w.wipes, "wipe ", i)
	}
	for i := range w.late {
		may(1, "arrives ", i)
	}
	return all
}

func (w *world) happens(choice string) {
	var what string
	var i int
	_, _ = fmt.Sscan(choice, &what, &i)
	switch what {
	case "lets":
		_, how, _ := strings.Cut(strings.TrimPrefix(choice, "lets "), " ")
		w.lets(w.actors[i], how)
	case "crash":
		w.crash(i)
	case "wipe":
		w.wipe(i)
	case "arrives":
		late := w.late[i]
		w.late = slices.Delete(w.late, i, i+1)
		if late.epoch == w.epoch {
			w.commit(&late.commit)
		}
	}
}

var seed = maphash.MakeSeed()

// describe is what a record says.
func describe(key store.Key, v store.Value) string {
	text := fmt.Sprint(key.Kind, key.ID)
	switch v := v.(type) {
	case *store.Thread:
		return text + string(v.Encode())
	case *history.Keeping:
		return text + fmt.Sprint(v.Lost, v.Loss, v.Owed, v.Epoch, v.Gateways)
	}
	return text
}

// state is all that what can happen yet depends on.
func (w *world) state() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, key := range slices.SortedFunc(maps.Keys(w.records), func(a, b store.Key) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		_, _ = h.WriteString(describe(key, w.records[key].Value))
	}
	for _, a := range w.actors {
		fmt.Fprint(&h, "|", a.at, a.viewed, a.read, a.epoch, a.warned, a.pending != nil && w.conflicts(a.pending))
	}
	for _, known := range w.known {
		var all uint64
		for key, r := range known {
			all += maphash.String(seed, describe(key, r.Value)) ^ uint64(r.Rev-w.records[key].Rev)
		}
		fmt.Fprint(&h, "|", all)
	}
	for _, late := range w.late {
		fmt.Fprint(&h, "late", late.epoch, w.conflicts(&late.commit))
	}
	for _, log := range w.logs {
		for i := range log {
			fmt.Fprint(&h, log[i].CallID, log[i].Event, log[i].Turn, log[i].CallerTurn, len(log[i].Undo))
		}
	}
	if w.wipes > 0 {
		fmt.Fprint(&h, len(w.before))
	}
	fmt.Fprint(&h, w.ticks, w.dispatched, w.ended, w.delivered, w.off, w.losses, w.wipes, w.crashes, w.logFaults, w.offs, w.fails, maphash.Bytes(seed, w.saved))
	return h.Sum64()
}

// holds checks what holds at all times.
func (w *world) holds() {
	paid, results, _, known := w.kept()
	if !known {
		return
	}
	if results > w.ended["read"] {
		w.breaks("%d results of %d calls that have ended", results, w.ended["read"])
	}
	if paid > w.attempts["pay"] {
		w.breaks("%d payments of %d", paid, w.attempts["pay"])
	}
	if paid < w.dispatched["pay"] {
		w.breaks("%d payments are kept, and %d were made", paid, w.dispatched["pay"])
	}
}

// quiet checks what holds once all have ended, and nothing was lost.
func (w *world) quiet() {
	paid, results, labelled, known := w.kept()
	if w.faulty {
		return
	}
	if !known || paid != w.dispatched["pay"] || results != w.ended["read"] || labelled != (w.dispatched["fetch"] > 0) {
		w.breaks("refused calls have left something: %d payments, %d results, labelled: %t, known: %t; %v ran", paid, results, labelled, known, w.dispatched)
	}
	if ran := w.dispatched["pay"] + len(w.off); ran < w.least {
		w.breaks("%d payments run of %d", ran, w.least)
	}
}

// scenes are what is searched. more is what only -search allows.
var scenes = map[string]struct {
	gateways int
	build    func(w *world, more int)
}{
	"three payments at two gateways": {2, func(w *world, more int) {
		w.losses, w.offs, w.crashes = more, 1, more
		w.least = mostPays
		w.request(0, "pay")
		w.request(1, "pay")
		w.request(0, "pay")
	}},
	"replies that are lost, and a gateway that crashes": {2, func(w *world, more int) {
		w.losses, w.crashes = 1+more, 1
		w.request(0, "pay")
		w.request(1, "pay")
		w.request(1, "pay")
	}},
	"answers of several calls, and a log that takes nothing": {2, func(w *world, more int) {
		w.logFaults, w.offs = 1+more, 1
		w.request(0, "pay", "fetch")
		w.request(1, "pay", "pay")
		w.request(0, "write")
	}},
	"a label": {2, func(w *world, more int) {
		w.losses, w.crashes, w.fails = 1, more, 1
		w.request(0, "fetch")
		w.request(1, "write")
		w.request(0, "write")
	}},
	"a result": {2, func(w *world, more int) {
		w.crashes, w.fails = 1, 1
		w.request(0, "read")
		w.request(1, "publish")
		w.request(1, "read")
	}},
	"a store that loses its state": {2, func(w *world, more int) {
		w.wipes, w.crashes = 1, more
		w.request(0, "pay")
		w.request(1, "pay")
		w.request(0, "pay")
	}},
	"a label, and a store that loses it": {2, func(w *world, more int) {
		w.wipes = 1 + more
		w.request(0, "fetch")
		w.request(1, "write")
		w.request(1, "pay")
	}},
	"a gateway that starts from its log": {1, func(w *world, more int) {
		w.local, w.crashes, w.offs = true, 1+more, 1
		w.request(0, "pay")
		w.request(0, "pay")
		w.request(0, "pay")
	}},
	"a gateway that starts from a snapshot and its log": {1, func(w *world, more int) {
		w.local, w.crashes, w.offs = true, 1, more
		w.request(0, "pay")
		w.request(0, "fetch")
		w.add(&actor{do: w.save})
	}},
	"results, and a gateway that starts from a snapshot and its log": {1, func(w *world, more int) {
		w.local, w.crashes, w.fails = true, 1, more
		w.request(0, "read")
		w.request(0, "publish")
		w.add(&actor{do: w.save})
	}},
}

// start is a world in which nothing has happened.
func (m *machine) start(scene, shortcut string) *world {
	s := scenes[scene]
	w := &world{
		m: m, engines: make([]*store.Engine, s.gateways), logs: make([][]audit.Record, s.gateways), made: make([][]store.ThreadFact, s.gateways), known: make([]map[store.Key]store.Record, s.gateways), records: map[store.Key]store.Record{}, yield: make(chan struct{}), shortcut: shortcut,
		attempts: map[string]int{}, dispatched: map[string]int{}, ended: map[string]int{}, delivered: map[string]int{}, off: map[string]bool{},
	}
	m.world = w
	more := 0
	if *searchAll {
		more = 1
	}
	s.build(w, more)
	for node := range w.engines {
		w.starts(node)
	}
	if w.local {
		var err error
		w.saved, err = w.engines[0].EncodeThreads(context.Background(), 0, "")
		w.must(err)
	}
	w.before = nil
	return w
}

// search tries every order of what can happen. It returns how many states there are and how many orders of them were gone
// through, and what was broken first, and how.
func (m *machine) search(scene, shortcut string, most int) (states, orders int, wrong string, path []string) {
	seen := map[uint64]bool{}
	var explore func(w *world, sofar []string) bool
	explore = func(w *world, sofar []string) bool {
		m.world = w
		w.holds()
		at, next := w.state(), w.choices()
		if next == nil {
			w.quiet()
		}
		if next == nil || seen[at] || w.wrong != "" || len(seen) == most {
			orders++
			for _, a := range w.actors {
				w.kills(a)
			}
			wrong, path = w.wrong, sofar
			seen[at] = seen[at] || wrong == ""
			return wrong == "" && len(seen) < most
		}
		seen[at] = true
		for i, choice := range next {
			if i > 0 { // else this world is that of the first choice
				w = m.start(scene, shortcut)
				for _, earlier := range sofar {
					w.happens(earlier)
				}
			}
			w.happens(choice)
			if !explore(w, append(slices.Clip(sofar), choice)) {
				return false
			}
		}
		return true
	}
	explore(m.start(scene, shortcut), nil)
	return len(seen), orders, wrong, path
}

// TestEveryTurn searches all orders with -search, else those of the first states of each scene.
func TestEveryTurn(t *testing.T) {
	detector.OneGoroutine(t) // the goroutines of an order run in turn
	for scene, s := range scenes {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			most := 5000
			switch {
			case *searchAll:
				most = 1 << 30
			case testing.Short():
				most = 1000
			}
			states, orders, wrong, path := newMachine(t, s.gateways).search(scene, "", most)
			if wrong != "" {
				t.Errorf("%s, after %q", wrong, path)
			}
			t.Logf("%d states, %d orders", states, orders)
		})
	}
}

// TestShortcutsOfThreadsAreFound: each of these shortcuts breaks a promise, and the search finds it.
func TestShortcutsOfThreadsAreFound(t *testing.T) {
	for shortcut, scene := range map[string]string{
		"reserved without a version": "three payments at two gateways",
		"released twice":             "three payments at two gateways",
		"result before its end":      "a result",
		"label after its delivery":   "a label",
		"folded twice":               "a gateway that starts from its log",
		"not put back":               "a store that loses its state",
	} {
		t.Run(shortcut, func(t *testing.T) {
			t.Parallel()
			states, _, wrong, path := newMachine(t, scenes[scene].gateways).search(scene, shortcut, 20_000)
			if wrong == "" {
				t.Errorf("nothing is found in %d states", states)
			}
			t.Logf("%s, after %d states: %q", wrong, states, path)
		})
	}
}
