package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/safe"
)

// The errors of a Writer.
var (
	// ErrNotReading is a peer that did not take a line in time.
	ErrNotReading = errors.New("the peer does not read what it is sent")
	// ErrClosed is a Writer after its Close.
	ErrClosed = errors.New("nothing is written any more")
)

// Writer writes whole lines, one at a time. After a line that was not written whole every later
// one fails: the peer could not tell where it begins.
type Writer struct {
	out    io.Writer
	within time.Duration
	turn   chan struct{} // full while a line is written

	broken chan struct{} // closed at the first error
	once   sync.Once
	err    error // why it is closed
}

// deadliner is a writer whose writes can be given a deadline, as pipes and sockets can.
type deadliner interface{ SetWriteDeadline(time.Time) error }

// NewWriter writes lines each of which the peer must take within a time.
func NewWriter(out io.Writer, within time.Duration) *Writer {
	return &Writer{out: out, within: within, turn: make(chan struct{}, 1), broken: make(chan struct{})}
}

// Write writes a line, to which it adds the end. If ctx ends before it is the line's turn, nothing is
// written, and the error is that of ctx. A line that was begun is written to its end, within the
// time; where out knows no deadlines, a write that takes longer is left behind, and ends once the
// owner of out closes it.
func (w *Writer) Write(ctx context.Context, line []byte) error {
	select {
	case w.turn <- struct{}{}:
	case <-w.broken:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.turn }()
	select {
	case <-w.broken:
		return w.err
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.write(append(line, '\n')); err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *Writer) write(line []byte) error {
	if d, ok := w.out.(deadliner); ok && d.SetWriteDeadline(time.Now().Add(w.within)) == nil {
		_, err := w.out.Write(line)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return ErrNotReading
		}
		return err
	}
	done := make(chan error, 1)
	go func() {
		done <- safe.Do(func() error {
			_, err := w.out.Write(line)
			return err
		})
	}()
	late := time.NewTimer(w.within)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-w.broken:
		return w.err
	case <-late.C:
		return ErrNotReading
	}
}

// fail makes every later line fail. The first cause stays.
func (w *Writer) fail(err error) error {
	w.once.Do(func() {
		if !errors.Is(err, ErrNotReading) && !errors.Is(err, ErrClosed) {
			err = fmt.Errorf("cannot write: %w", err)
		}
		w.err = err
		close(w.broken)
	})
	return w.err
}

// Broken is closed once every later line fails.
func (w *Writer) Broken() <-chan struct{} { return w.broken }

// Close makes every later line fail with ErrClosed. It does not close out.
func (w *Writer) Close() { _ = w.fail(ErrClosed) }
