package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

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

// CorruptionError names the first record that is not as it was written.
type CorruptionError struct {
	File   string
	Line   int64  // from 1
	Seq    uint64 // the seq that belongs at this line; 0 if it is unknown, and for a checkpoint
	Reason string // a clause that the line is the subject of
}

// Error is one line: file, line, seq and what is wrong.
func (b *CorruptionError) Error() string {
	if b.Seq == 0 {
		return fmt.Sprintf("%s:%d: the line %s", b.File, b.Line, b.Reason)
	}
	return fmt.Sprintf("%s:%d: seq %d: the line %s", b.File, b.Line, b.Seq, b.Reason)
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
		r, err := decode(line)
		if err != nil {
			return errShape
		}
		return visit(r)
	}, files)
}

var errShape = corruption("has a member of the wrong type")

// corruption says what is wrong with a line that has its place in the chain: a clause
// whose subject is the line.
type corruption string

func (f corruption) Error() string { return string(f) }

func scan(visit func(line []byte) error, files []string) (Report, error) {
	if len(files) == 0 {
		return Report{LastHash: genesis}, errors.New("no audit file given")
	}
	report, _, err := scanFrom(link{hash: genesis}, func(line []byte, _ link) error { return visit(line) }, files)
	return report, err
}

// scanFrom checks the records behind from. It returns the number of the line
// where the last file goes on.
func scanFrom(from link, visit func(line []byte, at link) error, files []string) (report Report, line int64, err error) {
	report.LastHash = from.hash
	at := from
	for i, name := range files {
		torn, err := readFile(name, &at, func(line []byte) error {
			if err := visit(line, at); err != nil {
				return err
			}
			report.Records++
			report.FirstSeq, report.LastSeq, report.LastHash = from.seq+1, at.seq, at.hash
			return nil
		})
		if err != nil {
			return report, torn.line, err
		}
		if torn.bytes > 0 && i < len(files)-1 {
			return report, torn.line, &CorruptionError{File: name, Line: torn.line, Seq: at.seq + 1, Reason: "is incomplete, and another file follows"}
		}
		report.TruncatedBytes, line = torn.bytes, torn.line
	}
	return report, line, nil
}

// partialLine is an incomplete last line.
type partialLine struct{ line, bytes int64 }

func readFile(name string, at *link, visit func([]byte) error) (partialLine, error) {
	f, err := openRead(name)
	if err != nil {
		return partialLine{}, err
	}
	defer f.Close()
	rest, line, err := eachLine(f, func(line []byte, number int64) error {
		next, err := at.next(line)
		if err != nil {
			return &CorruptionError{File: name, Line: number, Seq: at.seq + 1, Reason: err.Error()}
		}
		*at = next
		err = visit(line)
		if found := corruption(""); errors.As(err, &found) {
			return &CorruptionError{File: name, Line: number, Seq: at.seq, Reason: err.Error()}
		}
		return err
	})
	if errors.Is(err, errLong) {
		err = &CorruptionError{File: name, Line: line, Seq: at.seq + 1, Reason: err.Error()}
	}
	return partialLine{line: line, bytes: rest}, err
}

// openRead opens a regular file and nothing else.
func openRead(name string) (*os.File, error) {
	// Without O_NONBLOCK, opening a pipe that nobody writes to never returns.
	f, err := os.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %s, expected a regular file", name, fileKind(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

var errLong = fmt.Errorf("is longer than %d bytes, which no record is", maxLine)

// eachLine calls visit with every complete line, without its line end, and its number
// from 1. It returns the length of an incomplete last line, and the number of the line
// where it stopped.
func eachLine(r io.Reader, visit func(line []byte, number int64) error) (rest, number int64, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for number = 1; ; {
		part, err := in.ReadSlice('\n')
		if len(long)+len(part) > maxLine {
			return 0, number, errLong
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, part...)
		case errors.Is(err, io.EOF):
			return int64(len(long) + len(part)), number, nil
		case err != nil:
			return 0, number, err
		default:
			line := part
			if len(long) > 0 {
				long = append(long, part...)
				line = long
			}
			if err := visit(line[:len(line)-1], number); err != nil {
				return 0, number, err
			}
			number++
			long = long[:0]
		}
	}
}
