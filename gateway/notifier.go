package gateway

import (
	"sync"

	"github.com/callgate/callgate/tool"
)

// notifier passes the progress and the logs of a tool on to the caller: one message at a
// time, and none after stop. A function of the caller's that panics is not called again.
// A nil notifier passes nothing on.
type notifier struct {
	mu sync.Mutex

	progress func(tool.Progress) // nil once nobody is told
	began    bool
	last     float64

	log   func(tool.Log) // the same
	level int            // of what is told, at least
	logs  int
}

// notifier is nil where the caller wants neither progress nor logs.
func (d *Dialogue) notifier() *notifier {
	if d == nil {
		return nil
	}
	t := &notifier{progress: d.Progress, level: severity(d.LogLevel)}
	if t.level >= 0 {
		t.log = d.Log
	}
	if t.progress == nil && t.log == nil {
		return nil
	}
	return t
}

// attach sets the functions of a task that its caller wants.
func (t *notifier) attach(task *tool.Call) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.progress != nil {
		task.Progress = t.progressed
	}
	if t.log != nil {
		task.Log, task.LogLevel = t.logged, LogLevels()[t.level]
	}
}

// delivered calls a function of the caller's, and tells whether it returned without a
// panic.
func delivered(tell func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	tell()
	return true
}

// stop waits for a running function to return; none is called afterwards.
func (t *notifier) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress, t.log = nil, nil
}
