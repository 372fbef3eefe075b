package gateway

import "sync"

// teller passes on to a caller what a tool says before it answers: one thing after the
// other, and nothing once it was stopped. Whoever is told must be quick, and is told no
// more of what they have panicked at. A nil one tells nothing.
type teller struct {
	mu sync.Mutex

	progress func(Progress) // nil once nobody is told
	began    bool
	last     float64

	log   func(Log) // the same
	level int       // of what is told, at least
	logs  int
}

// teller is nil where the caller is told nothing.
func (d *Dialogue) teller() *teller {
	if d == nil {
		return nil
	}
	t := &teller{progress: d.Progress, level: severity(d.LogLevel)}
	if t.level >= 0 {
		t.log = d.Log
	}
	if t.progress == nil && t.log == nil {
		return nil
	}
	return t
}

// listen has a task tell what its caller wants to be told.
func (t *teller) listen(task *Task) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.progress != nil {
		task.Progress = t.tell
	}
	if t.log != nil {
		task.Log, task.LogLevel = t.pass, LogLevels()[t.level]
	}
}

// heard tells something, and says whether that came back: the call goes on, whoever hears
// of it.
func heard(tell func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	tell()
	return true
}

// stop waits until nobody is being told, and says that nobody is from now on.
func (t *teller) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress, t.log = nil, nil
}
