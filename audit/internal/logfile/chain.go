// Package logfile is the form of the files of the audit log, shared by the log and its
// checkpoints: lines in a hash chain, and regular files that are opened strictly.
package logfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

const (
	// MaxLine bounds a line, line end included, on both sides: the log writes
	// none that is longer, and readers hold no more than one.
	MaxLine = 64 << 20

	HexLen     = 2 * sha256.Size
	seqPrefix  = `{"seq":`
	prevPrefix = `,"prev":"`
	HashPrefix = `","hash":"`
	LineSuffix = `"}`
	SealLen    = len(prevPrefix) + HexLen + len(HashPrefix) + HexLen + len(LineSuffix)
	hashedCut  = len(HashPrefix) - 1 + HexLen + len(LineSuffix) // from `,"hash"` to the end
)

// Genesis stands for the hash before the first record.
var Genesis = strings.Repeat("0", HexLen)

// Link identifies a record in the chain: the last one that was read or written.
type Link struct {
	Seq  uint64
	Hash string
}

// Seal appends the line that follows l to dst and returns its link.
func (l Link) Seal(dst, body []byte) ([]byte, Link) {
	start := len(dst)
	next := Link{Seq: l.Seq + 1}
	dst = strconv.AppendUint(append(dst, seqPrefix...), next.Seq, 10)
	dst = append(append(dst, ','), body...)
	dst = append(append(dst, prevPrefix...), l.Hash...)
	dst = append(dst, '"')
	sum := sha256.Sum256(dst[start:])
	next.Hash = hex.EncodeToString(sum[:])
	dst = append(append(dst, HashPrefix[1:]...), next.Hash...)
	return append(append(dst, LineSuffix...), '\n'), next
}

// ParseLine checks a line (without its line end) by itself: its form and its own hash.
// It returns the line's link and the hash of the record before. The error is a clause
// for the operator and quotes nothing.
func ParseLine(line []byte) (at Link, prev string, err error) {
	rest, ok := bytes.CutPrefix(line, []byte(seqPrefix))
	digits, _, found := bytes.Cut(rest, []byte(","))
	if !ok || !found {
		return at, "", fmt.Errorf("is not a record: it does not begin with %s and a number", seqPrefix)
	}
	at.Seq, err = strconv.ParseUint(string(digits), 10, 64)
	if err != nil || digits[0] == '0' || digits[0] == '+' {
		return at, "", fmt.Errorf("is not a record: it does not begin with %s and a number", seqPrefix)
	}
	if len(line) < len(seqPrefix)+SealLen {
		return at, "", fmt.Errorf("is not a record: it does not end with prev and hash")
	}
	tail := line[len(line)-SealLen:]
	prev = string(tail[len(prevPrefix) : len(prevPrefix)+HexLen])
	at.Hash = string(tail[SealLen-len(LineSuffix)-HexLen : SealLen-len(LineSuffix)])
	if string(tail) != prevPrefix+prev+HashPrefix+at.Hash+LineSuffix {
		return at, "", fmt.Errorf("is not a record: it does not end with prev and hash")
	}
	sum := sha256.Sum256(line[:len(line)-hashedCut])
	if hex.EncodeToString(sum[:]) != at.Hash {
		return at, "", fmt.Errorf("was altered: its bytes do not have the hash that it names")
	}
	if !json.Valid(line) {
		return at, "", fmt.Errorf("is not a JSON object")
	}
	return at, prev, nil
}

// Next checks that line follows l and returns its link.
func (l Link) Next(line []byte) (Link, error) {
	at, prev, err := ParseLine(line)
	switch {
	case err != nil:
		return l, err
	case at.Seq != l.Seq+1:
		return l, fmt.Errorf("has seq %d, expected %d: a record was removed, added or moved", at.Seq, l.Seq+1)
	case prev != l.Hash:
		return l, fmt.Errorf("does not follow the record before it: its prev is another hash")
	}
	return at, nil
}
