package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/history"
)

// Of threads that are kept in the memory of a process, a start puts together what a snapshot has and what the audit log says
// behind it: LoadThreads, FoldThreads, SettleThreads, and then KeepTerms.

// ThreadFact is what a record of the audit log says of a thread and its caller.
type ThreadFact struct {
	ThreadKeys
	At time.Time // of the record
	// Turn and CallerTurn are those that have added Adds, or taken them away; 0: that of the other alone. Where both are 0,
	// the thread was only asked.
	Turn, CallerTurn uint64
	Adds             history.Adds
	Undo             bool
	Closes           bool // Turn has closed the thread, at the time of the record
}

// fact is what the log will say of a change.
func (r Reserved) fact(of ThreadKeys, undo bool) ThreadFact {
	return ThreadFact{ThreadKeys: of, At: r.Adds.At, Turn: r.Turn, CallerTurn: r.Caller, Adds: r.Adds, Undo: undo}
}

// FoldThreads applies what the log says, in any order, where it is not there yet.
func (e *Engine) FoldThreads(ctx context.Context, facts []ThreadFact) error {
	return e.inBatches(ctx, len(facts), func(s *step, i int) error {
		f := &facts[i]
		if f.Thread != "" && f.Turn == 0 && f.CallerTurn == 0 {
			return e.foldState(s, f.Thread, f.Principal, f.At, func(was *history.State) *history.State { return was.Touch(f.At, 1) })
		}
		if f.Closes {
			return e.foldState(s, f.Thread, f.Principal, f.At,
				func(was *history.State) *history.State { return was.FoldClosing(f.Turn, f.At) })
		}
		if f.Turn > 0 {
			if err := e.foldState(s, f.Thread, f.Principal, f.Adds.At, func(was *history.State) *history.State {
				return was.Fold(f.Turn, f.Adds, f.Undo, false)
			}); err != nil {
				return err
			}
		}
		if f.CallerTurn == 0 {
			return nil
		}
		return e.foldState(s, f.Caller, f.Principal, f.Adds.At, func(was *history.State) *history.State {
			return was.Fold(f.CallerTurn, f.Adds, f.Undo, true)
		})
	})
}

func (e *Engine) foldState(s *step, id, principal string, at time.Time, fold func(*history.State) *history.State) error {
	t, err := get[Thread](s, ThreadRecord, id)
	if err != nil {
		return err
	}
	var was *history.State
	if t != nil {
		was = t.Aged(at, e.bounds.Threads.Idle, e.bounds.Threads.KeepLabels)
	}
	if is := fold(was); is != was {
		return s.put(ThreadRecord, id, &Thread{id, principal, is})
	}
	return nil
}

// SettleThreads ends what was folded. Where the log was not whole, lost is the time of its first record: what was before is not
// known then.
func (e *Engine) SettleThreads(ctx context.Context, lost time.Time) error {
	for _, index := range []IndexName{StubIndex, ThreadIndex} {
		if err := e.scan(ctx, Index{index, ""}, firstRow, lastRow, everyRow, readBatch, func(rows []Row) (bool, error) {
			return true, e.change(ctx, func(s *step) error {
				for _, row := range rows {
					t, err := get[Thread](s, ThreadRecord, row.ID)
					if err != nil {
						return err
					}
					if t == nil {
						continue
					}
					if is := t.Settle(lost.IsZero(), s.now); is != t.State {
						if err := s.put(ThreadRecord, row.ID, &Thread{row.ID, t.Principal, is}); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}); err != nil {
			return err
		}
	}
	if lost.IsZero() {
		return nil
	}
	return e.change(ctx, func(s *step) error {
		was, err := get[history.Keeping](s, KeepingRecord, "")
		if err != nil {
			return err
		}
		return s.put(KeepingRecord, "", was.Losing(lost))
	})
}

// AcceptLoss takes what was lost for never having been there, where accepts says so of the time of the loss: a thread that is not
// there is a new one then. States of which a part is known stay so.
func (e *Engine) AcceptLoss(ctx context.Context, accepts func(lost time.Time) bool) error {
	return e.transition(ctx, true, func(s *step) error {
		was, err := get[history.Keeping](s, KeepingRecord, "")
		if was != nil && e.kept.Load() != nil {
			e.kept.Store(was)
		}
		if err != nil || was == nil || was.LostUntil().IsZero() || !accepts(was.LostUntil()) {
			return err
		}
		return s.put(KeepingRecord, "", was.Accepting())
	})
}

// A shared store may lose threads that it has confirmed. What is left is how it was at some earlier moment, or nothing. Each gateway then
// puts back what it has written: LoseThreads, FoldThreads, PutBackThreads. That is exact, since
//
//   - a fold of a turn that a state has changes nothing, so a gateway may begin anew, two may fold at once, and one may fold
//     an hour later: each record counts once, at a turn of its own;
//   - all that a gateway may have written is in its log, or in its memory (see recentFacts): a call of which neither knows did not run;
//   - LoseThreads names every gateway that may have written, by what the store and the files of all gateways say. Until the last of
//     them is Done, all states are unknown, and a state that is changed meanwhile goes on at a turn that no state can have had
//     before the loss: what comes back later fits into the gap;
//   - an attempt is Done only where the store has not lost its state since it began: else Owed has not its name;
//   - then what is left of a gap was not run, unless records are missing: then Lost says up to when. Calls are undone in a second
//     round, when all who agree have added theirs; what comes later to be undone counts too much, never too little.

// LoseThreads begins to put back the threads that a store has lost. known is what the gateway has had of the terms that are kept. kept is
// false where nothing was kept of threads, and so nothing is put back.
func (e *Engine) LoseThreads(ctx context.Context, known *history.Keeping, a history.Attempt) (kept bool, err error) {
	err = e.transition(ctx, true, func(s *step) error {
		was, err := get[history.Keeping](s, KeepingRecord, "")
		if err != nil {
			return err
		}
		is := was.Lose(known, a, s.now)
		if kept = is != nil; !kept {
			return nil
		}
		return s.put(KeepingRecord, "", is)
	})
	return kept, err
}

// ErrLostAgain says that a store has lost its state again since LoseThreads.
var ErrLostAgain = errors.New("the store has lost what was put back of threads")

// PutBackThreads ends what LoseThreads has begun: all was folded that the log and the memory of the gateway have. lost is up to when
// records are missing; the zero time: none is.
func (e *Engine) PutBackThreads(ctx context.Context, a history.Attempt, lost time.Time) error {
	return e.transition(ctx, true, func(s *step) error {
		was, err := get[history.Keeping](s, KeepingRecord, "")
		if err != nil {
			return err
		}
		is, ok := was.Done(a, lost)
		if !ok {
			return ErrLostAgain
		}
		return s.put(KeepingRecord, "", is)
	})
}

// recentFacts are the last changes of threads by a process: their records may not be in the log yet. A store
// confirms none that is not here once changing is free.
type recentFacts struct {
	changing sync.RWMutex
	mu       sync.Mutex
	facts    []ThreadFact
	at       []time.Time
}

// recentTime is how long it takes at most until the record of a change is durable, and maxRecent bounds how many are kept.
const (
	recentTime = 10 * time.Second
	maxRecent  = 16_384
)

// note remembers a change, where others share the store.
func (e *Engine) note(fact ThreadFact) {
	if !e.process.shared() || fact.Turn == 0 && fact.CallerTurn == 0 {
		return
	}
	f, now := &e.recent, time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.facts = append(f.facts, fact)
	f.at = append(f.at, now)
	n := 0
	for now.Sub(f.at[n]) > recentTime || len(f.at)-n > maxRecent {
		f.facts[n] = ThreadFact{}
		n++
	}
	f.facts, f.at = f.facts[n:], f.at[n:]
}

// forget forgets a change that no record will say.
func (f *recentFacts) forget(thread string, turn uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.facts {
		if fact := &f.facts[i]; fact.Thread == thread && fact.Turn == turn {
			*fact = ThreadFact{}
		}
	}
}

// RecentThreads returns the last changes that this process has made, as the log will say them.
func (e *Engine) RecentThreads() []ThreadFact {
	e.recent.changing.Lock()
	defer e.recent.changing.Unlock()
	return slices.Clone(e.recent.facts)
}

// KeptTerms returns what this process knows of the terms that are kept; nil: nothing yet.
func (e *Engine) KeptTerms() *history.Keeping { return e.kept.Load() }

// A snapshot is
//
//	snapshot = magic seq hash keeping *(1 id principal state) 0 sum
//
// with texts behind their lengths, and lengths and seq as unsigned varints. sum is the SHA-256 of all before it.
const snapshotMagic = "callgate threads 1\n"

// ErrSnapshot is the error of bytes that are no snapshot.
var ErrSnapshot = errors.New("found no snapshot of threads, or a damaged one")

// EncodeThreads writes all threads, and since when terms are kept, with the last record of the log that is in it for certain:
// read that before.
func (e *Engine) EncodeThreads(ctx context.Context, seq uint64, hash string) ([]byte, error) {
	e.sweeping.Lock()
	defer e.sweeping.Unlock()
	keeping, err := view[history.Keeping](ctx, e, KeepingRecord, "")
	if err != nil {
		return nil, err
	}
	since, err := json.Marshal(keeping)
	if err != nil {
		return nil, err
	}
	b := binary.AppendUvarint([]byte(snapshotMagic), seq)
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(hash)
	text(string(since))
	// A thread whose label is used again goes from the stubs to the threads, and to a later hour: it may be there twice, and
	// is there once at least.
	for _, index := range []IndexName{StubIndex, ThreadIndex} {
		if err := indexed(ctx, e, ThreadRecord, Index{index, ""}, firstRow, lastRow, everyRow, func(t *Thread) bool {
			b = append(b, 1)
			text(t.ID)
			text(t.Principal)
			text(string(t.Encode()))
			return true
		}); err != nil {
			return nil, err
		}
	}
	b = append(b, 0)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// LoadThreads puts what EncodeThreads wrote into an empty engine. It returns the record of the log behind which FoldThreads has to
// begin. The error of bytes that are no snapshot is ErrSnapshot: nothing was put then.
func (e *Engine) LoadThreads(ctx context.Context, b []byte) (seq uint64, hash string, err error) {
	threads, keeping, seq, hash, err := readSnapshot(b)
	if err != nil {
		return 0, "", err
	}
	if keeping != nil {
		if err := e.change(ctx, func(s *step) error { return s.put(KeepingRecord, "", keeping) }); err != nil {
			return 0, "", err
		}
	}
	err = e.inBatches(ctx, len(threads), func(s *step, i int) error { return s.put(ThreadRecord, threads[i].ID, &threads[i]) })
	return seq, hash, err
}

func readSnapshot(b []byte) (threads []Thread, keeping *history.Keeping, seq uint64, hash string, err error) {
	end := len(b) - sha256.Size
	if end < len(snapshotMagic) || string(b[:len(snapshotMagic)]) != snapshotMagic || sha256.Sum256(b[:end]) != [sha256.Size]byte(b[end:]) {
		return nil, nil, 0, "", ErrSnapshot
	}
	rest := b[len(snapshotMagic):end]
	number := func() uint64 {
		n, used := binary.Uvarint(rest)
		if used <= 0 {
			err, used = ErrSnapshot, 0
		}
		rest = rest[used:]
		return n
	}
	text := func() []byte {
		n := number()
		if n > uint64(len(rest)) {
			err, rest = ErrSnapshot, nil
			return nil
		}
		s := rest[:n]
		rest = rest[n:]
		return s
	}
	seq, hash = number(), string(text())
	since := text()
	if err == nil && json.Unmarshal(since, &keeping) != nil {
		err = ErrSnapshot
	}
	for err == nil {
		if len(rest) > 0 && rest[0] == 0 {
			break
		}
		number() // 1
		t := Thread{ID: string(text()), Principal: string(text())}
		state := text()
		if err == nil {
			if t.State, err = history.DecodeState(state); err != nil {
				err = fmt.Errorf("%w: %w", ErrSnapshot, err)
			}
		}
		threads = append(threads, t)
	}
	if err == nil && len(rest) != 1 {
		err = ErrSnapshot
	}
	return threads, keeping, seq, hash, err
}
