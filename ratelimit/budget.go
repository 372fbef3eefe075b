package ratelimit

import "github.com/callgate/callgate/ratelimit/internal/charge"

// Budget configures a token bucket. The zero Budget admits nothing.
type Budget = charge.Budget

// Rate is a number of calls per second, minute or hour. The zero Rate is no
// rate: it admits nothing.
type Rate = charge.Rate

// ParseRate reads N/s, N/m or N/h. The error says what was found and what was
// expected.
func ParseRate(s string) (Rate, error) { return charge.ParseRate(s) }
