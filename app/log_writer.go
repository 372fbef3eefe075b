package app

import (
	"io"
	"sync"
	"time"
)

// LogWriter gathers the lines of a log and writes many of them at once: a system call for each
// request would cost more than anything else of its answer but the network. A line that follows
// none for logDelay is written before Write returns, since a timer would cost more than that;
// any other waits logDelay at most, and what has been gathered is written earlier once it is
// logBuffer long: the writer of a line then waits until the log takes it, so that memory is
// bounded and no line is lost. It is safe for concurrent use.
type LogWriter struct {
	to      io.Writer
	writing sync.Mutex // held while lines are written, so that they stay in order

	mu     sync.Mutex // of what follows; never held while lines are written
	lines  []byte
	spare  []byte // to be used again once it was written
	timer  *time.Timer
	last   time.Time // when the last line was taken
	closed bool
}

// The bounds of a LogWriter.
const (
	logDelay  = 10 * time.Millisecond // a crash loses the lines of that time at most
	logBuffer = 64 << 10
)

// NewLogWriter returns a writer of lines to a file. It must be closed.
func NewLogWriter(to io.Writer) *LogWriter {
	w := &LogWriter{to: to}
	w.timer = time.AfterFunc(time.Hour, func() { _ = w.Flush() })
	w.timer.Stop()
	return w
}

// Write takes whole lines, to be written soon. An error may be one of lines before them.
func (w *LogWriter) Write(lines []byte) (int, error) {
	now := time.Now()
	w.mu.Lock()
	idle := len(w.lines) == 0 && !w.closed && now.Sub(w.last) >= logDelay
	w.last = now
	// A log that takes nothing holds one writer so: the others find it at work.
	if idle && w.writing.TryLock() {
		w.mu.Unlock()
		defer w.writing.Unlock()
		return w.to.Write(lines)
	}
	if len(w.lines) == 0 && !w.closed {
		w.timer.Reset(logDelay)
	}
	w.lines = append(w.lines, lines...)
	full := w.closed || len(w.lines) >= logBuffer
	w.mu.Unlock()
	if full {
		return len(lines), w.Flush()
	}
	return len(lines), nil
}

// Flush returns when all lines have been written that were taken before.
func (w *LogWriter) Flush() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	lines := w.lines
	w.lines = w.spare[:0]
	w.spare = nil
	w.mu.Unlock()
	if len(lines) == 0 {
		return nil
	}
	_, err := w.to.Write(lines)
	w.mu.Lock()
	w.spare = lines
	w.mu.Unlock()
	return err
}

// Direct is a writer of lines that are written before it returns, behind all that were taken
// before: for the lines that must outlive a crash.
func (w *LogWriter) Direct() io.Writer { return directWriter{w} }

type directWriter struct{ *LogWriter }

func (d directWriter) Write(lines []byte) (int, error) {
	if n, err := d.LogWriter.Write(lines); err != nil {
		return n, err
	}
	return len(lines), d.Flush()
}

// Close writes all lines. Those that come later are written at once.
func (w *LogWriter) Close() error {
	w.mu.Lock()
	w.closed = true
	w.timer.Stop()
	w.mu.Unlock()
	return w.Flush()
}
