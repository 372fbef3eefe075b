package mcp

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/callgate/callgate/engine"
)

const (
	maxReports     = 10_000  // that are looked at in one call
	maxReportWords = 1 << 10 // bytes of a message
)

// hearReport takes a report of a server's. One that cannot be used is as if it had not
// come: it is of no other use than to be passed on.
func (l *listener) hearReport(r report) {
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
	if !told(func() { l.progress(r.Progress) }) {
		l.progress = nil
	}
}

// report is what a server says of how far it is. Its token is not empty.
type report struct {
	engine.Progress
	token string
}

// readReport reads the parameters of a notification.
func readReport(params json.RawMessage) (r report, ok bool) {
	members, ok := object(params)
	if !ok || members["progressToken"] == nil || !optionalString(members["progressToken"], &r.token) || r.token == "" ||
		members["progress"] == nil || !finite(members["progress"], &r.Done) ||
		!finite(present(members["total"]), &r.Total) || !optionalString(present(members["message"]), &r.Message) {
		return report{}, false
	}
	r.Message = shorten(r.Message)
	return r, true
}

// shorten cuts a message, which is valid UTF-8, where a code point ends.
func shorten(s string) string {
	if len(s) <= maxReportWords {
		return s
	}
	cut := maxReportWords - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// finite reads a number that may be absent, and that is not beyond all bounds.
func finite(b json.RawMessage, into *float64) bool {
	if b == nil {
		return true
	}
	n, err := strconv.ParseFloat(string(b), 64)
	*into = n
	return number(b) && err == nil
}
