package mcp

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"sync"
)

// Of how many sessions the level of logs is remembered, and of how many of one
// principal: nobody else's are forgotten for one who begins many. Where no credentials
// are asked for, everybody is one, and only the first bound holds.
const (
	mostLevels   = 10_000
	mostLevelsOf = 500
)

// levels are those from which on clients of before 2026-07-28 are told what their tools
// log, each in its session. What was not used for longest is forgotten first; a session
// that is not known here is told nothing.
type levels struct {
	mu   sync.Mutex
	used list.List // of *level, the last used first
	all  map[holder]*list.Element
	// count is how many each principal has.
	count map[string]int
}

// holder is the digest of a principal and a session: nobody has another's.
type holder [sha256.Size]byte

type level struct {
	holder    holder
	principal string
	least     string
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
		l.all, l.count = map[holder]*list.Element{}, map[string]int{}
	}
	h := holderOf(principal, session)
	if known := l.all[h]; known != nil {
		known.Value.(*level).least = least
		l.used.MoveToFront(known)
		return
	}
	switch {
	case principal != "" && l.count[principal] >= mostLevelsOf:
		l.forget(func(v *level) bool { return v.principal == principal })
	case len(l.all) >= mostLevels:
		l.forget(func(*level) bool { return true })
	}
	l.all[h] = l.used.PushFront(&level{h, principal, least})
	l.count[principal]++
}

// forget forgets the one of some that was not used for longest.
func (l *levels) forget(of func(*level) bool) {
	for e := l.used.Back(); e != nil; e = e.Prev() {
		v := e.Value.(*level)
		if !of(v) {
			continue
		}
		l.used.Remove(e)
		delete(l.all, v.holder)
		if l.count[v.principal]--; l.count[v.principal] == 0 {
			delete(l.count, v.principal)
		}
		return
	}
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
