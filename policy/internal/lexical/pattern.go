package lexical

import "strings"

// ValidTool reports whether s is a tool's name, PREFIX.* or "*": what a row or a condition can name.
func ValidTool(s string) bool {
	if s == "*" {
		return true
	}
	if prefix, found := strings.CutSuffix(s, ".*"); found {
		s = prefix
	}
	return s != "" && !strings.Contains(s, "*")
}

// Matches reports whether a name of a tool or of a domain equals a pattern or is covered by it.
func Matches(name, pattern string) bool {
	if pattern == "*" || pattern == name {
		return true
	}
	prefix, found := strings.CutSuffix(pattern, "*")
	return found && len(name) > len(prefix) && strings.HasPrefix(name, prefix)
}
