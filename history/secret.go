package history

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"sync"

	"github.com/callgate/callgate/internal/decimal"
)

// MinSecret is the least length of a secret, in bytes.
const MinSecret = 32

var errNoSecret = errors.New("history: a term has keys, and there is no secret for their digests")

// Secret makes the digests of the values of keys, so that neither a State nor the audit log shows what they are. All
// gateways that keep the same threads have the same. It is safe for concurrent use.
type Secret struct{ hashes sync.Pool }

// NewSecret returns the secret of some random bytes.
func NewSecret(key []byte) (*Secret, error) {
	if len(key) < MinSecret {
		return nil, fmt.Errorf("found a secret of %d bytes, expected at least %d", len(key), MinSecret)
	}
	key = append([]byte(nil), key...)
	return &Secret{sync.Pool{New: func() any { return &hashing{Hash: hmac.New(sha256.New, key)} }}}, nil
}

type hashing struct {
	hash.Hash
	in, sum []byte
}

// maxText bounds a text that is the value of a key.
const maxText = 4 << 10

// digest names a list of values: texts, numbers and booleans, of which numbers are the same that are equal. ok is false where
// one is something else, or longer than maxText. No digest is 0.
func (s *Secret) digest(values []any) (key uint64, ok bool) {
	h := s.hashes.Get().(*hashing)
	defer s.hashes.Put(h)
	h.Reset()
	h.in = h.in[:0]
	for _, v := range values {
		switch v := v.(type) {
		case string:
			if len(v) > maxText {
				return 0, false
			}
			h.in = append(binary.AppendUvarint(append(h.in, 't'), uint64(len(v))), v...)
		case json.Number:
			d, ok := decimal.Parse(v.String())
			if !ok {
				return 0, false
			}
			text := d.String()
			h.in = append(binary.AppendUvarint(append(h.in, 'n'), uint64(len(text))), text...)
		case bool:
			b := byte('-')
			if v {
				b = '+'
			}
			h.in = append(h.in, b)
		default:
			return 0, false
		}
	}
	_, _ = h.Write(h.in) // which cannot fail
	h.sum = h.Sum(h.sum[:0])
	return max(1, binary.BigEndian.Uint64(h.sum)), true
}

// Digest names a list of bytes. No digest is 0.
func (s *Secret) Digest(parts ...[]byte) uint64 {
	h := s.hashes.Get().(*hashing)
	defer s.hashes.Put(h)
	h.Reset()
	h.in = append(h.in[:0], 'd') // as no list of values begins
	for _, part := range parts {
		_, _ = h.Write(binary.AppendUvarint(h.in, uint64(len(part))))
		_, _ = h.Write(part)
		h.in = h.in[:0]
	}
	h.sum = h.Sum(h.sum[:0])
	return max(1, binary.BigEndian.Uint64(h.sum))
}
