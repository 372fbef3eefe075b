package mcp_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/tool"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Replies of servers.
const (
	modern      = `result {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}`
	noMethod    = `error {"code":-32601,"message":"no such method"}`
	initialized = `result {"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"x","version":"1"}}`
	list        = `result {"resultType":"complete","tools":[{"name":"echo","inputSchema":{}}],"ttlMs":0,"cacheScope":"private"}`
	said        = `result {"resultType":"complete","content":[{"type":"text","text":"hi"}]}`
)

// modernScript and legacyScript are servers of the revisions, with other replies for some
// methods: pairs of a method and its replies, of which each is a line of its own with
// the events of a stream parted by a tab.
func modernScript(others ...string) *scripted {
	return scriptOf(map[string][]string{"server/discover": {modern}}, others)
}

func legacyScript(others ...string) *scripted {
	return scriptOf(map[string][]string{"server/discover": {noMethod}}, others)
}

func scriptOf(replies map[string][]string, others []string) *scripted {
	replies["initialize"], replies["ping"] = []string{initialized}, []string{"result {}"}
	replies["tools/list"], replies["tools/call"] = []string{list}, []string{said}
	replies["subscriptions/listen"], replies["GET"] = []string{"stream"}, []string{"stream"}
	for i := 0; i < len(others); i += 2 {
		replies[others[i]] = nil
		for reply := range strings.SplitSeq(others[i+1], "\n") {
			replies[others[i]] = append(replies[others[i]], strings.ReplaceAll(reply, "\t", "\n"))
		}
	}
	return &scripted{Replies: replies, Session: "session-1"}
}

const (
	pages = `result {"tools":[{"name":"echo","inputSchema":{}}],"nextCursor":"ü <\\\"&> 2"}
result {"tools":[{"name":"<größe>","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"Count"}}}}]}`
	asking = `line {"jsonrpc":"2.0","id":"q-1","method":"ping"}	line {"jsonrpc":"2.0","id":7,"method":"roots/list"}	` + said
)

// everything is a call with all that a request can hold.
func everything(c *tool.Call) {
	state := "<state> \u2028"
	c.Run.Tool = "<größe>"
	c.Arguments = []byte("{ \"region\":\"größe\", \"n\":1e2,\r\n \"a\": \"<&>\\u0041\" }")
	c.QuestionKinds = []string{"form", "url", "sampling", "roots"}
	c.State, c.Answers = &state, map[string]json.RawMessage{"b": []byte(`{ "action":"decline" }`), "<a>": []byte(`{"action":"accept","content":{}}`)}
	c.Progress, c.Log, c.LogLevel = func(tool.Progress) {}, func(tool.Log) {}, "info"
}

func read(c *tool.Call) { c.Effect = "read" }

// short is a call that is given up soon.
func short(c *tool.Call) { c.Run.Timeout = 3 * time.Second }

// conversation is what a client has with a server.
type conversation struct {
	script   func() *scripted
	listens  bool   // the client wants to hear of changed lists
	only     string // the only transport; empty for both
	converse func(r *recording)
}

// recorded are the conversations, by the names of their files.
var recorded = map[string]conversation{
	"modern": {
		script: func() *scripted { return modernScript("tools/list", pages) },
		converse: func(r *recording) {
			r.call(nil)
			r.call(everything)
			r.list()
		},
	},
	"modern-listens": {script: func() *scripted { return modernScript() }, listens: true, converse: func(r *recording) {
		r.call(read)
		if !r.stdio {
			r.until(4)
		}
	}},
	"modern-announces-nothing": {
		script: func() *scripted {
			return modernScript("server/discover", `result {"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`)
		},
		listens: true, converse: func(r *recording) { r.call(read) },
	},
	"modern-is-timed-out": {script: func() *scripted { return modernScript("tools/call", "hang\n"+said) }, converse: func(r *recording) {
		r.list()
		r.call(short)
		r.until(4)
		r.call(nil)
	}},
	"modern-caller-leaves": {
		script: func() *scripted { return modernScript("tools/call", "hang\n"+said) },
		converse: func(r *recording) {
			r.list()
			r.leave(1)
			r.until(4)
			r.call(nil)
		},
	},
	"legacy": {
		script: func() *scripted { return legacyScript("tools/list", pages) },
		converse: func(r *recording) {
			r.call(nil)
			r.list()
			r.call(func(c *tool.Call) { everything(c); c.State, c.Answers = nil, nil })
			r.call(everything)
			r.client.Age(time.Minute)
			r.call(read)
		},
	},
	"legacy-listens": {script: func() *scripted { return legacyScript() }, listens: true, converse: func(r *recording) {
		r.call(read)
		if !r.stdio {
			r.until(5)
		}
	}},
	"legacy-without-session": {
		script: func() *scripted {
			s := legacyScript()
			s.Session = ""
			return s
		},
		only: "http", converse: func(r *recording) { r.call(nil); r.client.Age(time.Minute); r.call(nil) },
	},
	"legacy-is-timed-out": {script: func() *scripted { return legacyScript("tools/call", "hang\n"+said) }, converse: func(r *recording) {
		r.list()
		r.call(short)
		r.until(6)
		r.call(nil)
	}},
	"legacy-caller-leaves": {script: func() *scripted { return legacyScript("tools/call", "hang\n"+said) }, converse: func(r *recording) {
		r.list()
		r.leave(1)
		r.until(6)
		r.call(nil)
	}},
	"legacy-list-is-timed-out": {script: func() *scripted { return legacyScript("tools/list", list+"\nhang\n"+list) }, converse: func(r *recording) {
		r.list()
		r.server.Timeout = 3 * time.Second
		r.list()
		r.server.Timeout = patient
		r.until(6)
		r.list()
	}},
	"legacy-server-asks": {script: func() *scripted { return legacyScript("tools/call", asking) }, converse: func(r *recording) { r.call(nil); r.until(6) }},
	"legacy-forgets-the-session": {script: func() *scripted {
		return legacyScript("tools/call", said+"\nstatus 404\n"+said, "ping", "status 404\nresult {}")
	}, only: "http", converse: func(r *recording) { r.call(read); r.call(read) }},
	"legacy-forgets-before-calls": {script: func() *scripted { return legacyScript("ping", "status 404") }, only: "http", converse: func(r *recording) { r.call(nil); r.client.Age(time.Minute); r.call(nil) }},
	"legacy-refuses-initialized":  {script: func() *scripted { return legacyScript("notifications/initialized", "status 500") }, only: "http", converse: func(r *recording) { r.call(nil) }},
	"legacy-2025-03-26":           greeting("initialize", `result {"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`),
	"legacy-2024-11-05":           greeting("initialize", `result {"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}`),
	"legacy-of-tomorrow":          greeting("initialize", `result {"protocolVersion":"2099-01-01","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`),
	"legacy-modern-after-all":     greeting("initialize", `result {"protocolVersion":"2026-07-28","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`),
	"initialize-garbage":          greeting("initialize", `line SECRET`),
	"initialize-no-object":        greeting("initialize", `result ["2025-11-25"]`),
	"initialize-error":            greeting("initialize", `error {"code":-32602,"message":"SECRET","data":{}}`),
	"initialize-closes":           greeting("initialize", `close`),
	"initialize-hangs":            greeting("initialize", `hang`),
	"discover-refuses-version":    greeting("server/discover", `error {"code":-32022,"message":"x","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}`),
	"discover-refuses-its-own":    greeting("server/discover", `error {"code":-32022,"message":"x","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}`),
	"discover-is-legacy":          greeting("server/discover", `result {"resultType":"complete","supportedVersions":["2025-11-25"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`),
	"discover-no-versions":        greeting("server/discover", `result {}`),
	"discover-no-object":          greeting("server/discover", `result 7`),
	"discover-version-no-list":    greeting("server/discover", `result {"supportedVersions":"2026-07-28","capabilities":{}}`),
	"discover-garbage":            greeting("server/discover", `line SECRET`),
	"discover-closes":             greeting("server/discover", `close`),
	"discover-hangs":              greeting("server/discover", `hang`),
}

// greeting is a conversation with a server of the older revisions that replies to one
// method of the greeting in a way of its own.
func greeting(method, replies string) conversation {
	return conversation{
		script: func() *scripted { return legacyScript(method, replies) },
		converse: func(r *recording) {
			// A line of its own is passed over, so that a program with nothing else says nothing.
			silent := replies == "hang" || replies == "line SECRET" && r.stdio && method == "initialize"
			switch {
			case !silent, method == "server/discover": // it is over after some seconds
				r.call(nil)
			default:
				r.leave(2)
			}
		},
	}
}

// leave calls a tool and leaves once the server has got a number of messages.
func (r *recording) leave(n int) {
	ctx, disconnect := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	r.mu.Lock()
	before := r.count
	r.mu.Unlock()
	go func() {
		defer close(done)
		r.callWith(ctx, nil)
	}()
	r.until(before + n)
	disconnect()
	<-done
}

// TestRecording compares every byte of every message that is sent in a conversation, and
// what the caller is told, with a file of testdata/recording. -update writes them anew.
func TestRecording(t *testing.T) {
	t.Parallel()
	for name, c := range recorded {
		for _, transport := range []string{"http", "stdio"} {
			if c.only != "" && c.only != transport {
				continue
			}
			t.Run(name+"/"+transport, func(t *testing.T) {
				t.Parallel()
				r := record(t, c.script(), transport == "stdio", c.listens)
				c.converse(r)
				compare(t, filepath.Join("testdata", "recording", name+"."+transport), r.end())
			})
		}
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("sent\n%s\nwant\n%s", got, want)
	}
}
