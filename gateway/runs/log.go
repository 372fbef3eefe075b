// Package runs keeps what runs did: the requests to a model face, each with the turns of the
// model until one was the answer, the calls in them, the verdicts on them, and the repairs.
//
//	GET /v1/runs/{id}  one run, to the principal that made it
//
// # What it keeps, and where
//
// Runs are kept in the memory of this process, for an hour at most, and are gone with it. They
// explain an answer to the one who got it; the lasting record of each decision is the audit log.
// Behind several gateways only the one that answered knows the run: the log of another has the
// calls by their ids. They are not in the store, which holds what must not be lost, and is
// written before a call may act; a run is written at each turn, and may be lost.
//
// # Bounds
//
// A Log holds a bounded number of runs and of bytes, and of both at most half for one principal.
// A principal beyond its half loses its own oldest run; else the oldest of all goes. A run has
// bounds of its own: what does not fit is counted in left_out. No argument and no result of a
// call is kept, and each text is cut.
package runs

import (
	"container/list"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callgate/callgate/refusal"
)

// Options configure a Log. The zero value is usable.
type Options struct {
	MaxRuns  int              // 0 is 8,192
	MaxBytes int              // 0 is 32 MiB
	MaxAge   time.Duration    // since the run began; 0 is an hour
	Now      func() time.Time // nil is time.Now
}

// The defaults of Options.
const (
	defaultRuns  = 8192
	defaultBytes = 32 << 20
	defaultAge   = time.Hour
)

// Log keeps runs. It is safe for concurrent use.
type Log struct {
	options Options

	mu    sync.Mutex
	runs  map[string]*Recording
	all   *list.List // of *Recording, the oldest first
	bytes int
	by    map[string]*share // by principal
}

// share is what a principal holds.
type share struct {
	runs  *list.List // of *Recording, the oldest first
	bytes int
}

// New returns a log without runs.
func New(options Options) *Log {
	if options.MaxRuns <= 0 {
		options.MaxRuns = defaultRuns
	}
	if options.MaxBytes <= 0 {
		options.MaxBytes = defaultBytes
	}
	if options.MaxAge <= 0 {
		options.MaxAge = defaultAge
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Log{options: options, runs: map[string]*Recording{}, all: list.New(), by: map[string]*share{}}
}

// Recording is a run that is being recorded. Its methods may be called by several goroutines,
// and on nil, which records nothing. Once the log has dropped the run they do nothing.
type Recording struct {
	log       *Log
	id        string
	principal string

	// Under log.mu.
	run   Run
	bytes int
	inAll *list.Element // nil: it was dropped
	inOwn *list.Element
}

// Begin begins the run of a principal.
func (l *Log) Begin(principal string, head Head) *Recording {
	head = head.bound()
	r := &Recording{log: l, id: newID(), principal: strings.Clone(principal), bytes: runCost + head.size() + len(principal)}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Now().UTC()
	r.run = Run{ID: r.id, Head: head, State: Running, Started: now, Turns: []Turn{}}
	own := l.by[r.principal]
	if own == nil {
		own = &share{runs: list.New()}
		l.by[r.principal] = own
	}
	l.runs[r.id] = r
	r.inAll, r.inOwn = l.all.PushBack(r), own.runs.PushBack(r)
	l.bytes += r.bytes
	own.bytes += r.bytes
	l.expire(now)
	l.makeRoom(r)
	return r
}

// ID is the id of the run; empty for nil.
func (r *Recording) ID() string {
	if r == nil {
		return ""
	}
	return r.id
}

// Add adds a turn that was judged, and returns its number, from 0, for SetOutcome; -1 where it
// was left out.
func (r *Recording) Add(t Turn) int {
	if r == nil {
		return -1
	}
	if len(t.Usage) == 0 || len(t.Usage) > maxUsageBytes || !json.Valid(t.Usage) {
		t.Usage = nil
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	size := t.size()
	for ; r.bytes+size > maxRunBytes && len(t.Calls) > 0; t.Calls = t.Calls[:len(t.Calls)-1] {
		size -= t.Calls[len(t.Calls)-1].size()
		r.run.LeftOut++
	}
	if r.inAll == nil || r.bytes+size > maxRunBytes {
		r.run.LeftOut++
		return -1
	}
	t.Calls, t.Usage, t.Started = append([]Call{}, t.Calls...), slices.Clone(t.Usage), t.Started.UTC()
	r.run.Turns = append(r.run.Turns, t)
	r.grow(size)
	return len(r.run.Turns) - 1
}

// SetOutcome sets what became of a call of a turn; code is of an outcome that is an error. A call
// that was left out has no outcome.
func (r *Recording) SetOutcome(turn, call int, outcome Outcome, code refusal.Code) {
	if r == nil || turn < 0 {
		return
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if turn < len(r.run.Turns) && call < len(r.run.Turns[turn].Calls) {
		c := &r.run.Turns[turn].Calls[call]
		c.Outcome, c.OutcomeCode = outcome, code
	}
}

// SetCharged sets what the run was charged with until now.
func (r *Recording) SetCharged(c Charged) {
	if r == nil {
		return
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.run.Charged = &c
}

// grow counts bytes of the run, and makes room for them.
func (r *Recording) grow(n int) {
	r.bytes += n
	r.log.bytes += n
	r.log.by[r.principal].bytes += n
	r.log.makeRoom(r)
}

// End ends the run; nil: it was answered. A second call does nothing.
func (r *Recording) End(failed *Error) {
	if r == nil {
		return
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if r.inAll == nil || r.run.State != Running {
		return
	}
	now := r.log.options.Now().UTC()
	r.run.Ended, r.run.State = &now, Answered
	if failed != nil {
		r.run.State, r.run.Error = Failed, failed
		r.grow(len(failed.Message))
	}
}

// Find returns a run of a principal; nil: there is none, or it is another principal's.
func (l *Log) Find(principal, id string) *Run {
	return l.find(id, func(r *Recording) bool { return r.principal == principal })
}

// FindAny returns a run of any principal, for operators; nil: there is none.
func (l *Log) FindAny(id string) *Run { return l.find(id, func(*Recording) bool { return true }) }

func (l *Log) find(id string, may func(*Recording) bool) *Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(l.options.Now())
	r := l.runs[id]
	if r == nil || !may(r) {
		return nil
	}
	return r.run.clone()
}

// expire drops the runs that are too old.
func (l *Log) expire(now time.Time) {
	for first := l.all.Front(); first != nil; first = l.all.Front() {
		r := first.Value.(*Recording)
		if now.Sub(r.run.Started) < l.options.MaxAge {
			return
		}
		l.drop(r)
	}
}

// makeRoom drops runs until the bounds hold again: those of the principal of a run beyond its
// half, then those of all, the oldest first. The run itself stays.
func (l *Log) makeRoom(r *Recording) {
	half := func(n int) int { return max(n/2, 1) }
	own := l.by[r.principal]
	for own.runs.Len() > half(l.options.MaxRuns) || own.bytes > half(l.options.MaxBytes) {
		if !l.dropOldest(own.runs, r) {
			break
		}
	}
	for l.all.Len() > l.options.MaxRuns || l.bytes > l.options.MaxBytes {
		if !l.dropOldest(l.all, r) {
			break
		}
	}
}

// dropOldest drops the oldest run of a list but one, and reports whether there was another.
func (l *Log) dropOldest(of *list.List, except *Recording) bool {
	oldest := of.Front()
	if oldest != nil && oldest.Value == except {
		oldest = oldest.Next()
	}
	if oldest == nil {
		return false
	}
	l.drop(oldest.Value.(*Recording))
	return true
}

func (l *Log) drop(r *Recording) {
	own := l.by[r.principal]
	delete(l.runs, r.id)
	l.all.Remove(r.inAll)
	own.runs.Remove(r.inOwn)
	l.bytes -= r.bytes
	own.bytes -= r.bytes
	r.inAll, r.inOwn = nil, nil
	if own.runs.Len() == 0 {
		delete(l.by, r.principal)
	}
}

const idPrefix = "run_"

// newID makes the id of a run: 130 random bits, as that of a call.
func newID() string { return idPrefix + rand.Text() }
