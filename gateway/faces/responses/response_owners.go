package responses

import "sync"

// maxLedger bounds the responses that are remembered, over all callers.
const maxLedger = 1 << 15

// ledger remembers which caller began a stored response, at which upstream, so that nobody
// else continues it (RS-72). It is of this process: what was created before it began, or at
// another replica, is not known. It is safe for concurrent use.
type ledger struct {
	mu    sync.Mutex
	owned map[owner]string
	order []owner // the oldest first
	next  int     // where the next one goes in order
}

type owner struct{ principal, upstream, id string }

func newLedger() *ledger { return &ledger{owned: map[owner]string{}} }

// add remembers a response by the id that its caller knows. last is the id of the run's last
// turn, from which the provider continues.
func (l *ledger) add(principal, upstream, id, last string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := owner{principal, upstream, id}
	if _, known := l.owned[key]; !known {
		if len(l.order) < maxLedger {
			l.order = append(l.order, key)
		} else {
			delete(l.owned, l.order[l.next])
			l.order[l.next] = key
			l.next = (l.next + 1) % maxLedger
		}
	}
	l.owned[key] = last
}

// find returns the id at the provider of a response of a caller.
func (l *ledger) find(principal, upstream, id string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.owned[owner{principal, upstream, id}]
	return last, known
}
