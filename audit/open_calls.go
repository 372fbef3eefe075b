package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// OpenCalls returns the decisions of executed calls (Mode Call, Verdict ToolCall) that
// have no outcome, in the order of the log: the calls that its processes were executing
// when they ended. It is called once, before the first Append; from then on the log saves
// snapshots. With a snapshot that fits the log it reads the records behind it, each of
// which must follow the one before. Otherwise it reads the whole log, as it is, and tells
// Options.OnReadAll; whether the log was changed is for Verifier to tell.
func (l *Log) OpenCalls() ([]Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.accepting || l.appended {
		return nil, errors.New("audit log: the open calls are read before the first record is appended")
	}
	if l.opened.end > 0 {
		first, err := firstSeq(l.path)
		if err != nil {
			return nil, err
		}
		l.writer.before.Seq = first - 1 // Open reads it only where it needs it
	}
	dir := filepath.Dir(l.path)
	calls, err := readSnapshot(dir, l.opts.SignKey)
	var records []Record
	if err == nil {
		l.saved, l.readFrom = calls.Seq, calls.Seq+1
		if err = calls.readOn(dir); err == nil && calls.Link != l.opened.Link {
			err = fmt.Errorf("the log ends at another record than seq %d", calls.Seq)
		}
		if err == nil {
			records, err = calls.decisions(dir, true)
		}
	}
	if err != nil {
		l.saved, l.readFrom = 0, 0
		calls = &openCalls{Link: l.opened.Link, End: place{File: l.writer.before.Seq + 1, Offset: l.opened.end}}
		if err := calls.readAll(dir, l.reportProgress(dir, err)); err != nil {
			return nil, err
		}
		if records, err = calls.decisions(dir, false); err != nil {
			return nil, err
		}
	}
	l.calls, l.earlier = calls, make(map[string]bool, len(records))
	for _, r := range records {
		l.earlier[r.CallID] = true
	}
	return records, nil
}

const (
	// quietBytes is how much is read without a report where there is no snapshot yet, and
	// progressBytes after how much progress is reported.
	quietBytes    = 64 << 20
	progressBytes = 1 << 30
)

// reportProgress reports that the whole log is read, and returns what reports how far.
func (l *Log) reportProgress(dir string, cause error) func(read int64) {
	total := int64(0)
	if names, err := logfile.Names(dir); err == nil {
		for _, name := range names {
			if info, err := os.Stat(name); err == nil {
				total += info.Size()
			}
		}
	}
	if l.opts.OnReadAll == nil || errors.Is(cause, errNoSnapshot) && total < quietBytes {
		return func(int64) {}
	}
	l.opts.OnReadAll(cause, 0, total)
	next := int64(progressBytes)
	return func(read int64) {
		if read >= next {
			l.opts.OnReadAll(cause, read, total)
			next = read + progressBytes
		}
	}
}

// isToolCall reports whether a decision has the verdict ToolCall. A line without one may have any: if
// its call has no outcome, OpenCalls refuses the log.
func isToolCall(line []byte) bool {
	_, rest, found := bytes.Cut(line, []byte(`,"verdict":"`))
	return !found || bytes.HasPrefix(rest, []byte(ToolCall+`"`))
}

// outcomeOf reads the outcome of a record. What looks like one before it, in a text, has other quotes.
func outcomeOf(line []byte) Outcome {
	_, rest, _ := bytes.Cut(line, []byte(`,"outcome":"`))
	outcome, _, _ := bytes.Cut(rest, []byte{'"'})
	return Outcome(outcome)
}

// EndedCalls returns the outcomes in the log of those of some calls that have one. Those that
// OpenCalls returned have none by then. A call that was to be handed over is handed over, also if
// its process has ended before it wrote that. The records behind the snapshot are read first, and
// the whole log only if they do not have them all.
func (l *Log) EndedCalls(ids []string) (map[string]Outcome, error) {
	l.mu.Lock()
	dir, from := filepath.Dir(l.path), l.readFrom
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		if !l.earlier[id] {
			wanted[id] = true
		}
	}
	l.mu.Unlock()
	ended := map[string]Outcome{}
	if len(wanted) == 0 {
		return ended, nil
	}
	if from > 0 && addEnded(dir, from, wanted, ended) == nil && len(ended) == len(wanted) {
		return ended, nil
	}
	return ended, addEnded(dir, 1, wanted, ended)
}

// addEnded adds the outcomes that calls have from a record on.
func addEnded(dir string, from uint64, wanted map[string]bool, ended map[string]Outcome) error {
	log := logfile.Reader{Dir: dir}
	return log.Oldest(from, math.MaxUint64, func(line []byte, _ logfile.Link) error {
		switch event, mode, id := headOf(line); {
		case !wanted[id]:
		case event == Ending:
			ended[id] = outcomeOf(line)
		case event == Decision && mode == Enforce && isToolCall(line):
			ended[id] = HandedOver
		}
		return nil
	})
}

// visitLines visits the lines of the log behind from, oldest first. The zero place is the
// beginning.
func visitLines(dir string, from place, visit func(line []byte, at place) error) error {
	files, err := listFiles(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if file.First < from.File {
			continue
		}
		at := place{File: file.First}
		if file.First == from.File {
			at = from
		}
		f, err := logfile.OpenRead(file.Name)
		if err != nil {
			return err
		}
		_, _, err = logfile.EachLine(io.NewSectionReader(f, at.Offset, math.MaxInt64-at.Offset), func(line []byte, _ int64) error {
			err := visit(line, at)
			at.Offset += int64(len(line)) + 1
			return err
		})
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return nil
}

// executedCall reads what a record says at its beginning of an executed call.
func executedCall(line []byte) (event Event, id string, ok bool) {
	event, mode, id := headOf(line)
	return event, id, mode == Call && (event == Decision || event == Ending)
}

// headOf reads what a record says at its beginning; of one that this version does not know, nothing.
// The members before call_id are the log's own and stand in one order, so the first event of a line is
// the record's; what looks like one further on, in arguments or in a completion, is content.
func headOf(line []byte) (event Event, mode Mode, id string) {
	_, rest, _ := bytes.Cut(line, []byte(`,"event":"`))
	for _, e := range []Event{Decision, Ending, Approval} {
		after, ok := bytes.CutPrefix(rest, []byte(string(e)+`","mode":"`))
		if !ok {
			continue
		}
		for _, m := range []Mode{Call, Enforce} {
			if after, ok := bytes.CutPrefix(after, []byte(string(m)+`","call_id":"`)); ok {
				if raw, _, whole := bytes.Cut(after, []byte{'"'}); whole {
					return e, m, string(raw)
				}
			}
		}
	}
	return "", "", ""
}
