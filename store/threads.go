package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/history"
)

// What a policy asks of the past of threads and callers is kept by the same engine as calls: on Redis beside them, else in
// the memory of the process (NewThreads), and then the audit log has what a restart needs.

// Thread is what is kept of a thread, or of a caller.
type Thread struct {
	ID        string // see ThreadKeys
	Principal string
	*history.State
}

// ThreadKeys name the thread and the caller of a call.
type ThreadKeys struct {
	Thread    string // empty: the call names none
	Caller    string
	Principal string
}

// KeysOf returns the names of a thread, by its root, and of its caller: of the same caller elsewhere, and of others, there
// are no such names. Without a root there is no thread.
func KeysOf(s Scope, root string) ThreadKeys {
	k := ThreadOf(s, root)
	k.Caller = ledgerName(s.Principal, s.Workspace, s.Project)
	return k
}

// ThreadOf returns the names of a call that adds nothing to what its caller has done.
func ThreadOf(s Scope, root string) ThreadKeys {
	k := ThreadKeys{Principal: s.Principal}
	if root != "" {
		k.Thread = ledgerName(s.Principal, s.Workspace, s.Project, root)
	}
	return k
}

func ledgerName(parts ...string) string {
	var text [32]byte
	sum := digestOf(parts...)
	hex.Encode(text[:], sum[:16])
	return string(text[:])
}

// ThreadBounds are how much is kept of threads, and for how long. A field that is 0 has its default.
type ThreadBounds struct {
	// Threads is how many threads and callers there are, and a quarter of it is how many one principal has. Of those of which
	// labels alone are left, there are stubsPerThread as many.
	Threads int
	// Bytes is how many they take in the memory of a process.
	Bytes int64
	// Idle is after how long without a call the counts of a thread are over, and KeepLabels after how long its labels are.
	Idle, KeepLabels time.Duration
}

const stubsPerThread = 4

// Kept is after how long without a call nothing is left of a thread.
func (b ThreadBounds) Kept() time.Duration {
	b = b.withDefaults()
	return max(b.Idle, b.KeepLabels)
}

func (b ThreadBounds) withDefaults() ThreadBounds {
	if b.Threads <= 0 {
		b.Threads = 100_000
	}
	if b.Bytes <= 0 {
		b.Bytes = 256 << 20
	}
	if b.Idle <= 0 {
		b.Idle = 7 * 24 * time.Hour
	}
	if b.KeepLabels <= 0 {
		b.KeepLabels = 30 * 24 * time.Hour
	}
	return b
}

// NewThreads returns an empty engine of threads, in the memory of the process.
func NewThreads(now func() time.Time, bounds ThreadBounds) *Engine {
	b := Bounds{Threads: bounds}.WithDefaults(1<<40, bounds.withDefaults().Bytes) // threads are counted by their index
	return NewEngine(newMemory(b), Process{}, now, b)
}

var (
	// ErrThreadClosed says that nothing may be added to a thread any more.
	ErrThreadClosed = errors.New("store: the thread is closed")
	errNotKept      = Unavailable(errors.New("nothing is kept of threads yet"))
	errNoThread     = errors.New("store: a call that names no thread adds something to it")
)

// touchEvery is how often it is noted that a thread is asked to which nothing is added.
const touchEvery = time.Hour

// Past returns what is kept of a thread and its caller. Where others share the store, and latest is false, it may be as this process
// has known it last: Reserve finds out.
func (e *Engine) Past(ctx context.Context, of ThreadKeys, latest bool) (past history.Past, err error) {
	if !latest && e.process.shared() {
		s := &step{ctx: ctx, backend: nothing{}, process: &e.process, now: e.now()}
		if past, err = e.past(s, of); err == nil && !s.prepare() {
			past.Old = true
			return past, nil
		}
	}
	err = e.transition(ctx, true, func(s *step) error {
		past, err = e.past(s, of)
		return err
	})
	return past, err
}

// nothing is a back end that cannot be asked.
type nothing struct{ Backend }

var errNothing = errors.New("store: it has to be asked")

func (nothing) View(context.Context, []Key, bool, []Record) ([]Record, error) { return nil, errNothing }

// lastRows are rows of threads as a process has read or written them last, where others share the store: a transition takes them for
// what is there, and its commit finds out whether they are.
type lastRows struct {
	mu       sync.Mutex
	now, was map[Key]Record
}

// maxLastRows bounds them, twice.
const maxLastRows = 8_192

// take has a step begin with the rows that are known. A thread of which nothing is known is taken to be new.
func (l *lastRows) take(s *step, keys []Key) {
	if s.again || !s.process.shared() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		r, known := l.now[key]
		if !known {
			r, known = l.was[key]
		}
		if (known || key.Kind == ThreadRecord) && s.place(key) == nil {
			s.commit.Changes = append(s.commit.Changes, Replacement{Key: key, Was: r, Now: r.Value})
		}
	}
}

// learn takes what a step has read.
func (l *lastRows) learn(s *step, keys []Key) {
	if !s.process.shared() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		l.keep(key, s.place(key).Was)
	}
}

func (l *lastRows) keep(key Key, r Record) {
	if len(l.now) >= maxLastRows || l.now == nil {
		l.now, l.was = make(map[Key]Record), l.now
	}
	l.now[key] = r
}

// put takes what a step has committed.
func (l *lastRows) put(s *step) {
	if !s.process.shared() || s.commit.Rev == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range s.commit.Changes {
		if c := &s.commit.Changes[i]; (c.Kind == ThreadRecord || c.Kind == KeepingRecord) && c.Now != c.Was.Value {
			if c.Now == nil {
				delete(l.now, c.Key)
				delete(l.was, c.Key)
				continue
			}
			l.keep(c.Key, Record{Rev: s.commit.Rev, Value: c.Now})
		}
	}
}

// drop forgets what a step has begun with, since a commit was refused.
func (l *lastRows) drop(s *step) {
	if !s.process.shared() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range s.commit.Changes {
		delete(l.now, s.commit.Changes[i].Key)
		delete(l.was, s.commit.Changes[i].Key)
	}
}

// past reads what is kept of a thread and its caller.
func (e *Engine) past(s *step, of ThreadKeys) (p history.Past, err error) {
	keys := [...]Key{{KeepingRecord, ""}, {ThreadRecord, of.Caller}, {ThreadRecord, of.Thread}}
	read := keys[:1]
	for _, key := range keys[1:] {
		if key.ID != "" {
			read = append(read, key)
		}
	}
	e.last.take(s, read)
	if err := s.read(read...); err != nil {
		return p, err
	}
	e.last.learn(s, read)
	p.Now = s.now
	if p.Keeping, err = e.keeping(s); err != nil {
		return p, err
	}
	if of.Caller != "" {
		if p.Caller, err = e.state(s, of.Caller, p.Keeping); err != nil {
			return p, err
		}
	}
	if of.Thread != "" {
		p.Thread, err = e.state(s, of.Thread, p.Keeping)
	}
	return p, err
}

// keeping returns since when terms are kept. Where that was lost, or others took this gateway for ended, it is put back.
func (e *Engine) keeping(s *step) (*history.Keeping, error) {
	own := e.kept.Load()
	if own == nil {
		return nil, errNotKept
	}
	kept, err := get[history.Keeping](s, KeepingRecord, "")
	switch {
	case err != nil:
		return nil, err
	case kept == nil:
		kept = own.Losing(s.now)
		kept.Epoch = e.epoch()
	case kept.Keeps(e.process.Node):
		e.kept.Store(kept)
		return kept, nil
	default:
		kept = kept.With(e.process.Node, e.terms.Load(), s.now)
	}
	return kept, s.put(KeepingRecord, "", kept)
}

// state is a state as it is now. It is that of Begin where there is none, unless it may have been lost.
func (e *Engine) state(s *step, id string, keeping *history.Keeping) (*history.State, error) {
	t, err := get[Thread](s, ThreadRecord, id)
	if err != nil {
		return nil, err
	}
	lost, bounds := keeping.LostUntil(), &e.bounds.Threads
	var state *history.State
	if t != nil {
		state = t.Aged(s.now, bounds.Idle, bounds.KeepLabels)
	}
	if keeping.Owes(s.now, bounds.KeepLabels) {
		if state == nil {
			state = keeping.Begin(s.now)
		}
		return state.Missing(keeping.Loss), nil
	}
	state = state.Settle(lost.IsZero(), lost)
	switch {
	case state == nil && s.now.Sub(lost) < bounds.KeepLabels:
		return history.Unknown(lost), nil
	case state == nil:
		return keeping.Begin(s.now), nil
	}
	return state.Losing(lost), nil
}

// Reserved is what was added for a call, or taken away, and the turns of its thread and its caller that have done it: 0
// where nothing changed.
type Reserved struct {
	Adds         history.Adds // with the time at which they were added
	Turn, Caller uint64
}

// Reserve adds what calls of one thread add, in their order, all or none. decide says what that is, of the past as it is: it
// is called again where another call has changed that meanwhile, and its error refuses all. ErrThreadClosed and ErrFull
// are refusals as well: of a closed thread, and of a thread that is new, or a state that grows, where there is no room. Who is
// not told that the calls are reserved does not run them: they may count all the same.
func (e *Engine) Reserve(ctx context.Context, of ThreadKeys,
	decide func(history.Past) ([]history.Adds, error)) (reserved []Reserved, err error) {
	e.recent.changing.RLock()
	defer e.recent.changing.RUnlock()
	err = e.transition(ctx, false, func(s *step) error {
		reserved = reserved[:0]
		past, err := e.past(s, of)
		if err != nil {
			return err
		}
		if past.Thread != nil && past.Thread.Closed {
			return ErrThreadClosed
		}
		adds, err := decide(past)
		if err != nil {
			return err
		}
		thread, caller := past.Thread, past.Caller
		at := atTurn(s.now, thread, caller)
		for _, a := range adds {
			a.At = at
			r := Reserved{Adds: a}
			if a.Changes(false) {
				if thread == nil {
					return errNoThread
				}
				thread = thread.Apply(a, false)
				r.Turn = thread.Turn
			}
			if a.Changes(true) {
				if caller == nil {
					return errNoThread
				}
				caller = caller.Apply(a, true)
				r.Caller = caller.Turn
			}
			reserved = append(reserved, r)
		}
		if thread == past.Thread && thread != nil && thread.Turn > 0 {
			thread = thread.Touch(at, touchEvery)
		}
		return e.putStates(s, of, past, thread, caller, true)
	})
	if err != nil {
		return nil, err
	}
	for _, r := range reserved {
		e.note(r.fact(of, false))
	}
	return reserved, nil
}

// atTurn is the time of a change: no earlier than those before it.
func atTurn(now time.Time, states ...*history.State) time.Time {
	for _, s := range states {
		if s != nil && s.Last.After(now) {
			now = s.Last
		}
	}
	return now.Truncate(time.Microsecond)
}

// putStates puts what has become of a thread and its caller. bounded refuses them where there is no room.
func (e *Engine) putStates(s *step, of ThreadKeys, past history.Past, thread, caller *history.State, bounded bool) error {
	if thread != past.Thread {
		if err := e.putThread(s, of.Thread, of.Principal, thread, bounded); err != nil {
			return err
		}
	}
	if caller != past.Caller {
		return e.putThread(s, of.Caller, of.Principal, caller, bounded)
	}
	return nil
}

func (e *Engine) putThread(s *step, id, principal string, state *history.State, bounded bool) error {
	was, err := get[Thread](s, ThreadRecord, id)
	if err != nil {
		return err
	}
	if bounded && (was == nil || was.Stub && !state.Stub) {
		s.threadRooms(&e.bounds, principal)
	}
	if bounded && !e.process.shared() && (was == nil || state.Size() > was.Size()) {
		s.commit.Bounds = &e.bounds
	}
	return s.put(ThreadRecord, id, &Thread{id, principal, state})
}

// threadRooms asks for room for one thread more, in all and of a principal; asked once more, for two.
func (s *step) threadRooms(b *Bounds, principal string) {
	rooms := [...]Room{
		{Index{ThreadIndex, ""}, firstRow, b.Threads.Threads},
		{Index{PrincipalsThreads, principal}, firstRow, max(2, b.Threads.Threads*b.PrincipalPercent/100)},
	}
	if len(s.commit.Rooms) >= len(rooms) { // the thread and its caller
		for i := range s.commit.Rooms[:len(rooms)] {
			s.commit.Rooms[i].Max--
		}
		return
	}
	s.commit.Rooms = append(s.commit.Rooms, rooms[:]...)
}

// Release takes away what was added for a call that did not run: once, by who has reserved it. Where it fails, the call goes on
// counting.
func (e *Engine) Release(ctx context.Context, of ThreadKeys, adds history.Adds) (r Reserved, err error) {
	err = e.changeThreads(ctx, func(s *step) (ThreadFact, error) {
		past, err := e.past(s, of)
		if err != nil {
			return ThreadFact{}, err
		}
		r = Reserved{Adds: adds}
		thread, caller := past.Thread, past.Caller
		if thread != nil && adds.Changes(false) && thread.Turn > 0 {
			if thread = thread.Undo(adds, false); thread != past.Thread {
				r.Turn = thread.Turn
			}
		}
		if caller != nil && adds.Changes(true) && caller.Turn > 0 {
			if caller = caller.Undo(adds, true); caller != past.Caller {
				r.Caller = caller.Turn
			}
		}
		return r.fact(of, true), e.putStates(s, of, past, thread, caller, false)
	})
	return r, err
}

// EndResult adds to a thread what the result of a call adds. No bound refuses that: the call has run. Who is not told that it is
// added, by a back end that may have done so, must not ask again: Finish adds it exactly once.
func (e *Engine) EndResult(ctx context.Context, of ThreadKeys, adds history.Adds) (r Reserved, err error) {
	err = e.changeThreads(ctx, func(s *step) (ThreadFact, error) {
		r, err = e.addResult(s, of, adds)
		return r.fact(of, false), err
	})
	return r, err
}

// changeThreads is a transition that changes a thread and its caller, as the log will say.
func (e *Engine) changeThreads(ctx context.Context, change func(*step) (ThreadFact, error)) error {
	e.recent.changing.RLock()
	defer e.recent.changing.RUnlock()
	var fact ThreadFact
	err := e.transition(ctx, false, func(s *step) (err error) {
		fact, err = change(s)
		return err
	})
	if err == nil {
		e.note(fact)
	}
	return err
}

func (e *Engine) addResult(s *step, of ThreadKeys, adds history.Adds) (Reserved, error) {
	past, err := e.past(s, of)
	switch {
	case err != nil:
		return Reserved{}, err
	case past.Thread == nil:
		return Reserved{}, errNoThread
	}
	adds.At = atTurn(past.Now, past.Thread)
	thread := past.Thread.Apply(adds, false)
	return Reserved{Adds: adds, Turn: thread.Turn}, e.putStates(s, of, past, thread, past.Caller, false)
}

// Closing is the turn that has closed a thread, and its time. Before says that it was closed already.
type Closing struct {
	Turn   uint64
	At     time.Time
	Before bool
}

// CloseThread closes a thread: nothing may be added to it any more, for as long as labels are kept.
func (e *Engine) CloseThread(ctx context.Context, of ThreadKeys) (c Closing, err error) {
	err = e.changeThreads(ctx, func(s *step) (ThreadFact, error) {
		past, err := e.past(s, of)
		switch {
		case err != nil:
			return ThreadFact{}, err
		case past.Thread == nil:
			return ThreadFact{}, errNoThread
		}
		at := atTurn(s.now, past.Thread)
		closed := past.Thread.Close(at)
		c = Closing{Turn: closed.Turn, At: at, Before: past.Thread.Closed}
		return ThreadFact{ThreadKeys: of, At: at, Turn: c.Turn, Closes: true}, e.putStates(s, of, past, closed, past.Caller, true)
	})
	return c, err
}

// ReopenThread takes back the closing of a turn that could not be recorded, where the thread was not closed before and nothing has
// changed it since.
func (e *Engine) ReopenThread(ctx context.Context, of ThreadKeys, turn uint64) error {
	e.recent.changing.RLock()
	defer e.recent.changing.RUnlock()
	reopened := false
	err := e.transition(ctx, true, func(s *step) error {
		past, err := e.past(s, of)
		if err != nil {
			return err
		}
		open := past.Thread.Reopen(turn)
		reopened = open != past.Thread
		return e.putStates(s, of, past, open, past.Caller, false)
	})
	if err == nil && reopened {
		e.recent.forget(of.Thread, turn)
	}
	return err
}

// KeepTerms says which terms this gateway keeps from now on: at its start, and before it judges by another policy. before says
// since when it has kept terms in an earlier process, and may be nil; of a shared store that has nothing of it any more, all is lost
// then. It returns since when all terms are kept. Before it has returned, nothing is known of threads, and nothing added.
func (e *Engine) KeepTerms(ctx context.Context, terms *history.Terms, before *history.Keeping) (kept *history.Keeping, err error) {
	err = e.transition(ctx, true, func(s *step) error {
		was, err := get[history.Keeping](s, KeepingRecord, "")
		if err != nil {
			return err
		}
		if was == nil && before != nil {
			was = before
			if e.process.shared() {
				was = before.Losing(s.now)
			}
		}
		if was, err = s.withoutEnded(was, e.bounds.Threads); err != nil {
			return err
		}
		kept = was.With(e.process.Node, terms, s.now)
		if kept.Epoch = e.epoch(); kept.Key == "" {
			kept.Key = rand.Text() + rand.Text()
		}
		return s.put(KeepingRecord, "", kept)
	})
	if err == nil {
		e.terms.Store(terms)
		e.kept.Store(kept)
	}
	return kept, err
}

// withoutEnded leaves out gateways whose leases are over, and forgets them once nothing is kept of what they have written.
func (s *step) withoutEnded(k *history.Keeping, keep ThreadBounds) (*history.Keeping, error) {
	if k == nil || !s.process.shared() {
		return k, nil
	}
	for gateway := range k.Gateways {
		if gateway == s.process.Node {
			continue
		}
		lease, err := get[Lease](s, LeaseRecord, gateway)
		if err != nil {
			return nil, err
		}
		switch {
		case lease == nil:
			k = k.Without(gateway, s.now)
		case lease.over(s.now):
			k = k.Without(gateway, lease.Until)
		}
	}
	return k.Forgetting(s.now.Add(-keep.Kept())), nil
}

// SweepThreads removes at most limit threads whose counts are over, but for their labels, and then those. Without room for its
// labels, a thread stays as it is.
func (e *Engine) SweepThreads(ctx context.Context, limit int) (swept int, err error) {
	e.sweeping.Lock()
	defer e.sweeping.Unlock()
	now, bounds := e.now(), &e.bounds.Threads
	for _, of := range []struct {
		index IndexName
		after time.Duration
	}{{StubIndex, bounds.KeepLabels}, {ThreadIndex, bounds.Idle}} {
		err := e.scan(ctx, Index{of.index, ""}, firstRow, rowsUntil(now.Add(-of.after)), everyRow, sweepBatch,
			func(rows []Row) (bool, error) {
				n, err := e.sweepThreads(ctx, rows)
				for i := 0; errors.Is(err, ErrFull) && i < len(rows); i++ {
					var one int
					if one, err = e.sweepThreads(ctx, rows[i:i+1]); err == nil || errors.Is(err, ErrFull) {
						n, err = n+one, ErrFull
					}
				}
				if swept += n; errors.Is(err, ErrFull) {
					err = nil
				}
				return swept < limit, err
			})
		if err != nil || swept >= limit {
			return swept, err
		}
	}
	if !e.process.shared() || e.kept.Load() == nil {
		return swept, nil
	}
	return swept, e.transition(ctx, true, func(s *step) error {
		was, err := get[history.Keeping](s, KeepingRecord, "")
		if err != nil || was == nil {
			return err
		}
		is, err := s.withoutEnded(was, e.bounds.Threads)
		if err != nil {
			return err
		}
		return s.put(KeepingRecord, "", is)
	})
}

func (e *Engine) sweepThreads(ctx context.Context, swept []Row) (n int, err error) {
	err = e.transition(ctx, true, func(s *step) error {
		n = 0
		stubs, all := map[string]int{}, 0
		for _, row := range swept {
			id := row.ID
			t, err := get[Thread](s, ThreadRecord, id)
			if err != nil {
				return err
			}
			if t == nil {
				continue
			}
			switch aged := t.Aged(s.now, e.bounds.Threads.Idle, e.bounds.Threads.KeepLabels); aged {
			case t.State:
				continue
			case nil:
				err = s.drop(ThreadRecord, id)
			default:
				stubs[t.Principal]++
				all++
				err = s.put(ThreadRecord, id, &Thread{id, t.Principal, aged})
			}
			if err != nil {
				return err
			}
			n++
		}
		if all == 0 {
			return nil
		}
		most := stubsPerThread * e.bounds.Threads.Threads
		s.commit.Rooms = append(s.commit.Rooms, Room{Index{StubIndex, ""}, firstRow, most - all + 1})
		for principal, more := range stubs {
			s.commit.Rooms = append(s.commit.Rooms,
				Room{Index{PrincipalsStubs, principal}, firstRow, max(1, most*e.bounds.PrincipalPercent/100) - more + 1})
		}
		return nil
	})
	return n, err
}

// Threads returns at most limit threads and callers whose counts are kept, those first whose last call is newest, by the hour. Only those
// behind a row, where it is not the zero row: next of the page before; the zero row says that there is no next one. It reads all rows of
// their index.
func (e *Engine) Threads(ctx context.Context, limit int, behind Row) (threads []Thread, next Row, err error) {
	last, older := make([]Row, 0, 2*limit), false
	err = e.scan(ctx, Index{ThreadIndex, ""}, firstRow, lastRow, everyRow, 1024, func(rows []Row) (bool, error) {
		for _, row := range rows {
			if behind != (Row{}) && compareRows(row, behind) >= 0 {
				return false, nil
			}
			if len(last) == cap(last) {
				last, older = last[:copy(last, last[limit:])], true
			}
			last = append(last, row)
		}
		return true, nil
	})
	if len(last) > limit {
		last, older = last[len(last)-limit:], true
	}
	if err != nil || len(last) == 0 {
		return nil, Row{}, err
	}
	if older {
		next = last[0]
	}
	slices.Reverse(last)
	ids := make([]string, len(last))
	for i, row := range last {
		ids[i] = row.ID
	}
	threads, err = e.threads(ctx, ids)
	return threads, next, err
}

// CountThreads counts the threads and callers whose counts are kept. It reads all rows of their index.
func (e *Engine) CountThreads(ctx context.Context) (n int, err error) {
	err = e.scan(ctx, Index{ThreadIndex, ""}, firstRow, lastRow, everyRow, 1024, func(rows []Row) (bool, error) {
		n += len(rows)
		return true, nil
	})
	return n, err
}

// Thread returns what is kept of a thread, or a caller, also of one of which labels alone are left; nil: nothing is.
func (e *Engine) Thread(ctx context.Context, id string) (*Thread, error) {
	found, err := e.threads(ctx, []string{id})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func (e *Engine) threads(ctx context.Context, ids []string) (found []Thread, err error) {
	now, bounds := e.now(), &e.bounds.Threads
	_, err = views(ctx, e, ThreadRecord, ids, func(t *Thread) bool {
		if state := t.Aged(now, bounds.Idle, bounds.KeepLabels); state != nil {
			found = append(found, Thread{t.ID, t.Principal, state})
		}
		return true
	})
	return found, err
}

// InEpoch says in which epoch of a shared store this gateway is.
func (e *Engine) InEpoch(epoch string) { e.inEpoch.Store(&epoch) }

func (e *Engine) epoch() string {
	if epoch := e.inEpoch.Load(); epoch != nil {
		return *epoch
	}
	return ""
}

// notice notes a new epoch of a shared store. What it has lost of threads, LoseThreads has noted before.
func (s *step) notice(epoch string) error {
	was, err := get[history.Keeping](s, KeepingRecord, "")
	if err != nil || was == nil || was.Epoch == epoch {
		return err
	}
	return s.put(KeepingRecord, "", was.In(epoch))
}
