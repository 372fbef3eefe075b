package audit

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
	// maxLine bounds a line, line end included, on both sides: the log writes
	// none that is longer, and readers hold no more than one.
	maxLine = 64 << 20

	hexLen     = 2 * sha256.Size
	seqPrefix  = `{"seq":`
	prevPrefix = `,"prev":"`
	hashPrefix = `","hash":"`
	lineSuffix = `"}`
	sealLen    = len(prevPrefix) + hexLen + len(hashPrefix) + hexLen + len(lineSuffix)
	hashedCut  = len(hashPrefix) - 1 + hexLen + len(lineSuffix) // from `,"hash"` to the end
)

// genesis stands for the hash before the first record.
var genesis = strings.Repeat("0", hexLen)

// link identifies a record in the chain: the last one that was read or written.
type link struct {
	seq  uint64
	hash string
}

// seal appends the line that follows l to dst and returns its link.
func (l link) seal(dst, body []byte) ([]byte, link) {
	start := len(dst)
	next := link{seq: l.seq + 1}
	dst = strconv.AppendUint(append(dst, seqPrefix...), next.seq, 10)
	dst = append(append(dst, ','), body...)
	dst = append(append(dst, prevPrefix...), l.hash...)
	dst = append(dst, '"')
	sum := sha256.Sum256(dst[start:])
	next.hash = hex.EncodeToString(sum[:])
	dst = append(append(dst, hashPrefix[1:]...), next.hash...)
	return append(append(dst, lineSuffix...), '\n'), next
}

// parseLine checks a line (without its line end) by itself: its form and its own hash.
// It returns the line's link and the hash of the record before. The error is a clause
// for the operator and quotes nothing.
func parseLine(line []byte) (at link, prev string, err error) {
	rest, ok := bytes.CutPrefix(line, []byte(seqPrefix))
	digits, _, found := bytes.Cut(rest, []byte(","))
	if !ok || !found {
		return at, "", fmt.Errorf("is not a record: it does not begin with %s and a number", seqPrefix)
	}
	at.seq, err = strconv.ParseUint(string(digits), 10, 64)
	if err != nil || digits[0] == '0' || digits[0] == '+' {
		return at, "", fmt.Errorf("is not a record: it does not begin with %s and a number", seqPrefix)
	}
	if len(line) < len(seqPrefix)+sealLen {
		return at, "", fmt.Errorf("is not a record: it does not end with prev and hash")
	}
	tail := line[len(line)-sealLen:]
	prev = string(tail[len(prevPrefix) : len(prevPrefix)+hexLen])
	at.hash = string(tail[sealLen-len(lineSuffix)-hexLen : sealLen-len(lineSuffix)])
	if string(tail) != prevPrefix+prev+hashPrefix+at.hash+lineSuffix {
		return at, "", fmt.Errorf("is not a record: it does not end with prev and hash")
	}
	sum := sha256.Sum256(line[:len(line)-hashedCut])
	if hex.EncodeToString(sum[:]) != at.hash {
		return at, "", fmt.Errorf("was altered: its bytes do not have the hash that it names")
	}
	if !json.Valid(line) {
		return at, "", fmt.Errorf("is not a JSON object")
	}
	return at, prev, nil
}

// next checks that line follows l and returns its link.
func (l link) next(line []byte) (link, error) {
	at, prev, err := parseLine(line)
	switch {
	case err != nil:
		return l, err
	case at.seq != l.seq+1:
		return l, fmt.Errorf("has seq %d, expected %d: a record was removed, added or moved", at.seq, l.seq+1)
	case prev != l.hash:
		return l, fmt.Errorf("does not follow the record before it: its prev is another hash")
	}
	return at, nil
}
