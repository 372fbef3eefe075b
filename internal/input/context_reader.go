// Package input reads input of commands: a waiting read can be interrupted, and lines have
// a bounded length.
package input

import (
	"context"
	"errors"
	"io"
)

// ErrInterrupted is the error of a read whose context has ended.
var ErrInterrupted = errors.New("interrupted")

// contextReader is a reader that ends with its context, even while the underlying reader
// waits.
type contextReader struct {
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

// ContextReader returns a reader that ends with its context, even while r waits.
func ContextReader(ctx context.Context, from io.ReadCloser) io.ReadCloser {
	return &contextReader{ctx: ctx, from: from, buffer: make([]byte, 64<<10), done: make(chan readResult, 1)}
}

func (i *contextReader) Read(p []byte) (int, error) {
	if len(i.rest) == 0 && i.err == nil {
		if i.ctx.Err() != nil {
			return 0, ErrInterrupted
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
			return 0, ErrInterrupted
		}
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	if len(i.rest) > 0 {
		return n, nil
	}
	return n, i.err
}

func (i *contextReader) Close() error { return i.from.Close() }
