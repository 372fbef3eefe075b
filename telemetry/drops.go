package telemetry

import (
	"fmt"
	"sync"
	"time"
)

// reportInterval is how long nothing is reported after a report.
const reportInterval = time.Minute

// dropCounter counts the calls whose traces were lost, and reports them: the first at
// once, those that follow together.
type dropCounter struct {
	report func(error)

	mu         sync.Mutex
	unreported int64 // calls that are not reported yet
	lastErr    error // the last reason of these
	total      int64
	reportedAt time.Time
}

// add notes that the traces of n calls were lost; of none, that something was
// wrong.
func (l *dropCounter) add(n int64, why error) {
	l.mu.Lock()
	l.unreported, l.total, l.lastErr = l.unreported+n, l.total+n, why
	due := l.reportedAt.IsZero() || time.Since(l.reportedAt) >= reportInterval
	l.mu.Unlock()
	if due {
		l.flush()
	}
}

// flush reports what is not reported yet.
func (l *dropCounter) flush() {
	l.mu.Lock()
	n, why := l.unreported, l.lastErr
	l.unreported, l.lastErr = 0, nil
	if why != nil {
		l.reportedAt = time.Now()
	}
	l.mu.Unlock()
	if why != nil && l.report != nil {
		l.report(dropError(n, why))
	}
}

// err is an error where anything was lost.
func (l *dropCounter) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total == 0 {
		return nil
	}
	return fmt.Errorf("the traces of %d calls were lost", l.total)
}

func dropError(n int64, why error) error {
	if n == 0 {
		return fmt.Errorf("traces: %w", why)
	}
	return fmt.Errorf("the traces of %d calls were lost: %w", n, why)
}
