package acp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/acptest"
)

// TestACP40Calls: a call is reported before it runs, with its kind, name, places and arguments,
// and its status changes to in_progress and completed (ACP-40 to 44, 52, 54, 55).
func TestACP40Calls(t *testing.T) {
	r, s := begun(t)
	r.Put("/w/a.go", "package a\n")
	stop, calls := r.prompt(s,
		acptest.Calling("acp.fs.read", `{"path":"/w/a.go","line":1}`),
		acptest.Calling("acp.fs.write", `{"path":"/w/b.go","content":"package b\n"}`),
		acptest.Calling("acp.terminal.create", `{"command":"make","args":["-s"],"cwd":"/w"}`))
	if stop != "end_turn" || len(calls) != 3 || !strings.HasSuffix(r.Text(s), acptest.Afterwards) {
		t.Fatalf("%s, %d calls, %q", stop, len(calls), r.Text(s))
	}
	for i, want := range []struct{ name, kind, place, output string }{
		{"acp.fs.read", "read", "/w/a.go", `package a\\n`}, {"acp.fs.write", "edit", "/w/b.go", ""}, {"acp.terminal.create", "execute", "", `ok\\n`},
	} {
		c := calls[i]
		if c.Name != want.name || c.Kind != want.kind || !strings.Contains(string(c.Locations), want.place) || c.Title == "" || statuses(c) != "[pending in_progress completed]" {
			t.Errorf("%+v", c)
		}
		if !strings.Contains(string(c.RawInput), want.place) || !strings.Contains(strings.ReplaceAll(string(c.RawOutput), `\n`, `\\n`), want.output) {
			t.Errorf("%s: %s becomes %s", c.Name, c.RawInput, c.RawOutput)
		}
	}
	if content, _ := r.File("/w/b.go"); content != "package b\n" || !slices.Equal(r.Commands(), []string{"make -s"}) {
		t.Errorf("%q %q", content, r.Commands())
	}
	if string(calls[1].RawInput) != `{"path":"/w/b.go","content":"package b\n"}` {
		t.Errorf("the arguments are shown as %s", calls[1].RawInput)
	}
	if !slices.ContainsFunc(r.Got("session/update"), func(m acptest.Message) bool {
		return strings.Contains(string(m.Params), calls[2].ToolCallID) && strings.Contains(string(m.Params), `"content":[{"type":"terminal","terminalId":"`)
	}) {
		t.Error("the terminal of the command is not shown")
	}
	before(t, r, calls[0].ToolCallID, "fs/read_text_file")
	before(t, r, calls[1].ToolCallID, "fs/write_text_file")
	before(t, r, calls[2].ToolCallID, "terminal/create")
}

// before holds that a call was reported as running before a request of the agent.
func before(t *testing.T, r *reporter, id, method string) {
	t.Helper()
	shown := slices.IndexFunc(r.Lines(), func(e acptest.Entry) bool {
		return strings.Contains(e.Line, id) && strings.Contains(e.Line, "in_progress")
	})
	asked := slices.IndexFunc(r.Lines(), func(e acptest.Entry) bool { return e.Method == method && e.Kind == "request" })
	if shown < 0 || asked < shown {
		t.Errorf("%s: reported at %d, asked at %d", method, shown, asked)
	}
}

// TestACP53Diff: a write is shown, at first and once it has run, as a diff of an absolute path, with the
// text that it replaces; of a new file there is none. What the editor cannot read is said to be missing,
// and a call that is refused reads nothing.
func TestACP53Diff(t *testing.T) {
	const unread = "could not be read"
	for name, c := range map[string]struct {
		path, old string // old: as JSON; empty: none
		reads     int
		unread    bool
		without   bool // the editor reads no files
	}{
		"a new file":        {path: "/w/b.go", reads: 1},
		"a file":            {path: "/w/old.go", old: `"old\n"`, reads: 1},
		"a relative path":   {path: "old.go", old: `"old\n"`, reads: 1},
		"an empty file":     {path: "/w/empty.go", old: `""`, reads: 1},
		"a large file":      {path: "/w/large.go", reads: 1, unread: true},
		"a path with ..":    {path: "/w/sub/../old.go", unread: true},
		"an editor without": {path: "/w/old.go", without: true},
		"a refused write":   {path: "/etc/passwd"},
	} {
		t.Run(name, func(t *testing.T) {
			r := openReporter(t, editorTools(t), nil)
			var capabilities json.RawMessage
			if c.without {
				capabilities = json.RawMessage(`{"fs":{"writeTextFile":true}}`)
			}
			r.Initialize(capabilities)
			s := r.Session("/w")
			for path, content := range map[string]string{"/w/old.go": "old\n", "/w/empty.go": "", "/w/large.go": strings.Repeat("x", 1<<20)} {
				r.Put(path, content)
			}
			_, calls := r.prompt(s, acptest.Calling("acp.fs.write", `{"path":"`+c.path+`","content":"new"}`))
			if len(calls) != 1 {
				t.Fatalf("%d calls", len(calls))
			}
			if got := len(r.Got("fs/read_text_file")); got != c.reads {
				t.Errorf("the editor read %d times", got)
			}
			if strings.HasPrefix(c.path, "/etc") {
				return
			}
			place := c.path
			if place == "old.go" {
				place = "/w/old.go"
			}
			want := `{"type":"diff","path":"` + place + `",`
			if c.old != "" {
				want += `"oldText":` + c.old + `,`
			}
			want += `"newText":"new"}`
			if got := string(calls[0].Content); !strings.Contains(got, want) || strings.Contains(got, unread) != c.unread {
				t.Errorf("%s; expected %s", got, want)
			}
			first := string(r.Got("session/update")[0].Params)
			for _, m := range r.Got("session/update") {
				if strings.Contains(string(m.Params), `"tool_call"`) {
					first = string(m.Params)
				}
			}
			if !strings.Contains(first, want) {
				t.Errorf("at first %s; expected %s", first, want)
			}
		})
	}
}

// TestACP55Secrets: a secret of the arguments is not shown.
func TestACP55Secrets(t *testing.T) {
	files := editorTools(t)
	r := openReporter(t, files, nil)
	r.Initialize(nil)
	s := r.Session("/w")
	const secret = "correct-horse-battery"
	if _, calls := r.prompt(s, acptest.Calling("login", `{"password":"`+secret+`"}`)); len(calls) != 1 || len(calls[0].RawInput) == 0 {
		t.Fatalf("%+v", calls)
	}
	for _, e := range r.Lines() {
		if strings.Contains(e.Line, secret) {
			t.Errorf("the secret is in %s", e.Line)
		}
	}
}

// TestACP56Refused: a call that is refused is failed with the refusal as its content, also where
// the model gets another chance; and nothing reaches the editor.
func TestACP56Refused(t *testing.T) {
	r, s := begun(t)
	for arguments, code := range map[string]string{
		`{"path":"/w/secret"}`: "permission_denied", `{"path":"/etc/passwd"}`: "boundary_violation", `{"path":5}`: "wrong_type",
	} {
		stop, calls := r.prompt(s, acptest.Calling("acp.fs.read", arguments))
		if stop != "end_turn" || len(calls) != 1 || calls[0].Status() != "failed" || slices.Contains(calls[0].Statuses, "completed") || slices.Contains(calls[0].Statuses, "in_progress") {
			t.Fatalf("%s: %s %+v", code, stop, calls)
		}
		var content []struct{ Content struct{ Text string } }
		if err := json.Unmarshal(calls[0].Content, &content); err != nil || len(content) == 0 || content[0].Content.Text == "" {
			t.Errorf("%s: the content is %s", code, calls[0].Content)
		}
		if heard := r.model.Requests(); len(heard) != 2 || !strings.Contains(heard[1], code) {
			t.Errorf("%s: the model reads %v", code, heard)
		}
	}
	if asked := r.Got("fs/read_text_file"); len(asked) > 0 {
		t.Errorf("the editor was asked: %v", asked)
	}
}

// TestACPStopReasons: each end of a turn has its reason, after its last update (ACP-29).
func TestACPStopReasons(t *testing.T) {
	r, s := begun(t)
	const broken = `{"tool":{"name":`
	for name, c := range map[string]struct {
		replies []acptest.Reply
		want    string
	}{
		"text":    {[]acptest.Reply{{Thought: "Hm.", Content: "Hello."}}, "end_turn"},
		"cut":     {[]acptest.Reply{{Content: "Hel", Finish: "length"}}, "max_tokens"},
		"broken":  {[]acptest.Reply{{Content: broken}, {Content: broken}, {Content: broken}}, "refusal"},
		"repairs": {[]acptest.Reply{{Content: broken}, {Content: "Hello."}}, "end_turn"},
	} {
		if stop, _ := r.prompt(s, c.replies...); stop != c.want {
			t.Errorf("%s: %s, want %s", name, stop, c.want)
		}
	}
	thoughts := 0
	for _, m := range r.Got("session/update") {
		if strings.Contains(string(m.Params), "agent_thought_chunk") {
			thoughts++
		}
	}
	if thoughts != 1 || !strings.Contains(r.Text(s), "Hello.") {
		t.Errorf("%d thoughts, %q", thoughts, r.Text(s))
	}
}

// TestACP45Permission: a rule that the caller answers asks the editor, with options that are
// read by their kind; what is not allowed does not run (ACP-45 to 48, 51).
func TestACP45Permission(t *testing.T) {
	for kind, want := range map[string]string{"allow_once": "completed", "allow_always": "completed", "reject_once": "failed", "": "failed"} {
		r, s := begun(t)
		var offered []string
		r.Choose(func(options []acptest.Option) string {
			for _, o := range options {
				offered = append(offered, o.Kind)
			}
			return acptest.OfKind(kind)(options)
		})
		_, calls := r.prompt(s, acptest.Calling("acp.terminal.create", `{"command":"rm","args":["a"]}`))
		if len(calls) != 1 || calls[0].Status() != want || (len(r.Commands()) == 1) != (want == "completed") {
			t.Errorf("%q: %+v %q", kind, calls, r.Commands())
		}
		if !slices.Contains(offered, "allow_once") || !slices.Contains(offered, "reject_once") || len(r.Got("session/request_permission")) != 1 {
			t.Errorf("%q: offered %v", kind, offered)
		}
		// The same call again: a yes that stands is not asked for again.
		asked := 2
		if kind == "allow_always" {
			asked = 1
		}
		if r.prompt(s, acptest.Calling("acp.terminal.create", `{"command":"rm","args":["a"]}`)); len(r.Got("session/request_permission")) != asked {
			t.Errorf("%q: asked %d times", kind, len(r.Got("session/request_permission")))
		}
	}
}

// TestACP47NotOffered: an option that was not offered allows nothing.
func TestACP47NotOffered(t *testing.T) {
	r := hostile(t)
	r.Initialize(nil)
	s := r.Session("/w")
	for _, id := range []string{"yes", "allow_once", "allow_always", "0"} {
		r.Choose(func([]acptest.Option) string { return id })
		if _, calls := r.prompt(s, acptest.Calling("acp.terminal.create", `{"command":"rm","args":["`+id+`"]}`)); len(calls) != 1 || calls[0].Status() != "failed" {
			t.Errorf("%s: %+v", id, calls)
		}
	}
	if len(r.Commands()) > 0 {
		t.Errorf("it ran: %q", r.Commands())
	}
}

// TestACP45Approvers: a call that approvers decide stays pending, names the rule, and is not
// run.
func TestACP45Approvers(t *testing.T) {
	r, s := begun(t)
	_, calls := r.prompt(s, acptest.Calling("acp.terminal.create", `{"command":"deploy"}`))
	if len(calls) != 1 || calls[0].Statuses[0] != "pending" || calls[0].Status() == "completed" || len(r.Commands()) > 0 || len(r.Got("session/request_permission")) > 0 {
		t.Errorf("%+v %q", calls, r.Commands())
	}
}

// TestACP61Cancel: a cancelled turn ends with cancelled and never with an error, whether the
// model is awaited or the user is asked; and the session continues.
func TestACP61Cancel(t *testing.T) {
	r, s := begun(t)
	r.model.Say(acptest.Reply{Thought: "Hm.", Hang: true})
	turn := r.Begin("session/prompt", acptest.TextPrompt(s, "Go on."))
	<-r.model.Hangs()
	r.Cancel(s)
	if result, err := r.End(turn); err != nil || string(result) != `{"stopReason":"cancelled"}` {
		t.Errorf("in front of the model: %s %v", result, err)
	}

	asked, s2 := begun(t)
	asked.Choose(asked.Ponder)
	asked.model.Say(acptest.Calling("acp.terminal.create", `{"command":"rm"}`))
	turn = asked.Begin("session/prompt", acptest.TextPrompt(s2, "Go on."))
	if _, ok := asked.Await(func(m acptest.Message) bool { return m.Method == "session/request_permission" }); !ok {
		t.Fatal("the user was not asked")
	}
	asked.Cancel(s2)
	if result, err := asked.End(turn); err != nil || string(result) != `{"stopReason":"cancelled"}` {
		t.Errorf("in front of the user: %s %v", result, err)
	}
	if len(asked.Commands()) > 0 {
		t.Errorf("it ran: %q", asked.Commands())
	}
	if stop := asked.Prompt(s2, "Hello."); stop != "end_turn" {
		t.Errorf("the next turn ends with %s", stop)
	}
}

// TestACP29OnePrompt: a second prompt beside the first is refused, and the first continues.
func TestACP29OnePrompt(t *testing.T) {
	r, s := begun(t)
	r.model.Say(acptest.Reply{Hang: true})
	turn := r.Begin("session/prompt", acptest.TextPrompt(s, "Go on."))
	<-r.model.Hangs()
	if _, err := r.Ask("session/prompt", acptest.TextPrompt(s, "And then?")); refusedWith(t, err) != "-32600" {
		t.Errorf("%v", err)
	}
	r.Cancel(s)
	if result, err := r.End(turn); err != nil || string(result) != `{"stopReason":"cancelled"}` {
		t.Errorf("%s %v", result, err)
	}
}

// TestACP64CancelRequest: a request that is cancelled gets a valid answer, and an unknown id is
// ignored.
func TestACP64CancelRequest(t *testing.T) {
	r, s := begun(t)
	r.model.Say(acptest.Reply{Hang: true})
	turn := r.Begin("session/prompt", acptest.TextPrompt(s, "Go on."))
	<-r.model.Hangs()
	r.Notify("$/cancel_request", map[string]any{"requestId": "nothing"})
	r.Notify("$/cancel_request", map[string]any{"requestId": turn})
	if result, err := r.End(turn); err == nil && string(result) != `{"stopReason":"cancelled"}` || err != nil && refusedWith(t, err) != "-32800" {
		t.Errorf("%s %v", result, err)
	}
}

// TestACP05Omitted: to a client that offers no files and no terminals the model is offered none,
// and a call of one is refused.
func TestACP05Omitted(t *testing.T) {
	r := openReporter(t, editorTools(t), nil)
	r.Initialize(raw(`{"fs":{"readTextFile":true}}`))
	s := r.Session("/w")
	_, calls := r.prompt(s, acptest.Calling("acp.fs.write", `{"path":"/w/a","content":""}`))
	if len(calls) != 1 || calls[0].Status() != "failed" || len(r.Got("fs/write_text_file")) > 0 {
		t.Errorf("%+v", calls)
	}
	if heard := r.model.Requests()[0]; !strings.Contains(heard, "acp.fs.read") || strings.Contains(heard, "acp.fs.write") || strings.Contains(heard, "acp.terminal.create") {
		t.Errorf("the model is offered %s", heard)
	}
}

// TestACP73Timeout: a command that does not end in its time is killed, its output is read, and
// its terminal is released (ACP-72).
func TestACP73Timeout(t *testing.T) {
	r, s := begun(t)
	r.Hang()
	_, calls := r.prompt(s, acptest.Calling("acp.terminal.create", `{"command":"sleep"}`))
	if len(calls) != 1 || calls[0].Status() != "failed" || len(r.Got("terminal/kill")) != 1 || len(r.Got("terminal/output")) != 1 || len(r.Got("terminal/release")) != 1 {
		t.Errorf("%+v: %d kills, %d releases", calls, len(r.Got("terminal/kill")), len(r.Got("terminal/release")))
	}
	_ = r.end()
	r.Ended()
}

// TestACP24LoadACP25Resume: a session is shown whole when it is loaded, and not at all when it is
// resumed, also by another process; both go on with what was said. It is listed, and no longer
// once it is deleted (ACP-27).
func TestACP24LoadACP25Resume(t *testing.T) {
	r, s := begun(t)
	r.Put("/w/a", "text")
	var list struct {
		Sessions []struct{ SessionID, Cwd string }
	}
	if r.prompt(s, acptest.Calling("acp.fs.read", `{"path":"/w/a"}`), acptest.Reply{Content: "I have read it."}); r.end() != nil {
		t.Fatal("the connection ends with an error")
	}
	for _, method := range []string{"session/load", "session/resume"} {
		r.reconnect(t)
		r.Initialize(nil)
		r.Call(method, map[string]any{"sessionId": s, "cwd": "/w", "mcpServers": []any{}}, nil)
		shown := r.Text(s) == "I have read it." && len(r.Calls(s)) == 1 && r.Calls(s)[0].Status() == "completed"
		if replays := method == "session/load"; shown != replays || !replays && len(r.Got("session/update")) > 0 {
			t.Errorf("%s: shown: %v: %q", method, shown, r.Got("session/update"))
		}
		r.model.Say()
		if r.Prompt(s, "And then?"); !strings.Contains(r.model.Requests()[0], "I have read it.") {
			t.Errorf("%s: the model reads %s", method, r.model.Requests()[0])
		}
		if r.Call("session/list", raw(`{}`), &list); len(list.Sessions) != 1 || list.Sessions[0].SessionID != s || list.Sessions[0].Cwd != "/w" {
			t.Errorf("%s: listed: %+v", method, list)
		}
		_ = r.end()
	}
	r.reconnect(t)
	r.Initialize(nil)
	for range 2 { // the second finds none, and succeeds
		r.Call("session/delete", map[string]string{"sessionId": s}, nil)
	}
	var raw json.RawMessage
	if r.Call("session/list", json.RawMessage(`{}`), &raw); string(raw) != `{"sessions":[]}` {
		t.Errorf("listed: %s", raw)
	}
}

// TestACP26Close: a session that is closed ends its turn as cancelled, and is none any more.
func TestACP26Close(t *testing.T) {
	r, s := begun(t)
	r.model.Say(acptest.Reply{Hang: true})
	turn := r.Begin("session/prompt", acptest.TextPrompt(s, "Go on."))
	<-r.model.Hangs()
	r.Call("session/close", map[string]string{"sessionId": s}, nil)
	if result, err := r.End(turn); err != nil || string(result) != `{"stopReason":"cancelled"}` {
		t.Errorf("%s %v", result, err)
	}
	if _, err := r.Ask("session/prompt", acptest.TextPrompt(s, "Hello.")); refusedWith(t, err) != "-32002 not_found" {
		t.Errorf("%v", err)
	}
}
