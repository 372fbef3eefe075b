package telemetry

import (
	"fmt"
	"sync"
	"time"
)

// quiet is how long nothing is reported after a report.
const quiet = time.Minute

// losses counts the calls whose traces were lost, and reports them: the first at
// once, those that follow together.
type losses struct {
	report func(error)

	mu       sync.Mutex
	open     int64 // calls that are not reported yet
	why      error // the last reason of these
	all      int64
	reported time.Time
}

// add notes that the traces of n calls were lost; of none, that something was
// wrong.
func (l *losses) add(n int64, why error) {
	l.mu.Lock()
	l.open, l.all, l.why = l.open+n, l.all+n, why
	due := l.reported.IsZero() || time.Since(l.reported) >= quiet
	l.mu.Unlock()
	if due {
		l.flush()
	}
}

// flush reports what is not reported yet.
func (l *losses) flush() {
	l.mu.Lock()
	n, why := l.open, l.why
	l.open, l.why = 0, nil
	if why != nil {
		l.reported = time.Now()
	}
	l.mu.Unlock()
	if why != nil && l.report != nil {
		l.report(lost(n, why))
	}
}

// last is an error where anything was lost.
func (l *losses) last() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == 0 {
		return nil
	}
	return fmt.Errorf("the traces of %d calls were lost", l.all)
}

func lost(n int64, why error) error {
	if n == 0 {
		return fmt.Errorf("traces: %w", why)
	}
	return fmt.Errorf("the traces of %d calls were lost: %w", n, why)
}
