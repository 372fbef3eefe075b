package mcp

import (
	"fmt"
	"sync"
	"testing"
)

// TestLevels: a level is that of a session of a principal, and what was not used for
// longest is forgotten first.
func TestLevels(t *testing.T) {
	var l levels
	if l.set("one", "", "debug"); l.of("one", "") != "" {
		t.Error("what has no session has a level")
	}
	l.set("one", "s", "debug")
	l.set("one", "s", "info")
	l.set("two", "s", "error")
	l.set("", "s", "alert")
	for principal, want := range map[string]string{"one": "info", "two": "error", "": "alert", "three": "", `one" "s`: ""} {
		if got := l.of(principal, "s"); got != want {
			t.Errorf("%q: %q, want %q", principal, got, want)
		}
	}
	for i := range mostLevels - 2 {
		l.set("one", fmt.Sprint(i), "debug")
		l.of("one", "s") // which is used all the time
	}
	if l.of("one", "s") != "info" || l.of("two", "s") == "" && l.of("", "s") == "" || len(l.all) != mostLevels || l.used.Len() != mostLevels {
		t.Errorf("%d and %d are remembered", len(l.all), l.used.Len())
	}
	for i := range 3 * mostLevels {
		l.set("three", fmt.Sprint(i), "debug")
	}
	if l.of("one", "s") != "" || l.of("three", "0") != "" || l.of("three", fmt.Sprint(2*mostLevels)) != "debug" || len(l.all) != mostLevels || l.used.Len() != mostLevels {
		t.Errorf("%d and %d are remembered", len(l.all), l.used.Len())
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 1000 {
				l.set("one", fmt.Sprint(n%7), "debug")
				l.of("one", fmt.Sprint(i))
			}
		})
	}
	all.Wait()
}
