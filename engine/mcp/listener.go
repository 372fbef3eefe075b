package mcp

import (
	"crypto/rand"
	"math"
	"sync"

	"github.com/callgate/callgate/tool"
)

// listener is whoever called, as far as it is told of its call before the answer: how far
// the tool is, and what it logs, over all attempts. A nil one is told nothing.
type listener struct {
	mu    sync.Mutex
	token string // of the attempt that is made; empty between two

	progress func(tool.Progress) // nil is told none, or has panicked
	last     float64
	reports  int

	log   func(tool.Log) // the same
	level string         // of what is told, at least
	logs  int
}

// newListener is nil where nobody is to be told anything.
func newListener(call tool.Call) *listener {
	l := &listener{progress: call.Progress, last: math.Inf(-1)}
	if call.Log != nil && severity(call.LogLevel) >= 0 {
		l.log, l.level = call.Log, call.LogLevel
	}
	if l.progress == nil && l.log == nil {
		return nil
	}
	return l
}

// begin begins an attempt, and returns what its server is asked with: a token for its
// reports, which nobody else can guess, and the level of its logs. Each is empty where
// there is nothing to ask for.
func (l *listener) begin() (token, level string) {
	if l == nil {
		return "", ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.token = rand.Text()
	if l.progress != nil {
		token = l.token
	}
	if l.log != nil {
		level = l.level
	}
	return token, level
}

// end ends an attempt. Nothing is told from then on, by whatever is still read.
func (l *listener) end() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.token = ""
}

// callSafely tells something, and says whether that came back: what is done with it is not
// ours, and must not end this.
func callSafely(tell func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	tell()
	return true
}
