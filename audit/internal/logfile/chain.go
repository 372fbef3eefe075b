// Package logfile is the form of the files of the audit log, shared by the log and its
// checkpoints: lines in a hash chain, and regular files that are opened strictly.
package logfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

const (
	// MaxLine bounds a line, line end included, on both sides: the log writes
	// none that is longer, and readers hold no more than one.
	MaxLine = 64 << 20

	// HexLen is the length of a hash in a line, in bytes.
	HexLen     = 2 * sha256.Size
	seqPrefix  = `{"seq":`
	prevPrefix = `,"prev":"`
	// HashPrefix and LineSuffix enclose the hash at the end of a line.
	HashPrefix = `","hash":"`
	LineSuffix = `"}`
	// SealLen is the length of the two hashes at the end of a line, with their members.
	SealLen   = len(prevPrefix) + HexLen + len(HashPrefix) + HexLen + len(LineSuffix)
	hashedCut = len(HashPrefix) - 1 + HexLen + len(LineSuffix) // from `,"hash"` to the end
)

// Hash is the SHA-256 of a record, in lower-case hex digits.
type Hash [HexLen]byte

func (h Hash) String() string { return string(h[:]) }

// MarshalText makes a Hash a string in JSON.
func (h Hash) MarshalText() ([]byte, error) { return h[:], nil }

// UnmarshalText takes a text of the length of a hash.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != HexLen {
		return fmt.Errorf("a hash has %d digits, expected %d", len(text), HexLen)
	}
	copy(h[:], text)
	return nil
}

// sum returns the hash of the bytes of a line before its hash.
func sum(hashed []byte) (h Hash) {
	digest := sha256.Sum256(hashed)
	hex.Encode(h[:], digest[:])
	return h
}

// Genesis stands for the hash before the first record.
var Genesis = Hash(bytes.Repeat([]byte("0"), HexLen))

// Link identifies a record in the chain: the last one that was read or written.
type Link struct {
	Seq  uint64 `json:"seq"`
	Hash Hash   `json:"hash"`
}

// Seal appends the line that follows l to dst and returns its link.
func (l Link) Seal(dst, body []byte) ([]byte, Link) {
	start := len(dst)
	next := Link{Seq: l.Seq + 1}
	dst = strconv.AppendUint(append(dst, seqPrefix...), next.Seq, 10)
	dst = append(append(dst, ','), body...)
	dst = append(append(dst, prevPrefix...), l.Hash[:]...)
	dst = append(dst, '"')
	next.Hash = sum(dst[start:])
	dst = append(append(dst, HashPrefix[1:]...), next.Hash[:]...)
	return append(append(dst, LineSuffix...), '\n'), next
}

// ParseLine checks a line (without its line end) by itself: its form and its own hash.
// It returns the line's link and the hash of the record before. The error is a clause
// for the operator and quotes nothing.
func ParseLine(line []byte) (at Link, prev Hash, err error) {
	at, prev, err = ParseChained(line)
	if err == nil && !json.Valid(line) {
		err = errors.New("is not a JSON object")
	}
	return at, prev, err
}

// ParseChained is ParseLine that leaves out whether the line is JSON, which takes longer
// than all else. No line that the log wrote has its hash and is not.
func ParseChained(line []byte) (at Link, prev Hash, err error) {
	rest, ok := bytes.CutPrefix(line, []byte(seqPrefix))
	digits, _, found := bytes.Cut(rest, []byte(","))
	if !ok || !found {
		return at, prev, fmt.Errorf("is not a record: it does not begin with %s and a number", seqPrefix)
	}
	at.Seq, err = strconv.ParseUint(string(digits), 10, 64)
	if err != nil || digits[0] == '0' || digits[0] == '+' {
		return at, prev, fmt.Errorf("is not a record: it does not begin with %s and a number", seqPrefix)
	}
	if len(line) < len(seqPrefix)+SealLen {
		return at, prev, errors.New("is not a record: it does not end with prev and hash")
	}
	tail, ok := bytes.CutPrefix(line[len(line)-SealLen:], []byte(prevPrefix))
	between, ends := bytes.CutPrefix(tail[min(HexLen, len(tail)):], []byte(HashPrefix))
	if !ok || !ends || string(between[HexLen:]) != LineSuffix {
		return at, prev, errors.New("is not a record: it does not end with prev and hash")
	}
	prev, at.Hash = Hash(tail[:HexLen]), Hash(between[:HexLen])
	if sum(line[:len(line)-hashedCut]) != at.Hash {
		return at, prev, errors.New("was altered: its bytes do not have the hash that it names")
	}
	return at, prev, nil
}

// Next checks that line follows l and returns its link.
func (l Link) Next(line []byte) (Link, error) { return l.next(line, ParseLine) }

// NextChained is Next as ParseChained reads the line.
func (l Link) NextChained(line []byte) (Link, error) { return l.next(line, ParseChained) }

func (l Link) next(line []byte, parse func([]byte) (Link, Hash, error)) (Link, error) {
	at, prev, err := parse(line)
	switch {
	case err != nil:
		return l, err
	case at.Seq != l.Seq+1:
		return l, fmt.Errorf("has seq %d, expected %d: a record was removed, added or moved", at.Seq, l.Seq+1)
	case prev != l.Hash:
		return l, errors.New("does not follow the record before it: its prev is another hash")
	}
	return at, nil
}
