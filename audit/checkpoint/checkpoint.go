// Package checkpoint signs checkpoints of the audit log, called heads on disk: "seq N of
// this chain has this hash". They show what the chain alone cannot: that its end is
// missing, or that all from some record on was rewritten. Their file, its grammar and
// its promises are in the documentation of package audit.
package checkpoint

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
)

const (
	// FileName is the name of the file of checkpoints in the folder of the log.
	FileName = "heads.jsonl"
	// signingContext is signed before the line, so that no signature of a checkpoint
	// is valid for anything else that the key ever signs.
	signingContext     = "callgate audit head\n"
	signaturePrefix    = `,"signature":"`
	signatureLen       = (ed25519.SignatureSize + 2) / 3 * 4
	signatureSuffixLen = len(signaturePrefix) + signatureLen + len(logfile.LineSuffix)
	// maxCheckpointLine bounds a line of checkpoints.
	maxCheckpointLine = 1 << 10
)

// Checkpoint states the hash of one record of a chain.
type Checkpoint struct {
	Number uint64       `json:"head"`  // from 1, one more each line
	Chain  string       `json:"chain"` // drawn at random with head 1, the same in all that follow
	Seq    uint64       `json:"seq"`   // 0, with 64 zeros as hash, in head 1
	Hash   logfile.Hash `json:"hash"`
	Time   time.Time    `json:"time"` // of signing
	Key    string       `json:"key"`  // KeyID
}

// Link returns the number and the hash of the record that h signs.
func (h Checkpoint) Link() logfile.Link { return logfile.Link{Seq: h.Seq, Hash: h.Hash} }

// Sign returns the line of h, with its line end.
func (h Checkpoint) Sign(key ed25519.PrivateKey) ([]byte, error) {
	body, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	body = bytes.TrimSuffix(body, []byte("}"))
	signature := ed25519.Sign(key, append([]byte(signingContext), body...))
	line := base64.StdEncoding.AppendEncode(append(body, signaturePrefix...), signature)
	return append(append(line, logfile.LineSuffix...), '\n'), nil
}

var errNoCheckpoint = errors.New("is not a signed head")

// Parse reads a line (without its line end), whose every byte must be as
// sign writes it, and returns what was signed and the signature. It does not
// check the signature. The error is a clause for the operator and quotes nothing.
func Parse(line []byte) (h Checkpoint, signed, signature []byte, err error) {
	if len(line) > maxCheckpointLine || len(line) < signatureSuffixLen {
		return h, nil, nil, errNoCheckpoint
	}
	signed, tail := line[:len(line)-signatureSuffixLen], line[len(line)-signatureSuffixLen:]
	encoded, ok := bytes.CutPrefix(tail, []byte(signaturePrefix))
	encoded, closed := bytes.CutSuffix(encoded, []byte(logfile.LineSuffix))
	signature, err = base64.StdEncoding.Strict().DecodeString(string(encoded))
	if !ok || !closed || err != nil {
		return h, nil, nil, errNoCheckpoint
	}
	if err := json.Unmarshal(append(bytes.Clone(signed), '}'), &h); err != nil {
		return h, nil, nil, errNoCheckpoint
	}
	second, err := json.Marshal(h)
	if err != nil || !bytes.Equal(bytes.TrimSuffix(second, []byte("}")), signed) {
		return h, nil, nil, errNoCheckpoint
	}
	return h, signed, signature, nil
}

// verifyCheckpoint is Parse that also checks the signature, with the key
// that the checkpoint names.
func verifyCheckpoint(line []byte, keys map[string]ed25519.PublicKey) (Checkpoint, error) {
	h, signed, signature, err := Parse(line)
	if err != nil {
		return h, err
	}
	key, known := keys[h.Key]
	if !known {
		return h, errors.New("is signed with another key than those that are trusted")
	}
	if !ed25519.Verify(key, append([]byte(signingContext), signed...), signature) {
		return h, errors.New("was altered: it does not have its signature")
	}
	return h, nil
}

// follows checks that h is the checkpoint after before.
func (h Checkpoint) follows(before Checkpoint) error {
	switch {
	case h.Number != before.Number+1:
		return fmt.Errorf("has head %d, expected %d: a head was removed, added or moved", h.Number, before.Number+1)
	case before.Number == 0 && h.Link() != logfile.Link{Hash: logfile.Genesis}:
		return errors.New("is the first head, and does not stand for an empty log")
	case before.Number > 0 && h.Chain != before.Chain:
		return errors.New("belongs to another chain than the head before it")
	case before.Number > 0 && h.Seq <= before.Seq:
		return fmt.Errorf("signs seq %d, expected one above %d", h.Seq, before.Seq)
	}
	return nil
}
