package mcp

import (
	"crypto/rand"
	"encoding/json"
	"sync"
)

// The bounds of the questions that wait for their answers at the same time.
const (
	maxPending             = 1024 // in all
	maxPendingPerPrincipal = 64   // of one principal
)

// pendingQuestions are the questions that clients have not answered yet. Together with log
// levels they are all that is kept of a client between two of its requests. They end with
// their call.
type pendingQuestions struct {
	mu           sync.Mutex
	open         map[string]pendingQuestion // by the ids of the questions
	perPrincipal map[string]int             // how many questions each principal has
}

// pendingQuestion is a question that was sent to a client.
type pendingQuestion struct {
	principal, name string
	answers         chan<- clientAnswer
}

// clientAnswer is the answer of a client to a question.
type clientAnswer struct {
	name   string
	result json.RawMessage // an object; nil: the client did not answer it
}

// add registers questions whose answers are sent to a channel with room for them. It returns an
// unguessable id for each, or nil if too many wait.
func (w *pendingQuestions) add(principal string, names []string, to chan<- clientAnswer) (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.open)+len(names) > maxPending || w.perPrincipal[principal]+len(names) > maxPendingPerPrincipal {
		return nil
	}
	if w.open == nil {
		w.open, w.perPrincipal = map[string]pendingQuestion{}, map[string]int{}
	}
	ids = make([]string, 0, len(names))
	for _, name := range names {
		id := rand.Text()
		w.open[id] = pendingQuestion{principal, name, to}
		ids = append(ids, id)
	}
	if len(names) > 0 {
		w.perPrincipal[principal] += len(names)
	}
	return ids
}

// resolve gives a question its one answer, and reports whether this principal had such a
// question. For another principal's id the reply is the same as for an unknown id.
func (w *pendingQuestions) resolve(principal, id string, result json.RawMessage) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q, waits := w.open[id]
	if !waits || q.principal != principal {
		return false
	}
	w.delete(id, q)
	q.answers <- clientAnswer{q.name, result} // there is room
	return true
}

// remove removes questions, and returns those that had no answer yet.
func (w *pendingQuestions) remove(ids []string) (left []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if q, waits := w.open[id]; waits {
			w.delete(id, q)
			left = append(left, id)
		}
	}
	return left
}

// delete removes a question. The questions must be locked.
func (w *pendingQuestions) delete(id string, q pendingQuestion) {
	delete(w.open, id)
	if w.perPrincipal[q.principal]--; w.perPrincipal[q.principal] == 0 {
		delete(w.perPrincipal, q.principal)
	}
}
