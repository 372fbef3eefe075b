package mcp

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/program"
)

// early is a context whose deadline has passed for the pipe before its own timer fires.
type early struct {
	context.Context
	deadline time.Time
}

func (c early) Deadline() (time.Time, bool) { return c.deadline, true }

// TestPartialWriteEndsSession: when a write returns that has written part of a line, the
// session is over, so that no other line follows the part.
func TestPartialWriteEndsSession(t *testing.T) {
	for limit := 100 * time.Millisecond; ; limit *= 10 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		l := &local{
			client: &Client{}, program: &program.Program{Input: w},
			done: make(chan struct{}), writeLock: make(chan struct{}, 1),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
		err = l.write(early{ctx, time.Now().Add(limit)}, bytes.Repeat([]byte("x"), 8<<20), nil)
		cancel()
		l.mu.Lock()
		ended := l.endErr
		l.mu.Unlock()
		w.Close()
		n, _ := r.Read(make([]byte, 1))
		r.Close()
		l.client.running.Wait()
		switch {
		case n == 0 && limit < time.Minute:
			continue // the deadline passed before the write began
		case !errors.Is(err, os.ErrDeadlineExceeded):
			t.Errorf("the write ended with %v", err)
		case ended != errNotReading:
			t.Errorf("the session ended with %v", ended)
		}
		return
	}
}
