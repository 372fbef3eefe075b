package httptool

import (
	"encoding/json"
	"regexp"
	"strings"
)

// primitive returns the values of a string, a number as it was written, a boolean, or a
// list of these; null gives none.
func primitive(raw json.RawMessage) (all []string, list bool, problem string) {
	if len(raw) > 0 && raw[0] == '[' {
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, true, "it cannot be read"
		}
		for _, item := range items {
			if item[0] == '[' || item[0] == 'n' {
				return nil, true, "an item of its list is a list or null"
			}
			one, _, problem := primitive(item)
			if problem != "" {
				return nil, true, problem
			}
			all = append(all, one...)
		}
		return all, true, ""
	}
	switch {
	case len(raw) == 0 || raw[0] == '{':
		return nil, false, "an object has no form outside of JSON"
	case raw[0] == '"':
		if literal := raw[1 : len(raw)-1]; isPlainASCII(literal) {
			return []string{string(literal)}, false, ""
		}
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, false, "it cannot be read"
		}
		return []string{s}, false, ""
	case raw[0] == 'n':
		return nil, false, ""
	}
	return []string{string(raw)}, false, ""
}

// isPlainASCII reports that the inside of a JSON string is its value: printable ASCII without
// an escape.
func isPlainASCII(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' || c == '\\' || c == '"' {
			return false
		}
	}
	return true
}

// The escapes that a server takes for a dot, a slash or a semicolon if it decodes once too often.
var (
	escapedDot       = regexp.MustCompile(`(?i)%(25)*2e`)
	escapedSlash     = regexp.MustCompile(`(?i)[/\\]|%(25)*(2f|5c)`)
	escapedSemicolon = regexp.MustCompile(`(?i)%(25)*3b`)
)

// pathProblem says why a value must not stand in a path: it would make another path, at
// the latest when a server decodes it. Many servers decode before they route, so that an
// escaped slash is a slash to them; some drop what follows a semicolon.
func pathProblem(values []string) string {
	for _, v := range values {
		switch {
		case v == "":
			return "a part of a path cannot be empty"
		case strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7F }):
			return "a part of a path cannot hold control characters"
		case !strings.ContainsAny(v, `./\%;`):
			continue
		case escapedSlash.MatchString(v):
			return "a part of a path cannot hold a slash or a backslash, escaped or not"
		}
		plain := escapedSemicolon.ReplaceAllString(escapedDot.ReplaceAllString(v, "."), ";")
		if part, _, _ := strings.Cut(plain, ";"); part == "." || part == ".." {
			return "a part of a path cannot be . or .."
		}
	}
	return ""
}

// escape writes everything but RFC 3986's unreserved characters as %XX, in paths
// and queries alike: every reader undoes it, and none finds structure in it.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	reserved := 0
	for i := range len(s) {
		if !isUnreserved(s[i]) {
			reserved++
		}
	}
	if reserved == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 2*reserved)
	for i := range len(s) {
		c := s[i]
		if isUnreserved(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}
