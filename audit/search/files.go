package search

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// newestName is the name of the file that a log writes. It has another one once it is moved aside.
const newestName = "audit.jsonl"

// Logs are the files of one audit log or of several. They are safe for concurrent use.
type Logs struct {
	chains []*chain
}

// chain is one log: its files, oldest first, of which the newest is open. A log that is written
// meanwhile may move that one aside; the others keep their names.
type chain struct {
	number int
	dir    string   // whose files belong to it; empty where files were named
	named  []string // files that were named
	files  []string
	last   *os.File
	size   int64 // of last; what is appended later is not searched
}

// Open opens the logs of folders and files. A folder stands for the log in it. The files of one
// folder are one log. The error says which place has no log, or cannot be read.
func Open(places ...string) (*Logs, error) {
	byDir := map[string]*chain{}
	l := &Logs{}
	for _, place := range places {
		info, err := os.Stat(place)
		if err != nil {
			return nil, err
		}
		dir := filepath.Dir(place)
		if info.IsDir() {
			dir = filepath.Clean(place)
		}
		c := byDir[dir]
		if c == nil {
			c = &chain{number: len(l.chains)}
			byDir[dir] = c
			l.chains = append(l.chains, c)
		}
		if info.IsDir() {
			c.dir = dir
		} else {
			c.named = append(c.named, place)
		}
	}
	for _, c := range l.chains {
		if err := c.open(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// Close closes the files.
func (l *Logs) Close() error {
	var errs []error
	for _, c := range l.chains {
		if c.last != nil {
			errs = append(errs, c.last.Close())
		}
	}
	return errors.Join(errs...)
}

// A log that has moved its file aside begins the next one within this time; where there is none
// until then, nothing is written.
const (
	maxRotation   = 200 * time.Millisecond
	rotationPause = time.Millisecond
)

// open opens the newest file and lists those before it. A log that is written meanwhile may move
// the open file aside and begin others, which are not searched. However long the list takes,
// nothing older is missing from it, since files that were moved aside keep their names.
func (c *chain) open() error {
	newest, f, err := c.openNewest()
	if err != nil {
		return err
	}
	c.last = f // Close closes it
	files, err := c.list(newest, f)
	if err != nil {
		return err
	}
	if f == nil {
		if len(files) == 0 {
			return fmt.Errorf("%s: no audit log: no file matches %s", c.dir, logfile.Pattern)
		}
		newest, files = files[len(files)-1], files[:len(files)-1]
		if c.last, err = logfile.OpenRead(newest); err != nil {
			c.last = nil
			return err
		}
	}
	size, err := logfile.ContentSize(c.last)
	if err != nil {
		return fmt.Errorf("%s: %w", newest, err)
	}
	c.files, c.size = append(files, newest), size
	return nil
}

// openNewest opens the file that the log of the folder writes; nil where there is none, as of logs
// that were copied.
func (c *chain) openNewest() (name string, f *os.File, err error) {
	if c.dir == "" {
		return "", nil, nil
	}
	name = filepath.Join(c.dir, newestName)
	for end := time.Now().Add(maxRotation); ; time.Sleep(rotationPause) {
		f, err = logfile.OpenRead(name)
		switch {
		case !errors.Is(err, fs.ErrNotExist):
			return name, f, err
		case time.Now().After(end):
			return "", nil, nil
		}
	}
}

// list returns the names of the files before the newest, oldest first; all where that is nil.
func (c *chain) list(newest string, f *os.File) ([]string, error) {
	names := slices.Clone(c.named)
	end := uint64(math.MaxUint64)
	if c.dir != "" {
		own, err := logfile.Names(c.dir)
		if err != nil {
			return nil, err
		}
		names = append(names, own...)
	}
	if f != nil {
		var err error
		if end, err = logfile.FirstSeqOf(f); err != nil {
			return nil, fmt.Errorf("%s: %w", newest, err)
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return f != nil && name == newest })
	listed, err := logfile.List(names, logfile.FirstSeq)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, file := range listed {
		// The newest has another name by now where the log has moved it aside. A file without records
		// stays: a search says so.
		if f == nil || file.First < end || file.First == math.MaxUint64 {
			files = append(files, file.Name)
		}
	}
	return files, nil
}

// outOfOrder is how far the times of records may stand out of order: a record has the time at
// which it was made, and a disk that fails, or a clock that is set, has it written later.
const outOfOrder = time.Hour

// part is the part of a file that is searched: from the beginning of a line to the end of one, or of the
// file.
type part struct {
	chain    *chain
	file     int
	from, to int64
}

// part returns what of a file can hold records of the time that is wanted.
func (c *chain) part(file int, q *Query) (part, error) {
	f, size, done, err := c.openFile(file)
	if err != nil {
		return part{}, err
	}
	defer done()
	p := part{chain: c, file: file, to: size}
	if !q.Since.IsZero() {
		if p.from, err = firstNotBefore(f, size, q.Since.Add(-outOfOrder), false); err != nil {
			return part{}, fmt.Errorf("%s: %w", c.files[file], err)
		}
	}
	if !q.Until.IsZero() {
		if p.to, err = firstNotBefore(f, size, q.Until.Add(outOfOrder), true); err != nil {
			return part{}, fmt.Errorf("%s: %w", c.files[file], err)
		}
	}
	return p, nil
}

// openFile opens a file of the chain. done gives it back.
func (c *chain) openFile(file int) (f *os.File, size int64, done func(), err error) {
	if file == len(c.files)-1 {
		return c.last, c.size, func() {}, nil
	}
	f, err = logfile.OpenRead(c.files[file])
	if err != nil {
		return nil, 0, nil, err
	}
	if size, err = logfile.ContentSize(f); err != nil {
		f.Close()
		return nil, 0, nil, err
	}
	return f, size, func() { f.Close() }, nil
}

// firstNotBefore finds by bisection the first line whose time is not before t; the size where
// there is none. It takes the lines to be in the order of time. A line whose time cannot be read
// is before t if timeless says so.
func firstNotBefore(f io.ReaderAt, size int64, t time.Time, timeless bool) (int64, error) {
	low, high := int64(0), size
	for low < high {
		start, err := logfile.LineStart(f, low+(high-low)/2+1)
		if err != nil {
			return 0, err
		}
		if start < low || start >= high { // an empty line
			start = low
		}
		var begin [128]byte
		n, err := f.ReadAt(begin[:], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		before := timeless
		if at, ok := logfile.TimeOf(begin[:n]); ok {
			before = at.Before(t)
		}
		if !before {
			high = start
			continue
		}
		if low, err = logfile.LineEnd(f, start, size); err != nil {
			return 0, err
		}
	}
	return low, nil
}
