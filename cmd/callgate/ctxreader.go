package main

import (
	"context"
	"errors"
	"io"
)

var errInterrupted = errors.New("interrupted")

// ctxReader is a reader that ends when its context does, even while the one
// behind it waits.
type ctxReader struct {
	ctx     context.Context
	from    io.ReadCloser
	buffer  []byte
	rest    []byte // of buffer, not yet handed out
	err     error  // that came with rest
	reading bool   // a read is under way
	done    chan readResult
}

type readResult struct {
	n   int
	err error
}

func newCtxReader(ctx context.Context, from io.ReadCloser) *ctxReader {
	return &ctxReader{ctx: ctx, from: from, buffer: make([]byte, 64<<10), done: make(chan readResult, 1)}
}

func (i *ctxReader) Read(p []byte) (int, error) {
	if len(i.rest) == 0 && i.err == nil {
		if i.ctx.Err() != nil {
			return 0, errInterrupted
		}
		if !i.reading {
			i.reading = true
			go func() {
				n, err := i.from.Read(i.buffer)
				i.done <- readResult{n, err}
			}()
		}
		select {
		case r := <-i.done:
			i.reading = false
			i.rest, i.err = i.buffer[:r.n], r.err
		case <-i.ctx.Done():
			return 0, errInterrupted
		}
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	if len(i.rest) > 0 {
		return n, nil
	}
	return n, i.err
}

func (i *ctxReader) Close() error { return i.from.Close() }
