package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// tail is the end of a file of the log.
type tail struct {
	logfile.Link
	end  int64 // offset behind the last complete line
	last int64 // length of that line; 0 where there is none
}

// findTail finds the end of the file and the length of an incomplete line behind it, or of what a crash
// left of a batch. It checks the lines that one batch can have left there, so that a tail written out of
// order by a crash is found. Verify checks everything before them. A complete line
// that is corrupt is a *CorruptionError: no crash of this program leaves one. Zeros that were
// written ahead are no part of the file. before returns the record before the file's first.
func findTail(name string, f logfile.Source, before func() (logfile.Link, error)) (t tail, partial int64, err error) {
	size, err := f.Size()
	if err != nil {
		return tail{}, 0, err
	}
	end, err := logfile.ContentEnd(f, size)
	if err != nil {
		return tail{}, 0, fmt.Errorf("%s: %w", name, err)
	}
	t, bad, err := tailBefore(name, f, end)
	var broken *CorruptionError
	if err != nil && !errors.As(err, &broken) || end == size {
		return t, end - t.end, err
	}
	if broken != nil {
		var earlier error
		if t, _, earlier = tailBefore(name, f, bad); earlier != nil {
			return tail{}, 0, err
		}
	}
	last := t.Link
	if t.end == 0 && t.end < end {
		if last, err = before(); err != nil {
			return tail{}, 0, err
		}
	}
	found, torn, err := zerosWithin(f, t.end, end, last.Seq)
	switch {
	case err != nil:
		return tail{}, 0, fmt.Errorf("%s: %w", name, err)
	case torn || !found && broken == nil:
		return t, end - t.end, nil
	case broken == nil:
		lines, err := logfile.CountLines(f, t.end)
		if err != nil {
			return tail{}, 0, err
		}
		broken = &CorruptionError{File: name, Line: lines + 1, Seq: last.Seq + 1, Reason: zerosReason}
	}
	return tail{}, 0, broken
}

// tailBefore is findTail for a file of end bytes without zeros. It returns where the line begins
// that is corrupt.
func tailBefore(name string, f io.ReaderAt, size int64) (t tail, bad int64, err error) {
	end, err := logfile.LineStart(f, size)
	if err != nil {
		return tail{}, 0, fmt.Errorf("%s: %w", name, err)
	}
	t = tail{Link: logfile.Link{Hash: logfile.Genesis}, end: end}
	if end == 0 {
		return t, 0, nil
	}
	from, err := logfile.LineStart(f, min(end-1, max(0, end-batchBytes)))
	if err != nil {
		return tail{}, 0, fmt.Errorf("%s: %w", name, err)
	}
	known := false
	bad = from
	_, number, err := logfile.EachLine(io.NewSectionReader(f, from, end-from), func(line []byte, _ int64) error {
		at, _, err := logfile.ParseLine(line)
		if err == nil && known {
			at, err = t.Next(line)
		}
		if err != nil {
			return &CorruptionError{File: name, Reason: reasonOf(line, err)}
		}
		t.Link, t.last, known = at, int64(len(line))+1, true
		bad += t.last
		return nil
	})
	var broken *CorruptionError
	if errors.As(err, &broken) {
		before, countErr := logfile.CountLines(f, from)
		if countErr != nil {
			return tail{}, 0, countErr
		}
		broken.Line = before + number
		if known {
			broken.Seq = t.Seq + 1
		}
	}
	return t, bad, err
}

// zerosReason is why a line is corrupt that no crash leaves.
const zerosReason = "has zeros, and behind them what was written later: records were overwritten"

// reasonOf says why a line is corrupt.
func reasonOf(line []byte, err error) string {
	if bytes.IndexByte(line, 0) >= 0 {
		return zerosReason
	}
	return err.Error()
}

// zerosWithin reports whether there are zeros in what a file with zeros at its end has between two
// offsets, behind the record with the seq last, and whether all of that is what a crash left of the
// last batch: some sectors of it. Each record that is whole among them says with syncedMember which
// records were confirmed before its batch: one behind last was, if what is there was destroyed later.
func zerosWithin(f io.ReaderAt, from, end int64, last uint64) (found, torn bool, err error) {
	found, torn, err = logfile.Zeros(f, from, end)
	if !found || !torn || err != nil {
		return found, false, err
	}
	later := errors.New("a record of a later batch, or of a log without zeros")
	_, _, err = logfile.EachLine(io.NewSectionReader(f, from, end-from), func(line []byte, _ int64) error {
		line = line[bytes.LastIndexByte(line, 0)+1:]
		if _, _, err := logfile.ParseChained(line); err != nil {
			return nil //nolint:nilerr // a part of a record says nothing
		}
		if synced, ok := syncedBefore(line); !ok || synced > last {
			return later
		}
		return nil
	})
	if errors.Is(err, later) {
		return true, false, nil
	}
	return true, err == nil, err
}

// syncedMember is the last member of a record before prev in a log that is written in the place of
// zeros: the seq of the last record that was confirmed before its batch was written.
const syncedMember = `,"synced":`

// syncedBefore reads syncedMember of a line.
func syncedBefore(line []byte) (seq uint64, ok bool) {
	body := line[:len(line)-logfile.SealLen]
	i := bytes.LastIndex(body, []byte(syncedMember))
	if i < 0 {
		return 0, false
	}
	seq, err := strconv.ParseUint(string(body[i+len(syncedMember):]), 10, 64)
	return seq, err == nil
}
