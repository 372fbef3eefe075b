// Package duration reads and spells the durations that people write: in configuration, in conditions, on the command
// line and in requests of operators.
package duration

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Expected says in messages what Read takes.
const Expected = "a duration such as 30s, 5m, 24h or 7d"

const day = 24 * time.Hour

// Read reads a duration of Go, such as 250ms or 1h30m, or a number of whole days, such as 7d.
func Read(text string) (d time.Duration, ok bool) {
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		count, err := strconv.ParseUint(days, 10, 32)
		if err != nil {
			return 0, false
		}
		text = strconv.FormatUint(24*count, 10) + "h"
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// The parts of what Read takes: a number with a unit, and one that is not zero.
const (
	anyPart      = `([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)`
	positivePart = `([0-9]*[1-9][0-9]*\.?[0-9]*|[0-9]*\.[0-9]*[1-9][0-9]*)(ns|us|µs|μs|ms|s|m|h)`
)

// Positive is the pattern of the durations above zero that Read takes, and NotNegative of those and zero.
const (
	Positive    = `^\+?(` + anyPart + `)*` + positivePart + `(` + anyPart + `)*$|^[0-9]*[1-9][0-9]*d$`
	NotNegative = `^[+-]?0$|^\+?(` + anyPart + `)+$|^[0-9]+d$`
)

// Spell writes a duration as Read takes it, without units that are zero: 7d, 24h, 1h30m, 1.5s, 0s.
func Spell(d time.Duration) string {
	if d >= 2*day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Words writes a duration that is not negative as a user reads it, in so many of its largest units: 1 h 30 min, 36 h,
// 2 days. The rest is left out.
func Words(d time.Duration, most int) string {
	unit, name := time.Second, "s"
	switch {
	case d >= 2*day:
		unit, name = day, "days"
	case d >= time.Hour:
		unit, name = time.Hour, "h"
	case d >= time.Minute:
		unit, name = time.Minute, "min"
	}
	words := fmt.Sprintf("%d %s", d/unit, name)
	if rest := d % unit; most > 1 && rest >= time.Second {
		words += " " + Words(rest, most-1)
	}
	return words
}
