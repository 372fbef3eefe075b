// Package lexical holds the small functions on names and texts that the policy and
// its packages share.
package lexical

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/callgate/callgate/parser"
)

// NameProblem returns the fault of a name; "" for none.
func NameProblem(s string) string {
	switch {
	case s == "":
		return "found an empty name, expected at least one character"
	case !utf8.ValidString(s):
		return "found invalid UTF-8, expected text"
	case strings.TrimSpace(s) != s:
		return fmt.Sprintf("found %s, expected no space at either end", parser.Quote(s))
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return fmt.Sprintf("found %s, expected no control or invisible character", parser.Quote(s))
	}
	return ""
}
