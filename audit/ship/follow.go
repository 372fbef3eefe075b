package ship

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// The most of one batch: records, and about how many bytes of lines. A single record may be longer.
const (
	maxRecords = 512
	maxBytes   = 1 << 20
)

// follower reads the durable records of a log, in order, in all files that rotation leaves. It
// belongs to one goroutine.
type follower struct {
	dir     string
	durable func() (seq uint64, hash string) // the last record that may be read
	at      logfile.Link                     // the last record that was read
	file    *os.File                         // that holds the next record; nil is not known
	first   uint64                           // seq of its first record
	offset  int64                            // where the next one begins, or a line before it
}

// batch are the records that follow one another.
type batch struct {
	lines [][]byte // without line ends
	end   logfile.Link
	// gone counts records before the last line that are in no file any more, or not as they
	// were written.
	gone uint64
}

// seek has the next batch begin behind a record.
func (f *follower) seek(at logfile.Link) {
	f.close()
	f.at = at
}

func (f *follower) close() {
	if f.file != nil {
		f.file.Close() // it was only read
	}
	f.file, f.offset = nil, 0
}

// next reads the next batch; it has no lines where there is nothing more yet.
func (f *follower) next() (batch, error) {
	var b batch
	for passed := uint64(0); ; { // the file that was read to its end: it was rotated, or its end is damaged
		if seq, _ := f.durable(); f.at.Seq >= seq {
			return b, nil
		}
		if f.file == nil {
			if err := f.open(passed); err != nil {
				return b, err
			}
		}
		if err := f.read(&b); err != nil {
			return b, err
		}
		if len(b.lines) > 0 {
			return b, nil
		}
		passed = f.first
		f.close()
	}
}

// open opens the file that has the next record, or the first one behind it. It passes over the
// files up to the one that begins with a record: the next record is durable, and in none of them.
func (f *follower) open(passed uint64) error {
	files, err := list(f.dir)
	if err == nil {
		err = f.openOf(files, passed)
	}
	if errors.Is(err, fs.ErrNotExist) { // it was renamed since it was listed
		err = errNotYet
	}
	return err
}

// openOf is open, with the files as they were listed.
func (f *follower) openOf(files []listed, passed uint64) error {
	want, from := f.at.Seq+1, 0
	for i, file := range files {
		if file.first <= want {
			from = i
		}
	}
	for _, l := range files[from:] {
		if l.first <= passed {
			continue
		}
		file, err := logfile.OpenRead(l.name)
		if err != nil {
			return err
		}
		f.offset, err = logfile.OffsetBefore(file, want)
		end := int64(0)
		if err == nil {
			end, err = contentEnd(file)
		}
		first := uint64(0)
		if err == nil {
			first, err = seqOf(file)
		}
		if err == nil && first > want {
			err = f.unchanged(files)
		}
		if err == nil && f.offset < end {
			f.file, f.first = file, first
			return nil
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return errNotYet
}

// contentEnd is the size of an open file without the zeros that were written ahead of records.
func contentEnd(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return logfile.ContentEnd(file, info.Size())
}

// unchanged is errNotYet if a file was rotated since the files were listed: then the newest, by
// its name, may be another one than it was, and those before it may be in a file that was not
// listed. Only where nothing was rotated is a record that is in no file gone.
func (f *follower) unchanged(files []listed) error {
	now, err := list(f.dir)
	if err == nil && !slices.Equal(now, files) {
		err = errNotYet
	}
	return err
}

// errNotYet says that no file has the next record, though it is durable: the newest is being
// rotated.
var errNotYet = errors.New("no file of the audit log has the next record")

// listed is a file of the log, and the seq of its first record.
type listed struct {
	name  string
	first uint64
}

// list returns the files of the log, oldest first, whatever is in them.
func list(dir string) ([]listed, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []listed
	for _, e := range entries {
		if ok, _ := filepath.Match("audit*.jsonl", e.Name()); !ok {
			continue
		}
		name := filepath.Join(dir, e.Name())
		first, err := firstSeq(name)
		if err != nil {
			return nil, err
		}
		files = append(files, listed{name, first})
	}
	slices.SortStableFunc(files, func(a, b listed) int { return cmp.Compare(a.first, b.first) })
	return files, nil
}

// firstSeq returns the seq of a file's first record.
func firstSeq(name string) (uint64, error) {
	file, err := logfile.OpenRead(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return seqOf(file)
}

// seqOf returns the seq of the first record of an open file; the greatest there is where it has none.
func seqOf(file *os.File) (uint64, error) {
	var head [64]byte
	n, err := file.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	seq, ok := logfile.SeqOf(head[:n])
	if !ok {
		return math.MaxUint64, nil
	}
	return seq, nil
}

// errEnough ends the reading of a file.
var errEnough = errors.New("the batch is full, or the rest is not durable yet")

// read adds to a batch from the open file.
func (f *follower) read(b *batch) error {
	last, _ := f.durable()
	size := 0
	end, err := contentEnd(f.file)
	if err != nil {
		return err
	}
	_, _, err = logfile.EachLine(io.NewSectionReader(f.file, f.offset, end-f.offset), func(line []byte, _ int64) error {
		if f.at.Seq >= last || len(b.lines) == maxRecords || size >= maxBytes {
			return errEnough
		}
		f.offset += int64(len(line)) + 1
		at, _, err := logfile.ParseChained(line)
		if err != nil || at.Seq <= f.at.Seq {
			return nil //nolint:nilerr // the records that are missing here are counted by the next one
		}
		b.gone += at.Seq - f.at.Seq - 1
		b.lines = append(b.lines, bytes.Clone(line))
		size += len(line)
		f.at, b.end = at, at
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// has reports whether the log may have a record: it is in a file with this hash, or in none any
// more.
func (f *follower) has(at logfile.Link) (bool, error) {
	seq, hash := f.durable()
	switch {
	case at.Seq > seq:
		return false, nil
	case at.Seq == seq:
		return at.Hash.String() == hash, nil
	case at.Seq == 0:
		return at.Hash == logfile.Genesis, nil
	}
	f.seek(logfile.Link{Seq: at.Seq - 1})
	defer f.close()
	err := f.open(0)
	if errors.Is(err, errNotYet) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	line, err := logfile.ReadLine(f.file, f.offset, nil)
	if err != nil {
		return false, err
	}
	found, _, err := logfile.ParseChained(line)
	return err != nil || found.Seq != at.Seq || found == at, nil
}
