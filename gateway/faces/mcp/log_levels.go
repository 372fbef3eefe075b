package mcp

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/tool"
)

// The numbers of sessions whose log level is kept: of all principals, and of each. The second
// bound keeps one principal from displacing the sessions of others. Without credentials all
// clients are one principal, and only the first bound holds.
const (
	maxLogSessions             = 10_000
	maxLogSessionsPerPrincipal = 500
)

// logLevels are the log levels that clients older than 2026-07-28 have set for their sessions.
// The session used longest ago is forgotten first; an unknown session gets no logs. The level
// has to be kept here, because a client sets it after it got the id of its session.
type logLevels struct {
	mu           sync.Mutex
	used         list.List // of *sessionLevel, the last used first
	bySession    map[sessionKey]*list.Element
	perPrincipal map[string]int // how many sessions each principal has
}

// sessionKey is the digest of a principal and a session id, so that no principal gets the
// level of another's session.
type sessionKey [sha256.Size]byte

type sessionLevel struct {
	key       sessionKey
	principal string
	level     string
}

func sessionKeyOf(principal, session string) sessionKey {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q", principal, session))
}

// set stores the level of a session. It ignores an empty session.
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

// evict removes the session that was used longest ago among those that match.
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

// get returns the level of a session; empty if it is unknown.
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

// badLevel is the fault of a value that is no log level.
func badLevel(name string) *rpcError {
	return newError(jsonrpc.CodeParams, "%q must be one of %s.", name, strings.Join(tool.LogLevels(), ", "))
}

func isLevel(v any) bool { return slices.Contains(tool.LogLevels(), stringOf(v)) }
