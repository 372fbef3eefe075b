package mcp

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/callgate/callgate/tool"
)

const (
	maxReports         = 10_000  // that are looked at in one call
	maxProgressMessage = 1 << 10 // bytes of a message
)

// onProgress takes a report of a server's. One that cannot be used is as if it had not
// come: it is of no other use than to be passed on.
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

// progressReport is what a server says of how far it is. Its token is not empty.
type progressReport struct {
	tool.Progress
	token string
}

// readProgress reads the parameters of a notification.
func readProgress(params json.RawMessage) (r progressReport, ok bool) {
	members, ok := object(params)
	if !ok || members["progressToken"] == nil || !optionalString(members["progressToken"], &r.token) || r.token == "" ||
		members["progress"] == nil || !readFinite(members["progress"], &r.Done) ||
		!readFinite(nonNull(members["total"]), &r.Total) || !optionalString(nonNull(members["message"]), &r.Message) {
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
	cut := maxProgressMessage - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// readFinite reads a number that may be absent, and that is not beyond all bounds.
func readFinite(b json.RawMessage, into *float64) bool {
	if b == nil {
		return true
	}
	n, err := strconv.ParseFloat(string(b), 64)
	*into = n
	return isNumber(b) && err == nil
}
