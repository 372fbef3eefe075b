package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/refusal"
)

// Reach says what Replay has found of the records that it was asked for.
type Reach struct {
	// First and Time are of the oldest record that it has read; zero where it has read none.
	First uint64
	Time  time.Time
	// Missing is the most records that may be asked for and are not there: their files were moved
	// away, or a line is not what was written.
	Missing uint64
}

// Replay reads from the log what a store that was lost must know again, beside the writer. It
// passes, in the order of the log, of the records from the seq from on:
//
//   - decisions of executed calls that hold a key or use approvals or grants, and decisions of
//     calls that were handed over and use some,
//   - the outcomes of these calls, and of executed calls whose decision is further back; if from is not
//     0, of all executed calls: an old state of the store may have any of them,
//   - approval events that end something: no, withdrawn, revoked and expired.
//
// If from is 0, it passes those that are not older than since and, before them, the decisions of
// calls that are older and have no outcome.
//
// The records are without arguments and completions. It reads what is durable when it begins, and does
// not verify the chain. It ends with the error of do, or of ctx. OpenCalls must have been called before.
func (l *Log) Replay(ctx context.Context, from uint64, since time.Time, do func(*Record) error) (Reach, error) {
	p := replay{ctx: ctx, dir: filepath.Dir(l.path), next: from, do: do, others: map[string]bool{}, handed: map[string]bool{}}
	l.mu.Lock()
	p.last = l.durable.Seq
	open := openCalls{}
	if l.calls != nil {
		open.Open = maps.Clone(l.calls.Open)
	}
	l.mu.Unlock()
	var err error
	switch {
	case open.Open == nil:
		err = errors.New("the open calls are read before the log is replayed")
	case from > p.last+1:
		err = fmt.Errorf("it ends at seq %d and was to be read from seq %d on: an older copy or another log is in its place", p.last, from)
	case from > 0:
		p.all = true
	default:
		p.since = since
		err = p.seek(open)
	}
	if err == nil {
		err = p.run()
	}
	switch {
	case p.stopped != nil:
		err = p.stopped
	case err != nil:
		err = fmt.Errorf("audit log: %w", err)
	}
	return p.Reach, err
}

// replay is one run of Replay.
type replay struct {
	Reach
	ctx        context.Context
	dir        string
	next, last uint64 // the record that is read next, and the last one
	since      time.Time
	do         func(*Record) error
	stopped    error // of do or ctx
	// others are the executed calls whose decision was read and not passed, and that have not ended:
	// as many as there are at one time. handed are the calls that were handed over, whose decision was
	// passed, likewise.
	others, handed map[string]bool
	all            bool // outcomes of others are passed, too
	// turns says that records of threads are passed, and no others; prev is the hash of the record before the first one.
	turns bool
	prev  string
}

// ErrOtherLog says that the log does not have the record behind which it was to be read.
var ErrOtherLog = errors.New("audit log: it has another record in the place of the one behind which it is read")

// ReplayTurns reads from the log what a start must know again of threads. It passes, in the order of the log, the records that
// name one or have a turn, behind the record of a seq and a hash, which may be empty: then nothing is compared; seq 0: from the beginning.
// They are without arguments and completions. It reads what is durable when it begins. Where that record is another one, it is ErrOtherLog
// and nothing was passed.
func (l *Log) ReplayTurns(ctx context.Context, seq uint64, hash string, do func(*Record) error) (Reach, error) {
	last, lastHash := l.Last()
	p := replay{ctx: ctx, dir: filepath.Dir(l.path), next: seq + 1, last: last, do: do, turns: true}
	if seq > 0 {
		if p.prev = hash; seq > last || seq == last && hash != "" && hash != lastHash {
			return Reach{}, ErrOtherLog
		}
	}
	err := p.run()
	switch {
	case p.stopped != nil:
		err = p.stopped
	case err != nil:
		err = fmt.Errorf("audit log: %w", err)
	}
	return p.Reach, err
}

// clockSlack is by how much a record may be older than one before it.
const clockSlack = time.Minute

// seek goes to the first record that may not be older than since, and passes the decisions of open
// calls that are.
func (p *replay) seek(open openCalls) error {
	var decisions []Record
	err := logfile.ErrMoved
	for try := 0; try < maxListTries && err != nil; try++ {
		p.next = 1
		var files []logfile.Listed
		if files, err = listFiles(p.dir); err != nil {
			return err
		}
		there := openCalls{Open: map[string]place{}}
		for i, f := range files {
			var began time.Time
			if began, err = firstTime(f); err != nil {
				break
			}
			if f.First <= p.last && (i == 0 && !began.After(p.since) || began.Before(p.since.Add(-clockSlack))) {
				p.next = f.First
			}
			for id, at := range open.Open {
				if at.File == f.First {
					there.Open[id] = at
				}
			}
		}
		if err == nil {
			decisions, err = there.decisions(p.dir, false)
		}
		for id, at := range open.Open {
			if _, ok := there.Open[id]; err == nil && !ok && at.File < p.next {
				p.Missing++
			}
		}
	}
	if err != nil {
		return err
	}
	for i := range decisions {
		r := &decisions[i]
		r.Arguments, r.Completion = nil, ""
		if r.Time.Before(p.since) && r.claims() && p.pass(r) != nil {
			return p.stopped
		}
	}
	return nil
}

// firstTime is the time of the first record of a file; zero where it has none.
func firstTime(file logfile.Listed) (at time.Time, err error) {
	if file.First == math.MaxUint64 {
		return at, nil
	}
	f, err := logfile.OpenRead(file.Name)
	if err != nil {
		return at, err
	}
	defer f.Close()
	line, err := logfile.ReadLine(f, 0, nil)
	if err != nil {
		return at, fmt.Errorf("%s: %w", file.Name, err)
	}
	if seq, ok := logfile.SeqOf(line); !ok || seq != file.First {
		return at, logfile.ErrMoved
	}
	r, err := Decode(line)
	if err != nil {
		return at, fmt.Errorf("%s: its first record: %w", file.Name, err)
	}
	return r.Time, nil
}

// run reads up to the last record.
func (p *replay) run() error {
	log := logfile.Reader{Dir: p.dir}
	err := log.Oldest(p.next, p.last, func(line []byte, at logfile.Link) error {
		p.Missing += at.Seq - p.next
		p.next = at.Seq + 1
		return p.visit(line)
	})
	if err == nil {
		p.Missing += p.last + 1 - p.next
	}
	return err
}

// The texts that a line has which claims something. In another member they may stand, too.
var (
	keyMember      = []byte(`"key_sha256":"`)
	ledgerMember   = []byte(`"ledger":"`)
	callerMember   = []byte(`"caller_turn":`)
	approvalMember = []byte(`"approval":[`)
	spendsMember   = []byte(`"spends":[`)
)

// visit passes the record of a line if it is one of those of Replay. It decodes no others, but the first.
func (p *replay) visit(line []byte) error {
	if p.next%1024 == 0 && p.ctx.Err() != nil {
		p.stopped = p.ctx.Err()
		return p.stopped
	}
	if p.turns {
		return p.visitTurn(line)
	}
	event, mode, id := headOf(line)
	wanted := false
	switch event {
	case Decision:
		if !isToolCall(line) {
			break
		}
		wanted = bytes.Contains(line, keyMember) || bytes.Contains(line, approvalMember) || bytes.Contains(line, spendsMember)
		if !wanted && mode == Call {
			p.others[id] = true
		}
	case Ending:
		if wanted = !p.others[id] || p.all; mode == Enforce {
			wanted = p.handed[id]
			delete(p.handed, id)
		}
		delete(p.others, id)
	case Approval:
		wanted = true
	}
	if !wanted && p.First > 0 {
		return nil
	}
	r, ok := p.decode(line)
	if !ok {
		return nil
	}
	if p.First == 0 {
		p.First, p.Time = r.Seq, r.Time
	}
	switch {
	case !wanted:
		return nil
	case event == Decision && !r.claims(): // the text was in its content
		if mode == Call {
			p.others[id] = true
		}
		return nil
	case event == Approval && !slices.Contains(endCodes, r.Code), r.Time.Before(p.since):
		return nil
	case event == Decision && mode == Enforce:
		p.handed[id] = true
	}
	return p.pass(&r)
}

// decode reads a line, without arguments and completion. One that cannot be read is counted.
func (p *replay) decode(line []byte) (r Record, ok bool) {
	if r, ok = decodeOwn(line); ok {
		return r, true
	}
	r, err := Decode(line)
	if err != nil {
		p.Missing++
		return r, false
	}
	r.Arguments, r.Completion = nil, ""
	return r, true
}

// visitTurn is visit of ReplayTurns.
func (p *replay) visitTurn(line []byte) error {
	wanted := bytes.Contains(line, ledgerMember) || bytes.Contains(line, callerMember)
	if !wanted && p.First > 0 {
		return nil
	}
	r, ok := p.decode(line)
	if !ok {
		return nil
	}
	if p.First == 0 {
		if p.prev != "" && p.Missing == 0 && r.Prev != p.prev {
			p.stopped = ErrOtherLog
			return p.stopped
		}
		p.First, p.Time = r.Seq, r.Time
	}
	if r.Ledger == "" && r.CallerTurn == 0 { // the text was in its content
		return nil
	}
	return p.pass(&r)
}

// endCodes are the codes of approval events that end an approval or a grant.
var endCodes = []refusal.Code{No, Lapsed, Withdrawn, Revoked}

// claims reports whether a decision holds a key, or uses approvals or grants.
func (r *Record) claims() bool {
	return r.Verdict == ToolCall && (r.KeySHA256 != "" || len(r.Approvals)+len(r.Spends) > 0)
}

func (p *replay) pass(r *Record) error {
	p.stopped = p.do(r)
	return p.stopped
}
