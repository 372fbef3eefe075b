package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/callgate/callgate/audit/internal/logfile"
)

const fileName = "audit.jsonl"

// Files returns the files of the log in dir, oldest first, as Verify and Read take
// them: in the order of their first records, those without one last. A file that does
// not begin with a record is a *CorruptionError.
func Files(dir string) ([]string, error) {
	files, err := listFiles(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
	}
	return names, nil
}

// listFiles is Files with the first records.
func listFiles(dir string) (files []logfile.Listed, err error) {
	for range maxListTries {
		var names []string
		if names, err = logfile.Names(dir); err != nil {
			return nil, err
		}
		if files, err = logfile.List(names, firstSeq); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return files, err
}

// maxListTries is how often a file may be gone that was just listed: a log that is
// written meanwhile rotates its files.
const maxListTries = 4

// firstSeq returns the seq of the first record; the greatest there is where
// the file has none.
func firstSeq(name string) (uint64, error) {
	f, err := logfile.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	before, err := linkBeforeFirst(name, f)
	if errors.Is(err, errEmpty) {
		return math.MaxUint64, nil
	}
	return before.Seq + 1, err
}

// reportMissing reports each run of records that is missing before a file of the log. It reads the first
// and the last line of each.
func reportMissing(dir string, report func(cause error, oldest bool)) {
	files, err := listFiles(dir)
	if err != nil {
		report(err, false)
		return
	}
	var last uint64
	for _, f := range files {
		if f.First == math.MaxUint64 {
			continue
		}
		name := filepath.Base(f.Name)
		switch {
		case f.First > last+1 && last == 0:
			report(fmt.Errorf("the records 1 to %d are missing before %s: if you have removed the oldest files, verify the log with --partial; else put them back", f.First-1, name), true)
		case f.First > last+1:
			report(fmt.Errorf("the records %d to %d are missing before %s: put their file back; the log does not verify without it", last+1,
				f.First-1, name), false)
		}
		if last, err = lastSeq(f.Name); err != nil {
			report(err, false)
			return
		}
	}
}

// lastSeq returns the seq of the last complete line of a file that has one.
func lastSeq(name string) (uint64, error) {
	f, err := logfile.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	end, err := logfile.LineStart(f, size)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	start, err := logfile.LineStart(f, max(end-1, 0))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	line := make([]byte, max(end-1-start, 0))
	if _, err := f.ReadAt(line, start); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	at, _, err := logfile.ParseLine(line)
	if err != nil {
		return 0, fmt.Errorf("%s: its last record: %w", name, err)
	}
	return at.Seq, nil
}

var errEmpty = errors.New("has no record")

// linkBeforeFirst returns the link that the first record of a file follows, or
// errEmpty. A file that does not begin with a record is a *CorruptionError.
func linkBeforeFirst(name string, from io.Reader) (logfile.Link, error) {
	before, found := logfile.Link{}, errors.New("one is enough")
	_, line, err := logfile.EachLine(from, func(line []byte, _ int64) error {
		at, prev, err := logfile.ParseLine(line)
		if err != nil {
			return err
		}
		before = logfile.Link{Seq: at.Seq - 1, Hash: prev}
		return found
	})
	switch {
	case errors.Is(err, found):
		return before, nil
	case err != nil:
		return logfile.Link{}, &CorruptionError{File: name, Line: line, Reason: err.Error()}
	}
	return logfile.Link{}, errEmpty
}

// newestLink returns the last link among the rotated files of the log in dir: a new
// file continues from there.
func newestLink(dir string) (logfile.Link, error) {
	at := logfile.Link{Hash: logfile.Genesis}
	names, err := logfile.Names(dir)
	if err != nil {
		return at, err
	}
	for _, name := range slices.DeleteFunc(names, func(n string) bool { return filepath.Base(n) == fileName }) {
		t, partial, err := tailOf(name)
		switch {
		case err != nil:
			return at, err
		case partial > 0:
			return at, fmt.Errorf("%s ends in an incomplete line of %d bytes, expected a whole record", name, partial)
		case t.Seq > at.Seq:
			at = t.Link
		}
	}
	return at, nil
}

func tailOf(name string) (tail, int64, error) {
	f, err := logfile.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return tail{}, 0, err
	}
	defer f.Close()
	// A file that was rotated without its first batch has no record that is needed.
	return findTail(name, f, func() (logfile.Link, error) { return logfile.Link{}, errEmpty })
}
