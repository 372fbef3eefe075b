package mcp

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/callgate/callgate/tool"
)

const (
	maxReports         = 10_000  // that are looked at in one call
	maxProgressMessage = 1 << 10 // bytes of a message
)

// onProgress passes a progress report on, or drops it if it cannot be used.
func (l *listener) onProgress(r progressReport) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.progress == nil || r.token != l.token || l.reports >= maxReports {
		return
	}
	l.reports++
	if r.Done <= l.last {
		return
	}
	l.last = r.Done
	if !callSafely(func() { l.progress(r.Progress) }) {
		l.progress = nil
	}
}

// progressReport is a progress report of a server. Its token is not empty.
type progressReport struct {
	tool.Progress
	token string
}

// readProgress reads the parameters of a progress notification.
func readProgress(params json.RawMessage) (r progressReport, ok bool) {
	members, ok := object(params)
	if !ok || members["progressToken"] == nil || !optionalString(members["progressToken"], &r.token) || r.token == "" ||
		members["progress"] == nil || !readFinite(members["progress"], &r.Done) ||
		!readFinite(members["total"], &r.Total) || !optionalString(members["message"], &r.Message) {
		return progressReport{}, false
	}
	r.Message = truncate(r.Message)
	return r, true
}

// truncate cuts a message, which is valid UTF-8, where a code point ends.
func truncate(s string) string {
	if len(s) <= maxProgressMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxProgressMessage-len("…")], "") + "…"
}

// readFinite reads an optional finite number.
func readFinite(b json.RawMessage, into *float64) bool {
	if b == nil {
		return true
	}
	n, err := strconv.ParseFloat(string(b), 64)
	*into = n
	return isNumber(b) && err == nil
}
