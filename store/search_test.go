package store

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// The search runs actors through the transitions of the engine in every order: each reads and
// decides in one step and commits in another, and in between others may commit. A reply can be lost,
// a commit can arrive after its sender has given up, and an actor can stop for good.

// world is what the actors share, and what has come of it.
type world struct {
	memory *memory
	now    time.Time
	actors []*actor
	late   []*step // commits that are on their way, and that nobody waits for

	losses, stops int // that are left

	acts    map[string]int // how often a tool has acted, by key and by approval
	handed  map[string]int // how often the result of a call was handed over
	denied  bool           // a no was confirmed
	revoked bool           // a revocation of the grant was
	wrong   string         // the first promise that was broken

	unchecked bool // of the back end: commits without conditions
	hasty     bool // of the engine: an ending that is repeated takes no delivery back
	apart     bool // of the engine: approvals are used after the dispatch
	takesBack bool // of the back end: it passes on what was done when nobody waited for it
	stands    bool // of the engine: what was passed on stands
	stopped   bool // somebody has
}

// actor is somebody who makes transitions, one after the other.
type actor struct {
	name string
	rule func(*step) error // the next transition; nil: it is done
	then func(err error)   // what follows; errLost: there was no reply
	read *step             // what it has read and decided
	err  error
	said string // what it remembers besides
}

var errLost = errors.New("no reply")

func (w *world) breaks(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// call is an actor that takes a call with a key from its judgement to the end of its thread.
func (w *world) call(id, key string, task Task) *actor {
	a := &actor{name: id}
	call := Call{ID: id, Key: key, Digest: "d", Scope: Scope{Principal: "p"}}
	deliver := true
	var open, dispatch, use, forget, finish, hand func()
	open = func() {
		var prior *Call
		a.rule = func(s *step) (err error) {
			prior, err = s.open(&call, nil)
			return err
		}
		a.then = func(err error) {
			switch {
			case errors.Is(err, errLost):
				open()
			case err != nil || prior != nil:
				a.rule = nil
			default:
				dispatch()
			}
		}
	}
	acted := func() {
		if w.acts["key "+key]++; key != "" && w.acts["key "+key] > 1 {
			w.breaks("the key %s has acted twice", key)
		}
		for _, used := range task.Using {
			if IsGrant(used) {
				if w.revoked {
					w.breaks("%s has acted by a grant after its revocation", id)
				}
				continue
			}
			if w.acts[used]++; w.acts[used] > 1 {
				w.breaks("the approval %s was used twice", used)
			}
			if w.denied {
				w.breaks("%s has acted after a no", id)
			}
		}
		finish()
	}
	dispatch = func() {
		a.rule = w.changing(id, func(s *step, c *Call) (bool, error) {
			if w.apart {
				return false, c.Dispatch(task, "")
			}
			return false, s.dispatch(c, task)
		})
		a.then = func(err error) {
			switch {
			case err != nil: // where there was no reply, it may be dispatched, and never acts
				forget()
			case w.apart:
				acted()
				use()
			default:
				acted()
			}
		}
	}
	use = func() {
		a.rule = func(s *step) error {
			asked, err := get[Asked](s, AskRecord, task.Using[0])
			if err != nil {
				return err
			}
			a := asked.Approval
			if err := a.Use(id, s.now); err != nil {
				return err
			}
			return s.replace(a)
		}
		a.then = func(error) { finish() }
	}
	forget = func() {
		a.rule = func(s *step) error {
			c, err := get[Call](s, CallRecord, id)
			if err != nil || c == nil || c.Step != Opened {
				return err
			}
			return s.removeCall(c)
		}
		a.then = func(err error) { a.rule = nil }
	}
	finish = func() {
		a.rule = w.changing(id, func(s *step, c *Call) (bool, error) {
			e := Ending{State: Done, Attempt: id, Deliver: deliver}
			if w.hasty && c.Step == Ended && c.FinishedBy == id {
				return true, nil
			}
			return c.Finish(e, s.now)
		})
		a.then = func(err error) {
			switch {
			case errors.Is(err, errLost):
				deliver, a.said = false, "again"
				finish()
			case err == nil && deliver:
				w.hands(id)
				a.rule = nil
			default:
				hand()
			}
		}
	}
	hand = func() { w.handing(a, id) }
	open()
	return a
}

// changing is a transition of a call.
func (w *world) changing(id string, rule func(*step, *Call) (bool, error)) func(*step) error {
	return func(s *step) error { return s.changeCall(id, rule) }
}

func (w *world) hands(id string) {
	if w.handed[id]++; w.handed[id] > 1 {
		w.breaks("the result of %s was handed over twice", id)
	}
}

// handing has an actor hand over the result of a call, unless somebody has. Where it gets no reply,
// it hands nothing over, and nobody does.
func (w *world) handing(a *actor, id string) {
	a.rule = w.changing(id, func(s *step, c *Call) (bool, error) { return Deliver{Principal: "p"}.Apply(c, s.now) })
	a.then = func(err error) {
		if a.rule = nil; err == nil {
			w.hands(id)
		} else if errors.Is(err, errLost) {
			w.handed[id+" perhaps"]++
		}
	}
}

// once is an actor of one transition, which it repeats if it gets no reply.
func once(name string, rule func(*step) error, confirmed func()) *actor {
	a := &actor{name: name, rule: rule}
	a.then = func(err error) {
		if errors.Is(err, errLost) {
			return
		}
		if a.rule = nil; err == nil && confirmed != nil {
			confirmed()
		}
	}
	return a
}

func (w *world) vote(id, by string, yes bool) *actor {
	return once(by, func(s *step) error {
		was, err := get[Asked](s, AskRecord, id)
		if err != nil {
			return err
		}
		a := was.Approval
		if _, err := a.Cast(approval.Vote{By: by, Yes: yes, Digest: a.Digest, Rules: a.Rules}, s.now); err != nil {
			return err
		}
		return s.replace(a)
	}, func() { w.denied = w.denied || !yes })
}

// choices are what can happen next.
func (w *world) choices() (all []string) {
	for i, a := range w.actors {
		switch {
		case a.rule == nil:
			continue
		case a.read == nil:
			all = append(all, fmt.Sprint("read ", i))
		default:
			all = append(all, fmt.Sprint("commit ", i))
			if w.losses > 0 && a.err == nil {
				all = append(all, fmt.Sprint("lose ", i), fmt.Sprint("late ", i))
			}
		}
		if w.stops > 0 {
			all = append(all, fmt.Sprint("stop ", i))
		}
	}
	for i := range w.late {
		all = append(all, fmt.Sprint("arrive ", i))
	}
	return all
}

// do lets one thing happen.
func (w *world) do(choice string) {
	var what string
	var i int
	_, _ = fmt.Sscan(choice, &what, &i)
	if what == "arrive" {
		s := w.late[i]
		w.late = slices.Delete(w.late, i, i+1)
		w.passesOn(s, w.commits(s))
		return
	}
	a := w.actors[i]
	switch what {
	case "read":
		a.read = &step{now: w.now, ctx: context.Background(), backend: w.memory, process: &Process{}}
		a.err = a.rule(a.read)
		a.read.prepare()
		return
	case "stop":
		w.stops--
		w.stopped = true
		a.rule, a.read = nil, nil
		return
	case "late":
		w.losses--
		w.late = append(w.late, a.read)
		a.err = errLost
	case "lose":
		w.losses--
		w.passesOn(a.read, w.commits(a.read))
		a.err = errLost
	case "commit":
		if a.err == nil && !w.commits(a.read) {
			a.read = nil // it reads again
			return
		}
	}
	a.read = nil
	a.then(a.err)
}

// passesOn has a dispatch taken back that was done when nobody waited for it.
func (w *world) passesOn(s *step, done bool) {
	if id, to := s.commit.Begins(); done && to == Dispatched && w.takesBack && !w.stands {
		w.actors = append(w.actors, once("takes back "+id, func(next *step) error { return next.takeBack(id, &s.commit) }, nil))
	}
}

// commits makes a commit, and reports whether it was one.
func (w *world) commits(s *step) bool {
	if w.unchecked {
		for i := range s.commit.Changes {
			r := &s.commit.Changes[i]
			now := w.record(r.Key)
			if r.Was.slot = now.slot; now.slot != nil {
				r.Was.Rev = now.Rev
			}
			if r.Now == nil && now.slot == nil {
				return true
			}
		}
		s.commit.Add, s.commit.Remove = nil, nil
	}
	outcome, _ := w.memory.Commit(context.Background(), &s.commit)
	return outcome == Committed
}

// state is all that what can happen yet depends on, and checks what must always hold.
func (w *world) state(seed maphash.Seed) uint64 {
	var b strings.Builder
	rows, used := map[Entry]bool{}, Usage{}
	for kind := range w.memory.records {
		for _, id := range slices.Sorted(maps.Keys(w.memory.records[kind])) {
			fmt.Fprint(&b, kind, id)
			value := w.memory.records[kind][id].value
			describe(&b, value)
			for _, e := range Entries(value, nil) {
				rows[e] = true
			}
			switch v := value.(type) {
			case *Call:
				used = used.Plus(v.Usage())
			case *Asked:
				if v.Ran != "" && v.Ended.End != "" {
					w.breaks("%s was used and has ended", id)
				}
			case *Started:
				if w.memory.records[CallRecord][v.Call] == nil {
					w.breaks("a key names a call that is not there")
				}
			}
		}
	}
	if !w.unchecked {
		w.compare(rows, used)
	}
	for _, s := range w.late {
		w.describe(&b, s)
	}
	for _, a := range w.actors {
		fmt.Fprint(&b, "|", a.name, a.rule == nil, a.err, a.said)
		if a.rule != nil {
			fmt.Fprintf(&b, "%p", a.then)
		}
		if a.read != nil {
			w.describe(&b, a.read)
		}
	}
	fmt.Fprint(&b, w.acts, w.handed, w.denied, w.revoked, w.losses, w.stops)
	return maphash.String(seed, b.String())
}

// compare checks that rows and counts are those of the records.
func (w *world) compare(rows map[Entry]bool, used Usage) {
	n := 0
	check := func(index Index, of [][]Row) {
		for _, chunk := range of {
			for _, row := range chunk {
				if n++; !rows[Entry{index, row}] {
					w.breaks("there is a row %v of %v, and no record", row, index)
				}
			}
		}
	}
	for name := range w.memory.indexes {
		check(Index{IndexName(name), ""}, w.memory.indexes[name].all.chunks)
		for of, r := range w.memory.indexes[name].of {
			check(Index{IndexName(name), of}, r.chunks)
		}
	}
	if n != len(rows) {
		w.breaks("%d rows of %d", n, len(rows))
	}
	if w.memory.quota.total != used {
		w.breaks("counted %+v, kept %+v", w.memory.quota.total, used)
	}
}

func (w *world) record(key Key) Record {
	found, _ := w.memory.View(context.Background(), []Key{key}, false, nil)
	return found[0]
}

func (w *world) describe(b *strings.Builder, s *step) {
	for i := range s.commit.Changes {
		r := &s.commit.Changes[i]
		now := w.record(r.Key)
		fmt.Fprint(b, ";", r.Key, now.slot == r.Was.slot && now.Rev == r.Was.Rev)
		describe(b, r.Now)
	}
}

func describe(b *strings.Builder, v Value) {
	switch v := v.(type) {
	case *Call:
		fmt.Fprint(b, v.ID, v.Step, v.FinishedBy, v.Delivered, v.DeliveredByEnding)
	case *Asked:
		fmt.Fprint(b, v.Revision, v.Ran, v.Ended.End, len(v.Votes), v.Notice.at.IsZero())
	case *Started:
		fmt.Fprint(b, v.Call)
	case *Question:
		fmt.Fprint(b, v.Approvals)
	case nil:
		fmt.Fprint(b, "none")
	default:
		fmt.Fprint(b, "there")
	}
}

// quiet checks what must hold once nobody does anything any more.
func (w *world) quiet() {
	for id, s := range w.memory.records[CallRecord] {
		c := s.value.(*Call)
		if c.Step == Ended && c.Delivered && w.handed[id]+w.handed[id+" perhaps"] == 0 && w.stops > 0 {
			w.breaks("%s is delivered, and nobody was handed its result", id)
		}
		if c.Step == Dispatched && w.takesBack && !w.stopped {
			w.breaks("%s is dispatched, and nobody ends it", id)
		}
	}
	for id, s := range w.memory.records[AskRecord] {
		if ran := s.value.(*Asked).Ran; ran != "" && w.takesBack && w.memory.records[CallRecord][ran] == nil {
			w.breaks("%s was used by a call that is not there", id)
		}
	}
}

// search tries every order of what can happen. It returns what was broken first, and how.
func search(build func() *world, most int) (states int, wrong string, path []string) {
	seed := maphash.MakeSeed()
	seen := map[uint64]bool{}
	var explore func(path []string) bool
	explore = func(sofar []string) bool {
		w := build()
		for _, choice := range sofar {
			w.do(choice)
		}
		at := w.state(seed)
		if seen[at] && w.wrong == "" {
			return true
		}
		seen[at] = true
		next := w.choices()
		if len(next) == 0 {
			w.quiet()
		}
		if w.wrong != "" || len(seen) > most {
			wrong, path = w.wrong, slices.Clone(sofar)
			return false
		}
		for _, choice := range next {
			if !explore(append(sofar, choice)) {
				return false
			}
		}
		return true
	}
	explore(nil)
	return len(seen), wrong, path
}

// scenes are what is searched.
var scenes = map[string]func(*world){
	"one key at two processes, and a callback": func(w *world) {
		task := Task{Effect: "once"}
		w.losses, w.stops = 1, 1
		w.actors = append(w.actors, w.call("call_1", "k", task), w.call("call_2", "k", task), once("callback", func(s *step) error {
			return s.changeCall("call_1", func(s *step, c *Call) (bool, error) { return c.Finish(Ending{State: Done, Attempt: "callback"}, s.now) })
		}, nil))
	},
	"a result, and who asks for it": func(w *world) {
		asks := &actor{name: "asks"}
		w.losses, w.stops = 2, 1
		w.handing(asks, "call_1")
		w.actors = append(w.actors, w.call("call_1", "k", Task{Effect: "once"}), asks)
	},
	"two calls by one approval, and a no": func(w *world) {
		w.losses = 1
		w.ask("call_A")
		w.actors = append(w.actors, w.call("call_1", "", Task{Effect: "once", Using: []string{"call_A"}}), w.call("call_2", "", Task{Effect: "once", Using: []string{"call_A"}}), w.vote("call_A", "bob", false))
	},
	"a key and an approval, and a disk that confirms too late": func(w *world) {
		w.losses, w.takesBack = 2, true
		w.ask("call_A")
		w.actors = append(w.actors, w.call("call_1", "k", Task{Effect: "once", Using: []string{"call_A"}}), w.call("call_2", "k", Task{Effect: "once", Using: []string{"call_A"}}))
	},
	"a grant that is revoked, and the approval that it spends": func(w *world) {
		w.losses = 1
		w.ask("call_A")
		s := w.begin()
		_ = s.put(GrantRecord, "grant_1", &approval.Grant{ID: "grant_1", Until: w.now.Add(time.Hour)})
		w.end(s)
		w.actors = append(w.actors, w.call("call_1", "k", Task{Effect: "once", Using: []string{"grant_1"}, Spends: []string{"call_A"}}),
			w.call("call_2", "", Task{Effect: "once", Using: []string{"call_A"}}), once("operator", func(s *step) error { return s.drop(GrantRecord, "grant_1") }, func() { w.revoked = true }))
	},
}

func (w *world) begin() *step {
	return &step{now: w.now, ctx: context.Background(), backend: w.memory, process: &Process{}}
}

func (w *world) end(s *step) {
	s.prepare()
	if !w.commits(s) {
		panic("nobody else is there")
	}
}

// ask has somebody ask for an approval.
func (w *world) ask(id string) {
	a := approval.Approval{ID: id, Rules: []string{"r"}, Digest: "d", Call: approval.Call{Principal: "p"}, Until: w.now.Add(time.Hour)}
	s := w.begin()
	if _, joined, err := s.ask(&a); joined || err != nil {
		panic(err)
	}
	w.end(s)
}

func newWorld(scene func(*world), shortcut func(*world)) func() *world {
	return func() *world {
		w := &world{memory: newMemory(Bounds{Calls: 100, Bytes: 1 << 20}), now: time.UnixMilli(1_700_000_000_000), acts: map[string]int{}, handed: map[string]int{}}
		scene(w)
		shortcut(w)
		return w
	}
}

// skipShort skips a search in short runs, which are those with the race detector: it has one goroutine.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a search of many states; it runs without -short")
	}
}

func TestEveryOrder(t *testing.T) {
	skipShort(t)
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states, wrong, path := search(newWorld(scene, func(*world) {}), 300_000)
			if wrong != "" {
				t.Errorf("%s, after %q", wrong, path)
			}
			t.Logf("%d states", states)
			if states < 100 || states > 300_000 {
				t.Errorf("%d states", states)
			}
		})
	}
}

// Each of these shortcuts breaks a promise, and the search finds it.
func TestShortcutsAreFound(t *testing.T) {
	skipShort(t)
	for name, shortcut := range map[string]struct {
		scene string
		take  func(*world)
	}{
		"commits without conditions":               {"one key at two processes, and a callback", func(w *world) { w.unchecked = true }},
		"votes without conditions":                 {"two calls by one approval, and a no", func(w *world) { w.unchecked = true }},
		"approvals are used after the dispatch":    {"two calls by one approval, and a no", func(w *world) { w.apart = true }},
		"a late dispatch stands":                   {"a key and an approval, and a disk that confirms too late", func(w *world) { w.stands = true }},
		"a repeated ending takes no delivery back": {"a result, and who asks for it", func(w *world) { w.hasty = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, wrong, path := search(newWorld(scenes[shortcut.scene], shortcut.take), 300_000)
			if wrong == "" {
				t.Error("the search finds nothing")
			}
			t.Logf("%s, after %q", wrong, path)
		})
	}
}

// A log whose decisions do not name their keys ends a call that the back end has as opened.
func TestAnOutcomeOfAnOpenedCall(t *testing.T) {
	bounds := Bounds{Calls: 100, Bytes: 1 << 20, PrincipalPercent: 100}
	e := NewEngine(newMemory(bounds), Process{Name: "A/1", Node: "A", Holds: func(string) bool { return false }}, time.Now, bounds)
	if _, err := e.Open(t.Context(), Call{ID: "call_1", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	_, _, err := e.Fold(t.Context(), []Fact{{Kind: Executed, Call: Call{ID: "call_1"}, At: time.Now()}, {Kind: OutcomeKnown, Call: Call{ID: "call_1"}, At: time.Now()}})
	if c, missing := e.Get(t.Context(), "call_1", OfRecovery()); err != nil || missing != nil || c.Step != Ended {
		t.Errorf("%+v, %v, %v", c, missing, err)
	}
}
