package acpproxy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/acp/wire"
)

// says sends an update of the session s1.
func (x *proxied) update(update string) {
	x.t.Helper()
	if err := x.agent.Notify(wire.MethodSessionUpdate, raw(`{"sessionId":"s1","update":`+update+`}`)); err != nil {
		x.t.Fatal(err)
	}
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

const ran = `{"sessionUpdate":"tool_call","toolCallId":"c1","title":"rm -rf","kind":"execute","status":"completed"}`

func react(r acp.Reaction) func(*acp.ProxyOptions) {
	return func(o *acp.ProxyOptions) { o.Unjudged = r }
}

func isUnjudged(record string) bool {
	return record == "decision acp.unjudged refused  permission_denied"
}

func (x *proxied) countUnjudged() (n int) {
	for _, r := range x.records() {
		if isUnjudged(r) {
			n++
		}
	}
	return n
}

// TestUnjudgedNote: a tool call that ran unjudged is recorded, and nothing else follows.
func TestUnjudgedNote(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{options: react(acp.Note), agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()
	x.update(ran)
	x.eventually("it is recorded", func() bool { return x.countUnjudged() == 1 })
	w.answer <- ended
	if result, fault := done(); fault != nil || result != ended {
		t.Errorf("%s %v", result, fault)
	}
	for _, r := range x.h.Journal.Records() {
		if r.Tool == acp.UnjudgedTool && (r.Reason != "execute: it ran without having been asked for" || r.Thread != "s1" || r.ArgumentsSHA256 == "") {
			t.Errorf("%+v", r)
		}
	}
}

// TestUnjudgedCancel: the turn is cancelled, the user reads why, and nothing of it passes any more.
func TestUnjudgedCancel(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()
	x.update(ran)
	x.eventually("the agent is told to stop", func() bool { return len(x.agentGot(wire.MethodSessionCancel)) == 1 })
	if _, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`); code(fault) != "-32000 permission_denied" {
		t.Errorf("a request after it: %v", fault)
	}
	w.answer <- `{"stopReason":"cancelled"}`
	if _, fault := done(); code(fault) != "-32603 permission_denied" || !strings.Contains(fault.Message, "execute") {
		t.Errorf("the prompt: %+v", fault)
	}
	if n := x.countUnjudged(); n != 1 {
		t.Errorf("%d records", n)
	}
	// The session continues with the next prompt.
	done = x.prompt()
	x.must(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`)
	w.answer <- ended
	if _, fault := done(); fault != nil {
		t.Errorf("the next prompt: %v", fault)
	}
}

// TestUnjudgedCancelIgnored: an agent that continues is ended.
func TestUnjudgedCancelIgnored(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{
		agent:   map[string]answer{wire.MethodSessionPrompt: w.prompt},
		options: func(o *acp.ProxyOptions) { o.StopWithin = 50 * time.Millisecond },
	})
	x.begin()
	done := x.prompt()
	x.update(ran)
	if _, fault := done(); code(fault) != "-32603 permission_denied" {
		t.Errorf("the prompt: %v", fault)
	}
	if err := x.awaitEnd(); !errors.Is(err, acp.ErrUnjudged) {
		t.Errorf("%v", err)
	}
	<-x.killed
}

// TestUnjudgedKill: the agent is ended at once.
func TestUnjudgedKill(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{options: react(acp.Kill), agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()
	x.update(ran)
	if _, fault := done(); code(fault) != "-32603 permission_denied" {
		t.Errorf("the prompt: %v", fault)
	}
	if err := x.awaitEnd(); !errors.Is(err, acp.ErrUnjudged) {
		t.Errorf("%v", err)
	}
	<-x.killed
	if n := x.countUnjudged(); n != 1 {
		t.Errorf("%d records", n)
	}
}

// TestUnjudgedOutsideOfATurn: there is no turn to cancel, so the agent is ended.
func TestUnjudgedOutsideOfATurn(t *testing.T) {
	x := openProxy(t, plan{})
	x.begin()
	x.update(ran)
	if err := x.awaitEnd(); !errors.Is(err, acp.ErrUnjudged) {
		t.Errorf("%v", err)
	}
}

// TestUnjudgedUnwritten: where it cannot be recorded, the agent is ended, whatever was chosen.
func TestUnjudgedUnwritten(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{options: react(acp.Note), agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	x.prompt()
	x.h.Journal.SetFailing(true)
	x.update(ran)
	if err := x.awaitEnd(); !errors.Is(err, acp.ErrUnjudged) {
		t.Errorf("%v", err)
	}
}

// TestUnjudgedOverdue: a call that runs is missed before it ends.
func TestUnjudgedOverdue(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}, options: func(o *acp.ProxyOptions) { o.Grace = 50 * time.Millisecond }})
	x.begin()
	done := x.prompt()
	x.update(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"sleep","kind":"execute","status":"in_progress"}`)
	x.eventually("the agent is told to stop", func() bool { return len(x.agentGot(wire.MethodSessionCancel)) == 1 })
	w.answer <- `{"stopReason":"cancelled"}`
	if _, fault := done(); code(fault) != "-32603 permission_denied" {
		t.Errorf("the prompt: %v", fault)
	}
}

// TestUnjudgedAtTheEnd: calls that still run when the turn ends count.
func TestUnjudgedAtTheEnd(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()
	x.update(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"t","kind":"fetch","status":"in_progress"}`)
	w.answer <- ended
	if _, fault := done(); code(fault) != "-32603 permission_denied" {
		t.Errorf("the prompt: %v", fault)
	}
}

// TestFailedCall: a tool call that failed ends the turn only where the agent shows that it ran.
func TestFailedCall(t *testing.T) {
	const edit = `{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit","kind":"edit","content":[{"type":"diff","path":"/w/a","oldText":"a","newText":"b"}]}`
	text := func(s string) string {
		return `"content":[{"type":"content","content":{"type":"text","text":"` + s + `"}}]`
	}
	begins := func(kind string) string {
		return `{"sessionUpdate":"tool_call","toolCallId":"c1","title":"T","kind":"` + kind + `","status":"in_progress"}`
	}
	fails := func(members ...string) string {
		return `{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"failed"` + strings.Join(append([]string{""}, members...), ",") + `}`
	}
	for name, c := range map[string]struct {
		updates []string
		ran     bool
	}{
		"a diff":                       {[]string{edit, fails()}, false},
		"a diff, and why":              {[]string{edit, fails(text("String to replace not found"), `"rawOutput":"<tool_use_error>String to replace not found</tool_use_error>"`)}, false},
		"begun, and why":               {[]string{begins("edit"), fails(text("Could not find oldString"), `"rawOutput":{"error":"Could not find oldString"}`)}, false},
		"a command of wrong arguments": {[]string{begins("execute"), fails(text("Invalid arguments"), `"rawOutput":{"error":"Invalid arguments","code":null}`)}, false},
		"nothing":                      {[]string{begins("execute"), fails(`"content":[]`, `"rawOutput":{}`)}, false},
		"blank":                        {[]string{begins("execute"), fails(text(" "), `"rawOutput":""`)}, false},
		"an output":                    {[]string{begins("execute"), fails(text("No such file"))}, true},
		"a raw output":                 {[]string{begins("execute"), fails(`"rawOutput":{"stdout":"x"}`)}, true},
		"an exit status":               {[]string{strings.Replace(begins("execute"), "in_progress", "pending", 1), fails(`"rawOutput":{"exit_code":1,"error":"x"}`)}, true},
		"an exit status in a text":     {[]string{strings.Replace(begins("execute"), "in_progress", "pending", 1), fails(text("Exit code 1"))}, true},
		"an exit status in an error":   {[]string{begins("execute"), fails(`"rawOutput":{"error":"The command exited with code 2"}`)}, true},
		"an output before":             {[]string{begins("edit"), `{"sessionUpdate":"tool_call_update","toolCallId":"c1",` + text("Wrote one of two files") + `}`, fails()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaits()
			x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
			x.begin()
			done := x.prompt()
			for _, u := range c.updates {
				x.update(u)
			}
			x.eventually("the last update passes", func() bool { return len(x.editorGot(wire.MethodSessionUpdate)) == len(c.updates) })
			w.answer <- ended
			if _, fault := done(); (fault != nil) != c.ran {
				t.Errorf("the prompt: %v", fault)
			}
			if n := x.countUnjudged(); (n > 0) != c.ran {
				t.Errorf("%d records", n)
			}
		})
	}
}

// TestRelativePathOfAReport: a relative path in a report is that of a file which the call is about, or
// starts in the folder of the session, and the editor gets an absolute one.
func TestRelativePathOfAReport(t *testing.T) {
	for name, c := range map[string]struct {
		asked, reported, shown string
		found                  bool
	}{
		"of the folder":    {"/w/a.md", "a.md", "/w/a.md", false},
		"of a subfolder":   {"/w/sub/a.md", "./sub/a.md", "/w/sub/a.md", false},
		"the name alone":   {"/w/sub/a.md", "a.md", "/w/sub/a.md", false},
		"of another file":  {"/w/sub/a.md", "b.md", "/w/b.md", true},
		"a part of a name": {"/w/sub/xa.md", "a.md", "/w/a.md", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaits()
			x := openProxy(t, plan{options: react(acp.Note), agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
			x.begin()
			done := x.prompt()
			x.must(x.agent, wire.MethodRequestPermission, `{"sessionId":"s1","toolCall":{"toolCallId":"c1","title":"Edit","kind":"edit","locations":[{"path":"`+c.asked+`"}]},`+
				`"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}`)
			x.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"diff","path":"` + c.reported + `","newText":"x"}]}`)
			x.eventually("the update passes", func() bool { return len(x.editorGot(wire.MethodSessionUpdate)) == 1 })
			if got := x.editorGot(wire.MethodSessionUpdate)[0]; !strings.Contains(got, `"path":"`+c.shown+`"`) {
				t.Errorf("%s", got)
			}
			w.answer <- ended
			done()
			if n := x.countUnjudged(); (n > 0) != c.found {
				t.Errorf("%d records", n)
			}
		})
	}
}

// TestUnreadableToolCall: a tool call whose report cannot be read cannot have been judged, and does
// not pass. Any other update that cannot be read is dropped.
func TestUnreadableToolCall(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{options: react(acp.Note), agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()
	for _, update := range []string{
		`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"t","status":"finished"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","content":[{"type":"diff","path":"../relative","newText":"x"}]}`,
	} {
		before := x.countUnjudged()
		x.update(update)
		x.eventually("it is recorded", func() bool { return x.countUnjudged() == before+1 })
	}
	x.update(`{"sessionUpdate":"new_in_version_9","status":"completed"}`)
	x.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"last"},"extra":1}`)
	x.eventually("the last update passes", func() bool { return len(x.editorGot(wire.MethodSessionUpdate)) > 0 })
	if got := x.editorGot(wire.MethodSessionUpdate); len(got) != 1 || strings.Contains(got[0], "extra") {
		t.Errorf("%q", got)
	}
	if n := x.countUnjudged(); n != 2 {
		t.Errorf("%d records", n)
	}
	w.answer <- ended
	done()
}

// TestModeOfTheAgent: an agent that changes to a mode that asks nobody has run unjudged, and the
// editor does not see the mode.
func TestModeOfTheAgent(t *testing.T) {
	for name, update := range map[string]string{
		"mode":   `{"sessionUpdate":"current_mode_update","currentModeId":"yolo"}`,
		"option": `{"sessionUpdate":"config_option_update","configOptions":[{"id":"m","name":"Mode","category":"mode","type":"select","currentValue":"yolo","options":[{"value":"ask","name":"Ask"},{"value":"yolo","name":"Go"}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaits()
			x := openProxy(t, plan{agent: map[string]answer{
				wire.MethodSessionPrompt: w.prompt,
				wire.MethodSessionNew:    says(`{"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"yolo","name":"Go"}]}}`),
			}})
			x.begin()
			done := x.prompt()
			x.update(update)
			x.eventually("the agent is told to stop", func() bool { return len(x.agentGot(wire.MethodSessionCancel)) == 1 })
			w.answer <- `{"stopReason":"cancelled"}`
			if _, fault := done(); code(fault) != "-32603 permission_denied" {
				t.Errorf("the prompt: %v", fault)
			}
			if got := x.editorGot(wire.MethodSessionUpdate); len(got) != 0 {
				t.Errorf("the editor was told %q", got)
			}
		})
	}
}
