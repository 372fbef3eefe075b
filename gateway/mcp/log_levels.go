package mcp

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/mcp/wire"
)

// Of how many sessions the level of logs is remembered, and of how many of one
// principal: nobody else's are forgotten for one who begins many. Where no credentials
// are asked for, everybody is one, and only the first bound holds.
const (
	maxLogSessions             = 10_000
	maxLogSessionsPerPrincipal = 500
)

// logLevels are those from which on clients of before 2026-07-28 are told what their tools
// log, each in its session. What was not used for longest is forgotten first; a session
// that is not known here is told nothing.
type logLevels struct {
	mu        sync.Mutex
	used      list.List // of *level, the last used first
	bySession map[sessionKey]*list.Element
	// perPrincipal is how many each principal has.
	perPrincipal map[string]int
}

// sessionKey is the digest of a principal and a session: nobody has another's.
type sessionKey [sha256.Size]byte

type sessionLevel struct {
	key       sessionKey
	principal string
	level     string
}

func sessionKeyOf(principal, session string) sessionKey {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q", principal, session))
}

// set remembers the level of a session. Without one there is nothing to remember it by.
func (l *logLevels) set(principal, session, least string) {
	if session == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bySession == nil {
		l.bySession, l.perPrincipal = map[sessionKey]*list.Element{}, map[string]int{}
	}
	h := sessionKeyOf(principal, session)
	if known := l.bySession[h]; known != nil {
		known.Value.(*sessionLevel).level = least
		l.used.MoveToFront(known)
		return
	}
	switch {
	case principal != "" && l.perPrincipal[principal] >= maxLogSessionsPerPrincipal:
		l.evict(func(v *sessionLevel) bool { return v.principal == principal })
	case len(l.bySession) >= maxLogSessions:
		l.evict(func(*sessionLevel) bool { return true })
	}
	l.bySession[h] = l.used.PushFront(&sessionLevel{h, principal, least})
	l.perPrincipal[principal]++
}

// evict forgets the one of some that was not used for longest.
func (l *logLevels) evict(of func(*sessionLevel) bool) {
	for e := l.used.Back(); e != nil; e = e.Prev() {
		v := e.Value.(*sessionLevel)
		if !of(v) {
			continue
		}
		l.used.Remove(e)
		delete(l.bySession, v.key)
		if l.perPrincipal[v.principal]--; l.perPrincipal[v.principal] == 0 {
			delete(l.perPrincipal, v.principal)
		}
		return
	}
}

// get is the level of a session; empty where none is known.
func (l *logLevels) get(principal, session string) string {
	if session == "" {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.bySession[sessionKeyOf(principal, session)]
	if known == nil {
		return ""
	}
	l.used.MoveToFront(known)
	return known.Value.(*sessionLevel).level
}

// badLevel is the fault of something that is no level of logs.
func badLevel(name string) *rpcError {
	return newError(wire.CodeParams, "%q must be one of %s.", name, strings.Join(events.LogLevels(), ", "))
}

func isLevel(v any) bool { return slices.Contains(events.LogLevels(), stringOf(v)) }
