package console

import (
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	cookieName    = "callgate_console"
	sessionLength = 8 * time.Hour
	maxSessions   = 256 // of all
	maxOfOne      = 16  // of one principal
)

// sessions are the sessions of people with a key. They are in memory, and die with the process.
// Each holds a credential, which is judged again at each request: a session ends with its
// principal. The zero value is ready.
type sessions struct {
	mu   sync.Mutex
	open []session // the oldest first
	now  func() time.Time
}

type session struct {
	id, principal, credential string
	until                     time.Time
}

func (s *sessions) clock() time.Time {
	if s.now != nil {
		return s.now()
	}
	return time.Now()
}

// begin begins a session of a principal, and returns its cookie. It takes the place of the
// principal's own oldest where that has too many, so that nobody signs others out. Where there are too
// many of all, it takes that of the oldest of who has most.
func (s *sessions) begin(principal, credential string, secure bool) *http.Cookie {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop("")
	count, most := map[string]int{}, principal
	for _, o := range s.open {
		if count[o.principal]++; count[o.principal] > count[most] {
			most = o.principal
		}
	}
	if count[principal] >= maxOfOne {
		most = principal
	}
	if count[principal] >= maxOfOne || len(s.open) >= maxSessions {
		i := slices.IndexFunc(s.open, func(o session) bool { return o.principal == most })
		s.open = slices.Delete(s.open, i, i+1)
	}
	began := session{rand.Text(), principal, credential, s.clock().Add(sessionLength)}
	s.open = append(s.open, began)
	return cookie(began.id, int(sessionLength/time.Second), secure)
}

// credential returns the credential of a request's session.
func (s *sessions) credential(r *http.Request) (credential string, ok bool) {
	sent := r.CookiesNamed(cookieName)
	if len(sent) != 1 {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop("")
	for _, o := range s.open {
		if o.id == sent[0].Value {
			return o.credential, true
		}
	}
	return "", false
}

// end ends a request's session, and returns the cookie that removes its own.
func (s *sessions) end(r *http.Request, secure bool) *http.Cookie {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sent := range r.CookiesNamed(cookieName) {
		s.drop(sent.Value)
	}
	return cookie("", -1, secure)
}

// drop removes a session, and those that are over. The caller holds mu.
func (s *sessions) drop(id string) {
	now, kept := s.clock(), s.open[:0]
	for _, o := range s.open {
		if o.id != id && now.Before(o.until) {
			kept = append(kept, o)
		}
	}
	clear(s.open[len(kept):])
	s.open = kept
}

func cookie(value string, age int, secure bool) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: "/console", MaxAge: age, HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteStrictMode}
}
