package console

import (
	"time"

	"github.com/callgate/callgate/internal/duration"
)

// ago says how long before now a time is, or how long after. static/live.js says it again as time goes on, in
// the same words.
func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case d < -time.Second:
		return "in " + left(-d)
	case d < time.Second:
		return "just now"
	default:
		return duration.Words(d, 1) + " ago"
	}
}

// left is the length of a time to come: where it is of hours, with their minutes.
func left(d time.Duration) string {
	if d >= time.Hour && d < 48*time.Hour {
		return duration.Words(d.Truncate(time.Minute), 2)
	}
	return duration.Words(d, 1)
}

// clock is the time of day, with its date unless that is today's.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
