package store

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// This search has two nodes on one back end, which may lose what it has confirmed last, or all of it. Their
// processes crash, start anew, take over each other's calls, and put back what they hold and what their logs
// say. Transitions are those of an Engine. What a process and its connection to a shared back end do around
// it (package redisstore), and when a gateway writes its log, is modelled here. Calls without a key are on the
// back end from the start here; in Redis they are once they are dispatched.

var searchAll = flag.Bool("search", false, "search all states, with more faults at once: minutes in place of seconds")

// past is a state of the shared back end. It is never changed.
type past struct {
	records map[Key]Record
	rows    map[Entry]bool
	used    Usage
	epoch   int            // 0: none
	reading map[string]int // attempts of nodes to put back what they know
	seeded  map[string]int // the rounds of which nodes have come to the end
}

func (p *past) next() *past {
	n := *p
	n.records, n.rows, n.reading, n.seeded = maps.Clone(p.records), maps.Clone(p.rows), maps.Clone(p.reading), maps.Clone(p.seeded)
	return &n
}

// place is all that there is.
type place struct {
	rules    *rules
	now      time.Time
	history  []*past // the last one is now; the first ones are forgotten
	nodes    []*node
	jobs     []*job
	transit  []transit // commits that are on their way
	rev      Rev
	number   int // of epochs and attempts
	instance int

	crashes, losses, slows, lates, overs, marks, anews int // that are left

	acted   map[string]int // calls, keys and approvals
	handed  map[string]int
	denied  bool // a no, or a revocation, was confirmed
	lost    bool
	crashed bool
	old     bool // what was lost was older than what the processes remember
	wrong   string
}

// rules are shortcuts.
type rules struct {
	noKeyHash, markByTime, markAtOpen, hasty, unbounded, counts bool
}

// node is a gateway: its log, and its process.
type node struct {
	name     string
	process  int // how many there were
	alive    bool
	over     bool // its lease is
	log      []Fact
	instance int // that it is connected to
	epoch    int // 0: it puts back what it knows
	step     int // of that
	attempt  int
	mark     uint64 // that it has found
	missing  []Fact
	starting int // what is left of joining log and store

	held   map[string]heldCall
	recent []Kept
	doubts []doubt
	aged   uint64 // the last record of the log a while ago
}

type heldCall struct {
	call *Call
	lost bool // another has changed it
	mark uint64
}

type doubt struct {
	commit *Commit
	forget string
}

// transit is a commit that is on its way, or waits to be sent.
type transit struct {
	node, epoch int
	seeding     bool
	commit      *Commit
}

// job is somebody who makes transitions by way of a node.
type job struct {
	node         int
	id, key      string
	task         Task
	behind       *int // the call of the same decision that is dispatched before
	event        *Fact
	yes          string // the approval that it says yes to
	at           state
	slow         *transit
	again, taken bool
}

// state is what a job does next.
type state int

const (
	decides state = iota
	opens
	dispatches
	forgets
	finishes
	records // the outcome
	recordsNotRun
	hands
	votes
	done
	gone // with its process
)

func (p *place) clone() *place {
	c := *p
	c.history, c.transit = slices.Clone(p.history), slices.Clone(p.transit)
	c.acted, c.handed = maps.Clone(p.acted), maps.Clone(p.handed)
	c.nodes, c.jobs = make([]*node, len(p.nodes)), make([]*job, len(p.jobs))
	for i, n := range p.nodes {
		m := *n
		m.held, m.log, m.recent, m.doubts = maps.Clone(n.held), slices.Clip(n.log), slices.Clip(n.recent), slices.Clone(n.doubts)
		c.nodes[i] = &m
	}
	for i, j := range p.jobs {
		k := *j
		c.jobs[i] = &k
	}
	return &c
}

func (p *place) breaks(format string, args ...any) {
	if p.wrong == "" {
		p.wrong = fmt.Sprintf(format, args...)
	}
}

func (p *place) today() *past { return p.history[len(p.history)-1] }

func (p *place) become(next *past) {
	if p.history = append(p.history, next); len(p.history) > 4 {
		p.history = slices.Clone(p.history[1:])
	}
}

func (n *node) processName() string { return fmt.Sprint(n.name, "/", n.process) }

// ready reports whether a process is connected at the epoch of today.
func (p *place) ready(n *node) bool {
	return n.alive && n.step == connected && n.instance == p.instance && n.epoch != 0 && n.epoch == p.today().epoch
}

// link is the back end as a node sees it.
type link struct {
	p       *place
	n       int
	seeding bool
	fault   string   // of the next commit: slow, late, lose
	caught  *transit // what is slow
}

func (l *link) View(_ context.Context, keys []Key, _ bool, found []Record) ([]Record, error) {
	if !l.seeding && !l.p.ready(l.p.nodes[l.n]) {
		return nil, ErrUnavailable
	}
	for _, key := range keys {
		found = append(found, l.p.today().records[key])
	}
	return found, nil
}

func (l *link) Scan(_ context.Context, index Index, behind, to Row, limit int, found []Row) ([]Row, error) {
	r := &rows{}
	for e := range l.p.today().rows {
		if e.Index == index {
			r.add(e.Row)
		}
	}
	return r.between(behind, to, limit, found), nil
}

func (l *link) Commit(_ context.Context, c *Commit) (Outcome, error) {
	p := l.p
	n := p.nodes[l.n]
	if !l.seeding && !p.ready(n) {
		return l.failed(c)
	}
	sent := transit{l.n, n.epoch, l.seeding, &Commit{Changes: slices.Clone(c.Changes), Add: slices.Clone(c.Add), Remove: slices.Clone(c.Remove), Counts: slices.Clone(c.Counts)}}
	switch l.fault {
	case "slow":
		l.caught = &sent
		return Conflicted, ErrUnavailable
	case "late":
		p.transit = append(p.transit, sent)
		return l.failed(c)
	case "lose":
		p.commits(&sent)
		return l.failed(c)
	}
	if !p.commits(&sent) {
		l.dropped(c)
		return Conflicted, nil
	}
	l.confirmed(sent.commit)
	return Committed, nil
}

// commits makes a commit, and reports whether it was one.
func (p *place) commits(t *transit) bool {
	today := p.today()
	if !t.seeding && t.epoch != today.epoch {
		return false
	}
	for i := range t.commit.Changes {
		if r := &t.commit.Changes[i]; today.records[r.Key].Rev != r.Was.Rev {
			return false
		}
	}
	next := today.next()
	p.rev++
	for i := range t.commit.Changes {
		switch r := &t.commit.Changes[i]; r.Now {
		case r.Was.Value:
		case nil:
			delete(next.records, r.Key)
		default:
			rev := p.rev
			if p.rules.counts {
				rev = r.Was.Rev + 1
			}
			next.records[r.Key] = Record{Rev: rev, Value: r.Now}
		}
	}
	for _, e := range t.commit.Remove {
		delete(next.rows, e)
	}
	for _, e := range t.commit.Add {
		next.rows[e] = true
	}
	for _, c := range t.commit.Counts {
		next.used = next.used.Plus(c.Of)
	}
	p.become(next)
	return true
}

// failed is what a process does when it has no reply to a commit.
func (l *link) failed(c *Commit) (Outcome, error) {
	n := l.p.nodes[l.n]
	if id, _ := c.Begins(); id != "" && !l.seeding {
		delete(n.held, id)
		n.doubts = append(n.doubts, doubt{commit: &Commit{Changes: slices.Clone(c.Changes)}})
	}
	return Conflicted, ErrUnavailable
}

// confirmed is what a process remembers of a commit.
func (l *link) confirmed(c *Commit) {
	n := l.p.nodes[l.n]
	for i := range c.Changes {
		r := &c.Changes[i]
		if r.Now == r.Was.Value || r.Kind == LeaseRecord {
			continue
		}
		n.recent = append(n.recent, Kept{r.Key, r.Now})
		if r.Kind != CallRecord {
			continue
		}
		was, known := n.held[r.ID]
		delete(n.held, r.ID)
		if now, _ := r.Now.(*Call); now != nil && now.Owner == n.processName() && now.Step != Ended && (!l.seeding || known) {
			mark := n.aged
			switch {
			case known:
				mark = was.mark
			case l.p.rules.markAtOpen:
				mark = uint64(len(n.log))
			}
			n.held[r.ID] = heldCall{now, false, mark}
		}
	}
}

// dropped is what it remembers of a conflict.
func (l *link) dropped(c *Commit) {
	n := l.p.nodes[l.n]
	for i := range c.Changes {
		r := &c.Changes[i]
		h, known := n.held[r.ID]
		if r.Kind != CallRecord || !known || l.p.today().records[r.Key].Rev == r.Was.Rev {
			continue
		}
		delete(n.held, r.ID)
		if h.call.Step != Opened {
			n.held[r.ID] = heldCall{h.call, true, h.mark}
		}
	}
}

// holds reports whether the process of a node opens or runs a call.
func (n *node) holds(id string) bool {
	if h, known := n.held[id]; known && !h.lost {
		return true
	}
	return slices.ContainsFunc(n.doubts, func(d doubt) bool {
		if d.commit == nil {
			return false
		}
		begun, _ := d.commit.Begins()
		return begun == id
	})
}

func (n *node) kept() (kept []Kept) {
	seen := map[Key]bool{}
	for _, id := range slices.Sorted(maps.Keys(n.held)) {
		seen[Key{CallRecord, id}] = true
		kept = append(kept, Kept{Key{CallRecord, id}, n.held[id].call})
	}
	for _, k := range slices.Backward(n.recent) {
		if call, ok := k.Value.(*Call); ok && call.Step != Ended {
			seen[k.Key] = true
		}
		if !seen[k.Key] {
			seen[k.Key] = true
			kept = append(kept, k)
		}
	}
	return kept
}

// engine returns the engine of a node, as of now or when its leases are over.
func (p *place) engine(l *link) *Engine {
	n := p.nodes[l.n]
	return NewEngine(l, Process{Name: n.processName(), Node: n.name, Holds: n.holds}, func() time.Time { return p.now }, Bounds{Calls: 100, Bytes: 1 << 20, PrincipalPercent: 100})
}

func (n *node) writes(f Fact) { n.log = append(n.log, f) }

// The steps of putting back.
const (
	reads = iota
	folds
	agrees
	foldsMissing
	agreesAgain
	connected
)

// round is the round of which a node waits for the end; 0: none.
func (n *node) round() int {
	switch n.step {
	case agrees:
		return 1
	case agreesAgain:
		return 2
	}
	return 0
}

// does makes the next transition of a job.
func (p *place) does(i int, fault string) {
	j := p.jobs[i]
	n := p.nodes[j.node]
	l := &link{p: p, n: j.node, fault: fault}
	e, ctx := p.engine(l), context.Background()
	committed := false
	if j.slow != nil { // it was decided before
		committed = p.ready(n) && p.commits(&transit{j.node, n.epoch, false, j.slow.commit})
		if committed {
			l.confirmed(j.slow.commit)
		}
		j.slow = nil
	}
	finish := func(deliver bool) (Call, error) {
		ending := Ending{State: Done, Answer: Answer{Result: []byte("r")}, Attempt: n.processName() + j.id, Deliver: deliver}
		if j.taken {
			ending.State, ending.Answer = Unknown, Answer{}
		}
		return e.Finish(ctx, j.id, ending)
	}
	var prior *Call
	var err error
	switch {
	case committed:
	case j.at == opens:
		prior, err = e.Open(ctx, Call{ID: j.id, Key: j.key, Digest: "d", Scope: Scope{Principal: "p"}})
	case j.at == dispatches:
		err = e.Dispatch(ctx, j.id, j.task)
	case j.at == forgets:
		err = e.Settle(ctx, j.id)
	case j.at == finishes:
		if _, err = finish(!j.again && !j.taken); errors.Is(err, ErrNotFound) {
			if h := n.held[j.id]; h.lost {
				if err = e.Restore(ctx, []Kept{{Key{CallRecord, j.id}, h.call}}); err == nil {
					_, err = finish(!j.again && !j.taken)
				}
			}
		}
	case j.at == hands:
		err = e.Update(ctx, j.id, Deliver{Principal: "p"})
	case j.at == votes && j.yes != "":
		_, err = e.Vote(ctx, j.yes, approval.Vote{By: j.id, Yes: true, Digest: strings.Repeat("d", 64), Rules: []string{"r"}})
	case j.at == votes && j.event.Kind == GrantRevoked:
		_, err = e.RevokeGrant(ctx, j.event.Grant)
	case j.at == votes:
		_, err = e.EndApproval(ctx, j.event.Approval, j.event.Ended)
	}
	if l.caught != nil {
		j.slow = l.caught
		return
	}
	unavailable := errors.Is(err, ErrUnavailable)
	switch j.at {
	case decides:
		fact := Fact{At: p.now, Kind: Executed, Call: Call{ID: j.id, Digest: "d", Scope: Scope{Principal: "p"}, Task: j.task}}
		if j.key != "" && !p.rules.noKeyHash {
			fact.KeyHash = KeyHash(fact.Call.Scope, j.key)
		}
		if j.event != nil {
			fact = *j.event
		}
		n.writes(fact)
		switch {
		case j.event != nil:
			j.at = votes
		case j.key != "":
			j.at = dispatches
		default:
			j.at = opens
		}
	case opens:
		switch {
		case unavailable && j.key != "":
			j.at = done // the caller is refused; what it may have opened is in doubt
		case err != nil:
			j.at = recordsNotRun
		case prior != nil && prior.Step == Ended:
			j.id, j.at = prior.ID, hands
		case prior != nil:
			// The caller asks again once that call has ended.
		case j.key != "":
			j.at = decides
		default:
			j.at = dispatches
		}
	case dispatches:
		if err != nil {
			j.at = forgets
			break
		}
		p.acts(j)
		j.at = finishes
	case forgets:
		if unavailable {
			n.doubts = append(n.doubts, doubt{forget: j.id})
		}
		j.at = recordsNotRun
	case recordsNotRun:
		n.writes(Fact{At: p.now, Kind: NotExecuted, Call: Call{ID: j.id}})
		j.at = done
	case finishes:
		switch {
		case unavailable:
			j.again = true
		case errors.Is(err, ErrEnded):
			j.at = done
		default:
			if err == nil && !j.again && !j.taken {
				p.hands(j.id)
			}
			j.at = records
		}
	case records:
		n.writes(Fact{At: p.now, Kind: OutcomeKnown, Call: Call{ID: j.id}})
		j.at = done
	case hands:
		if err == nil {
			p.hands(j.id)
		}
		j.at = done
	case votes:
		switch {
		case unavailable:
		case err == nil:
			p.denied = p.denied || j.yes == ""
			fallthrough
		default:
			j.at = done
		}
	}
}

func (p *place) acts(j *job) {
	of := []string{j.id}
	if j.key != "" {
		of = append(of, "key "+j.key)
	}
	for _, id := range slices.Concat(j.task.Using, j.task.Spends) {
		if !IsGrant(id) {
			of = append(of, id)
		}
	}
	for _, id := range of {
		if p.acted[id]++; p.acted[id] > 1 && !slices.Contains(j.task.Spends, id) {
			p.breaks("%s has acted twice", id)
		}
	}
	if p.denied && len(j.task.Using) > 0 {
		p.breaks("%s has acted after a no, or a revocation", j.id)
	}
}

func (p *place) hands(id string) {
	c, _ := p.today().records[Key{CallRecord, id}].Value.(*Call)
	if c == nil || len(c.Answer.Result) == 0 {
		return // the answer is lost
	}
	// Delivery is in no log: where both Redis and the process have lost it, it is not known.
	if p.handed[id]++; p.handed[id] > 1 && !(p.lost && (p.crashed || p.old)) {
		p.breaks("the result of %s was handed over twice", id)
	}
}

// choices are what can happen next.
func (p *place) choices() (all []string) {
	can := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for i, j := range p.jobs {
		n := p.nodes[j.node]
		if j.at >= done || !n.alive || !p.enabled(j, n) {
			continue
		}
		can("do %d", i)
		if j.slow != nil || !p.ready(n) || j.at == decides || j.at == records || j.at == recordsNotRun || j.at == forgets || j.taken {
			continue
		}
		if p.slows > 0 && (j.at == dispatches || j.at == votes || j.at == finishes) {
			can("slow %d", i)
		}
		if p.lates > 0 {
			can("late %d", i)
			can("lose %d", i)
		}
	}
	for i := range p.transit {
		can("arrive %d", i)
	}
	for i, n := range p.nodes {
		other := p.nodes[1-i]
		switch {
		case !n.alive:
			can("start %d", i)
		case n.step != connected || !p.ready(n):
			today, round := p.today(), n.round()
			if round == 0 || n.instance != p.instance || today.epoch != 0 || today.seeded[n.name] < round || today.reading[n.name] != n.attempt || other.alive && today.seeded[other.name] >= round {
				can("restore %d", i)
			}
		default:
			if n.starting > 0 {
				can("join %d", i)
			}
			if len(n.doubts) > 0 {
				can("resolve %d", i)
			}
			if n.starting == 0 && (!other.alive || other.over || p.ready(other)) && p.abandoned(n, other) {
				can("take %d", i)
			}
			if p.marks > 0 && p.isQuiet(i) {
				can("mark %d", i)
			}
		}
		if n.alive && n.step > folds && n.step < connected && p.anews > 0 {
			can("anew %d", i)
		}
		if n.alive && p.crashes > 0 {
			can("crash %d", i)
		}
		if n.alive && !n.over && p.overs > 0 {
			can("over %d", i)
		}
	}
	if p.losses > 0 {
		// What a process does not remember any more is in its log.
		old := !slices.ContainsFunc(p.jobs, func(j *job) bool { return j.at == records || j.at == recordsNotRun || j.at == forgets })
		for _, back := range slices.Concat([]int{0, 1, 2, 3}[:len(p.history)], []int{9}) {
			can("back %d", back)
			if old {
				can("old %d", back)
			}
		}
	}
	return all
}

// goesOn reports whether a choice is none that could be left out for good.
func goesOn(choice string) bool {
	what, _, _ := strings.Cut(choice, " ")
	return !slices.Contains([]string{"mark", "crash", "over", "anew", "back", "old"}, what)
}

// enabled reports whether a job can go on.
func (p *place) enabled(j *job, n *node) bool {
	switch j.at {
	case decides:
		return j.behind == nil || p.jobs[*j.behind].at >= dispatches
	case opens:
		if c := p.prior(j); c != nil && c.Step != Ended {
			return false // it would be told to ask again
		}
		return n.starting == 0 && p.ready(n)
	case dispatches:
		return j.behind == nil || p.jobs[*j.behind].at >= done
	case finishes, hands, votes:
		return p.ready(n)
	}
	return true
}

// prior returns the call of a key.
func (p *place) prior(j *job) *Call {
	if j.key == "" {
		return nil
	}
	key, _ := p.today().records[Key{KeyRecord, keyName(Scope{Principal: "p"}, j.key)}].Value.(*Started)
	if key == nil || key.Call == j.id {
		return nil
	}
	c, _ := p.today().records[Key{CallRecord, key.Call}].Value.(*Call)
	return c
}

// abandoned reports whether there are calls that a node can take over now.
func (p *place) abandoned(n, other *node) bool {
	for _, r := range p.today().records {
		c, ok := r.Value.(*Call)
		if !ok || c.Step == Ended || n.holds(c.ID) {
			continue
		}
		if nodeOf(c.Owner) == n.name || nodeOf(c.Owner) == other.name && (other.over || !other.alive) {
			return true
		}
	}
	return false
}

// isQuiet reports whether everything that the log of a node says so far is in the back end, or was refused, but
// for calls that wait for others of their decision: some seconds have gone by.
func (p *place) isQuiet(i int) bool {
	for _, j := range p.jobs {
		if j.node != i || j.at >= done {
			continue
		}
		waits := j.at == dispatches && j.behind != nil && p.jobs[*j.behind].at < done
		if j.slow != nil || j.at == votes || j.at == forgets || j.at == opens && j.key == "" || j.at == dispatches && !waits {
			return false
		}
	}
	return !slices.ContainsFunc(p.transit, func(t transit) bool { return t.node == i })
}

// happens lets one thing happen.
func (p *place) happens(choice string) {
	var what string
	var i int
	_, _ = fmt.Sscan(choice, &what, &i)
	ctx := context.Background()
	switch what {
	case "do":
		p.does(i, "")
	case "slow":
		p.slows--
		p.does(i, what)
	case "late", "lose":
		p.lates--
		p.does(i, what)
	case "arrive":
		t := p.transit[i]
		p.transit = slices.Delete(p.transit, i, i+1)
		p.commits(&t)
	case "start":
		n := p.nodes[i]
		*n = node{name: n.name, process: n.process + 1, alive: true, log: n.log, held: map[string]heldCall{}, starting: 1}
	case "restore":
		p.restores(i)
	case "join":
		p.joins(i)
	case "resolve":
		p.resolves(i)
	case "take":
		p.takes(i, true)
	case "mark":
		p.marks--
		n := p.nodes[i]
		mark := uint64(len(n.log))
		for _, h := range n.held {
			if !h.lost && h.call.Step == Opened && !p.rules.markByTime {
				mark = min(mark, h.mark)
			}
		}
		n.aged = uint64(len(n.log))
		must(p.engine(&link{p: p, n: i}).Renew(ctx, time.Second, mark, "", false))
		n.over = false
	case "crash":
		p.crashes--
		p.crashed = true
		n := p.nodes[i]
		n.alive, n.held, n.recent, n.doubts, n.step, n.epoch, n.missing = false, nil, nil, nil, reads, 0, nil
		for _, j := range p.jobs {
			if j.node == i && j.at < done {
				j.at, j.slow = gone, nil
			}
		}
	case "anew": // its connection broke
		p.anews--
		p.nodes[i].step = reads
	case "over":
		p.overs--
		p.nodes[i].over = true
	case "back", "old":
		p.losses--
		p.lost = true
		p.instance++
		next := newPast()
		if i < len(p.history) {
			next = p.history[len(p.history)-1-i]
			next = next.next()
			next.epoch, next.seeded = 0, map[string]int{} // they are those of another instance
		}
		p.history = []*past{next}
		for _, n := range p.nodes {
			if what == "old" {
				p.old = true
				n.recent = nil
			}
			if n.alive {
				n.step = reads
			}
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// restores makes the next step of putting back.
func (p *place) restores(i int) {
	n := p.nodes[i]
	e, ctx := p.engine(&link{p: p, n: i, seeding: true}), context.Background()
	if n.step == connected || n.instance != p.instance && n.step != reads {
		n.step = reads
	}
	var err error
	switch n.step {
	case reads:
		n.instance, n.epoch, n.missing = p.instance, 0, nil
		p.number++
		n.attempt = p.number
		next := p.today().next()
		next.reading[n.name] = n.attempt
		p.become(next)
		lease, failed := e.Lease(ctx)
		n.mark, err = lease.Mark, failed
		must(err)
		must(e.Restore(ctx, n.kept()))
	case folds:
		_, n.missing, err = e.Fold(ctx, n.log[min(n.mark, uint64(len(n.log))):])
		must(err)
		must(e.Renew(ctx, time.Second, n.mark, "", false))
		n.over = false
	case agrees, agreesAgain:
		today, round := p.today(), n.round()
		if today.reading[n.name] != n.attempt {
			n.step = reads
			return
		}
		next := today.next()
		if next.epoch == 0 {
			next.seeded[n.name] = max(round, next.seeded[n.name])
			p.become(next)
			for _, other := range p.nodes {
				if next.seeded[other.name] < round && !p.rules.hasty {
					return
				}
			}
			if round == 2 {
				p.number++
				next.epoch = p.number
			}
		}
		if round == 2 {
			n.epoch = next.epoch
		}
	case foldsMissing:
		must(e.Restore(ctx, n.kept()))
		_, _, err = e.Fold(ctx, n.missing)
		must(err)
		n.missing = nil
	}
	n.step++
}

// joins ends, at the start of a process, what earlier ones of its node have left.
func (p *place) joins(i int) {
	n := p.nodes[i]
	n.starting = 0
	e, ctx := p.engine(&link{p: p, n: i}), context.Background()
	outcomes := map[string]bool{}
	for _, f := range n.log {
		if f.Kind == OutcomeKnown || f.Kind == NotExecuted {
			outcomes[f.Call.ID] = true
		}
	}
	p.takes(i, false)
	for _, f := range slices.Clone(n.log) {
		if f.Kind != Executed || outcomes[f.Call.ID] {
			continue
		}
		c, err := e.Get(ctx, f.Call.ID, OfRecovery())
		if errors.Is(err, ErrNotFound) || err == nil && (c.Step == Opened || c.Step == Ended && strings.HasPrefix(c.FinishedBy, n.name+"/")) {
			n.writes(Fact{At: p.now, Kind: OutcomeKnown, Call: Call{ID: f.Call.ID}})
		}
	}
}

// takes takes over calls: those whose outcomes its log has are only ended, the others end as unknown.
func (p *place) takes(i int, others bool) {
	n := p.nodes[i]
	if n.over || !p.nodes[1-i].alive || p.nodes[1-i].over {
		p.now = p.now.Add(2 * time.Second)
	}
	e, ctx := p.engine(&link{p: p, n: i}), context.Background()
	taken, err := e.TakeOver(ctx, 100, others)
	must(err)
	for _, c := range taken {
		if !others && slices.ContainsFunc(n.log, func(f Fact) bool { return (f.Kind == OutcomeKnown || f.Kind == NotExecuted) && f.Call.ID == c.ID }) {
			_, err := e.Finish(ctx, c.ID, Ending{State: Done, Attempt: n.processName() + " closes"})
			must(err)
			continue
		}
		p.jobs = append(p.jobs, &job{node: i, id: c.ID, taken: true, at: finishes})
	}
	// The lease of those who live is renewed each second.
	for j, other := range p.nodes {
		if other.alive && !other.over && p.ready(other) {
			mark := uint64(0)
			if l, _ := p.today().records[Key{LeaseRecord, other.name}].Value.(*Lease); l != nil {
				mark = l.Mark
			}
			must(p.engine(&link{p: p, n: j}).Renew(ctx, time.Second, mark, "", false))
		}
	}
}

// resolves takes back what was done when nobody waited for it.
func (p *place) resolves(i int) {
	n := p.nodes[i]
	d := n.doubts[0]
	if !p.rules.unbounded {
		p.transit = slices.DeleteFunc(p.transit, func(t transit) bool { return t.node == i }) // it is refused: it comes too late
	}
	e, ctx := p.engine(&link{p: p, n: i}), context.Background()
	if d.commit == nil {
		must(e.Settle(ctx, d.forget))
	} else {
		must(e.TakeBack(ctx, d.commit))
	}
	n.doubts = n.doubts[1:]
}

// check checks what must always hold.
func (p *place) check() {
	today := p.today()
	rows, used := map[Entry]bool{}, Usage{}
	for _, r := range today.records {
		for _, e := range Entries(r.Value, nil) {
			rows[e] = true
		}
		if c, ok := r.Value.(*Call); ok {
			used = used.Plus(c.Usage())
		}
		if a, ok := r.Value.(*Asked); ok && a.Ran != "" && a.Ended.End != "" {
			p.breaks("%s was used and has ended", a.ID)
		}
	}
	if !maps.Equal(rows, today.rows) {
		p.breaks("there are rows %v, expected %v", today.rows, rows)
	}
	if used != today.used {
		p.breaks("counted %+v, kept %+v", today.used, used)
	}
	if !p.ready(p.nodes[0]) || !p.ready(p.nodes[1]) {
		return
	}
	for _, n := range p.nodes {
		for _, f := range n.log {
			if f.Kind != OutcomeKnown {
				continue
			}
			if c, _ := today.records[Key{CallRecord, f.Call.ID}].Value.(*Call); c != nil && c.Step != Ended && c.Owner != "" && !p.crashed {
				p.breaks("%s has ended, and is %s", c.ID, c.Step)
			}
		}
	}
}

// quiet checks what must hold once nothing can happen any more.
func (p *place) quiet() {
	for _, r := range p.today().records {
		if c, ok := r.Value.(*Call); ok && c.Step != Ended {
			p.breaks("%s is %s by %s, and nobody ends it", c.ID, c.Step, c.Owner)
		}
	}
	outcomes, refused := map[string]int{}, map[string]bool{}
	for _, n := range p.nodes {
		for _, f := range n.log {
			switch f.Kind {
			case OutcomeKnown, NotExecuted:
				outcomes[f.Call.ID]++
				refused[f.Call.ID] = refused[f.Call.ID] || f.Kind == NotExecuted
			}
		}
	}
	for _, n := range p.nodes {
		for _, f := range n.log {
			if f.Kind != Executed {
				continue
			}
			switch got := outcomes[f.Call.ID]; {
			case got == 1:
			case got == 2 && refused[f.Call.ID] && p.crashed: // a known gap: a dispatch that was in doubt, when its process died
			case got == 2 && f.KeyHash == nil && p.lost && p.crashed: // a known gap: another node has ended it, and Redis has lost that
			case got == 0 && p.crashed: // a known gap: the process that has ended it died before it wrote that
			default:
				p.breaks("%s has %d outcomes", f.Call.ID, got)
			}
		}
	}
	for _, j := range p.jobs {
		if j.at < done {
			p.breaks("%s is at %d, and cannot go on", j.id, j.at)
		}
	}
}

// sum is all that what can happen yet depends on.
func (p *place) sum(seed maphash.Seed) uint64 {
	var b strings.Builder
	shown := p.history[len(p.history)-1:]
	if p.losses > 0 {
		shown = p.history
	}
	for _, h := range shown {
		for kind := range kinds {
			for _, key := range slices.SortedFunc(maps.Keys(h.records), func(a, b Key) int { return strings.Compare(a.ID, b.ID) }) {
				if key.Kind != kind {
					continue
				}
				v := h.records[key].Value
				fmt.Fprint(&b, kind, key.ID)
				describe(&b, v)
				switch v := v.(type) {
				case *Call:
					fmt.Fprint(&b, v.Owner, len(v.Answer.Result))
				case *Lease:
					fmt.Fprint(&b, v.Mark, v.Until.After(p.now))
				}
			}
		}
		fmt.Fprint(&b, "/", h.epoch != 0, h.seeded["A"], h.seeded["B"])
		for _, n := range p.nodes {
			fmt.Fprint(&b, n.epoch == h.epoch, n.attempt == h.reading[n.name])
		}
		for _, t := range p.transit {
			p.fits(&b, h, &t)
		}
		for _, j := range p.jobs {
			if j.slow != nil {
				p.fits(&b, h, j.slow)
			}
		}
	}
	for _, n := range p.nodes {
		fmt.Fprint(&b, "|", n.process, n.alive, n.over, n.instance == p.instance, n.step, n.mark, n.starting, n.aged, len(n.missing), len(n.doubts))
		for _, f := range n.log {
			fmt.Fprint(&b, f.Kind, f.Call.ID, ",")
		}
		for _, id := range slices.Sorted(maps.Keys(n.held)) {
			h := n.held[id]
			fmt.Fprint(&b, id, h.call.Step, h.lost, h.mark)
		}
		if p.losses > 0 || n.step == reads {
			for _, k := range n.recent {
				fmt.Fprint(&b, k.Key)
				describe(&b, k.Value)
			}
		}
	}
	for _, t := range p.transit {
		fmt.Fprint(&b, t.node)
	}
	for _, j := range p.jobs {
		fmt.Fprint(&b, ";", j.node, j.id, j.at, j.slow != nil, j.again)
	}
	fmt.Fprint(&b, p.acted, p.handed, p.denied, p.lost, p.crashed, p.old, p.crashes, p.losses, p.slows, p.lates, p.overs, p.marks, p.anews)
	return maphash.String(seed, b.String())
}

func (p *place) fits(b *strings.Builder, h *past, t *transit) {
	fmt.Fprint(b, "^", t.epoch == h.epoch)
	for i := range t.commit.Changes {
		r := &t.commit.Changes[i]
		fmt.Fprint(b, r.Key, h.records[r.Key].Rev == r.Was.Rev)
		describe(b, r.Now)
	}
}

// searchLosses tries every order. It returns what was broken first, and how.
func searchLosses(first *place, most int) (states int, wrong string, path []string) {
	seed := maphash.MakeSeed()
	seen := map[uint64]bool{}
	var explore func(p *place, sofar []string) bool
	explore = func(p *place, sofar []string) (more bool) {
		defer func() {
			if r := recover(); r != nil {
				wrong, path, more = fmt.Sprint("panic: ", r), slices.Clone(sofar), false
			}
		}()
		p.check()
		at := p.sum(seed)
		if seen[at] && p.wrong == "" {
			return true
		}
		seen[at] = true
		next := p.choices()
		if !slices.ContainsFunc(next, goesOn) {
			p.quiet()
		}
		if p.wrong != "" || len(seen) > most {
			wrong, path = p.wrong, slices.Clone(sofar)
			return false
		}
		for _, choice := range next {
			c := p.clone()
			c.happens(choice)
			if !explore(c, append(sofar, choice)) {
				return false
			}
		}
		return true
	}
	explore(first, nil)
	return len(seen), wrong, path
}

func newPast() *past {
	return &past{records: map[Key]Record{}, rows: map[Entry]bool{}, reading: map[string]int{}, seeded: map[string]int{}}
}

// newPlace has two nodes that are connected, and what a scene has.
func newPlace(scene func(*place), r rules) *place {
	p := &place{rules: &r, now: time.UnixMilli(1_700_000_000_000), history: []*past{newPast()}, acted: map[string]int{}, handed: map[string]int{}, rev: 1, number: 1, instance: 1}
	p.today().epoch = 1
	for i, name := range []string{"A", "B"} {
		p.nodes = append(p.nodes, &node{name: name, process: 1, alive: true, instance: 1, epoch: 1, step: connected, held: map[string]heldCall{}})
		must(p.engine(&link{p: p, n: i}).Renew(context.Background(), time.Second, 0, "", false))
	}
	scene(p)
	p.history = p.history[len(p.history)-1:]
	return p
}

// asks has an approval that all may use, and that was asked some time ago.
func (p *place) asks(id string) {
	a := approval.Approval{ID: id, Rules: []string{"r"}, Digest: strings.Repeat("d", 64), AnyThread: strings.Repeat("d", 64), Call: approval.Call{Principal: "p"}, Opened: p.now, Until: p.now.Add(time.Hour)}
	_, _, err := p.engine(&link{p: p}).Ask(context.Background(), a)
	must(err)
	p.nodes[0].recent = nil
}

func (p *place) ends(id string) *Fact {
	return &Fact{At: p.now, Kind: ApprovalEnded, Approval: id, Ended: approval.Ending{End: approval.EndRevoked, By: "o"}}
}

var lossScenes = map[string]func(*place){
	"a key at two nodes": func(p *place) {
		p.crashes, p.losses, p.lates, p.overs, p.marks = 1, 1, 1, 1, 1
		p.jobs = append(p.jobs, &job{id: "call_1", key: "k", task: Task{Effect: "once"}, at: opens}, &job{node: 1, id: "call_2", key: "k", task: Task{Effect: "once"}, at: opens})
	},
	"an approval at two nodes, and its end": func(p *place) {
		p.crashes, p.losses, p.slows, p.marks = 1, 1, 1, 1
		p.asks("call_A")
		p.jobs = append(p.jobs, &job{id: "call_1", task: Task{Effect: "once", Using: []string{"call_A"}}}, &job{node: 1, event: p.ends("call_A")})
	},
	"two yes, and two calls": func(p *place) {
		p.losses, p.slows = 1, 1
		p.asks("call_A")
		p.jobs = append(p.jobs, &job{id: "call_1", task: Task{Effect: "once", Using: []string{"call_A"}}}, &job{node: 1, id: "ada", yes: "call_A", at: votes}, &job{node: 1, id: "bob", yes: "call_A", at: votes},
			&job{id: "call_2", task: Task{Effect: "once", Using: []string{"call_A"}}})
	},
	"an approval, and two calls": func(p *place) {
		p.crashes, p.losses, p.marks, p.lates = 1, 1, 1, 1
		p.asks("call_A")
		p.jobs = append(p.jobs, &job{id: "call_1", task: Task{Effect: "once", Using: []string{"call_A"}}}, &job{node: 1, id: "call_2", task: Task{Effect: "once", Using: []string{"call_A"}}})
	},
	"a decision of two calls": func(p *place) {
		p.crashes, p.losses, p.marks = 1, 1, 1
		p.asks("call_A")
		first := 0
		p.jobs = append(p.jobs, &job{id: "call_1", task: Task{Effect: "once"}}, &job{id: "call_2", task: Task{Effect: "once", Using: []string{"call_A"}}, behind: &first},
			&job{node: 1, id: "call_3", task: Task{Effect: "once", Using: []string{"call_A"}}})
	},
	"a grant of the last seconds that is revoked": func(p *place) {
		p.losses, p.anews = 1, 1
		must(p.engine(&link{p: p}).AddGrant(context.Background(), approval.Grant{ID: "grant_1", Key: "k", Until: p.now.Add(time.Hour)}))
		p.jobs = append(p.jobs, &job{id: "call_1", task: Task{Effect: "once", Using: []string{"grant_1"}}},
			&job{node: 1, event: &Fact{At: p.now, Kind: GrantRevoked, Grant: "grant_1"}})
	},
	"a grant that is revoked": func(p *place) {
		p.crashes, p.losses, p.marks = 1, 1, 1
		p.asks("call_A")
		must(p.engine(&link{p: p}).AddGrant(context.Background(), approval.Grant{ID: "grant_1", Key: "k", Until: p.now.Add(time.Hour)}))
		p.jobs = append(p.jobs, &job{id: "call_1", task: Task{Effect: "once", Using: []string{"grant_1"}, Spends: []string{"call_A"}}},
			&job{node: 1, event: &Fact{At: p.now, Kind: GrantRevoked, Grant: "grant_1"}})
	},
}

func TestEveryLoss(t *testing.T) {
	skipShort(t)
	for name, scene := range lossScenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, most := newPlace(scene, rules{}), 20_000_000
			if !*searchAll {
				p.slows, p.lates, p.overs, most = 0, 0, 0, 20_000
			}
			states, wrong, path := searchLosses(p, most)
			if wrong != "" {
				t.Errorf("%s, after %q", wrong, path)
			}
			t.Logf("%d states", states)
			if states < 1000 || *searchAll && states > most {
				t.Errorf("%d states", states)
			}
		})
	}
}

// Each of these shortcuts breaks a promise, and the search finds it behind what happens first.
func TestShortcutsAfterALossAreFound(t *testing.T) {
	skipShort(t)
	for name, shortcut := range map[string]struct {
		scene string
		rules rules
		first string
	}{
		"the log has no hashes of keys":             {"a key at two nodes", rules{noKeyHash: true}, "do 0, do 0, do 0, do 0, do 0, crash 0, back 9"},
		"the mark is by time alone":                 {"a decision of two calls", rules{markByTime: true}, "do 0, do 0, do 1, do 1, do 0, mark 0, do 0, do 0, do 1"},
		"the mark is of when a call was opened":     {"a decision of two calls", rules{markAtOpen: true}, "do 0, do 0, do 1, do 1, do 0, mark 0, do 0, do 0, do 1"},
		"the epoch is set before all have put back": {"an approval, and two calls", rules{hasty: true}, "do 0, do 0, do 0, back 1, crash 0, start 0"},
		"a commit may come at any time":             {"an approval, and two calls", rules{unbounded: true}, "do 0, do 0, late 0, resolve 0, arrive 0"},
		"revisions count":                           {"two yes, and two calls", rules{counts: true}, "do 1, slow 2, old 1, restore 0, restore 0, restore 1, restore 1, restore 0, restore 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []rules{shortcut.rules} {
				p := newPlace(lossScenes[shortcut.scene], r)
				for choice := range strings.SplitSeq(shortcut.first, ", ") {
					if !slices.Contains(p.choices(), choice) {
						t.Fatalf("%s cannot happen, only %q", choice, p.choices())
					}
					p.happens(choice)
				}
				states, wrong, path := searchLosses(p, 100_000)
				if wrong == "" {
					t.Error("the search finds nothing")
				}
				t.Logf("%d states: %s, after %q", states, wrong, path)
			}
		})
	}
}
