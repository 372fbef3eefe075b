package document

import (
	"fmt"
	"time"

	"github.com/callgate/callgate/internal/duration"
)

// Span reads a duration within bounds. It reports whether it has read one.
func (n Node) Span(of string, low, high time.Duration, into *time.Duration) bool {
	pattern := duration.Positive
	if low == 0 {
		pattern = duration.NotNegative
	}
	n.Matching(fmt.Sprintf("%s: a duration from %s to %s", of, duration.Spell(low), duration.Spell(high)), pattern)
	d, ok := duration.Read(n.Value)
	if !n.IsString() || !ok || d < low || d > high {
		return n.Fail("found %s; expected a duration from %s to %s: %s", n.Describe(), duration.Spell(low), duration.Spell(high), of)
	}
	*into = d
	return true
}
