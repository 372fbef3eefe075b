package audit

import (
	"fmt"
	"os"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// confirms checks that the log in dir, which ends at the link end, has the record that
// the last checkpoint signs. A log that was truncated or rewritten before it is not
// continued: the next checkpoint would vouch for what was put there.
func confirms(dir, checkpoints string, signed, end logfile.Link) error {
	switch {
	case signed.Seq > end.Seq:
		return fmt.Errorf("the log ends at seq %d, and %s signs seq %d: records are missing", end.Seq, checkpoints, signed.Seq)
	case signed.Seq == 0:
		return nil
	case signed.Seq == end.Seq && signed != end:
		return fmt.Errorf("seq %d is not the record that %s signs", signed.Seq, checkpoints)
	case signed.Seq == end.Seq:
		return nil
	}
	found, name, err := lookup(dir, signed.Seq)
	if err == nil && found != signed {
		err = fmt.Errorf("%s: seq %d is not the record that %s signs", name, signed.Seq, checkpoints)
	}
	return err
}

// lookup finds the record with the seq, and the file that it stands in.
func lookup(dir string, seq uint64) (logfile.Link, string, error) {
	files, err := listFiles(dir)
	if err != nil {
		return logfile.Link{}, "", err
	}
	name := ""
	for _, f := range files {
		if f.First > seq {
			break
		}
		name = f.Name
	}
	if name == "" {
		return logfile.Link{}, "", fmt.Errorf("%s: no file holds seq %d, which is signed", dir, seq)
	}
	f, err := logfile.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return logfile.Link{}, "", err
	}
	defer f.Close()
	at, err := searchFile(name, f, seq)
	return at, name, err
}

// searchFile finds a record by binary search: seq grows from line to line.
func searchFile(name string, f logfile.Source, seq uint64) (logfile.Link, error) {
	high, err := f.Size()
	if err == nil {
		high, err = logfile.LineStart(f, high) // what follows is incomplete
	}
	if err != nil {
		return logfile.Link{}, fmt.Errorf("%s: %w", name, err)
	}
	for low := int64(0); low < high; {
		start, err := logfile.LineStart(f, low+(high-low)/2+1)
		if err != nil {
			return logfile.Link{}, fmt.Errorf("%s: %w", name, err)
		}
		at, size, err := logfile.LineAt(f, start, high)
		switch {
		case err != nil:
			return logfile.Link{}, fmt.Errorf("%s: the line at byte %d %w", name, start, err)
		case at.Seq == seq:
			return at, nil
		case at.Seq < seq:
			low = start + size
		default:
			high = start
		}
	}
	return logfile.Link{}, fmt.Errorf("%s: seq %d is missing, which is signed", name, seq)
}
