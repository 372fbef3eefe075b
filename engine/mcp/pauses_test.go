package mcp

import (
	"testing"
	"time"
)

// TestPauses: the pauses after failures in a row double up to a maximum, and begin anew
// after a success.
func TestPauses(t *testing.T) {
	for _, c := range []struct{ first, most, last time.Duration }{
		{firstBackoff, maxBackoff, 3200 * time.Millisecond},
		{firstPause, maxPause, 256 * time.Second},
	} {
		pauses := newPauses(c.first, c.most)
		for range 2 {
			for want := c.first; want <= c.last; want *= 2 {
				if got := pauses.NextBackOff(); got != want {
					t.Errorf("paused for %s, want %s", got, want)
				}
			}
			for range 2 {
				if got := pauses.NextBackOff(); got != c.most {
					t.Errorf("paused for %s, want %s", got, c.most)
				}
			}
			pauses.Reset()
		}
	}
}
