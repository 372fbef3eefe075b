package audit

import (
	"errors"
	"fmt"
	"io"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// CorruptionError names the first record that is not as it was written.
type CorruptionError = logfile.CorruptionError

// Report says how much of a log was read intact.
type Report struct {
	Records  uint64
	FirstSeq uint64 // 0 where there is no record
	LastSeq  uint64
	LastHash string // 64 zeros where there is no record
	// TruncatedBytes is the length of an incomplete line at the very end: a write that
	// was interrupted, or is under way. It was never confirmed, and the next Open
	// truncates it.
	TruncatedBytes int64
}

// Verify checks the chain over the files, given oldest first: each line's own
// hash, and that each follows the one before, across files too. The first
// record must be seq 1. It reads a line at a time, so files may have any size.
//
// The error is a *CorruptionError for the first record that is corrupt, and another
// error if a file cannot be read. The report covers the records before it. No chain
// can show by itself that whole records at its end are missing, or that all from some
// record on were rewritten: see Verifier.
func Verify(files ...string) (Report, error) {
	return scan(func([]byte) error { return nil }, files)
}

// Read is Verify that passes each verified record to visit. An error of visit ends it
// and is returned unchanged; the report then covers the records that were visited.
func Read(visit func(Record) error, files ...string) (Report, error) {
	return scan(func(line []byte) error {
		r, err := Decode(line)
		if err != nil {
			return errShape
		}
		return visit(r)
	}, files)
}

var errShape = logfile.Corruption("has a member of the wrong type")

func scan(visit func(line []byte) error, files []string) (Report, error) {
	if len(files) == 0 {
		return Report{LastHash: logfile.Genesis.String()}, errors.New("no audit file given")
	}
	report, _, err := scanFrom(logfile.Link{Hash: logfile.Genesis}, func(line []byte, _ logfile.Link) error { return visit(line) }, files)
	return report, err
}

// scanFrom checks the records behind from. It returns the number of the line
// where the last file continues.
func scanFrom(from logfile.Link, visit func(line []byte, at logfile.Link) error, files []string) (report Report, line int64, err error) {
	report.LastHash = from.Hash.String()
	at := from
	for i, name := range files {
		partial, err := readFile(name, &at, func(line []byte) error {
			if err := visit(line, at); err != nil {
				return err
			}
			report.Records++
			report.FirstSeq, report.LastSeq, report.LastHash = from.Seq+1, at.Seq, at.Hash.String()
			return nil
		})
		if err != nil {
			return report, partial.line, err
		}
		if partial.bytes > 0 && i < len(files)-1 {
			return report, partial.line, &CorruptionError{File: name, Line: partial.line, Seq: at.Seq + 1,
				Reason: "is incomplete, and another file follows"}
		}
		report.TruncatedBytes, line = partial.bytes, partial.line
	}
	return report, line, nil
}

// partialLine is an incomplete last line.
type partialLine struct{ line, bytes int64 }

func readFile(name string, at *logfile.Link, visit func([]byte) error) (partialLine, error) {
	f, err := logfile.OpenRead(name)
	if err != nil {
		return partialLine{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return partialLine{}, err
	}
	end, err := logfile.ContentEnd(f, info.Size())
	if err != nil {
		return partialLine{}, fmt.Errorf("%s: %w", name, err)
	}
	read, broken := int64(0), false
	rest, line, err := logfile.EachLine(io.NewSectionReader(f, 0, end), func(line []byte, number int64) error {
		next, err := at.Next(line)
		if err != nil {
			broken = true
			return &CorruptionError{File: name, Line: number, Seq: at.Seq + 1, Reason: reasonOf(line, err)}
		}
		read += int64(len(line)) + 1
		*at = next
		err = visit(line)
		if found := logfile.Corruption(""); errors.As(err, &found) {
			return &CorruptionError{File: name, Line: number, Seq: at.Seq, Reason: err.Error()}
		}
		return err
	})
	if end < info.Size() && (broken || err == nil) {
		found, torn, readErr := zerosWithin(f, read, end, at.Seq)
		switch {
		case readErr != nil:
			err = readErr
		case torn:
			rest, err = end-read, nil
		case found && !broken:
			err = &CorruptionError{File: name, Line: line, Seq: at.Seq + 1, Reason: zerosReason}
		}
	}
	if errors.Is(err, logfile.ErrLong) {
		err = &CorruptionError{File: name, Line: line, Seq: at.Seq + 1, Reason: err.Error()}
	}
	return partialLine{line: line, bytes: rest}, err
}
