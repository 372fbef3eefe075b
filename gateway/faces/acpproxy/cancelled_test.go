package acpproxy_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
)

// undecided is a user who answers with a yes once decided is closed, also when asked no longer.
func undecided(decided <-chan struct{}) answer {
	return func(ctx context.Context, params json.RawMessage) (any, *jsonrpc.Error) {
		<-decided
		return chooses(wire.AllowOnce)(ctx, params)
	}
}

// TestACP64CancelledPrompt: $/cancel_request of a prompt cancels its turn: what waits for the user
// ends, and the agent may do nothing more for it.
func TestACP64CancelledPrompt(t *testing.T) {
	w, decided := newWaits(), make(chan struct{})
	deaf := func(context.Context, json.RawMessage) (any, *jsonrpc.Error) { return raw(<-w.answer), nil }
	x := openProxy(t, plan{files: asksForAll(), agent: map[string]answer{wire.MethodSessionPrompt: deaf}, editor: map[string]answer{wire.MethodRequestPermission: undecided(decided)}})
	t.Cleanup(func() { close(decided) })
	x.begin()
	done := x.prompt()
	codes := make(chan string, 1)
	go func() {
		_, fault := x.ask(x.agent, wire.MethodTerminalCreate, runsRM)
		codes <- code(fault)
	}()
	x.eventually("the user is asked", func() bool { return len(x.asked()) == 1 })
	if err := x.editor.Notify(wire.MethodCancelRequest, raw(`{"requestId":3}`)); err != nil { // initialize and session/new were 1 and 2
		t.Fatal(err)
	}
	x.eventually("the agent is told", func() bool { return len(x.agentGot(wire.MethodCancelRequest)) == 1 })
	if got := <-codes; got == "" {
		t.Error("the command ran")
	}
	if _, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`); !strings.Contains(code(fault), "canceled") {
		t.Errorf("a read of the cancelled turn: %q", code(fault))
	}
	w.answer <- ended
	done()
}

// TestNothingRunsInAClosedSession: what waits for the user outside of a turn ends with the session,
// and an agent that does not answer session/close may do nothing more in it.
func TestNothingRunsInAClosedSession(t *testing.T) {
	decided, closes := make(chan struct{}), make(chan struct{})
	agent := map[string]answer{wire.MethodSessionClose: func(context.Context, json.RawMessage) (any, *jsonrpc.Error) {
		<-closes
		return raw(`{}`), nil
	}}
	x := openProxy(t, plan{files: asksForAll(), agent: agent, editor: map[string]answer{wire.MethodRequestPermission: undecided(decided)}})
	t.Cleanup(func() { close(decided) })
	x.begin()
	codes, closed := make(chan string, 1), make(chan string, 1)
	go func() {
		_, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`)
		codes <- code(fault)
	}()
	x.eventually("the user is asked", func() bool { return len(x.asked()) == 1 })
	go func() { closed <- x.must(x.editor, wire.MethodSessionClose, `{"sessionId":"s1"}`) }()
	x.eventually("the agent is to close", func() bool { return len(x.agentGot(wire.MethodSessionClose)) == 1 })
	if _, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/b"}`); code(fault) != "-32000 not_found" {
		t.Errorf("a read while the session is closed: %q", code(fault))
	}
	close(closes)
	<-closed
	if got := <-codes; got == "" || len(x.editorGot(wire.MethodReadTextFile)) > 0 {
		t.Errorf("the read: %q, the editor got %q", got, x.editorGot(wire.MethodReadTextFile))
	}
}

// TestCommandOfACancelledTurnIsEnded: a terminal that the editor creates after the turn was cancelled
// is killed and released.
func TestCommandOfACancelledTurnIsEnded(t *testing.T) {
	w, created := newWaits(), make(chan struct{})
	create := func(context.Context, json.RawMessage) (any, *jsonrpc.Error) {
		<-created
		return raw(`{"terminalId":"late"}`), nil
	}
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt, wire.MethodSessionClose: says(`{}`)}, editor: map[string]answer{wire.MethodTerminalCreate: create}})
	x.begin()
	done := x.prompt()
	codes := make(chan string, 1)
	go func() {
		_, fault := x.ask(x.agent, wire.MethodTerminalCreate, `{"sessionId":"s1","command":"make"}`)
		codes <- code(fault)
	}()
	x.eventually("the command is sent", func() bool { return len(x.editorGot(wire.MethodTerminalCreate)) == 1 })
	if err := x.editor.Notify(wire.MethodSessionCancel, raw(`{"sessionId":"s1"}`)); err != nil {
		t.Fatal(err)
	}
	x.eventually("the agent is told", func() bool { return len(x.agentGot(wire.MethodSessionCancel)) == 1 })
	w.answer <- ended
	done()
	x.must(x.editor, wire.MethodSessionClose, `{"sessionId":"s1"}`)
	close(created)
	<-codes
	x.eventually("the terminal is released", func() bool { return len(x.editorGot(wire.MethodTerminalRelease)) == 1 })
}

// TestLongPathIsRefused: no path is kept that no system opens.
func TestLongPathIsRefused(t *testing.T) {
	x := openProxy(t, plan{})
	x.begin()
	if _, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/`+strings.Repeat("x", 5000)+`"}`); code(fault) != "-32602 bad_request" {
		t.Errorf("%q", code(fault))
	}
}
