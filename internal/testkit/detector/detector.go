// Package detector says whether the race detector watches a test program.
package detector

import "testing"

// OneGoroutine leaves a test out under the race detector, which finds nothing in a test of one
// goroutine, and makes each many times dearer.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if On {
		t.Skip("it has one goroutine, and so no race")
	}
}
