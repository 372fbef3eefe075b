package format

import (
	"strings"
	"time"

	"github.com/callgate/callgate/internal/ascii"
)

// isDateTime follows RFC 3339, section 5.6. A leap second stands only at the
// end of a day in UTC.
func isDateTime(s string) bool {
	return len(s) > 11 && (s[10] == 'T' || s[10] == 't') && isDate(s[:10]) && isTime(s[11:])
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

func isTime(s string) bool {
	if len(s) < 9 || s[2] != ':' || s[5] != ':' {
		return false
	}
	hour, minute, second := ascii.Number(s[:2]), ascii.Number(s[3:5]), ascii.Number(s[6:8])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return false
	}
	rest := s[8:]
	if rest[0] == '.' {
		n := ascii.LeadingDigits(rest[1:])
		if n == 0 {
			return false
		}
		rest = rest[1+n:]
	}
	offset, ok := timeOffset(rest)
	if !ok {
		return false
	}
	const day = 24 * 60
	return second < 60 || (hour*60+minute-offset+2*day)%day == day-1
}

// timeOffset reads Z or ±hh:mm, in minutes.
func timeOffset(s string) (int, bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) != 6 || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	hour, minute := ascii.Number(s[1:3]), ascii.Number(s[4:])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 {
		return 0, false
	}
	offset := hour*60 + minute
	if s[0] == '-' {
		return -offset, true
	}
	return offset, true
}

// isDuration follows RFC 3339, appendix A: weeks stand alone, and between the
// largest and the smallest unit none is left out.
func isDuration(s string) bool {
	s, ok := strings.CutPrefix(s, "P")
	if !ok || s == "" {
		return false
	}
	date, clock, timed := strings.Cut(s, "T")
	if timed && clock == "" {
		return false
	}
	if n := ascii.LeadingDigits(date); n > 0 && date[n:] == "W" {
		return !timed
	}
	return units(date, "YMD") && units(clock, "HMS")
}

func units(s, order string) bool {
	next := -1
	for s != "" {
		n := ascii.LeadingDigits(s)
		if n == 0 || n == len(s) {
			return false
		}
		at := strings.IndexByte(order, s[n])
		if at < 0 || next >= 0 && at != next {
			return false
		}
		next = at + 1
		s = s[n+1:]
	}
	return true
}
