package console

import (
	"fmt"
	"time"
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
		return span(d) + " ago"
	}
}

// span is a length of time in its largest unit.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/day)
}

// left is a length of time as span says it, with the minutes of its hours.
func left(d time.Duration) string {
	if minutes := d % time.Hour / time.Minute; d >= time.Hour && d < 48*time.Hour && minutes > 0 {
		return fmt.Sprintf("%s %d min", span(d), minutes)
	}
	return span(d)
}

// clock is the time of day, with its date unless that is today's.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
