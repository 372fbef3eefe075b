package mcp

import (
	"crypto/rand"
	"encoding/json"
	"sync"
)

// The bounds of the questions that wait for their answers at the same time.
const (
	mostWaiting   = 1024 // in all
	mostWaitingOf = 64   // put for one principal
)

// waiting are the questions that were put to clients and wait for their answers. They
// are all that is remembered of a client between two of its requests, and no longer
// than the call that asks is answered.
type waiting struct {
	mu   sync.Mutex
	open map[string]put // by the ids of the questions
	of   map[string]int // how many are each principal's
}

// put is a question that was put to a client.
type put struct {
	principal, name string
	to              chan<- said
}

// said is what a client answered to a question.
type said struct {
	name   string
	result json.RawMessage // an object; nil: the client did not answer it
}

// add has questions wait, whose answers come to a channel with room for them. It
// returns an id for each that nobody can guess, or nil where too many wait.
func (w *waiting) add(principal string, names []string, to chan<- said) (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.open)+len(names) > mostWaiting || w.of[principal]+len(names) > mostWaitingOf {
		return nil
	}
	if w.open == nil {
		w.open, w.of = map[string]put{}, map[string]int{}
	}
	ids = make([]string, 0, len(names))
	for _, name := range names {
		id := rand.Text()
		w.open[id] = put{principal, name, to}
		ids = append(ids, id)
	}
	if len(names) > 0 {
		w.of[principal] += len(names)
	}
	return ids
}

// answer gives a question its one answer, and tells whether it waited for one of this
// principal's. Who asks for another's learns what who asks for none does.
func (w *waiting) answer(principal, id string, result json.RawMessage) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q, waits := w.open[id]
	if !waits || q.principal != principal {
		return false
	}
	w.drop(id, q)
	q.to <- said{q.name, result} // there is room
	return true
}

// end has questions wait no longer, and returns those that did.
func (w *waiting) end(ids []string) (left []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if q, waits := w.open[id]; waits {
			w.drop(id, q)
			left = append(left, id)
		}
	}
	return left
}

// drop forgets a question, under mu.
func (w *waiting) drop(id string, q put) {
	delete(w.open, id)
	if w.of[q.principal]--; w.of[q.principal] == 0 {
		delete(w.of, q.principal)
	}
}
