package acp_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/callgate/callgate/internal/testkit/acptest"
)

// TestReporterTranscript: a session with every kind of message that the agent sends is valid in
// both directions.
func TestReporterTranscript(t *testing.T) {
	r, s := begun(t)
	r.Put("/w/a", "text\n")
	stop, calls := r.prompt(s,
		acptest.Reply{Thought: "Hm.", Content: calling("acp.fs.read", `{"path":"/w/a"}`)},
		acptest.Calling("acp.fs.write", `{"path":"/w/b","content":"b"}`),
		acptest.Calling("acp.terminal.create", `{"command":"rm","args":["a"]}`), // the user allows it
		acptest.Calling("acp.fs.read", `{"path":"/etc/passwd"}`))                // refused
	if stop != "end_turn" || len(calls) != 4 || calls[3].Status() != "failed" || !slices.Equal(r.Commands(), []string{"rm a"}) {
		t.Errorf("%s %+v", stop, calls)
	}
	if stop, _ := r.prompt(s, acptest.Reply{Content: "Hel", Finish: "length"}); stop != "max_tokens" {
		t.Error(stop)
	}
	const broken = `{"tool":`
	if stop, _ := r.prompt(s, acptest.Reply{Content: broken}, acptest.Reply{Content: broken}, acptest.Reply{Content: broken}); stop != "refusal" {
		t.Error(stop)
	}
	r.Hang()
	if _, calls := r.prompt(s, acptest.Calling("acp.terminal.create", `{"command":"sleep"}`)); len(calls) != 1 {
		t.Errorf("%+v", calls)
	}
	r.Choose(r.Ponder)
	r.model.Say(acptest.Calling("acp.terminal.create", `{"command":"rm","args":["b"]}`))
	turn := r.Begin("session/prompt", acptest.TextPrompt(s, "Go on."))
	if _, ok := r.Await(func(acptest.Message) bool { return len(askedFor(r)) == 2 }); !ok {
		t.Fatal("the user was not asked")
	}
	r.Cancel(s)
	if result, err := r.End(turn); err != nil || string(result) != `{"stopReason":"cancelled"}` {
		t.Errorf("%s %v", result, err)
	}
	if _, err := r.Ask("session/new", raw(`{"cwd":"/elsewhere","mcpServers":[]}`)); err == nil {
		t.Error("a folder outside of the project is taken")
	}
	for method, params := range map[string]string{
		"session/load": `{"sessionId":` + quoted(s) + `,"cwd":"/w","mcpServers":[]}`, "session/resume": `{"sessionId":` + quoted(s) + `,"cwd":"/w"}`, "session/list": `{}`,
	} {
		r.Call(method, raw(params), nil)
	}
	r.Call("session/close", raw(`{"sessionId":`+quoted(s)+`}`), nil)
	r.Call("session/delete", raw(`{"sessionId":`+quoted(s)+`}`), nil)
	_ = r.end()
	r.Ended()
	seen := r.Seen()
	for _, kind := range []string{
		"result initialize", "result session/new", "error session/new", "result session/load", "result session/resume", "result session/list", "result session/close", "result session/delete",
		"result session/prompt end_turn", "result session/prompt max_tokens", "result session/prompt refusal", "result session/prompt cancelled",
		"request fs/read_text_file", "request fs/write_text_file", "request terminal/create", "request terminal/wait_for_exit", "request terminal/output", "request terminal/kill", "request terminal/release", "request session/request_permission",
		"notification session/update user_message_chunk", "notification session/update agent_message_chunk", "notification session/update agent_thought_chunk", "notification session/update session_info_update",
		"notification session/update tool_call pending", "notification session/update tool_call_update in_progress", "notification session/update tool_call_update completed", "notification session/update tool_call_update failed",
	} {
		if seen["agent "+kind] == 0 {
			t.Errorf("no %s was recorded: %v", kind, slices.Sorted(maps.Keys(seen)))
		}
	}
}

func calling(name, arguments string) string { return acptest.Calling(name, arguments).Content }

// askedFor are the permissions that the user was asked for, as the recorder has them.
func askedFor(r *reporter) (all []acptest.Entry) {
	for _, e := range r.Lines() {
		if e.Method == "session/request_permission" && e.Kind == "request" {
			all = append(all, e)
		}
	}
	return all
}
