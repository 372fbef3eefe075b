package logfile

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Pattern matches the files of a log in its folder.
const Pattern = "audit*.jsonl"

// Names returns the paths in dir that a log owns, in the order of names.
func Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if ok, _ := filepath.Match(Pattern, e.Name()); ok {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names, nil
}

// Listed is a file of a log, and the seq of its first record: the greatest there is where it has none.
type Listed struct {
	Name  string
	First uint64
}

// List returns files in the order of their first records, which first reads. Where a file is gone, the error is fs.ErrNotExist: a
// log that is written meanwhile rotates its files.
func List(names []string, first func(name string) (uint64, error)) ([]Listed, error) {
	files := make([]Listed, len(names))
	for i, name := range names {
		seq, err := first(name)
		if err != nil {
			return nil, err
		}
		files[i] = Listed{name, seq}
	}
	slices.SortStableFunc(files, func(a, b Listed) int { return cmp.Compare(a.First, b.First) })
	return files, nil
}

// FirstSeq returns the seq of the first record of a file; the greatest there is where it has none. Lines before it that are no
// records are passed over.
func FirstSeq(name string) (uint64, error) {
	f, err := OpenRead(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	first, err := FirstSeqOf(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return first, err
}

// FirstSeqOf is FirstSeq of an open file.
func FirstSeqOf(f io.ReaderAt) (uint64, error) {
	in := bufio.NewReader(io.NewSectionReader(f, 0, 1<<20))
	for {
		begin, err := in.ReadSlice('\n')
		if seq, ok := SeqOf(begin); ok {
			return seq, nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return math.MaxUint64, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return 0, err
		}
	}
}

// ContentSize is the size of a file without the zeros that were written ahead of records.
func ContentSize(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return ContentEnd(f, info.Size())
}

// Reader reads the records of a log beside its writer, in all files that rotation leaves. It verifies no chain, and passes over
// lines that are no records.
type Reader struct {
	Dir string
	// Hashed says that hashes are read: a line that does not have the hash that it names is no record.
	Hashed bool
	// Bytes counts what Newest has read.
	Bytes int64
}

// maxLists is how often the files are listed anew because they were rotated.
const maxLists = 100

// ErrMoved says that a file was rotated between the list of files and its reading.
var ErrMoved = errors.New("a file of the log was moved")

var (
	errBusy   = errors.New("the files of the audit log change faster than they can be read")
	errBehind = errors.New("the rest is behind the last record that is read")
)

// Visit takes a record, of which it keeps no byte: its line without the line end, and its link, without a hash where the Reader reads
// none. Its error ends the reading.
type Visit func(line []byte, at Link) error

// Oldest passes the records from a seq on, up to another one, in their order. Records that no file has are left out.
func (r *Reader) Oldest(from, last uint64, visit Visit) error {
	return r.each(func(files []Listed) (bool, error) {
		err := r.oldest(files, &from, last, visit)
		return from > last, err
	})
}

// oldest reads the files as they are listed, and moves from behind the records that were passed.
func (r *Reader) oldest(files []Listed, from *uint64, last uint64, visit Visit) error {
	for i, file := range files {
		if *from > last || i+1 < len(files) && files[i+1].First <= *from {
			continue
		}
		if err := r.forward(files, file, from, last, visit); err != nil {
			return err
		}
	}
	return nil
}

// Newest passes the records before a seq, the newest first.
func (r *Reader) Newest(before uint64, visit Visit) error {
	return r.each(func(files []Listed) (bool, error) {
		for _, file := range slices.Backward(files) {
			if file.First >= before {
				continue
			}
			if err := r.backward(files, file.Name, &before, visit); err != nil {
				return false, err
			}
		}
		return before <= 1, nil
	})
}

// each reads the files as they are listed, and again while they are rotated, unless all was read.
func (r *Reader) each(read func(files []Listed) (all bool, err error)) error {
	for range maxLists {
		files, err := r.list()
		all := false
		if err == nil {
			all, err = read(files)
		}
		if err == nil && !all {
			err = r.unchanged(files)
		}
		if !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return errBusy
}

func (r *Reader) list() ([]Listed, error) {
	names, err := Names(r.Dir)
	if err != nil {
		return nil, err
	}
	files, err := List(names, FirstSeq)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrMoved
	}
	return files, err
}

// unchanged is ErrMoved if a file was rotated since the files were listed: then the newest, by its name, may be another one than
// it was. Only where nothing was rotated is a record that is in no file gone.
func (r *Reader) unchanged(files []Listed) error {
	now, err := r.list()
	if err == nil && !slices.Equal(now, files) {
		err = ErrMoved
	}
	return err
}

// linkOf reads the link of a record.
func (r *Reader) linkOf(line []byte) (at Link, ok bool) {
	if r.Hashed {
		at, _, err := ParseChained(line)
		return at, err == nil
	}
	at.Seq, ok = SeqOf(line)
	return at, ok
}

// openListed opens a file to be read.
func openListed(name string) (*os.File, error) {
	f, err := OpenRead(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrMoved
	}
	return f, err
}

// forward reads a file from a record on, which it moves behind those that were passed.
func (r *Reader) forward(files []Listed, file Listed, next *uint64, last uint64, visit Visit) error {
	f, err := openListed(file.Name)
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := ContentSize(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Name, err)
	}
	start := int64(0)
	if file.First < *next {
		if start, err = OffsetBefore(f, *next); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	begun := false
	var ended error // of visit
	_, _, err = EachLine(io.NewSectionReader(f, start, max(0, end-start)), func(line []byte, _ int64) error {
		at, ok := r.linkOf(line)
		switch {
		case !ok || at.Seq < *next:
			return nil // one that is no record is missing, which the next shows
		case at.Seq > last:
			return errBehind
		case !begun && at.Seq > *next:
			if err := r.unchanged(files); err != nil {
				return err
			}
		}
		begun, *next = true, at.Seq+1
		ended = visit(line, at)
		return ended
	})
	switch {
	case ended != nil:
		return ended
	case err == nil || errors.Is(err, errBehind):
		return nil
	case errors.Is(err, ErrMoved):
		return err
	}
	return fmt.Errorf("%s: %w", file.Name, err)
}

// backwardBlock is how much of a file is read at a time, from its end.
const backwardBlock int64 = 256 << 10

// backward reads a file from the record before a seq, the last first, and moves that seq. An incomplete last line is passed over.
func (r *Reader) backward(files []Listed, name string, before *uint64, visit Visit) error {
	f, err := openListed(name)
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := OffsetBefore(f, *before)
	if err != nil {
		return err
	}
	begun := false
	var buffer []byte // visit keeps none of it
	var starts []int  // of the lines of a block: found forwards, which is faster
	for end > 0 {
		// All but the first line of a block is whole. A line longer than a block grows it.
		var block []byte
		first := 0
		for size := min(backwardBlock, end); ; size = min(2*size, end) {
			if int64(cap(buffer)) < size {
				buffer = make([]byte, size)
			}
			block = buffer[:size]
			if _, err := f.ReadAt(block, end-size); err != nil {
				return err
			}
			r.Bytes += size
			if size == end {
				break
			}
			if first = bytes.IndexByte(block[:len(block)-1], '\n') + 1; first > 0 {
				break
			}
		}
		starts = starts[:0]
		for at := first; at < len(block); {
			starts = append(starts, at)
			length := bytes.IndexByte(block[at:], '\n') + 1
			if length == 0 {
				break // the block ends at the end of a line, so there is no such line
			}
			at += length
		}
		next := len(block)
		for _, start := range slices.Backward(starts) {
			line := block[start : next-1]
			next = start
			at, ok := r.linkOf(line)
			if !ok || at.Seq >= *before {
				continue // no record, or not one that is wanted
			}
			if !begun && at.Seq+1 < *before {
				if err := r.unchanged(files); err != nil {
					return err
				}
			}
			begun, *before = true, at.Seq
			if err := visit(line, at); err != nil {
				return err
			}
		}
		end -= int64(len(block) - first)
	}
	return nil
}
