package server

import (
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The bound of the log lines about requests whose caller was not identified: any client
// that reaches the listener can send those. A wrong key or a misrouted client still shows,
// and 10 lines a second fill no disk within a day.
const (
	strangerLinesPerSecond = 10
	strangerLinesBurst     = 50
)

// lineLimiter bounds log lines, and counts those that it suppressed. Lines of errors have a
// bound of their own, so that refused strangers cannot hide a failure of the gateway. It is
// safe for concurrent use.
type lineLimiter struct {
	lines, errors *rate.Limiter

	mu         sync.Mutex
	suppressed int64
	reported   time.Time
}

func newLineLimiter() *lineLimiter {
	bound := func() *rate.Limiter { return rate.NewLimiter(strangerLinesPerSecond, strangerLinesBurst) }
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.suppressed++
	return false
}

// takeSuppressed returns the number of lines suppressed since it last returned one that is
// not 0; it does so at most once a second. With last it does so at once.
func (l *lineLimiter) takeSuppressed(now time.Time, last bool) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.suppressed == 0 || !last && now.Sub(l.reported) < time.Second {
		return 0
	}
	n := l.suppressed
	l.suppressed, l.reported = 0, now
	return n
}
