package audit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
)

const (
	fileName    = "audit.jsonl"
	filePattern = "audit*.jsonl"
)

// Files returns the files of the log in dir, oldest first, as Verify and Read
// take them: in the order of their first records, those without one last. A
// file that does not begin with a record is a *Broken.
func Files(dir string) ([]string, error) {
	names, err := logNames(dir)
	if err != nil {
		return nil, err
	}
	first := make(map[string]uint64, len(names))
	for _, name := range names {
		if first[name], err = firstSeq(name); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(first[a], first[b]) })
	return names, nil
}

// logNames returns the paths in dir that the log owns, in the order of names.
func logNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if ok, _ := filepath.Match(filePattern, e.Name()); ok {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names, nil
}

// firstSeq returns the seq of the first record; the greatest there is where
// the file has none.
func firstSeq(name string) (uint64, error) {
	f, err := openDisk(name, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	seq, enough := uint64(math.MaxUint64), errors.New("one is enough")
	_, line, err := eachLine(f, func(line []byte, _ int64) error {
		at, _, err := read(line)
		if err != nil {
			return err
		}
		seq = at.seq
		return enough
	})
	if err != nil && !errors.Is(err, enough) {
		return 0, &Broken{File: name, Line: line, Why: err.Error()}
	}
	return seq, nil
}

// newest returns the last link among the files of the log in dir other than
// the one that is written: a log whose file was moved aside goes on from there.
func newest(dir string) (link, error) {
	at := link{hash: genesis}
	names, err := logNames(dir)
	if err != nil {
		return at, err
	}
	for _, name := range slices.DeleteFunc(names, func(n string) bool { return filepath.Base(n) == fileName }) {
		t, torn, err := tailOf(name)
		switch {
		case err != nil:
			return at, err
		case torn > 0:
			return at, fmt.Errorf("%s ends in an incomplete line of %d bytes, expected a whole record", name, torn)
		case t.seq > at.seq:
			at = t.link
		}
	}
	return at, nil
}

func tailOf(name string) (tail, int64, error) {
	f, err := openDisk(name, os.O_RDONLY)
	if err != nil {
		return tail{}, 0, err
	}
	defer f.Close()
	return findTail(name, f)
}
