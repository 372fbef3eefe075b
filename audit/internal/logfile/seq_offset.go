package logfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
)

// SeqOf reads the seq of a line.
func SeqOf(line []byte) (seq uint64, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	for i, c := range rest {
		if c < '0' || c > '9' {
			return seq, ok && i > 0
		}
		seq = seq*10 + uint64(c-'0')
	}
	return 0, false
}

// TimeOf reads the time of a line, of which the beginning is enough. The members before it are
// the log's own, so what looks like a time further on is content.
func TimeOf(line []byte) (time.Time, bool) {
	const member = `,"time":"`
	i := bytes.IndexByte(line, ',')
	if i < 0 || !bytes.HasPrefix(line[i:], []byte(member)) {
		return time.Time{}, false
	}
	text, _, whole := bytes.Cut(line[i+len(member):], []byte{'"'})
	if !whole {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	return at, err == nil
}

// OffsetBefore returns the end of the last complete line whose seq is less than before, by
// binary search: seq grows from line to line.
func OffsetBefore(f *os.File, before uint64) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	high, err := LineStart(f, info.Size())
	if err != nil {
		return 0, err
	}
	var head [64]byte
	for low := int64(0); low < high; {
		start, err := LineStart(f, low+(high-low)/2+1)
		if err != nil {
			return 0, err
		}
		start = min(start, high-1)
		n, err := f.ReadAt(head[:], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if seq, ok := SeqOf(head[:n]); ok && seq < before {
			if low, err = LineEnd(f, start, high); err != nil {
				return 0, err
			}
			continue
		}
		high = start
	}
	return high, nil
}

// LineEnd returns the offset behind the line that begins at start; end where it has no end before that.
func LineEnd(f io.ReaderAt, start, end int64) (int64, error) {
	var buf [8 << 10]byte
	for at := start; at < end; at += int64(len(buf)) {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), end-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
	}
	return end, nil
}
