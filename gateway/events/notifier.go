package events

import (
	"sync"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/tool"
)

// Notifier passes the progress and the logs of a tool on to the caller: one message at a
// time, and none after Stop. A function of the caller's that panics is not called again.
// A nil notifier passes nothing on.
type Notifier struct {
	mu sync.Mutex

	progress func(tool.Progress) // nil once stopped
	began    bool
	last     float64

	filter func(value []byte) ([]byte, bool) // see Filter; may be nil

	log   func(tool.Log) // the same
	level int            // of the delivered ones, at least
	logs  int
}

// NewNotifier returns a notifier for the functions of a caller. It is nil if the caller
// asks for neither progress nor logs; with a level outside of LogLevels it delivers no
// logs.
func NewNotifier(progress func(tool.Progress), log func(tool.Log), level string) *Notifier {
	t := &Notifier{progress: progress, level: tool.Severity(level)}
	if t.level >= 0 {
		t.log = log
	}
	if t.progress == nil && t.log == nil {
		return nil
	}
	return t
}

// Attach sets the functions of a task for which its caller asks.
func (t *Notifier) Attach(task *tool.Call) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.progress != nil {
		task.Progress = t.progressed
	}
	if t.log != nil {
		task.Log, task.LogLevel = t.logged, tool.LogLevels()[t.level]
	}
}

// Filter has each text of a message, and the data of each log, pass a function, as a JSON value: it
// returns what is left of it, or that nothing may be delivered. nil lets everything pass.
func (t *Notifier) Filter(filter func(value []byte) ([]byte, bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.filter = filter
}

// pass is a JSON value as the filter leaves it. A filter that panics lets nothing pass.
func (t *Notifier) pass(value []byte) (left []byte, ok bool) {
	if t.filter == nil {
		return value, true
	}
	defer safe.Catch(func(error) { ok = false })
	return t.filter(value)
}

// passText is a text as the filter leaves it; empty where it may not be delivered.
func (t *Notifier) passText(text string) string {
	if t.filter == nil || text == "" {
		return text
	}
	left, ok := t.pass(rawjson.AppendQuote(nil, text))
	if !ok {
		return ""
	}
	passed, err := rawjson.Unquote(left)
	if err != nil {
		return ""
	}
	return string(passed)
}

// delivered calls a function of the caller, and reports whether it returned without a
// panic.
func delivered(tell func()) (ok bool) {
	defer safe.Catch(func(error) { ok = false })
	tell()
	return true
}

// Stop waits for a running function to return; none is called afterwards.
func (t *Notifier) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress, t.log = nil, nil
}
