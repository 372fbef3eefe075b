package mcp

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/wrapper"
)

const (
	methodSetLevel = "logging/setLevel"
	metaLevel      = "io.modelcontextprotocol/logLevel"
	paramLevel     = "level"
)

// badLevel is the fault of something that is no level of logs.
func badLevel(name string) *fault {
	return faulty(codeParams, "%q must be one of %s.", name, strings.Join(gateway.LogLevels(), ", "))
}

func isLevel(v any) bool { return slices.Contains(gateway.LogLevels(), text(v)) }

// setLevel remembers from which level on a client of before 2026-07-28 is told what its
// tools log.
func (f *Face) setLevel(r asked) *answer {
	for name := range r.params {
		if name != paramLevel && name != "_meta" {
			return &answer{fault: faulty(codeParams, "There is an unknown parameter %s.", parser.Quote(name))}
		}
	}
	if !isLevel(r.params[paramLevel]) {
		return &answer{fault: badLevel("params." + paramLevel)}
	}
	f.levels.set(r.admission.Principal(), r.session, text(r.params[paramLevel]))
	return &answer{result: object{}}
}

// logs has the client of a call told what its tool logs, where it has said from which
// level on, and can be told. Of 2026-07-28 the call itself says so.
func (f *Face) logs(r asked, d *gateway.Dialogue) {
	level := text(r.meta()[metaLevel])
	if !r.modern {
		level = f.levels.of(r.admission.Principal(), r.session)
	}
	if level != "" && r.told != nil {
		d.Log, d.LogLevel = r.told.log, level
	}
}

// log takes what a tool logs. It never waits.
func (r *reporter) log(l gateway.Log) {
	params := object{"level": l.Level, "data": l.Data}
	if l.Logger != "" {
		params["logger"] = wrapper.EscapeText(l.Logger)
	}
	line, err := wrapper.Marshal(object{"jsonrpc": "2.0", "method": "notifications/message", "params": params})
	if err != nil {
		return // what is no JSON says nothing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(line)
}
