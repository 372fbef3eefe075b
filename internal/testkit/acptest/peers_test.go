package acptest

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/leaks"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "acp-agent" {
		os.Exit(AgentMain(os.Args[2]))
	}
	leaks.Main(m)
}

// wired connects an editor and a scripted agent by pipes. The function ends both.
func wired(t *testing.T, script Script) (*Editor, *Recorder, func()) {
	t.Helper()
	r := NewRecorder(t, Client, Agent)
	fromClient, toAgent := io.Pipe()
	fromAgent, toClient := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		RunAgent(t, script, fromClient, r.Writer(Agent, toClient), io.Discard)
		_ = toClient.Close()
	}()
	e := NewEditor(t, fromAgent, r.Writer(Client, toAgent))
	return e, r, func() {
		_ = toAgent.Close()
		<-done
		e.Done()
	}
}

func permission(kinds ...string) json.RawMessage {
	options := []Option{}
	for _, kind := range kinds {
		options = append(options, Option{OptionID: "id of " + kind, Name: kind, Kind: kind})
	}
	b, _ := json.Marshal(map[string]any{"sessionId": "$session", "toolCall": map[string]string{"toolCallId": "t"}, "options": options})
	return b
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

var working = Script{Prompts: [][]Step{{
	{Update: raw(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"Work","kind":"edit"}`)},
	{
		Ask: "session/request_permission", Params: permission("allow_once", "reject_once"),
		Allowed: []Step{
			{Ask: "fs/read_text_file", Params: raw(`{"sessionId":"$session","path":"/w/a","line":2,"limit":1}`)},
			{Ask: "fs/write_text_file", Params: raw(`{"sessionId":"$session","path":"/w/b","content":"c"}`)},
			{Ask: "terminal/create", Params: raw(`{"sessionId":"$session","command":"make","args":["-s"]}`)},
			{Ask: "terminal/wait_for_exit", Params: raw(`{"sessionId":"$session","terminalId":"$terminalId"}`)},
			{Ask: "terminal/output", Params: raw(`{"sessionId":"$session","terminalId":"$terminalId"}`)},
			{Ask: "terminal/release", Params: raw(`{"sessionId":"$session","terminalId":"$terminalId"}`)},
			{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`)},
		},
		Denied: []Step{
			{Update: raw(`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed"}`)},
			{Stop: "refusal"},
		},
	},
}}}

// TestPeers: an editor and a scripted agent hold a conversation, in which the editor decides.
func TestPeers(t *testing.T) {
	for kind, stop := range map[string]string{"allow_once": "end_turn", "reject_once": "refusal", "allow_always": "refusal"} {
		e, r, end := wired(t, working)
		e.Initialize(nil)
		e.Put("/w/a", "1\n2\n3\n")
		e.Choose(OfKind(kind))
		s := e.Session("/w")
		if got := e.Prompt(s, "Work."); got != stop {
			t.Errorf("%s: %s", kind, got)
		}
		end()
		r.Ended()
		r.Check(t)
		calls := e.Calls(s)
		if len(calls) != 1 || calls[0].Title != "Work" || calls[0].Kind != "edit" {
			t.Fatalf("%s: %+v", kind, calls)
		}
		if stop == "refusal" {
			if _, written := e.File("/w/b"); written || len(e.Commands()) > 0 || calls[0].Status() != "failed" {
				t.Errorf("%s: it was done", kind)
			}
			continue
		}
		if c, _ := e.File("/w/b"); c != "c" || !slices.Equal(e.Commands(), []string{"make -s"}) || calls[0].Status() != "completed" {
			t.Errorf("%s: %q %q %v", kind, c, e.Commands(), calls)
		}
		if text := e.Text(s); !strings.Contains(text, `fs/read_text_file {"content":"2\n"}`) {
			t.Errorf("%s: %s", kind, text)
		}
	}
}

// TestDictated: an agent without a script takes its steps from the prompt.
func TestDictated(t *testing.T) {
	e, r, end := wired(t, Script{})
	e.Initialize(nil)
	e.Put("/w/<a>", "<1>")
	s := e.Session("/w")
	steps := []Step{{Ask: "fs/read_text_file", Params: raw(`{"sessionId":"$session","path":"/w/<a>"}`)}, {Stop: "max_tokens"}}
	if stop := e.Prompt(s, string(marshalled(t, steps))); stop != "max_tokens" || e.Text(s) != "fs/read_text_file {\"content\":\"<1>\"}\n" {
		t.Errorf("%s %q", stop, e.Text(s))
	}
	end()
	r.Check(t)
}

// TestPonder: a turn is cancelled while the editor is asked.
func TestPonder(t *testing.T) {
	e, r, end := wired(t, Script{Prompts: [][]Step{{{Ask: "session/request_permission", Params: permission("allow_once")}, {Await: "cancel"}}}})
	e.Initialize(nil)
	e.Choose(e.Ponder)
	s := e.Session("/w")
	turn := e.Begin("session/prompt", TextPrompt(s, "Work."))
	if _, ok := e.Await(func(m Message) bool { return m.Method == "session/request_permission" }); !ok {
		t.Fatal("it was not asked")
	}
	e.Cancel(s)
	if result, err := e.End(turn); err != nil || string(result) != `{"stopReason":"cancelled"}` {
		t.Errorf("%s %v", result, err)
	}
	end()
	r.Ended()
	r.Check(t)
}

// TestProcess: a scripted agent runs as a process, and says how it ends.
func TestProcess(t *testing.T) {
	script := Script{Prompts: [][]Step{{{Stderr: "a line of the log\n"}, {Fail: "no"}}, {{Exit: 3}}}}
	file := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(file, marshalled(t, script), 0o600); err != nil {
		t.Fatal(err)
	}
	p := Start(t, exec.Command(os.Args[0], "acp-agent", file), Client, Agent)
	p.Initialize(nil)
	s := p.Session("/w")
	if _, err := p.Ask("session/prompt", TextPrompt(s, "Work.")); err == nil || !strings.Contains(err.Error(), "-32603 no") {
		t.Errorf("%v", err)
	}
	if _, err := p.Ask("session/prompt", TextPrompt(s, "Work.")); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("%v", err)
	}
	if err := p.Stop(); err == nil || err.Error() != "exit status 3" || !strings.Contains(p.Log(), "a line of the log") {
		t.Errorf("%v: %s", err, p.Log())
	}
	r := Replay(t, file, Client, Agent)
	if r.Check(t); len(r.Lines()) != 7 || !slices.Equal(r.Lines(), p.Lines()) {
		t.Errorf("the agent has %v", r.Lines())
	}
}
