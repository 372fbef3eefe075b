package mcp

import (
	"bytes"
	"encoding/json"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/tool"
)

const (
	maxLogs    = 1_000    // that are passed on in one call
	maxLogData = 16 << 10 // bytes
	maxLogName = 128      // bytes of a logger's name
)

// onLog passes a log message on. It must have come in the response to an attempt, because
// a log message does not say to which call it belongs.
func (l *listener) onLog(m tool.Log) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log == nil || l.token == "" || l.logs >= maxLogs || tool.Severity(m.Level) < tool.Severity(l.level) {
		return
	}
	l.logs++
	if !callSafely(func() { l.log(m) }) {
		l.log = nil
	}
}

// readLog reads the parameters of a log notification.
func readLog(params json.RawMessage) (m tool.Log, ok bool) {
	members, ok := object(params)
	data := rawjson.MemberOf(params, "data") // which may be null
	if !ok || members["level"] == nil || !optionalString(members["level"], &m.Level) || tool.Severity(m.Level) < 0 ||
		!optionalString(members["logger"], &m.Logger) || len(m.Logger) > maxLogName ||
		data == nil || len(data) > maxLogData {
		return tool.Log{}, false
	}
	m.Data = bytes.Clone(data) // the rest of the message is not kept
	return m, true
}
