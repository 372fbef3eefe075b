package audit

import (
	"errors"
	"fmt"
	"io"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// tail is the end of a file of the log.
type tail struct {
	logfile.Link
	end  int64 // offset behind the last complete line
	last int64 // length of that line; 0 where there is none
}

// findTail finds the end of the file and the length of an incomplete line behind it. It
// checks the lines that one batch can have left there, so that a tail written out of
// order by a crash is found. Verify checks everything before them. A complete line
// that is corrupt is a *CorruptionError: no crash of this program leaves one.
func findTail(name string, f logfile.Source) (t tail, partial int64, err error) {
	size, err := f.Size()
	if err != nil {
		return tail{}, 0, err
	}
	end, err := logfile.LineStart(f, size)
	if err != nil {
		return tail{}, 0, fmt.Errorf("%s: %w", name, err)
	}
	t, partial = tail{Link: logfile.Link{Hash: logfile.Genesis}, end: end}, size-end
	if end == 0 {
		return t, partial, nil
	}
	from, err := logfile.LineStart(f, min(end-1, max(0, end-batchBytes)))
	if err != nil {
		return tail{}, 0, fmt.Errorf("%s: %w", name, err)
	}
	known := false
	_, number, err := logfile.EachLine(io.NewSectionReader(f, from, end-from), func(line []byte, _ int64) error {
		at, _, err := logfile.ParseLine(line)
		if err == nil && known {
			at, err = t.Next(line)
		}
		if err != nil {
			return &CorruptionError{File: name, Reason: err.Error()}
		}
		t.Link, t.last, known = at, int64(len(line))+1, true
		return nil
	})
	var broken *CorruptionError
	if errors.As(err, &broken) {
		before, countErr := countLines(f, from)
		if countErr != nil {
			return tail{}, 0, countErr
		}
		broken.Line = before + number
		if known {
			broken.Seq = t.Seq + 1
		}
	}
	return t, partial, err
}

func countLines(f io.ReaderAt, to int64) (int64, error) {
	var lines int64
	buf := make([]byte, 64<<10)
	for at := int64(0); at < to; {
		n := min(int64(len(buf)), to-at)
		if _, err := f.ReadAt(buf[:n], at); err != nil {
			return 0, err
		}
		for _, c := range buf[:n] {
			if c == '\n' {
				lines++
			}
		}
		at += n
	}
	return lines, nil
}
