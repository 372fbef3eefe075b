package mcp

import (
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// setLevel stores the least severe level of logs that a client older than 2026-07-28 gets.
func (f *Face) setLevel(r request) *response {
	if fault := r.checkParams("level"); fault != nil {
		return &response{fault: fault}
	}
	if !isLevel(r.params["level"]) {
		return &response{fault: badLevel("params.level")}
	}
	f.logLevels.set(r.admission.Principal(), r.session, stringOf(r.params["level"]))
	return &response{result: object{}}
}

// subscribeLogs sends the logs of a call's tool to its client, if the client has set a level
// and its connection can carry notifications. A call of 2026-07-28 states the level itself.
func (f *Face) subscribeLogs(r request, d *elicit.Dialogue) {
	level := stringOf(r.meta()[wire.MetaLevel])
	if !r.modern {
		level = f.logLevels.get(r.admission.Principal(), r.session)
	}
	if level != "" && r.notifier != nil {
		d.Log, d.LogLevel = r.notifier.log, level
	}
}

// log sends a log message to the client. It never blocks.
func (r *notifier) log(l tool.Log) {
	params := object{"level": l.Level, "data": l.Data}
	if l.Logger != "" {
		params["logger"] = wrapper.EscapeText(l.Logger)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notify(wire.NoticeMessage, params)
}
