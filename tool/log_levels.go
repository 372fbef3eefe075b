package tool

import "slices"

// LogLevels returns the levels of log messages, those of MCP and RFC 5424, the least severe
// first.
func LogLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// Severity returns the index of a level among LogLevels; -1 if it is none.
func Severity(level string) int { return slices.Index(LogLevels(), level) }
