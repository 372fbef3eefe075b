package similar

import (
	"fmt"
	"strings"
)

// Suggester hints at near names for messages, at most a number of times: each hint looks at
// every name. The zero value gives no hint.
type Suggester struct{ Left int }

// DidYouMean is the hint at the name of the list that is a typing error away, with a space
// before it, or "".
func (s *Suggester) DidYouMean(word string, names []string) string {
	if s.Left <= 0 {
		return ""
	}
	s.Left--
	return DidYouMean(word, names)
}

// DidYouMean is that of a Suggester, without a bound.
func DidYouMean(word string, names []string) string {
	if near := nearest(word, names); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// nearest returns the name of the list that is a typing error away, or "".
func nearest(word string, names []string) string {
	const most = 2
	best, distance := "", most+1
	for _, name := range names {
		if d := Distance(strings.ToLower(word), strings.ToLower(name), most); d < distance && d < len(name) {
			best, distance = name, d
		}
	}
	return best
}
