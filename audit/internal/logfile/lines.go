package logfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

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

// Corruption says what is wrong with a line that has its place in the chain: a clause
// whose subject is the line.
type Corruption string

func (f Corruption) Error() string { return string(f) }

// ErrLong is the error of a line that is longer than MaxLine.
var ErrLong = fmt.Errorf("is longer than %d bytes, which no record is", MaxLine)

// EachLine calls visit with every complete line, without its line end, and its number
// from 1. It returns the length of an incomplete last line, and the number of the line
// where it stopped.
func EachLine(r io.Reader, visit func(line []byte, number int64) error) (rest, number int64, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for number = 1; ; {
		part, err := in.ReadSlice('\n')
		if len(long)+len(part) > MaxLine {
			return 0, number, ErrLong
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

// LineStart returns the offset behind the last line end before the offset to. The file may have been cut
// before it.
func LineStart(f io.ReaderAt, to int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for at := to; at > 0; {
		if to-at >= MaxLine {
			return 0, fmt.Errorf("no line end in %d bytes, expected one record a line", MaxLine)
		}
		n := min(int64(len(buf)), at)
		got, err := f.ReadAt(buf[:n], at-n)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:got], '\n'); i >= 0 {
			return at - n + int64(i) + 1, nil
		}
		at -= n
	}
	return 0, nil
}

// ReadLine reads the line that begins at start into buf, which it returns without the line
// end. It reads little more than the line. Without a line end the error is
// io.ErrUnexpectedEOF.
func ReadLine(f io.ReaderAt, start int64, buf []byte) ([]byte, error) {
	buf = buf[:0]
	for {
		seen := len(buf)
		more := max(2<<10, seen)
		buf = slices.Grow(buf, more)
		n, err := f.ReadAt(buf[seen:seen+more], start+int64(seen))
		buf = buf[:seen+n]
		if i := bytes.IndexByte(buf[seen:], '\n'); i >= 0 {
			return buf[:seen+i], nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return buf, io.ErrUnexpectedEOF
		case err != nil:
			return buf, err
		case len(buf) >= MaxLine:
			return buf, ErrLong
		}
	}
}

// LineAt reads the line that begins at start, and returns its length too.
func LineAt(f io.ReaderAt, start, end int64) (at Link, size int64, err error) {
	found := errors.New("one is enough")
	_, _, err = EachLine(io.NewSectionReader(f, start, end-start), func(line []byte, _ int64) error {
		var err error
		if at, _, err = ParseLine(line); err != nil {
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

// CountLines counts the line ends before an offset.
func CountLines(f io.ReaderAt, to int64) (lines int64, err error) {
	buf := make([]byte, 64<<10)
	for at := int64(0); at < to; {
		n := min(int64(len(buf)), to-at)
		if _, err := f.ReadAt(buf[:n], at); err != nil {
			return 0, err
		}
		lines += int64(bytes.Count(buf[:n], []byte{'\n'}))
		at += n
	}
	return lines, nil
}
