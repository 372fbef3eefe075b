package budget

import "time"

// NewLocalOf is NewLocal with another bound of counters.
func NewLocalOf(clock func() time.Time, most int) *Local {
	l := NewLocal(clock)
	l.most = most
	return l
}
