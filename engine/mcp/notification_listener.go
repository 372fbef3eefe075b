package mcp

import (
	"crypto/rand"
	"math"
	"sync"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/tool"
)

// listener passes progress and logs of a call to its caller before the result, over all
// attempts. A nil listener passes nothing.
type listener struct {
	mu    sync.Mutex
	token string // of the attempt that is made; empty between two

	progress func(tool.Progress) // nil if it is not wanted, or has panicked
	last     float64
	reports  int

	log   func(tool.Log) // the same
	level string         // the least severe that is passed on
	logs  int
}

// newListener is nil if the caller wants neither progress nor logs.
func newListener(call tool.Call) *listener {
	l := &listener{progress: call.Progress, last: math.Inf(-1)}
	if call.Log != nil && tool.Severity(call.LogLevel) >= 0 {
		l.log, l.level = call.Log, call.LogLevel
	}
	if l.progress == nil && l.log == nil {
		return nil
	}
	return l
}

// begin begins an attempt and returns what the request asks its server for: progress reports
// with an unguessable token, and logs of a level. Each is empty if it is not wanted.
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

// end ends an attempt. Nothing is passed on afterwards.
func (l *listener) end() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.token = ""
}

// callSafely calls a function of the caller, and reports whether it returned without a
// panic.
func callSafely(tell func()) (ok bool) {
	defer safe.Catch(func(error) { ok = false })
	tell()
	return true
}
