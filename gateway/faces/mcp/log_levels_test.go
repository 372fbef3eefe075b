package mcp

import (
	"fmt"
	"sync"
	"testing"
)

// TestLevels: a level is that of a session of a principal, and what was not used for
// longest is forgotten first.
func TestLevels(t *testing.T) {
	var l logLevels
	if l.set("one", "", "debug"); l.get("one", "") != "" {
		t.Error("what has no session has a level")
	}
	l.set("one", "s", "debug")
	l.set("one", "s", "info")
	l.set("two", "s", "error")
	l.set("", "s", "alert")
	for principal, want := range map[string]string{"one": "info", "two": "error", "": "alert", "three": "", `one" "s`: ""} {
		if got := l.get(principal, "s"); got != want {
			t.Errorf("%q: %q, want %q", principal, got, want)
		}
	}
	// One who begins many forgets its own.
	for i := range 3 * maxLogSessionsPerPrincipal {
		l.set("one", fmt.Sprint(i), "debug")
		l.get("one", "s") // which is used all the time
	}
	if l.get("one", "s") != "info" || l.get("two", "s") != "error" || l.get("", "s") != "alert" || l.get("one", "0") != "" || len(l.bySession) != maxLogSessionsPerPrincipal+2 || l.used.Len() != len(l.bySession) {
		t.Errorf("%d and %d are remembered", len(l.bySession), l.used.Len())
	}
	// Many forget the least recently used, of any principal.
	for i := range 3 * maxLogSessions {
		l.set(fmt.Sprint("p", i%100), fmt.Sprint(i), "debug")
	}
	if l.get("one", "s") != "" || l.get("", "s") != "" || len(l.bySession) != maxLogSessions || l.used.Len() != maxLogSessions || len(l.perPrincipal) != 100 {
		t.Errorf("%d and %d are remembered, of %d", len(l.bySession), l.used.Len(), len(l.perPrincipal))
	}
	for i := range 2 * maxLogSessions {
		l.set("", fmt.Sprint(i), "debug")
	}
	if l.get("", fmt.Sprint(maxLogSessions)) != "debug" || l.get("", "0") != "" || len(l.bySession) != maxLogSessions || len(l.perPrincipal) != 1 {
		t.Errorf("%d are remembered, of %d", len(l.bySession), len(l.perPrincipal))
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 1000 {
				l.set("one", fmt.Sprint(n%7), "debug")
				l.get("one", fmt.Sprint(i))
			}
		})
	}
	all.Wait()
}
