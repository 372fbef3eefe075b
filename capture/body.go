package capture

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
)

const (
	maxBody   = 16 << 20 // of one request that is recorded, also decompressed
	maxMemory = 64 << 20 // of all at the same time
)

// copiedBody is the body of a request, which is copied as it is read.
type copiedBody struct {
	io.ReadCloser
	memory *atomic.Int64
	length int64 // as the request states it; -1 is unknown

	mu       sync.Mutex
	copied   bytes.Buffer
	reserved int64
	ended    bool
	detached bool
	problem  string
}

func (b *copiedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.detached {
		return n, err
	}
	b.ended = b.ended || err == io.EOF
	b.keep(p[:n])
	return n, err
}

// keep copies a piece, as long as the bounds let it.
func (b *copiedBody) keep(piece []byte) {
	if b.problem != "" || len(piece) == 0 {
		return
	}
	switch size := int64(b.copied.Len() + len(piece)); {
	case size > maxBody || b.length > maxBody:
		b.problem = "its body is larger than 16 MiB"
	case b.memory.Add(int64(len(piece))) > maxMemory:
		b.memory.Add(-int64(len(piece)))
		b.problem = "too much is recorded at the same time"
	default:
		b.reserved += int64(len(piece))
		b.copied.Write(piece)
		return
	}
	b.copied = bytes.Buffer{}
}

// whole reports whether all of the body was read.
func (b *copiedBody) whole() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isWhole()
}

func (b *copiedBody) isWhole() bool { return b.ended || int64(b.copied.Len()) == b.length }

// take returns what was read, or why it is not whole. Later reads copy nothing.
func (b *copiedBody) take() (data []byte, problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.detached = true
	switch {
	case b.problem != "":
		return nil, b.problem
	case !b.isWhole():
		return nil, "its body was not read to the end"
	}
	return b.copied.Bytes(), ""
}

// release gives back the memory of the copy, which must not be used any more.
func (b *copiedBody) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.copied = bytes.Buffer{}
	b.memory.Add(-b.reserved)
	b.reserved = 0
}
