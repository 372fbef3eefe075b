package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/refusal"
)

// entry is one record on its way. Its state changes under Log.mu. Its caller reuses it
// once it has the result, for which nobody else uses the entry any more; an entry that was
// abandoned is not reused, since the writer may still read it.
type entry struct {
	body   []byte
	event  Event // of an executed call; empty for any other record
	callID string
	queued time.Time
	state  state
	done   chan error // takes one result
}

// maxReusedBody bounds the bodies that are kept to be reused.
const maxReusedBody = 16 << 10

type state int

const (
	queued    state = iota
	inFlight        // with the writer
	answered        // by the writer
	abandoned       // while it was in flight: its Append was refused
)

// newEntry encodes a record.
func (l *Log) newEntry(r *Record) (*entry, error) {
	e, ok := l.entries.Get().(*entry)
	if !ok {
		e = &entry{done: make(chan error, 1)}
	}
	var err error
	e.body, err = appendRecord(e.body[:0], r, l.opts.Record)
	if err == nil && len(e.body)+lineOverhead > logfile.MaxLine {
		err = fmt.Errorf("the record has %d bytes, more than the %d that a line may have", len(e.body), logfile.MaxLine)
	}
	if err != nil {
		return nil, refusal.At(refusal.Log, refusal.Internal, notRecorded).WithCause(fmt.Errorf("audit record: %w", err))
	}
	e.event, e.callID = "", r.CallID
	if r.Mode == Call && (r.Event == Ending || r.Verdict == ToolCall) {
		e.event = r.Event
	}
	return e, nil
}

func (l *Log) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// The bounds of the records that wait behind a batch which the disk has not confirmed within
// stallAfter. A disk that works empties a longer queue sooner than that.
const (
	maxWaiting      = 1024
	maxWaitingBytes = 32 << 20
	stallAfter      = 250 * time.Millisecond
)

// enqueue queues an entry, or returns why it is not accepted.
func (l *Log) enqueue(e *entry) error {
	e.queued = time.Now()
	e.state = queued
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.accepting:
		return errClosed
	case !l.hasRoom(e):
		return errQueueFull
	}
	l.appended = true
	l.queue = append(l.queue, e)
	if !l.lateIsSet {
		l.lateIsSet = true
		l.late.Reset(l.opts.Wait)
	}
	l.signal()
	return nil
}

// hasRoom reports whether an entry may wait with those that do. The caller holds mu.
func (l *Log) hasRoom(e *entry) bool {
	if len(l.inFlight) == 0 || e.queued.Sub(l.inFlight[0].queued) <= stallAfter {
		return true
	}
	bytes := len(e.body)
	for _, waiting := range l.queue {
		bytes += len(waiting.body)
	}
	return len(l.queue) < maxWaiting && bytes <= maxWaitingBytes
}

// withdraw takes e out of the queue and reports whether it could: not once the writer
// has it, or there is a result.
func (l *Log) withdraw(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, e)
	if i < 0 {
		return false
	}
	e.state = answered
	l.queue = slices.Delete(l.queue, i, i+1)
	return true
}

// refuseLate refuses the records that have waited as long as they may, and is called again
// when the next of them may have. So there is one timer for all records, and under load it
// fires once in Options.Wait.
func (l *Log) refuseLate() {
	l.mu.Lock()
	now, next := time.Now(), time.Time{}
	isLate := func(e *entry) bool {
		until := e.queued.Add(l.opts.Wait)
		if until.After(now) && (next.IsZero() || until.Before(next)) {
			next = until
		}
		return !until.After(now)
	}
	var late []*entry
	for _, e := range l.inFlight {
		if e.state == inFlight && isLate(e) {
			e.state = abandoned
			late = append(late, e)
		}
	}
	l.queue = slices.DeleteFunc(l.queue, func(e *entry) bool {
		if !isLate(e) {
			return false
		}
		e.state = answered
		late = append(late, e)
		return true
	})
	if l.lateIsSet = !next.IsZero(); l.lateIsSet {
		l.late.Reset(next.Sub(now))
	}
	l.mu.Unlock()
	answer(late, unavailable(logfile.ErrBlocked))
}
