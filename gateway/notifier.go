package gateway

import (
	"sync"

	"github.com/callgate/callgate/tool"
)

// notifier passes on to a caller what a tool says before it answers: one thing after the
// other, and nothing once it was stopped. Whoever is told must be quick, and is told no
// more of what they have panicked at. A nil one tells nothing.
type notifier struct {
	mu sync.Mutex

	progress func(tool.Progress) // nil once nobody is told
	began    bool
	last     float64

	log   func(tool.Log) // the same
	level int            // of what is told, at least
	logs  int
}

// notifier is nil where the caller is told nothing.
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

// attach has a task tell what its caller wants to be told.
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

// delivered tells something, and says whether that came back: the call goes on, whoever hears
// of it.
func delivered(tell func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	tell()
	return true
}

// stop waits until nobody is being told, and says that nobody is from now on.
func (t *notifier) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress, t.log = nil, nil
}
