package events

import (
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

const (
	maxLogs     = 1_000    // that are passed on in one call
	maxLog      = 16 << 10 // bytes of one message, as the tool wrote it and after escaping
	maxLogger   = 128      // bytes of a logger's name
	maxLogDepth = 64
)

// logged passes on a valid log of the requested level or above; anything else is dropped.
func (t *Notifier) logged(l tool.Log) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.log == nil || t.logs >= maxLogs || tool.Severity(l.Level) < t.level || len(l.Data) > maxLog {
		return
	}
	if parser.CheckValue(l.Data, maxLogDepth) != nil {
		return
	}
	left, ok := t.pass(l.Data)
	if !ok {
		return
	}
	value, err := parser.ReadValue(left, maxLogDepth)
	if err != nil {
		return
	}
	if value, ok = escapeValue(value); !ok {
		return
	}
	data, err := wrapper.Marshal(value)
	if err != nil || len(data) > maxLog {
		return
	}
	t.logs++
	l = tool.Log{Level: l.Level, Logger: boundedText(t.passText(l.Logger), maxLogger), Data: data}
	if !delivered(func() { t.log(l) }) {
		t.log = nil
	}
}

// escapeValue returns a JSON value with hidden characters escaped in all texts and names.
// ok is false if two names are then equal.
func escapeValue(value any) (_ any, ok bool) {
	switch v := value.(type) {
	case string:
		return wrapper.EscapeText(v), true
	case []any:
		for i := range v {
			if v[i], ok = escapeValue(v[i]); !ok {
				return nil, false
			}
		}
		return v, true
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			if object[wrapper.EscapeText(name)], ok = escapeValue(member); !ok {
				return nil, false
			}
		}
		return object, len(object) == len(v)
	}
	return value, true
}
