package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progress tells on a terminal how far long work has come. Elsewhere it is
// silent.
type progress struct {
	w     io.Writer
	noun  string
	n     int
	start time.Time
	shown time.Time
}

// newProgress returns a progress; nil, which is silent, where w is no terminal.
func newProgress(w io.Writer, what string) *progress {
	if !isTerminal(w) {
		return nil
	}
	now := time.Now()
	return &progress{w: w, noun: what, start: now, shown: now}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progressInterval is how often it speaks.
const progressInterval = 200 * time.Millisecond

func (p *progress) add(n int) {
	if p == nil {
		return
	}
	p.n += n
	if now := time.Now(); now.Sub(p.shown) >= progressInterval {
		p.shown = now
		fmt.Fprintf(p.w, "\r\x1b[K%d %s, %.0f a second", p.n, p.noun, float64(p.n)/now.Sub(p.start).Seconds())
	}
}

func (p *progress) done() {
	if p != nil && p.shown.After(p.start) {
		fmt.Fprintf(p.w, "\r\x1b[K%d %s\n", p.n, p.noun)
	}
}
