// Package terminal writes for people: colored text and the progress of long work, where
// the writer is a terminal, and nothing of either elsewhere.
package terminal

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Progress shows how far long work has come. A nil Progress is silent.
type Progress struct {
	w       io.Writer
	noun    string
	n       int
	start   time.Time
	printed time.Time
}

// NewProgress returns a Progress that counts things of a noun; nil if w is no terminal.
func NewProgress(w io.Writer, noun string) *Progress {
	if !IsTerminal(w) {
		return nil
	}
	now := time.Now()
	return &Progress{w: w, noun: noun, start: now, printed: now}
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progressInterval is how often progress is shown at most.
const progressInterval = 200 * time.Millisecond

// Add counts n more.
func (p *Progress) Add(n int) {
	if p == nil {
		return
	}
	p.n += n
	if now := time.Now(); now.Sub(p.printed) >= progressInterval {
		p.printed = now
		fmt.Fprintf(p.w, "\r\x1b[K%d %s, %.0f a second", p.n, p.noun, float64(p.n)/now.Sub(p.start).Seconds())
	}
}

// Done shows the total.
func (p *Progress) Done() {
	if p != nil && p.printed.After(p.start) {
		fmt.Fprintf(p.w, "\r\x1b[K%d %s\n", p.n, p.noun)
	}
}
