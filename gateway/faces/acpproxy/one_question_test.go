package acpproxy_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
)

// TestOneQuestionForOneEdit: a user who has approved an edit of the agent is not asked about the write by
// which it is made, and about any other write.
func TestOneQuestionForOneEdit(t *testing.T) {
	const (
		whole = `{"type":"diff","path":"/w/a","oldText":"x b x\n","newText":"new\n"}`
		part  = `{"type":"diff","path":"/w/a","oldText":"b","newText":"c"}`
		fresh = `{"type":"diff","path":"/w/a","newText":"new\n"}`
		read  = `{"content":"x b x\n"}`
	)
	missing := func() answer { return fails(wire.CodeNotFound) }
	for name, c := range map[string]struct {
		diffs   string
		reads   answer // nil: says(read)
		user    wire.OptionKind
		path    string
		content string
		files   func(map[string]string)
		client  string // its capabilities
		writes  int    // 0: once
		turn    bool   // the write comes in the next turn
		asked   int
	}{
		"the whole file":            {diffs: whole, content: `new\n`, asked: 1},
		"a part of it":              {diffs: part, content: `x c x\n`, asked: 1},
		"two parts":                 {diffs: part + `,{"type":"diff","path":"/w/a","oldText":"c","newText":"d"}`, content: `x d x\n`, asked: 1},
		"a new file":                {diffs: fresh, reads: missing(), content: `new\n`, asked: 1},
		"an empty file":             {diffs: fresh, reads: says(`{"content":""}`), content: `new\n`, asked: 1},
		"a file nobody can read":    {diffs: fresh, reads: fails(jsonrpc.CodeInternal), content: `new\n`, asked: 1},
		"an editor that reads none": {diffs: fresh, client: `{"fs":{"writeTextFile":true}}`, content: `new\n`, asked: 1},
		"for an hour":               {diffs: whole, user: wire.AllowAlways, content: `new\n`, writes: 2, asked: 1},

		"another content":          {diffs: whole, content: `new\nand more\n`, asked: 2},
		"another part":             {diffs: part, content: `x c X\n`, asked: 2},
		"another path":             {diffs: whole, path: "/w/b", content: `new\n`, asked: 2},
		"a second write":           {diffs: whole, content: `new\n`, writes: 2, asked: 2},
		"a later turn":             {diffs: whole, content: `new\n`, turn: true, asked: 2},
		"a part that stands twice": {diffs: `{"type":"diff","path":"/w/a","oldText":"x","newText":"y"}`, content: `y b x\n`, asked: 2},
		"a part that overlaps":     {diffs: `{"type":"diff","path":"/w/a","oldText":"aa","newText":"b"}`, reads: says(`{"content":"aaa"}`), content: `ba`, asked: 2},
		"another text before":      {diffs: `{"type":"diff","path":"/w/a","oldText":"other\n","newText":"new\n"}`, content: `new\n`, asked: 2},
		"shown as a new file":      {diffs: fresh, content: `new\n`, asked: 2},
		"a text nobody can read":   {diffs: whole, reads: fails(jsonrpc.CodeInternal), content: `new\n`, asked: 2},
		"no diff":                  {diffs: `{"type":"content","content":{"type":"text","text":"new"}}`, content: `new\n`, asked: 2},
		"a permission denied":      {diffs: whole, user: wire.RejectOnce, content: `new\n`, asked: 2},
		"by another rule": {diffs: whole, content: `new\n`, asked: 2, files: func(f map[string]string) {
			f["approvals.yaml"] = "rules: {mine: {by: caller}, writes: {by: caller}}\nwait: 0s\n"
			f["policy.csv"] += "p, Analyst, *, acp.fs.write, , ask:writes\n"
		}},
		"a secret": {diffs: whole, content: `new\n`, asked: 2, files: func(f map[string]string) {
			f["tools.yaml"] = strings.Replace(files()["tools.yaml"], "content: {type: string}", "content: {type: string, x-secret: true}", 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.user == "" {
				c.user = wire.AllowOnce
			}
			if c.reads == nil {
				c.reads = says(read)
			}
			if c.path == "" {
				c.path = "/w/a"
			}
			f := asksForAll()
			if c.files != nil {
				c.files(f)
			}
			w := newWaits()
			x := openProxy(t, plan{files: f, agent: map[string]answer{wire.MethodSessionPrompt: w.prompt},
				editor: map[string]answer{wire.MethodRequestPermission: chooses(c.user), wire.MethodReadTextFile: c.reads}})
			x.begin(c.client)
			done := x.prompt()
			x.must(x.agent, wire.MethodRequestPermission, `{"sessionId":"s1","toolCall":{"toolCallId":"c1","title":"Edit a","kind":"edit","content":[`+c.diffs+`]},`+
				`"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}`)
			if c.turn {
				w.answer <- ended
				done()
				done = x.prompt()
			}
			for range max(c.writes, 1) {
				x.ask(x.agent, wire.MethodWriteTextFile, `{"sessionId":"s1","path":"`+c.path+`","content":"`+c.content+`"}`)
			}
			if got := len(x.asked()); got != c.asked {
				t.Errorf("the user was asked %d times: %q", got, x.editorGot(wire.MethodRequestPermission))
			}
			w.answer <- ended
			done()
		})
	}
}

// TestDiffOfAQuestion: the user who is asked about a write sees the text that it replaces, where the editor
// gives it; of a new file there is none.
func TestDiffOfAQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		reads   answer
		client  string
		content string
	}{
		"a file":           {says(`{"content":"old"}`), "", `[{"type":"diff","path":"/w/a","oldText":"old","newText":"new"}]`},
		"a new file":       {fails(wire.CodeNotFound), "", `[{"type":"diff","path":"/w/a","newText":"new"}]`},
		"one not readable": {fails(jsonrpc.CodeInternal), "", `[{"type":"diff","path":"/w/a","newText":"new"},{"type":"content","content":{"type":"text","text":"The text that this replaces could not be read, and is not shown."}}]`},
		"no reading":       {says(`{"content":"old"}`), `{"fs":{"writeTextFile":true}}`, `[{"type":"diff","path":"/w/a","newText":"new"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaits()
			x := openProxy(t, plan{files: asksForAll(), agent: map[string]answer{wire.MethodSessionPrompt: w.prompt},
				editor: map[string]answer{wire.MethodRequestPermission: chooses(wire.AllowOnce), wire.MethodReadTextFile: c.reads}})
			x.begin(c.client)
			done := x.prompt()
			x.must(x.agent, wire.MethodWriteTextFile, `{"sessionId":"s1","path":"/w/a","content":"new"}`)
			if asked := x.asked(); len(asked) != 1 || string(asked[0].ToolCall.Content) != c.content {
				t.Errorf("%s; expected %s", asked[0].ToolCall.Content, c.content)
			}
			w.answer <- ended
			done()
		})
	}
}

// TestQuestionOfAReportedCall: a question about a file or a command is one of the tool call that the agent
// has reported for it, with nothing left of what the agent has shown, or of one that the editor is told of
// before and after.
func TestQuestionOfAReportedCall(t *testing.T) {
	const writes = `{"sessionId":"s1","path":"/w/a","content":"new"}`
	call := func(id, kind, members string) string {
		return `{"sessionUpdate":"tool_call","toolCallId":"` + id + `","title":"LIE","kind":"` + kind + `","content":[{"type":"content","content":{"type":"text","text":"LIE"}}]` + members + `}`
	}
	const a, b = `,"locations":[{"path":"/w/a"}]`, `,"locations":[{"path":"/w/b"}]`
	for name, c := range map[string]struct {
		reported       []string
		method, params string
		user           wire.OptionKind
		id             string // empty: one of the gateway
		status         string
	}{
		"a file":                {reported: []string{call("c1", "edit", a)}, method: wire.MethodWriteTextFile, params: writes, id: "c1"},
		"one of two":            {reported: []string{call("c1", "edit", b), call("c2", "edit", a)}, method: wire.MethodWriteTextFile, params: writes, id: "c2"},
		"one without a file":    {reported: []string{call("c1", "edit", "")}, method: wire.MethodWriteTextFile, params: writes, id: "c1"},
		"a command":             {reported: []string{call("c1", "execute", `,"rawInput":{"command":"rm -r x"}`)}, method: wire.MethodTerminalCreate, params: runsRM, id: "c1"},
		"its program":           {reported: []string{call("c1", "execute", `,"rawInput":{"command":"rm"}`)}, method: wire.MethodTerminalCreate, params: runsRM, id: "c1"},
		"one without a command": {reported: []string{call("c1", "execute", "")}, method: wire.MethodTerminalCreate, params: runsRM, id: "c1"},
		"a read":                {reported: []string{call("c1", "read", a)}, method: wire.MethodReadTextFile, params: `{"sessionId":"s1","path":"/w/a"}`, id: "c1"},
		"none":                  {method: wire.MethodWriteTextFile, params: writes, status: "completed"},
		"none, and refused":     {method: wire.MethodWriteTextFile, params: writes, user: wire.RejectOnce, status: "failed"},
		"a command of none":     {method: wire.MethodTerminalCreate, params: runsRM, status: "completed"},
		"another file":          {reported: []string{call("c1", "edit", b)}, method: wire.MethodWriteTextFile, params: writes, status: "completed"},
		"another kind":          {reported: []string{call("c1", "read", a)}, method: wire.MethodWriteTextFile, params: writes, status: "completed"},
		"another command":       {reported: []string{call("c1", "execute", `,"rawInput":{"command":"ls"}`)}, method: wire.MethodTerminalCreate, params: runsRM, status: "completed"},
		"two of the file":       {reported: []string{call("c1", "edit", a), call("c2", "edit", a)}, method: wire.MethodWriteTextFile, params: writes, status: "completed"},
		"one that has ended":    {reported: []string{call("c1", "edit", a), `{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"failed"}`}, method: wire.MethodWriteTextFile, params: writes, status: "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.user == "" {
				c.user = wire.AllowOnce
			}
			w := newWaits()
			x := openProxy(t, plan{files: asksForAll(), agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}, editor: map[string]answer{wire.MethodRequestPermission: chooses(c.user)}})
			x.begin()
			done := x.prompt()
			for _, u := range c.reported {
				x.update(u)
			}
			x.eventually("the reports pass", func() bool { return len(x.editorGot(wire.MethodSessionUpdate)) == len(c.reported) })
			x.ask(x.agent, c.method, c.params)
			asked := x.asked()
			if len(asked) != 1 {
				t.Fatalf("the user was asked %d times", len(asked))
			}
			q := asked[0].ToolCall
			if q.Title == nil || *q.Title == "LIE" || q.Content == nil || q.Locations == nil || strings.Contains(string(q.Content), "LIE") {
				t.Errorf("%s", x.editorGot(wire.MethodRequestPermission)[0])
			}
			if c.id != "" {
				if q.ToolCallID != c.id {
					t.Errorf("the question is of the call %q", q.ToolCallID)
				}
			} else {
				x.eventually("the call is closed", func() bool { return len(x.editorGot(wire.MethodSessionUpdate)) == len(c.reported)+2 })
			}
			var own []string
			for _, params := range x.editorGot(wire.MethodSessionUpdate)[len(c.reported):] {
				var n struct {
					Update struct{ SessionUpdate, ToolCallID, Status string }
				}
				if err := json.Unmarshal([]byte(params), &n); err != nil || n.Update.ToolCallID != q.ToolCallID {
					t.Errorf("%s", params)
				}
				own = append(own, n.Update.SessionUpdate+" "+n.Update.Status)
			}
			if got, want := strings.Join(own, ", "), map[bool]string{false: "tool_call pending, tool_call_update " + c.status, true: ""}[c.id != ""]; got != want {
				t.Errorf("the editor was told %q; expected %q", got, want)
			}
			w.answer <- ended
			done()
		})
	}
}

// fails answers with an error.
func fails(code int) answer {
	return func(context.Context, json.RawMessage) (any, *jsonrpc.Error) { return nil, jsonrpc.Errorf(code, "no") }
}
