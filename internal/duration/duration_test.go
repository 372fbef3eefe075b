package duration

import (
	"math"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"250ms": time.Second / 4, "1.5s": 1500 * time.Millisecond, "90m": 90 * time.Minute, "1h30m": 90 * time.Minute, "+5m": 5 * time.Minute,
		"24h": day, "1d": day, "007d": 7 * day, "0d": 0, "0": 0, "0s": 0, "-1s": -time.Second, "106751d": 106751 * day,
	} {
		if got, ok := Read(text); !ok || got != want {
			t.Errorf("%q: %s %t, expected %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "d", "7", "7 d", "+7d", "-7d", "1.5d", "1d12h", "7D", "106752d", "4294967296d", "18446744073709551616d", "10 seconds", "9999999h"} {
		if got, ok := Read(text); ok {
			t.Errorf("%q: read as %s", text, got)
		}
	}
}

// TestSpell: what is spelled is read as the same, is matched by the patterns, and is no longer than Go writes it.
func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", day: "24h", 7 * day: "7d", 365 * day: "365d", time.Hour: "1h", 36 * time.Hour: "36h", 90 * time.Minute: "1h30m",
		5 * time.Minute: "5m", 90 * time.Second: "1m30s", 2*time.Hour + time.Second: "2h0m1s", 8*day + time.Minute: "192h1m",
		1500 * time.Millisecond: "1.5s", 250 * time.Millisecond: "250ms", -24 * time.Hour: "-24h", -time.Minute: "-1m",
	} {
		if got := Spell(d); got != want {
			t.Errorf("%d: %q, expected %q", d, got, want)
		}
	}
	positive, notNegative := regexp.MustCompile(Positive), regexp.MustCompile(NotNegative)
	random := rand.New(rand.NewPCG(1, 2))
	spelled := func(d time.Duration) {
		t.Helper()
		text := Spell(d)
		if got, ok := Read(text); !ok || got != d {
			t.Errorf("%d is spelled %q, which is read as %d", d, text, got)
		}
		if len(text) > len(d.String()) {
			t.Errorf("%d is spelled %q, longer than %q", d, text, d)
		}
		if positive.MatchString(text) != (d > 0) || notNegative.MatchString(text) != (d >= 0) {
			t.Errorf("%q: the patterns say %t and %t", text, positive.MatchString(text), notNegative.MatchString(text))
		}
	}
	for _, d := range []time.Duration{math.MinInt64, math.MaxInt64, -1, 0, 1} {
		spelled(d)
	}
	for _, unit := range []time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, day} {
		for range 2000 {
			n := random.Int64N(int64(math.MaxInt64/unit)) >> random.IntN(63)
			spelled(time.Duration(n) * unit)
			spelled(-time.Duration(n) * unit)
		}
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		0: {"0 s", "0 s"}, 1500 * time.Millisecond: {"1 s", "1 s"}, 90 * time.Second: {"1 min", "1 min 30 s"}, time.Hour: {"1 h", "1 h"},
		90 * time.Minute: {"1 h", "1 h 30 min"}, 47*time.Hour + time.Minute: {"47 h", "47 h 1 min"}, 2 * day: {"2 days", "2 days"},
		50*time.Hour + time.Minute: {"2 days", "2 days 2 h"},
	} {
		if got := [2]string{Words(d, 1), Words(d, 2)}; got != want {
			t.Errorf("%s: %q, expected %q", d, got, want)
		}
	}
}
