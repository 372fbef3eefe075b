package checkpoint

import (
	"bufio"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// Reader reads a file of checkpoints along with the chain that they sign, one
// at a time, so that there may be any number. It reads those that were there when it
// was opened: the records that these sign were durable before. A nil reader has no
// checkpoints and finds no error.
type Reader struct {
	name string
	file *os.File
	in   *bufio.Reader
	keys map[string]ed25519.PublicKey
	line int64
	next Checkpoint // of what is to come
	done bool       // nothing is

	verified  uint64 // checkpoints that were compared and are intact
	signedSeq uint64 // seq of the last of them
}

// OpenReader opens the file and reads the first checkpoint, which must be there.
func OpenReader(name string, keys []ed25519.PublicKey) (*Reader, error) {
	f, err := logfile.OpenRead(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &logfile.CorruptionError{File: name, Line: 1, Reason: "is missing: the chain has no signed heads"}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	r := &Reader{name: name, file: f, in: bufio.NewReaderSize(io.NewSectionReader(f, 0, info.Size()), 16<<10),
		keys: map[string]ed25519.PublicKey{}}
	for _, k := range keys {
		r.keys[KeyID(k)] = k
	}
	err = r.advance()
	if err == nil && r.done {
		err = &logfile.CorruptionError{File: name, Line: 1, Reason: "is missing: the chain has no signed heads"}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// advance reads the next checkpoint. An incomplete line at the end is ignored.
func (r *Reader) advance() error {
	r.line++
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, io.EOF) {
		r.done = true
		return nil
	}
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	h, err := verifyCheckpoint(line[:len(line)-1], r.keys)
	if err == nil {
		err = h.follows(r.next)
	}
	if err != nil {
		return &logfile.CorruptionError{File: r.name, Line: r.line, Reason: err.Error()}
	}
	r.next = h
	return nil
}

// SkipTo accepts the checkpoints before a chain that begins behind from. One of them
// must sign from itself; the first checkpoint does so for a chain that begins with
// seq 1.
func (r *Reader) SkipTo(from logfile.Link, first string) error {
	for !r.done && r.next.Seq < from.Seq {
		if err := r.accept(); err != nil {
			return err
		}
	}
	if r.done || r.next.Link() != from {
		return &logfile.CorruptionError{File: first, Line: 1, Seq: from.Seq + 1, Reason: "does not begin behind a record that a head signs"}
	}
	return r.accept()
}

func (r *Reader) accept() error {
	r.verified++
	r.signedSeq = r.next.Seq
	return r.advance()
}

// Compare checks a record against its checkpoint, if it has one.
func (r *Reader) Compare(at logfile.Link) error {
	if r == nil || r.done || r.next.Seq > at.Seq {
		return nil
	}
	if r.next.Link() != at {
		return logfile.Corruption(fmt.Sprintf("is not the one that %s:%d signs: it, or one behind seq %d, was rewritten",
			filepath.Base(r.name), r.line, r.signedSeq))
	}
	return r.accept()
}

// CheckExhausted checks that no checkpoint signs a record behind the last, which would
// be at line of name.
func (r *Reader) CheckExhausted(name string, line int64, last uint64) error {
	if r == nil || r.done {
		return nil
	}
	return &logfile.CorruptionError{File: name, Line: line, Seq: last + 1,
		Reason: fmt.Sprintf("is missing: %s:%d signs seq %d", filepath.Base(r.name), r.line, r.next.Seq)}
}

// Close closes the file. It reports no error, since nothing was written.
func (r *Reader) Close() { r.file.Close() }

// Chain is the id of the chain that the checkpoints sign.
func (r *Reader) Chain() string { return r.next.Chain }

// Verified is the number of checkpoints that were compared and are intact.
func (r *Reader) Verified() uint64 { return r.verified }

// SignedSeq is the seq of the last record that these sign.
func (r *Reader) SignedSeq() uint64 { return r.signedSeq }
