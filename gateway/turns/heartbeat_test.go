package turns

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSignsOfLifeOfLaterWaits: each wait of a run has its signs of life an interval after something was sent, however
// the waits before it have set the timer.
func TestSignsOfLifeOfLaterWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var sent []time.Duration
		b := heartbeat{interval: 10 * time.Second}
		at := func(when time.Duration, do func()) {
			time.Sleep(when*time.Second - time.Since(began))
			synctest.Wait()
			do()
		}
		start := func() {
			b.start(time.Now(), func(string) { sent = append(sent, time.Since(began)/time.Second) }, "")
		}
		pause := func() {
			if err := b.pause(); err != nil {
				t.Error(err)
			}
		}
		at(0, start)
		at(4, pause)
		at(4, start) // something was sent
		at(25, pause)
		at(26, start)
		at(30, pause)
		at(50, start) // no alarm is set
		at(61, pause)
		at(61, b.stop)
		at(100, start)
		at(111, pause)
		at(111, b.stop)
		at(200, func() {})
		want := []time.Duration{14, 24, 60, 110}
		if !slices.Equal(sent, want) {
			t.Errorf("signs of life at %d, expected at %d", sent, want)
		}
	})
}
