package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// stalls are the times in which some processes could not run, though they wanted to: a
// thread waited for a processor, as the kernel counts it for each thread
// (/proc/PID/task/TID/schedstat), or the machine's host had taken the processor away
// (steal, /proc/stat). No process can keep a time while that lasts.
type stalls struct {
	pids []int

	mu  sync.Mutex
	was map[string]time.Duration // the last figure of each counter
	of  map[int][]stretch        // by process; 0 is the machine
}

// stretch is a time that has passed.
type stretch struct{ from, to time.Time }

const (
	// stallsEach is how often the counters are read, and leastStall the shortest wait
	// that counts.
	stallsEach = 20 * time.Millisecond
	leastStall = 2 * time.Millisecond
	jiffy      = 10 * time.Millisecond // of /proc/stat, on every system of Go's
)

// newStalls watches processes until the test ends.
func newStalls(t testing.TB, pids ...int) *stalls {
	t.Helper()
	s := &stalls{pids: pids, was: map[string]time.Duration{}, of: map[int][]stretch{}}
	if _, err := os.ReadFile("/proc/self/schedstat"); err != nil {
		t.Logf("how long threads wait for a processor cannot be told: %v", err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-ended })
	go func() {
		defer close(ended)
		tick := time.NewTicker(stallsEach)
		defer tick.Stop()
		for {
			s.read()
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return s
}

// read reads all counters once.
func (s *stalls) read() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pid := range s.pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, name := range threads {
			text, _ := os.ReadFile(name) // a thread may have ended
			if f := strings.Fields(string(text)); len(f) == 3 {
				s.count(pid, name, f[1], time.Nanosecond)
			}
		}
	}
	text, _ := os.ReadFile("/proc/stat")
	for line := range bytes.Lines(text) {
		if f := strings.Fields(string(line)); len(f) > 8 && strings.HasPrefix(f[0], "cpu") && f[0] != "cpu" {
			s.count(0, f[0], f[8], jiffy)
		}
	}
}

// count notes how much a counter has grown: the wait has just ended.
func (s *stalls) count(pid int, counter, figure string, unit time.Duration) {
	n, err := strconv.ParseInt(figure, 10, 64)
	if err != nil {
		return
	}
	total, now := time.Duration(n)*unit, time.Now()
	before, known := s.was[counter]
	s.was[counter] = total
	if long := total - before; known && long >= leastStall {
		s.of[pid] = append(s.of[pid], stretch{now.Add(-long), now})
	}
}

// during is for how long, between two times, a process or the machine was held up.
func (s *stalls) during(pid int, from, to time.Time) (long time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var within []stretch
	for _, of := range [][]stretch{s.of[pid], s.of[0]} {
		for _, st := range of {
			if st.to.After(from) && st.from.Before(to) {
				within = append(within, st)
			}
		}
	}
	slices.SortFunc(within, func(a, b stretch) int { return a.from.Compare(b.from) })
	for at := from; len(within) > 0; within = within[1:] {
		start, end := within[0].from, within[0].to
		if start.Before(at) {
			start = at
		}
		if end.After(to) {
			end = to
		}
		if end.After(start) {
			long += end.Sub(start)
			at = end
		}
	}
	return long
}

// longest is the longest that one thread of the processes, or the machine, was held up.
func (s *stalls) longest() (long time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.of {
		for _, st := range of {
			long = max(long, st.to.Sub(st.from))
		}
	}
	return long.Round(time.Millisecond)
}

// TestStallsAreMeasured: what threads waited counts for their own process, no time twice
// where they waited together, and no more than lies between the two times.
func TestStallsAreMeasured(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	s := &stalls{of: map[int][]stretch{
		1: {{at(100), at(300)}, {at(200), at(400)}, {at(900), at(2000)}},
		2: {{at(0), at(1000)}},
		0: {{at(350), at(450)}},
	}}
	for _, c := range []struct{ pid, from, to, long int }{
		{1, 0, 1000, 450}, {1, 150, 250, 100}, {1, 460, 890, 0}, {2, 500, 600, 100}, {3, 0, 1000, 100},
	} {
		if got := s.during(c.pid, at(c.from), at(c.to)); got != time.Duration(c.long)*time.Millisecond {
			t.Errorf("process %d, from %d to %d: held up for %v, expected %d ms", c.pid, c.from, c.to, got, c.long)
		}
	}
	if got := s.longest(); got != 1100*time.Millisecond {
		t.Errorf("the longest is %v", got)
	}
	s = &stalls{was: map[string]time.Duration{}, of: map[int][]stretch{}}
	for _, figure := range []string{"5000000", "6000000", "306000000"} {
		s.count(7, "thread", figure, time.Nanosecond)
	}
	if got := s.of[7]; len(got) != 1 || got[0].to.Sub(got[0].from) != 300*time.Millisecond {
		t.Errorf("counted %v", got)
	}
}
