package budget

import "time"

// Window is how long a budget lasts until it is renewed.
type Window string

// The windows. A day, a week and a month begin at midnight in the budget's time zone, a week on
// Monday. An hour begins at the full hour of UTC.
const (
	Hour  Window = "hour"
	Day   Window = "day"
	Week  Window = "week"
	Month Window = "month"
)

// Bounds returns the window that holds a time: from start, up to but not including end. Each time
// is in exactly one window, also where a clock is put forward or back at midnight.
func (w Window) Bounds(at time.Time, zone *time.Location) (start, end time.Time) {
	if w == Hour {
		start = at.UTC().Truncate(time.Hour)
		return start, start.Add(time.Hour)
	}
	year, month, day := at.In(zone).Date()
	index := 0
	if w == Week {
		day -= (int(at.In(zone).Weekday()) + 6) % 7 // days since Monday
	}
	edge := func(n int) time.Time {
		switch w {
		case Week:
			return time.Date(year, month, day+7*n, 0, 0, 0, 0, zone)
		case Month:
			return time.Date(year, month+time.Month(n), 1, 0, 0, 0, 0, zone)
		}
		return time.Date(year, month, day+n, 0, 0, 0, 0, zone)
	}
	// Where no midnight exists, time.Date may return a time beside it.
	for at.Before(edge(index)) {
		index--
	}
	for !at.Before(edge(index + 1)) {
		index++
	}
	return edge(index), edge(index + 1)
}
