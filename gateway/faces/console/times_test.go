package console

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 29, 0, 30, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "just now", -300 * time.Millisecond: "just now", 999 * time.Millisecond: "just now", time.Second: "1 s ago", 59 * time.Second: "59 s ago", time.Minute: "1 min ago", time.Hour - 1: "59 min ago", 47 * time.Hour: "47 h ago",
		50 * time.Hour: "2 days ago", -90 * time.Second: "in 1 min", -26 * time.Hour: "in 26 h", -(3*time.Hour + 24*time.Minute + 59*time.Second): "in 3 h 24 min", -73 * time.Hour: "in 3 days", 3*time.Hour + 24*time.Minute: "3 h ago",
	} {
		if got := ago(now.Add(-d), now); got != want {
			t.Errorf("%s: %q, expected %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{29 * time.Minute: "00:01:00", 31 * time.Minute: "2026-11-28 23:59:00"} {
		if got := clock(now.Add(-d), now); got != want {
			t.Errorf("%s: %q, expected %q", d, got, want)
		}
	}
}
