package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// confirms checks that the log in dir, which ends at the link end, has the record that
// the last checkpoint signs. A log that was truncated or rewritten before it is not
// continued: the next checkpoint would vouch for what was put there.
func confirms(dir, heads string, signed, end link) error {
	switch {
	case signed.seq > end.seq:
		return fmt.Errorf("the log ends at seq %d, and %s signs seq %d: records are missing", end.seq, heads, signed.seq)
	case signed.seq == 0:
		return nil
	case signed.seq == end.seq && signed != end:
		return fmt.Errorf("seq %d is not the record that %s signs", signed.seq, heads)
	case signed.seq == end.seq:
		return nil
	}
	found, name, err := lookup(dir, signed.seq)
	if err == nil && found != signed {
		err = fmt.Errorf("%s: seq %d is not the record that %s signs", name, signed.seq, heads)
	}
	return err
}

// lookup finds the record with the seq, and the file that it stands in.
func lookup(dir string, seq uint64) (link, string, error) {
	names, err := Files(dir)
	if err != nil {
		return link{}, "", err
	}
	name := ""
	for _, n := range names {
		first, err := firstSeq(n)
		if err != nil {
			return link{}, "", err
		}
		if first > seq {
			break
		}
		name = n
	}
	if name == "" {
		return link{}, "", fmt.Errorf("%s: no file holds seq %d, which is signed", dir, seq)
	}
	f, err := openDisk(name, os.O_RDONLY)
	if err != nil {
		return link{}, "", err
	}
	defer f.Close()
	at, err := searchFile(name, f, seq)
	return at, name, err
}

// searchFile finds a record by binary search: seq grows from line to line.
func searchFile(name string, f source, seq uint64) (link, error) {
	high, err := f.Size()
	if err == nil {
		high, err = lineStart(f, high) // what follows is incomplete
	}
	if err != nil {
		return link{}, fmt.Errorf("%s: %w", name, err)
	}
	for low := int64(0); low < high; {
		start, err := lineStart(f, low+(high-low)/2+1)
		if err != nil {
			return link{}, fmt.Errorf("%s: %w", name, err)
		}
		at, size, err := lineAt(f, start, high)
		switch {
		case err != nil:
			return link{}, fmt.Errorf("%s: the line at byte %d %w", name, start, err)
		case at.seq == seq:
			return at, nil
		case at.seq < seq:
			low = start + size
		default:
			high = start
		}
	}
	return link{}, fmt.Errorf("%s: seq %d is missing, which is signed", name, seq)
}

// lineAt reads the line that begins at start, and returns its length too.
func lineAt(f io.ReaderAt, start, end int64) (at link, size int64, err error) {
	found := errors.New("one is enough")
	_, _, err = eachLine(io.NewSectionReader(f, start, end-start), func(line []byte, _ int64) error {
		var err error
		if at, _, err = parseLine(line); err != nil {
			return err
		}
		size = int64(len(line)) + 1
		return found
	})
	if errors.Is(err, found) {
		err = nil
	}
	return at, size, err
}
