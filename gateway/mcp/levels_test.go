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
	// One who begins many forgets its own.
	for i := range 3 * mostLevelsOf {
		l.set("one", fmt.Sprint(i), "debug")
		l.of("one", "s") // which is used all the time
	}
	if l.of("one", "s") != "info" || l.of("two", "s") != "error" || l.of("", "s") != "alert" || l.of("one", "0") != "" || len(l.all) != mostLevelsOf+2 || l.used.Len() != len(l.all) {
		t.Errorf("%d and %d are remembered", len(l.all), l.used.Len())
	}
	// Many forget what was not used for longest, whoever's it is.
	for i := range 3 * mostLevels {
		l.set(fmt.Sprint("p", i%100), fmt.Sprint(i), "debug")
	}
	if l.of("one", "s") != "" || l.of("", "s") != "" || len(l.all) != mostLevels || l.used.Len() != mostLevels || len(l.count) != 100 {
		t.Errorf("%d and %d are remembered, of %d", len(l.all), l.used.Len(), len(l.count))
	}
	for i := range 2 * mostLevels {
		l.set("", fmt.Sprint(i), "debug")
	}
	if l.of("", fmt.Sprint(mostLevels)) != "debug" || l.of("", "0") != "" || len(l.all) != mostLevels || len(l.count) != 1 {
		t.Errorf("%d are remembered, of %d", len(l.all), len(l.count))
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
