package mcp

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"sync"
)

// mostLevels is of how many sessions the level of logs is remembered.
const mostLevels = 10_000

// levels are those from which on clients of before 2026-07-28 are told what their tools
// log, each in its session. What was not used for longest is forgotten first; a session
// that is not known here is told nothing.
type levels struct {
	mu   sync.Mutex
	used list.List // of *level, the last used first
	all  map[holder]*list.Element
}

// holder is the digest of a principal and a session: nobody has another's.
type holder [sha256.Size]byte

type level struct {
	holder holder
	least  string
}

func holderOf(principal, session string) holder {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q", principal, session))
}

// set remembers the level of a session. Without one there is nothing to remember it by.
func (l *levels) set(principal, session, least string) {
	if session == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[holder]*list.Element{}
	}
	h := holderOf(principal, session)
	if known := l.all[h]; known != nil {
		known.Value.(*level).least = least
		l.used.MoveToFront(known)
		return
	}
	if len(l.all) >= mostLevels {
		oldest := l.used.Back()
		l.used.Remove(oldest)
		delete(l.all, oldest.Value.(*level).holder)
	}
	l.all[h] = l.used.PushFront(&level{h, least})
}

// of is the level of a session; empty where none is known.
func (l *levels) of(principal, session string) string {
	if session == "" {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.all[holderOf(principal, session)]
	if known == nil {
		return ""
	}
	l.used.MoveToFront(known)
	return known.Value.(*level).least
}
