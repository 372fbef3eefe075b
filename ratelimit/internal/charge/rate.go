package charge

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxCount is the highest rate per second, burst, concurrency and number of
// replicas. Far above what one gateway can serve, it keeps the arithmetic of
// the buckets exact to the nanosecond.
const MaxCount = 1_000_000

// Rate is a number of calls per second, minute or hour. The zero Rate is no
// rate: it admits nothing.
type Rate struct {
	count int64
	per   time.Duration
}

// ParseRate reads N/s, N/m or N/h. The error says what was found and what was
// expected.
func ParseRate(s string) (Rate, error) {
	const expected = "expected a rate such as 5/s, 30/m or 100/h"
	number, unit, found := strings.Cut(s, "/")
	if !found {
		return Rate{}, fmt.Errorf("found %q, %s", s, expected)
	}
	var per time.Duration
	switch unit {
	case "s":
		per = time.Second
	case "m":
		per = time.Minute
	case "h":
		per = time.Hour
	default:
		return Rate{}, fmt.Errorf("found %q, %s: the unit is s, m or h", s, expected)
	}
	for i := range len(number) {
		if number[i] < '0' || number[i] > '9' {
			return Rate{}, fmt.Errorf("found %q, %s: the number is whole, without sign or spaces", s, expected)
		}
	}
	if number == "" || number[0] == '0' {
		return Rate{}, fmt.Errorf("found %q, %s: the number is at least 1, without leading zeros", s, expected)
	}
	count, err := strconv.ParseInt(number, 10, 64)
	if err != nil || count > MaxCount*int64(per/time.Second) {
		return Rate{}, fmt.Errorf("found %q, %s: the rate is at most %d/s", s, expected, MaxCount)
	}
	return Rate{count: count, per: per}, nil
}

// String writes the rate as ParseRate reads it; the zero Rate is "".
func (r Rate) String() string {
	if r == (Rate{}) {
		return ""
	}
	unit := r.per.String() // of a share, as in 5/3s
	switch r.per {
	case time.Second:
		unit = "s"
	case time.Minute:
		unit = "m"
	case time.Hour:
		unit = "h"
	}
	return strconv.FormatInt(r.count, 10) + "/" + unit
}

// Burst is the burst of a budget that states none: what one second brings,
// rounded up; 0 for the zero Rate.
func (r Rate) Burst() int {
	if r == (Rate{}) {
		return 0
	}
	seconds := int64(r.per / time.Second)
	return int((r.count + seconds - 1) / seconds)
}

// Window is the number of the rate, and for how long it is: 60 and an hour of 60/h.
func (r Rate) Window() (count int64, per time.Duration) { return r.count, r.per }

// PerHour is how many tokens an undivided rate brings in an hour, exactly.
func (r Rate) PerHour() int64 { return r.count * int64(time.Hour/r.per) }

// PerSecond is not zero for a rate that ParseRate made.
func (r Rate) PerSecond() float64 { return float64(r.count) / r.per.Seconds() }
