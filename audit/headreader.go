package audit

import (
	"bufio"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// headReader reads a file of heads along with the chain that they sign, one at
// a time, so that there may be any number. It reads what was there when it was
// opened: the records that these sign were durable before. A nil reader has no
// heads and finds no fault.
type headReader struct {
	name string
	file *os.File
	in   *bufio.Reader
	keys map[string]ed25519.PublicKey
	line int64
	next head // of what is to come
	over bool // nothing is

	held uint64 // heads that were compared, and hold
	upTo uint64 // seq of the last of them
}

// openHeads reads the first head, which must be there.
func openHeads(name string, keys []ed25519.PublicKey) (*headReader, error) {
	f, err := openRead(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &CorruptionError{File: name, Line: 1, Reason: "is missing: the chain has no signed heads"}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	r := &headReader{name: name, file: f, in: bufio.NewReaderSize(io.NewSectionReader(f, 0, info.Size()), 16<<10), keys: map[string]ed25519.PublicKey{}}
	for _, k := range keys {
		r.keys[KeyID(k)] = k
	}
	err = r.advance()
	if err == nil && r.over {
		err = &CorruptionError{File: name, Line: 1, Reason: "is missing: the chain has no signed heads"}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// advance reads the next head. An incomplete line at the end is none.
func (r *headReader) advance() error {
	r.line++
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, io.EOF) {
		r.over = true
		return nil
	}
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	h, err := readSigned(line[:len(line)-1], r.keys)
	if err == nil {
		err = h.follows(r.next)
	}
	if err != nil {
		return &CorruptionError{File: r.name, Line: r.line, Reason: err.Error()}
	}
	r.next = h
	return nil
}

// reach passes the heads before a chain that begins behind from. One of them
// must sign from itself; the first head does so for a chain that begins with seq 1.
func (r *headReader) reach(from link, first string) error {
	for !r.over && r.next.Seq < from.seq {
		if err := r.take(); err != nil {
			return err
		}
	}
	if r.over || r.next.link() != from {
		return &CorruptionError{File: first, Line: 1, Seq: from.seq + 1, Reason: "does not begin behind a record that a head signs"}
	}
	return r.take()
}

func (r *headReader) take() error {
	r.held++
	r.upTo = r.next.Seq
	return r.advance()
}

// compare checks a record against its head, where it has one.
func (r *headReader) compare(at link) error {
	if r == nil || r.over || r.next.Seq > at.seq {
		return nil
	}
	if r.next.link() != at {
		return flaw(fmt.Sprintf("is not the one that %s:%d signs: it, or one behind seq %d, was written anew", filepath.Base(r.name), r.line, r.upTo))
	}
	return r.take()
}

// exhausted checks that no head signs a record behind the last, which line of
// name would follow.
func (r *headReader) exhausted(name string, line int64, last uint64) error {
	if r == nil || r.over {
		return nil
	}
	return &CorruptionError{File: name, Line: line, Seq: last + 1, Reason: fmt.Sprintf("is missing: %s:%d signs seq %d", filepath.Base(r.name), r.line, r.next.Seq)}
}

func (r *headReader) close() { r.file.Close() }
