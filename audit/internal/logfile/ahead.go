package logfile

import (
	"errors"
	"io"
	"os"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// zerosAhead is how many zeros are written at a time, beside those for the records at hand. A reader of the
// end of the file reads as many. maxZeros is the most that a file can have.
const (
	zerosAhead = 2 << 20
	maxZeros   = MaxLine + 2*zerosAhead
)

// ahead is a file with zeros behind what was written, in whose place the next lines are written: the
// size of the file then stays, and a sync is spared the file system's journal. Closing and cutting
// remove the zeros; a crash leaves them.
type ahead struct {
	*Disk
	end   int64 // behind what was written
	size  int64 // of the file, with the zeros
	grown bool  // the size has changed since the last sync
	full  bool  // the disk had no room for zeros: what is written grows the file as ever
}

// OpenAhead is OpenFile, for a file to append to. On a file system where it helps (ext4 and XFS),
// zeros are written ahead of the lines. What the file has is taken for content until Truncate
// says where that ends.
func OpenAhead(path string, flags int) (File, error) {
	if !aheadHelps(path) {
		return OpenFile(path, flags)
	}
	d, err := OpenFile(path, flags&^os.O_APPEND)
	if err != nil {
		return nil, err
	}
	size := d.opened.Size()
	return &ahead{Disk: d, end: size, size: size}, nil
}

// Size returns where the content ends; the size of the file where that is not the size that it was
// left with, since another has changed it then.
func (a *ahead) Size() (int64, error) {
	size, err := a.Disk.Size()
	if err == nil && size == a.size {
		size = a.end
	}
	return size, err
}

// Write appends. Behind it there is a zero at least, by which ContentEnd is told from a file
// without zeros.
func (a *ahead) Write(p []byte) (int, error) {
	if behind := a.end + int64(len(p)); behind >= a.size && !a.full {
		if err := a.extend(behind + zerosAhead); err != nil {
			return 0, err
		}
	}
	n, err := a.WriteAt(p, a.end)
	a.end += int64(n)
	if a.end > a.size {
		a.size, a.grown = a.end, true
	}
	return n, err
}

// extend writes zeros up to an offset. Where they have no room, records still may: no more are written.
func (a *ahead) extend(to int64) error {
	a.grown = true
	_, err := a.WriteAt(make([]byte, to-a.size), a.size)
	if err == nil {
		a.size = to
		return nil
	}
	a.full = true
	return a.File.Truncate(a.size)
}

func (a *ahead) Sync() error {
	if !a.grown {
		return datasync(a.File)
	}
	err := a.File.Sync()
	a.grown = err != nil
	return err
}

func (a *ahead) Truncate(size int64) error {
	a.grown = true
	if err := a.File.Truncate(size); err != nil {
		return err
	}
	a.end, a.size = size, size
	return nil
}

// Close removes the zeros, unless another has changed the file.
func (a *ahead) Close() error {
	if size, err := a.Disk.Size(); err == nil && size == a.size && size > a.end {
		_ = a.File.Truncate(a.end) // zeros that stay do no harm
	}
	return a.File.Close()
}

// ContentEnd returns the offset behind the last byte of a file that is not zero; size is that of the
// file. Zeros behind it were written ahead of records; they may be cut off meanwhile. More than any log
// writes ahead are content. A writer writes in order, so what a reader reads before the offset, after it has it, is written.
func ContentEnd(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, min(64<<10, size))
	for at := size; at > 0; {
		if size-at > maxZeros {
			return size, nil
		}
		n := min(int64(len(buf)), at)
		got, err := f.ReadAt(buf[:n], at-n)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := got - 1; i >= 0; i-- {
			if buf[i] != 0 {
				return at - n + int64(i) + 1, nil
			}
		}
		at -= n
	}
	return 0, nil
}

// Zeros reports whether there are zeros between two offsets of which the last is ContentEnd, and whether
// what is there can be what a crash left of a batch that was written from from on in the place of
// zeros: some of its sectors. So zeros begin at from or at a sector, and end at one, and the last byte ends
// a sector or a record.
func Zeros(f io.ReaderAt, from, end int64) (found, ofCrash bool, err error) {
	buf := make([]byte, 64<<10)
	ofCrash = true
	last := byte('\n')
	for at := from; at < end; {
		n := min(int64(len(buf)), end-at)
		if _, err := f.ReadAt(buf[:n], at); err != nil {
			return false, false, err
		}
		for i, c := range buf[:n] {
			if offset := at + int64(i); (c == 0) != (last == 0) && offset%sector != 0 && offset != from {
				ofCrash = false
			}
			last = c
			found = found || c == 0
		}
		at += n
	}
	return found, ofCrash && (last == '\n' || end%sector == 0), nil
}
