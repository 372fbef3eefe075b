package document

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Span reads a duration within bounds; whole days may be written as 7d. It reports whether it has read one.
func (n Node) Span(of string, low, high time.Duration, into *time.Duration) bool {
	n.Matching(fmt.Sprintf("%s: a duration from %s to %s", of, SpanText(low), SpanText(high)), DurationPattern+`|^[0-9]+d$`)
	d, err := parseSpan(n.Value)
	if !n.IsString() || err != nil || d < low || d > high {
		return n.Fail("found %s; expected a duration from %s to %s: %s", n.Describe(), SpanText(low), SpanText(high), of)
	}
	*into = d
	return true
}

// parseSpan is time.ParseDuration that also reads whole days.
func parseSpan(text string) (time.Duration, error) {
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		count, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(count) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// SpanText writes a duration for people: 7d, 5m, 0s.
func SpanText(d time.Duration) string {
	switch {
	case d > 0 && d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d > 0 && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
