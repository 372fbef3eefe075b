package store

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Engine keeps calls, approvals and grants on a back end. It has their rules: each transition reads
// records, decides, and is one commit on condition that nobody has changed what was read. It is safe
// for concurrent use.
type Engine struct {
	backend  Backend
	now      func() time.Time
	bounds   Bounds
	own      Bounds    // of one principal
	steps    sync.Pool // of *step
	watchers Watchers  // of calls

	approvalWatchers Watchers
}

// NewEngine returns the engine of a back end.
func NewEngine(b Backend, now func() time.Time, bounds Bounds) *Engine {
	return &Engine{backend: b, now: now, bounds: bounds, own: bounds.PerPrincipal(), steps: sync.Pool{New: func() any { return &step{} }}}
}

// step is what a transition reads and leaves.
type step struct {
	now     time.Time
	ctx     context.Context
	backend Backend
	commit  Commit
	rows    []Row
	was, is []Entry
}

// reset forgets what was read and changed.
func (s *step) reset() {
	clear(s.commit.Changes)
	clear(s.commit.Add)
	clear(s.commit.Remove)
	clear(s.commit.Counts)
	s.commit = Commit{Changes: s.commit.Changes[:0], Add: s.commit.Add[:0], Remove: s.commit.Remove[:0], Rooms: s.commit.Rooms[:0], Counts: s.commit.Counts[:0]}
}

// at returns the place of a record among those of the step. It reads a record that is not there yet.
func (s *step) at(kind Kind, id string) (*Replacement, error) {
	key := Key{kind, id}
	for i := len(s.commit.Changes) - 1; i >= 0; i-- { // what was read last is mostly what is put
		if s.commit.Changes[i].Key == key {
			return &s.commit.Changes[i], nil
		}
	}
	was, err := s.backend.View(s.ctx, key)
	if err != nil {
		return nil, err
	}
	s.commit.Changes = append(s.commit.Changes, Replacement{Key: key, Was: was, Now: was.Value})
	return &s.commit.Changes[len(s.commit.Changes)-1], nil
}

// get reads a record; nil: there is none.
func get[T any](s *step, kind Kind, id string) (*T, error) {
	c, err := s.at(kind, id)
	if err != nil || c.Now == nil {
		return nil, err
	}
	value, ok := c.Now.(*T)
	if !ok {
		return nil, errForeignRecord
	}
	return value, nil
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
	s := e.steps.Get().(*step)
	s.ctx, s.backend = ctx, e.backend
	defer func() {
		s.reset()
		s.ctx, s.backend = nil, nil
		e.steps.Put(s)
	}()
	for range maxConflicts {
		s.reset()
		s.now = e.now()
		if err := rule(s); err != nil {
			return err
		}
		if !s.prepare() {
			return nil
		}
		outcome, err := e.backend.Commit(ctx, &s.commit)
		switch {
		case err != nil:
			return err
		case outcome == Full:
			return ErrFull
		case outcome == Committed:
			e.notify(s)
			if s.commit.Own.overflows(e.own) {
				if err := e.evict(ctx, Index{principalsSpare, s.commit.Counts[0].Principal}, s.commit.Own, e.own); err != nil {
					return err
				}
			}
			if s.commit.All.overflows(e.bounds) {
				return e.evict(ctx, Index{spareIndex, ""}, s.commit.All, e.bounds)
			}
			return nil
		}
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
		s.was, s.is = entries(c.Was.Value, s.was[:0]), entries(c.Now, s.is[:0])
		s.commit.Remove = without(s.was, s.is, s.commit.Remove)
		s.commit.Add = without(s.is, s.was, s.commit.Add)
		for _, side := range [...]struct {
			of   Value
			sign int
		}{{c.Was.Value, -1}, {c.Now, 1}} {
			call, ok := side.of.(*Call)
			if !ok {
				continue
			}
			w := call.footprint()
			s.count(call.Scope.Principal, usageOf(&w), side.sign)
		}
	}
	clear(s.was)
	clear(s.is)
	return changes
}

// count adds what a call takes, or takes it away.
func (s *step) count(principal string, of Usage, sign int) {
	if sign < 0 {
		of = Usage{}.minus(of)
	}
	for i := range s.commit.Counts {
		if c := &s.commit.Counts[i]; c.Principal == principal {
			c.Of = c.Of.plus(of)
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

// scanBatch bounds how many rows are read at once.
const scanBatch = 256

// scan passes the ids of at most limit rows of an index, behind a row and not behind another, to do.
func (e *Engine) scan(ctx context.Context, index Index, behind, to Row, limit int, do func(id string) (more bool, err error)) error {
	s := e.steps.Get().(*step)
	defer func() {
		clear(s.rows)
		e.steps.Put(s)
	}()
	for limit > 0 {
		var err error
		n := min(limit, scanBatch)
		if s.rows, err = e.backend.Scan(ctx, index, behind, to, n, s.rows[:0]); err != nil {
			return err
		}
		for _, row := range s.rows {
			if more, err := do(row.ID); err != nil || !more {
				return err
			}
			behind = row
		}
		if len(s.rows) < n {
			return nil
		}
		limit -= n
	}
	return nil
}

// view reads one record; nil: there is none.
func view[T any](ctx context.Context, e *Engine, kind Kind, id string) (*T, error) {
	found, err := e.backend.View(ctx, Key{kind, id})
	if err != nil || found.Value == nil {
		return nil, err
	}
	value, ok := found.Value.(*T)
	if !ok {
		return nil, errForeignRecord
	}
	return value, nil
}

// evictBatch is how many calls are evicted at once, at most. Where a bound is large, that makes room
// for more calls than one.
const evictBatch = 32

// evict removes calls of an index, the oldest first, where more is kept than the bounds say. Its
// commit is followed by others until they hold.
func (e *Engine) evict(ctx context.Context, index Index, kept Usage, bounds Bounds) error {
	var ids []string
	n := max(1, kept.Total.Calls-bounds.Calls) + bounds.Calls/1024
	if err := e.scan(ctx, index, firstRow, lastRow, min(n, evictBatch), func(id string) (bool, error) {
		ids = append(ids, id)
		return true, nil
	}); err != nil || len(ids) == 0 {
		return err
	}
	return e.change(ctx, func(s *step) error {
		for _, id := range ids {
			c, err := get[Call](s, callRecord, id)
			if err != nil {
				return err
			}
			if c != nil && c.Evictable() {
				if err := s.removeCall(c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// removeCall removes a call, and its key, if it is fit for that. It returns what is kept less.
func (e *Engine) removeCall(ctx context.Context, id string, fit func(*Call) bool) (freed Usage, err error) {
	err = e.change(ctx, func(s *step) error {
		freed = Usage{}
		c, err := get[Call](s, callRecord, id)
		if err != nil || c == nil || !fit(c) {
			return err
		}
		w := c.footprint()
		freed = usageOf(&w)
		return s.removeCall(c)
	})
	return freed, err
}

func (s *step) removeCall(c *Call) error {
	if err := s.drop(callRecord, c.ID); err != nil || c.Key == "" {
		return err
	}
	name := keyName(c.Scope, c.Key)
	if key, err := get[Started](s, keyRecord, name); err != nil || key == nil || key.Call != c.ID {
		return err
	}
	return s.drop(keyRecord, name)
}
