package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
)

// pattern is a regular expression with the cost of matching one byte.
type pattern struct {
	source string
	expr   *regexp.Regexp
	size   int
}

func newPattern(source string) *pattern {
	return &pattern{source: source, expr: regexp.MustCompile(source), size: patternSize(source)}
}

// cost bounds the work of a match: each byte may meet each instruction.
func (p *pattern) cost(s string) int { return len(s) * p.size / bytesPerStep }

// patternSize is the number of instructions that a pattern compiles to, which bounds
// the cost of matching one byte. An invalid pattern has none.
func patternSize(pattern string) int {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// RE2 writes a pattern of JSON Schema, whose syntax is that of ECMA-262, in RE2's: \uXXXX, \u{X} and
// \cX, which RE2 does not know, as \x{X}. A pattern that RE2 reads stays as it is, and so does one whose
// escapes stand for no character, or whose classes [] and [^] RE2 would read otherwise.
func RE2(pattern string) string {
	if !strings.Contains(pattern, `\u`) && !strings.Contains(pattern, `\c`) {
		return pattern
	}
	if _, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		return pattern
	}
	var b strings.Builder
	inClass := false
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			r, size := unicodeEscape(rest)
			if size == 0 {
				if rest[1] == 'u' || rest[1] == 'c' {
					return pattern
				}
				b.WriteString(rest[:2])
				i += 2
				continue
			}
			fmt.Fprintf(&b, `\x{%X}`, r)
			i += size
			continue
		case rest[0] == '[' && !inClass:
			if strings.HasPrefix(rest, "[]") || strings.HasPrefix(rest, "[^]") {
				return pattern
			}
			inClass = true
		case rest[0] == ']':
			inClass = false
		}
		b.WriteByte(rest[0])
		i++
	}
	return b.String()
}

// unicodeEscape reads the escape of ECMA-262 that a text begins with; size is 0 for any other, and for
// half of a character.
func unicodeEscape(s string) (r rune, size int) {
	hex := func(from, to int) (rune, bool) {
		if to > len(s) {
			return 0, false
		}
		n, err := strconv.ParseUint(s[from:to], 16, 32)
		return rune(n), err == nil && n <= 0x10FFFF
	}
	switch {
	case len(s) > 2 && s[1] == 'c' && (s[2]|0x20) >= 'a' && (s[2]|0x20) <= 'z':
		return rune(s[2] & 31), 3
	case strings.HasPrefix(s, `\u{`):
		end := strings.IndexByte(s, '}')
		if end > len(`\u{`) && end <= len(`\u{`)+6 {
			if r, ok := hex(len(`\u{`), end); ok && !utf16.IsSurrogate(r) {
				return r, end + 1
			}
		}
	case strings.HasPrefix(s, `\u`):
		r, ok := hex(2, 6)
		if !ok {
			return 0, 0
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(s) >= 12 && s[6:8] == `\u` {
			if low, ok := hex(8, 12); ok {
				if pair := utf16.DecodeRune(r, low); pair != '\uFFFD' {
					return pair, 12
				}
			}
		}
	}
	return 0, 0
}
