package starter

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/wrapper"
)

// quoted is a text in YAML, in quotes where it could be something else.
func quoted(s string) string {
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' || r == '/')
	})
	first := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '/' }
	if plain && first(s[0]) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s)) {
		return s
	}
	// A string of JSON is one of YAML, but for escapes in two halves, and for code points that are no
	// characters. It is valid UTF-8, as all that is read here.
	text, err := wrapper.Marshal(s)
	if err != nil {
		return `""`
	}
	var b strings.Builder
	for _, r := range halves.ReplaceAllStringFunc(string(text), joined) {
		if document.IsControl(r) {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// halves finds escapes in two halves, and escaped backslashes, behind which no escape begins.
var halves = regexp.MustCompile(`\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

// joined is what halves has found, as YAML has it.
func joined(found string) string {
	if found == `\\` {
		return found
	}
	unit := func(digits string) rune {
		n, _ := strconv.ParseUint(digits, 16, 16) // halves has matched four digits
		return rune(n)
	}
	return escape(utf16.DecodeRune(unit(found[2:6]), unit(found[8:])))
}

// escape is the escape of a code point in YAML.
func escape(r rune) string { return fmt.Sprintf(`\U%08X`, r) }

func list(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, quoted(w))
	}
	return "[" + strings.Join(all, ", ") + "]"
}
