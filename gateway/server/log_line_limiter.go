package server

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// The bound of the log lines about requests that anybody can send in any number: of callers that are
// not identified, and beyond a bound of the gateway. A wrong key or a misrouted client still shows,
// and 10 lines a second fill no disk within a day.
const (
	boundedLinesPerSecond = 10
	boundedLinesBurst     = 50
)

// lineLimiter bounds log lines, and counts those that it suppressed. Lines of errors have a
// bound of their own, so that refused strangers cannot hide a failure of the gateway. It is
// safe for concurrent use.
type lineLimiter struct {
	lines, errors *rate.Limiter

	suppressed atomic.Int64

	mu       sync.Mutex
	reported time.Time
}

func newLineLimiter() *lineLimiter {
	bound := func() *rate.Limiter { return rate.NewLimiter(boundedLinesPerSecond, boundedLinesBurst) }
	return &lineLimiter{lines: bound(), errors: bound()}
}

// allow reports whether a line of a level may be written now, and counts it if not.
func (l *lineLimiter) allow(now time.Time, level slog.Level) bool {
	limiter := l.lines
	if level >= slog.LevelError {
		limiter = l.errors
	}
	if limiter.AllowN(now, 1) {
		return true
	}
	l.suppressed.Add(1)
	return false
}

// takeSuppressed returns the number of lines suppressed since it last returned one that is
// not 0; it does so at most once a second. With last it does so at once.
func (l *lineLimiter) takeSuppressed(now time.Time, last bool) int64 {
	if l.suppressed.Load() == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !last && now.Sub(l.reported) < time.Second {
		return 0
	}
	l.reported = now
	return l.suppressed.Swap(0)
}
