package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/history"
)

// Engine keeps calls, approvals and grants on a back end. It has their rules: each transition reads
// records, decides, and is one commit on condition that nobody has changed what was read. It is safe
// for concurrent use.
type Engine struct {
	backend  Backend
	process  Process
	now      func() time.Time
	bounds   Bounds
	own      Bounds    // of one principal
	steps    sync.Pool // of *step
	watchers Watchers  // of calls

	terms    atomic.Pointer[history.Terms] // that this gateway keeps
	kept     atomic.Pointer[history.Keeping]
	inEpoch  atomic.Pointer[string]
	noticed  atomic.Pointer[string] // the epoch of the last Renew
	sweeping sync.Mutex             // of threads: none becomes a stub
	recent   recentFacts
	last     lastRows

	approvalWatchers Watchers
	evicting         atomic.Bool   // a commit that makes room is under way
	evictions        atomic.Uint64 // how many there were

	inForce atomic.Pointer[[]string] // the ids of stops: see ConfirmStops

	recovering sync.Mutex
	recovered  Row // of OpenIndex, up to which Recover has looked for calls of earlier processes
}

// Process says who keeps calls.
type Process struct {
	// Name names the process: it owns the calls that it dispatches.
	Name string
	// Node is what the processes of a gateway have in common, one after the other, where others keep
	// calls on the same back end; else it is empty.
	Node string
	// Replica is the name of its machine, for people.
	Replica string
	// Holds reports whether the process opens or runs a call.
	Holds func(id string) bool
	// Wait bounds a transition; 0: its caller does.
	Wait time.Duration
}

// shared reports whether other processes keep calls on the same back end.
func (p *Process) shared() bool { return p.Node != "" }

// NewEngine returns the engine of a back end, for a process.
func NewEngine(b Backend, p Process, now func() time.Time, bounds Bounds) *Engine {
	return &Engine{backend: b, process: p, now: now, bounds: bounds, own: bounds.PerPrincipal(),
		steps: sync.Pool{New: func() any { return &step{} }}}
}

// step is what a transition reads and leaves.
type step struct {
	now     time.Time
	ctx     context.Context
	backend Backend
	process *Process
	again   bool // what was read before may be out of date
	commit  Commit
	rows    []Row
	keys    []Key
	found   []Record
	was, is []Entry
}

// reset forgets what was read and changed.
func (s *step) reset() {
	clear(s.commit.Changes)
	clear(s.commit.Add)
	clear(s.commit.Remove)
	clear(s.commit.Counts)
	s.commit = Commit{Changes: s.commit.Changes[:0], Add: s.commit.Add[:0], Remove: s.commit.Remove[:0], Rooms: s.commit.Rooms[:0],
		Counts: s.commit.Counts[:0]}
}

// place returns a record among those of the step; nil: it was not read.
func (s *step) place(key Key) *Replacement {
	for i := len(s.commit.Changes) - 1; i >= 0; i-- { // what was read last is mostly what is put
		if s.commit.Changes[i].Key == key {
			return &s.commit.Changes[i]
		}
	}
	return nil
}

// read reads records at once: at has them then.
func (s *step) read(keys ...Key) (err error) {
	s.keys = s.keys[:0]
	for _, key := range keys {
		if s.place(key) == nil {
			s.keys = append(s.keys, key)
		}
	}
	if len(s.keys) == 0 {
		return nil
	}
	if s.found, err = s.backend.View(s.ctx, s.keys, !s.again, s.found[:0]); err != nil {
		return err
	}
	for i, was := range s.found {
		s.commit.Changes = append(s.commit.Changes, Replacement{Key: s.keys[i], Was: was, Now: was.Value})
	}
	clear(s.found)
	return nil
}

// expect is read of records that are rarely there: where reading is a request to another machine, they
// are taken to be absent. If one is there, the commit conflicts, and they are read then.
func (s *step) expect(keys ...Key) error {
	if !s.process.shared() || s.again {
		return s.read(keys...)
	}
	for _, key := range keys {
		if s.place(key) == nil {
			s.commit.Changes = append(s.commit.Changes, Replacement{Key: key})
		}
	}
	return nil
}

// at returns the place of a record among those of the step. It reads a record that is not there yet.
func (s *step) at(kind Kind, id string) (*Replacement, error) {
	key := Key{kind, id}
	if c := s.place(key); c != nil {
		return c, nil
	}
	if err := s.read(key); err != nil {
		return nil, err
	}
	return s.place(key), nil
}

// get reads a record; nil: there is none.
func get[T any](s *step, kind Kind, id string) (*T, error) {
	c, err := s.at(kind, id)
	if err != nil {
		return nil, err
	}
	return as[T](c.Now)
}

// put puts a value, which nobody changes from here on, in the place of what was read.
func (s *step) put(kind Kind, id string, v Value) error {
	c, err := s.at(kind, id)
	if err == nil {
		c.Now = v
	}
	return err
}

// drop removes a record.
func (s *step) drop(kind Kind, id string) error { return s.put(kind, id, nil) }

var (
	errForeignRecord = Unavailable(errors.New("a record is of another kind than its name says"))
	errContended     = Unavailable(errors.New("too many changes of one record at once"))
)

// maxConflicts is how often a transition is tried; each time another has changed what it had read.
const maxConflicts = 1024

// change makes one transition: it applies a rule to records as they are, and commits what it has
// changed. Where the rule refuses, nothing is written.
func (e *Engine) change(ctx context.Context, rule func(*step) error) error {
	return e.transition(ctx, false, rule)
}

// transition is change. Where again is true, nothing that it reads may be out of date.
func (e *Engine) transition(ctx context.Context, again bool, rule func(*step) error) error {
	s := e.steps.Get().(*step)
	if e.process.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.process.Wait)
		defer cancel()
	}
	s.ctx, s.backend, s.process, s.again = ctx, e.backend, &e.process, again
	defer func() {
		s.reset()
		s.ctx, s.backend = nil, nil
		e.steps.Put(s)
	}()
	for range maxConflicts {
		s.reset()
		s.now = e.now()
		err := rule(s)
		if err != nil || !s.prepare() {
			if s.again || !e.process.shared() || errors.Is(err, ErrUnavailable) {
				return err
			}
			s.again = true // what this process has written last may be out of date, and no commit says so
			continue
		}
		evictions := e.evictions.Load()
		outcome, err := e.backend.Commit(ctx, &s.commit)
		if s.commit.Done != nil && outcome != Riding && outcome != Conflicted {
			s.commit.Done()
		}
		switch {
		case err != nil:
			return err
		case outcome == Full:
			return ErrFull
		case outcome == Riding:
			return nil
		case outcome == Committed:
			e.last.put(s)
			e.notify(s)
			if len(s.commit.Counts) > 0 {
				e.makeRoom(s.commit.Counts[0].Principal, s.commit.Own, s.commit.All, evictions)
			}
			return nil
		}
		e.last.drop(s)
		s.again = true
	}
	return errContended
}

// prepare completes a commit with the rows and the counts of what it changes. It reports whether
// there is anything to commit.
func (s *step) prepare() (changes bool) {
	for i := range s.commit.Changes {
		c := &s.commit.Changes[i]
		if c.Now == c.Was.Value {
			continue
		}
		changes = true
		s.was, s.is = Entries(c.Was.Value, s.was[:0]), Entries(c.Now, s.is[:0])
		s.commit.Remove = without(s.was, s.is, s.commit.Remove)
		s.commit.Add = without(s.is, s.was, s.commit.Add)
		for _, side := range [...]struct {
			of   Value
			sign int
		}{{c.Was.Value, -1}, {c.Now, 1}} {
			switch of := side.of.(type) {
			case *Call:
				s.count(of.Scope.Principal, of.Usage(), side.sign)
			case *Thread:
				if !s.process.shared() { // which has no bytes of its own for them
					s.count(of.Principal, Usage{Total: Amount{1, of.Size()}}, side.sign)
				}
			}
		}
	}
	clear(s.was)
	clear(s.is)
	return changes
}

// count adds what a call takes, or takes it away.
func (s *step) count(principal string, of Usage, sign int) {
	if sign < 0 {
		of = Usage{}.Minus(of)
	}
	for i := range s.commit.Counts {
		if c := &s.commit.Counts[i]; c.Principal == principal {
			c.Of = c.Of.Plus(of)
			return
		}
	}
	s.commit.Counts = append(s.commit.Counts, Count{principal, of})
}

// without appends the entries that others do not have.
func without(entries, others, to []Entry) []Entry {
next:
	for _, e := range entries {
		for i := range others {
			if others[i] == e {
				continue next
			}
		}
		to = append(to, e)
	}
	return to
}

// notify wakes those who watch what a commit has changed.
func (e *Engine) notify(s *step) {
	for i := range s.commit.Changes {
		c := &s.commit.Changes[i]
		if c.Now == c.Was.Value {
			continue
		}
		switch now := c.Now.(type) {
		case *Call:
			if now.Step.Rank() >= Waiting.Rank() {
				e.watchers.Notify(now.ID)
			}
		case *Asked:
			if was, ok := c.Was.Value.(*Asked); !ok || was.Revision != now.Revision {
				e.approvalWatchers.Notify(now.ID)
			}
		}
	}
}

// Notify wakes those who watch a call that is kept beside the engine.
func (e *Engine) Notify(id string) { e.watchers.Notify(id) }

// scanBatch bounds how many rows, and readBatch how many records, are read at once.
const (
	scanBatch = 256
	readBatch = 32
)

// scan passes at most limit rows of an index, behind a row and not behind another, to do, in batches.
func (e *Engine) scan(ctx context.Context, index Index, behind, to Row, limit, batch int, do func([]Row) (more bool, err error)) error {
	s := e.steps.Get().(*step)
	defer func() {
		clear(s.rows)
		e.steps.Put(s)
	}()
	for limit > 0 {
		var err error
		n := min(limit, batch)
		if s.rows, err = e.backend.Scan(ctx, index, behind, to, n, s.rows[:0]); err != nil || len(s.rows) == 0 {
			return err
		}
		if more, err := do(s.rows); err != nil || !more || len(s.rows) < n {
			return err
		}
		behind = s.rows[n-1]
		limit -= n
	}
	return nil
}

// ids returns the ids of at most limit rows of an index, behind a row and not behind another.
func (e *Engine) ids(ctx context.Context, index Index, behind, to Row, limit int) (ids []string, err error) {
	err = e.scan(ctx, index, behind, to, limit, scanBatch, func(rows []Row) (bool, error) {
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return true, nil
	})
	return ids, err
}

// indexed passes the records of at most limit rows of an index to do.
func indexed[T any](ctx context.Context, e *Engine, kind Kind, index Index, behind, to Row, limit int, do func(*T) (more bool)) error {
	return e.scan(ctx, index, behind, to, limit, readBatch, func(rows []Row) (more bool, err error) {
		ids := make([]string, len(rows))
		for i, row := range rows {
			ids[i] = row.ID
		}
		return views(ctx, e, kind, ids, do)
	})
}

// views passes those of records that are there to do.
func views[T any](ctx context.Context, e *Engine, kind Kind, ids []string, do func(*T) (more bool)) (more bool, err error) {
	keys := make([]Key, len(ids))
	for i, id := range ids {
		keys[i] = Key{kind, id}
	}
	found, err := e.backend.View(ctx, keys, false, nil)
	if err != nil {
		return false, err
	}
	for _, record := range found {
		value, err := as[T](record.Value)
		if err != nil || value != nil && !do(value) {
			return false, err
		}
	}
	return true, nil
}

// as returns what a value points to; nil: there is none.
func as[T any](v Value) (*T, error) {
	if v == nil {
		return nil, nil
	}
	value, ok := v.(*T)
	if !ok {
		return nil, errForeignRecord
	}
	return value, nil
}

// view reads one record; nil: there is none.
func view[T any](ctx context.Context, e *Engine, kind Kind, id string) (value *T, err error) {
	s := e.steps.Get().(*step)
	defer func() {
		clear(s.found)
		e.steps.Put(s)
	}()
	s.keys = append(s.keys[:0], Key{kind, id})
	if s.found, err = e.backend.View(ctx, s.keys, false, s.found[:0]); err != nil {
		return nil, err
	}
	return as[T](s.found[0].Value)
}

// makeRoom evicts calls where more is kept than the bounds say, of a principal or in all, unless that is
// under way. Nobody waits for it: the commit may ride with the next one. What cannot be done is left to
// the commits that follow.
func (e *Engine) makeRoom(principal string, own, all Usage, evictions uint64) {
	index, kept, bounds := Index{PrincipalsSpare, principal}, own, e.own
	if !own.overflows(e.own) {
		index, kept, bounds = Index{SpareIndex, ""}, all, e.bounds
	}
	if !kept.overflows(bounds) || !e.evicting.CompareAndSwap(false, true) {
		return
	}
	if e.evictions.Load() != evictions { // some are gone since
		e.evicting.Store(false)
		return
	}
	if e.process.shared() {
		go e.evict(index, kept.evictions(bounds))
		return
	}
	e.evict(index, kept.evictions(bounds))
}

// evict removes calls, those first that have ended first.
func (e *Engine) evict(index Index, n int) {
	done := func() {
		e.evictions.Add(1)
		e.evicting.Store(false)
	}
	ids, err := e.ids(context.Background(), index, firstRow, lastRow, n)
	if err != nil || len(ids) == 0 {
		done()
		return
	}
	if removed, err := e.removeCalls(context.Background(), ids, done, (*Call).Evictable); err != nil || removed == 0 {
		done()
	}
}

// removeCalls removes those of some calls that are fit for that, and their keys. It returns how many. Where
// done is not nil, nobody waits for that.
func (e *Engine) removeCalls(ctx context.Context, ids []string, done func(), fit func(*Call) bool) (n int, err error) {
	keys := make([]Key, len(ids))
	for i, id := range ids {
		keys[i] = Key{CallRecord, id}
	}
	err = e.change(ctx, func(s *step) error {
		n = 0
		if err := s.read(keys...); err != nil {
			return err
		}
		for _, id := range ids {
			c, err := get[Call](s, CallRecord, id)
			if err != nil {
				return err
			}
			if c == nil || !fit(c) {
				continue
			}
			n++
			s.commit.Volatile, s.commit.Done = c.Step == Opened && len(ids) == 1, done
			if err := s.removeCall(c); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

func (s *step) removeCall(c *Call) error {
	if err := s.drop(CallRecord, c.ID); err != nil || c.Key == "" {
		return err
	}
	name := keyName(c.Scope, c.Key)
	if key, err := get[Started](s, KeyRecord, name); err != nil || key == nil || key.Call != c.ID {
		return err
	}
	return s.drop(KeyRecord, name)
}
