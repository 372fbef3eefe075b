package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	headsName = "heads.jsonl"
	// headContext is signed before the line, so that no signature of a head can
	// stand for anything else that the key ever signs.
	headContext   = "callgate audit head\n"
	signatureHead = `,"signature":"`
	signatureLen  = (ed25519.SignatureSize + 2) / 3 * 4
	signatureTail = len(signatureHead) + signatureLen + len(lineTail)
	// maxHead bounds a line of heads.
	maxHead = 1 << 10
)

// head says of one record of a chain which hash it has.
type head struct {
	Number uint64    `json:"head"`  // from 1, one more each line
	Chain  string    `json:"chain"` // drawn at random with head 1, the same in all that follow
	Seq    uint64    `json:"seq"`   // 0, with 64 zeros as hash, in head 1
	Hash   string    `json:"hash"`
	Time   time.Time `json:"time"` // of signing
	Key    string    `json:"key"`  // KeyID
}

func (h head) link() link { return link{seq: h.Seq, hash: h.Hash} }

// sign returns the line of h, with its line end.
func (h head) sign(key ed25519.PrivateKey) ([]byte, error) {
	body, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	body = bytes.TrimSuffix(body, []byte("}"))
	signature := ed25519.Sign(key, append([]byte(headContext), body...))
	line := base64.StdEncoding.AppendEncode(append(body, signatureHead...), signature)
	return append(append(line, lineTail...), '\n'), nil
}

var errNoHead = errors.New("is not a signed head")

// readHead reads a line (without its line end), whose every byte must be as
// sign writes it, and returns what was signed and the signature. It does not
// check the signature. The error is a clause for the operator and quotes nothing.
func readHead(line []byte) (h head, signed, signature []byte, err error) {
	if len(line) > maxHead || len(line) < signatureTail {
		return h, nil, nil, errNoHead
	}
	signed, tail := line[:len(line)-signatureTail], line[len(line)-signatureTail:]
	encoded, ok := bytes.CutPrefix(tail, []byte(signatureHead))
	encoded, closed := bytes.CutSuffix(encoded, []byte(lineTail))
	signature, err = base64.StdEncoding.Strict().DecodeString(string(encoded))
	if !ok || !closed || err != nil {
		return h, nil, nil, errNoHead
	}
	if err := json.Unmarshal(append(bytes.Clone(signed), '}'), &h); err != nil {
		return h, nil, nil, errNoHead
	}
	again, err := json.Marshal(h)
	if err != nil || !bytes.Equal(bytes.TrimSuffix(again, []byte("}")), signed) {
		return h, nil, nil, errNoHead
	}
	return h, signed, signature, nil
}

// readSigned is readHead that also checks the signature, by the key that the
// head names.
func readSigned(line []byte, keys map[string]ed25519.PublicKey) (head, error) {
	h, signed, signature, err := readHead(line)
	if err != nil {
		return h, err
	}
	key, known := keys[h.Key]
	if !known {
		return h, errors.New("is signed with another key than those that are believed")
	}
	if !ed25519.Verify(key, append([]byte(headContext), signed...), signature) {
		return h, errors.New("was altered: it does not have its signature")
	}
	return h, nil
}

// follows checks that h stands behind the head before it in their file.
func (h head) follows(before head) error {
	switch {
	case h.Number != before.Number+1:
		return fmt.Errorf("has head %d, expected %d: a head was removed, added or moved", h.Number, before.Number+1)
	case before.Number == 0 && h.link() != link{hash: genesis}:
		return errors.New("is the first head, and does not stand for an empty log")
	case before.Number > 0 && h.Chain != before.Chain:
		return errors.New("belongs to another chain than the head before it")
	case before.Number > 0 && h.Seq <= before.Seq:
		return fmt.Errorf("signs seq %d, expected one above %d", h.Seq, before.Seq)
	}
	return nil
}
