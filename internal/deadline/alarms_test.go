package deadline_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/internal/deadline"
)

// TestAlarmsSameAsTimers: beside a timer of its own, each alarm is called at the same times,
// however all of them are set and removed.
func TestAlarmsSameAsTimers(t *testing.T) {
	type step struct{ alarm, after, pause int } // seconds; after 0: it is removed, and added again
	rapid.Check(t, func(rt *rapid.T) {
		var steps []step
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			steps = append(steps, step{rapid.IntRange(0, 4).Draw(rt, "alarm"), rapid.IntRange(0, 20).Draw(rt, "after"), rapid.IntRange(0, 3).Draw(rt, "pause")})
		}
		synctest.Test(t, func(t *testing.T) {
			all, begun := deadline.NewAlarms(), time.Now()
			var (
				mu           sync.Mutex
				alarms       [5]deadline.Alarm
				timers       [5]*time.Timer
				ours, theirs [5][]time.Duration
			)
			note := func(in *[]time.Duration) func() {
				return func() {
					mu.Lock()
					defer mu.Unlock()
					*in = append(*in, time.Since(begun))
				}
			}
			for i := range alarms {
				alarms[i].Call = note(&ours[i])
				all.Add(&alarms[i])
				timers[i] = time.AfterFunc(time.Hour, note(&theirs[i]))
				timers[i].Stop()
			}
			for _, s := range steps {
				if s.after == 0 {
					timers[s.alarm].Stop()
					all.Remove(&alarms[s.alarm])
					all.Add(&alarms[s.alarm])
				} else {
					after := time.Duration(s.after)*time.Second + time.Millisecond // never with a step
					timers[s.alarm].Reset(after)
					all.Set(&alarms[s.alarm], all.Now()+after)
				}
				time.Sleep(time.Duration(s.pause) * time.Second)
			}
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			for i := range ours {
				if len(ours[i]) != len(theirs[i]) {
					rt.Fatalf("alarm %d: %v, want %v", i, ours[i], theirs[i])
				}
				for j := range ours[i] {
					if ours[i][j] != theirs[i][j] {
						rt.Fatalf("alarm %d: %v, want %v", i, ours[i], theirs[i])
					}
				}
			}
		})
	})
}

// TestAlarmsTogether: alarms that many goroutines set while the timer rings are all called.
func TestAlarmsTogether(t *testing.T) {
	all := deadline.NewAlarms()
	var called atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				rang := make(chan struct{})
				x := deadline.Alarm{Call: func() { called.Add(1); close(rang) }}
				all.Add(&x)
				all.Set(&x, all.Now()+time.Minute)
				all.Set(&x, all.Now()+time.Duration((i*31+j*17)%300)*time.Microsecond)
				select {
				case <-rang:
				case <-time.After(time.Minute):
					t.Error("an alarm was not called")
				}
				all.Remove(&x)
			}
		})
	}
	wg.Wait()
	if called.Load() != 1600 {
		t.Errorf("%d were called", called.Load())
	}
}
