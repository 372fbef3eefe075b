package history

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"
	"time"
)

// FuzzDecodeState: what is read is what was written, and nothing else is read.
func FuzzDecodeState(f *testing.F) {
	at := time.UnixMicro(1_764_331_200_000_000)
	for _, s := range []*State{
		Begin(at), Unknown(at),
		{Turn: 9, Began: at, Last: at, Closed: true, Stub: true, labels: []Label{{"a", "call_1", 1}, {"b", "", 2}}},
		{Turn: 9, Began: at, Last: at, cells: []cell{{1, 0, 0, 1}, {1, 7, 0, inexact}, {2, math.MaxUint64, 5, 3}}, gaps: []span{{1, 2}, {4, 8}}},
	} {
		b := s.Encode()
		f.Add(b[:len(b)-4])
	}
	f.Add([]byte{1, 0})
	f.Add([]byte{1, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		whole := binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli))
		s, err := DecodeState(whole)
		if err != nil {
			return
		}
		again, err := DecodeState(s.Encode())
		if err != nil || !bytes.Equal(again.Encode(), s.Encode()) {
			t.Fatalf("%x: %v", b, err)
		}
		if len(whole) > 0 {
			whole[len(whole)-1] ^= 1
			if _, err := DecodeState(whole); err == nil {
				t.Fatal("a damaged state is read")
			}
		}
	})
}
