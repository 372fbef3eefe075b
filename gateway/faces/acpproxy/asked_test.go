package acpproxy_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/refusal"
)

// chooses is a user who chooses the option of a kind.
func chooses(kind wire.OptionKind) answer {
	return func(_ context.Context, params json.RawMessage) (any, *jsonrpc.Error) {
		r, err := wire.Read[wire.RequestPermissionRequest](params)
		if err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeParams, "%v", err)
		}
		for _, o := range r.Options {
			if o.Kind == kind {
				return wire.RequestPermissionResponse{Outcome: wire.PermissionOutcome{Outcome: wire.OutcomeSelected, OptionID: o.OptionID}}, nil
			}
		}
		return wire.RequestPermissionResponse{Outcome: wire.PermissionOutcome{Outcome: wire.OutcomeCancelled}}, nil
	}
}

const (
	runsRM = `{"sessionId":"s1","command":"rm","args":["-r","x"],"cwd":"/w"}`
	asksRM = `{"sessionId":"s1","toolCall":{"toolCallId":"c1","title":"rm","kind":"execute","rawInput":{"command":"rm"}},` +
		`"options":[{"optionId":"a","name":"Always","kind":"allow_always"},{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}`
)

// TestACP45UserIsAsked: a rule by the caller asks the user of the editor, with the gateway's own
// options, for a command and for a permission; only a yes lets it pass, and the agent never gets one
// that stands.
func TestACP45UserIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		user    answer
		runs    bool
		refused string
	}{
		"allow once":        {user: chooses(wire.AllowOnce), runs: true},
		"allow always":      {user: chooses(wire.AllowAlways), runs: true},
		"reject once":       {user: chooses(wire.RejectOnce), refused: "-32000 approval_denied"},
		"cancelled":         {user: says(`{"outcome":{"outcome":"cancelled"}}`), refused: "-32000 approval_required"},
		"an option of ours": {user: says(`{"outcome":{"outcome":"selected","optionId":"y"}}`), refused: "-32000 approval_required"},
		"an error":          {user: func(context.Context, json.RawMessage) (any, *jsonrpc.Error) { return nil, jsonrpc.Errorf(1, "no") }, refused: "-32000 approval_required"},
		"nonsense":          {user: says(`{"outcome":"yes"}`), refused: "-32000 approval_required"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaits()
			x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}, editor: map[string]answer{wire.MethodRequestPermission: c.user}})
			x.begin()
			done := x.prompt()
			if _, fault := x.ask(x.agent, wire.MethodTerminalCreate, runsRM); code(fault) != c.refused {
				t.Errorf("a command: %q", code(fault))
			}
			var r wire.RequestPermissionResponse
			if err := json.Unmarshal([]byte(x.must(x.agent, wire.MethodRequestPermission, asksRM)), &r); err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "y", false: "n"}[c.runs]
			if r.Outcome.OptionID != want {
				t.Errorf("a permission: %+v", r)
			}
			if got := len(x.editorGot(wire.MethodTerminalCreate)); got != map[bool]int{true: 1, false: 0}[c.runs] {
				t.Errorf("%d commands ran", got)
			}
			asked := x.editorGot(wire.MethodRequestPermission)
			if len(asked) < 2 {
				t.Fatalf("the user was asked %q", asked)
			}
			for i, text := range map[int]string{0: `"title":"Run rm -r x"`, 1: `"title":"rm"`} {
				if !strings.Contains(asked[i], text) || strings.Contains(asked[i], `"optionId":"a"`) {
					t.Errorf("the user was asked %s", asked[i])
				}
			}
			w.answer <- ended
			done()
		})
	}
}

// TestACP48NothingStands: allow_always of the user stands here, as the rule says, for the same call
// alone; the agent asks again and the user does not.
func TestACP48NothingStands(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}, editor: map[string]answer{wire.MethodRequestPermission: chooses(wire.AllowAlways)}})
	x.begin()
	done := x.prompt()
	x.must(x.agent, wire.MethodTerminalCreate, runsRM)
	x.must(x.agent, wire.MethodTerminalCreate, runsRM)
	if got := len(x.editorGot(wire.MethodRequestPermission)); got != 1 {
		t.Errorf("the user was asked %d times for the same", got)
	}
	x.must(x.agent, wire.MethodTerminalCreate, `{"sessionId":"s1","command":"rm","args":["y"]}`)
	if got := len(x.editorGot(wire.MethodRequestPermission)); got != 2 {
		t.Errorf("the user was asked %d times, also for another", got)
	}
	w.answer <- ended
	done()
}

// TestPermissionWithoutTheOption: a yes without allow_once is a no, and a no without reject_once is
// cancelled: nothing that stands is chosen. The log has what the agent was told.
func TestPermissionWithoutTheOption(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()
	for kind, code := range map[string]string{"edit": "permission_denied", "fetch": "permission_denied"} {
		got := x.must(x.agent, wire.MethodRequestPermission, `{"sessionId":"s1","toolCall":{"toolCallId":"`+kind+`","title":"t","kind":"`+kind+`"},`+
			`"options":[{"optionId":"a","name":"Always","kind":"allow_always"},{"optionId":"n","name":"Never","kind":"reject_always"}]}`)
		if !strings.HasPrefix(got, `{"outcome":{"outcome":"cancelled"}`) || !strings.Contains(got, code) {
			t.Fatalf("%s: %s", kind, got)
		}
	}
	// A no that can be told is. Nobody is asked for a yes that cannot.
	for _, asked := range []string{strings.Replace(asksRM, `"kind":"execute"`, `"kind":"edit"`, 1), asksRM} {
		asked = strings.Replace(asked, `{"optionId":"y","name":"Yes","kind":"allow_once"},`, "", 1)
		if got := x.must(x.agent, wire.MethodRequestPermission, asked); !strings.HasPrefix(got, `{"outcome":{"outcome":"selected","optionId":"n"}`) {
			t.Fatalf("%s", got)
		}
	}
	if got := x.asked(); len(got) > 0 {
		t.Errorf("the user was asked: %+v", got)
	}
	x.eventually("what was not allowed is recorded", func() bool { return strings.Count(strings.Join(x.records(), "\n"), "outcome acp.permission.edit") == 2 })
	for _, r := range x.h.Journal.Records() {
		if r.Outcome == audit.HandedOver || r.Event == audit.Ending && r.Code != refusal.PermissionDenied {
			t.Errorf("recorded as %+v", r)
		}
	}
	// A call that was allowed, and whose agent was not told so, has not been allowed.
	x.update(`{"sessionUpdate":"tool_call_update","toolCallId":"edit","status":"completed"}`)
	x.eventually("it is recorded", func() bool { return x.countUnjudged() == 1 })
	w.answer <- `{"stopReason":"cancelled"}`
	done()
}

// hangs is an answer that comes when its request is cancelled.
func hangs(began chan<- struct{}) answer {
	return func(ctx context.Context, _ json.RawMessage) (any, *jsonrpc.Error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, jsonrpc.Errorf(wire.CodeCancelled, "cancelled")
	}
}

// TestACP50CancelledPermissions: when the user cancels the turn, every request for a permission that
// waits is answered with cancelled, the user's question is withdrawn, nothing of the turn acts any
// more, and the prompt ends with cancelled although the agent answers with an error.
func TestACP50CancelledPermissions(t *testing.T) {
	w := newWaits()
	began := make(chan struct{}, 2)
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}, editor: map[string]answer{wire.MethodRequestPermission: hangs(began)}})
	x.begin()
	done := x.prompt()
	answered := make(chan string, 2)
	for _, id := range []string{"c1", "c2"} {
		go func() {
			raw, err := x.agent.Call(t.Context(), wire.MethodRequestPermission, raw(strings.Replace(asksRM, "c1", id, 1)))
			if err != nil {
				t.Errorf("%v", err)
			}
			answered <- string(raw)
		}()
		<-began
	}
	if err := x.editor.Notify(wire.MethodSessionCancel, raw(`{"sessionId":"s1"}`)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := <-answered; !strings.HasPrefix(got, `{"outcome":{"outcome":"cancelled"}`) {
			t.Errorf("a permission: %s", got)
		}
	}
	x.eventually("the questions are withdrawn", func() bool { return len(x.editorGot(wire.MethodCancelRequest)) == 2 })
	x.eventually("the agent is told", func() bool { return len(x.agentGot(wire.MethodSessionCancel)) == 1 })
	for method, params := range map[string]string{
		wire.MethodReadTextFile: `{"sessionId":"s1","path":"/w/a"}`, wire.MethodWriteTextFile: `{"sessionId":"s1","path":"/w/a","content":""}`, wire.MethodTerminalCreate: `{"sessionId":"s1","command":"x"}`,
	} {
		if _, fault := x.ask(x.agent, method, params); code(fault) != "-32000 canceled" {
			t.Errorf("%s after the cancel: %v", method, code(fault))
		}
	}
	if got := x.must(x.agent, wire.MethodRequestPermission, asksRM); !strings.HasPrefix(got, `{"outcome":{"outcome":"cancelled"}`) {
		t.Errorf("a permission after the cancel: %s", got)
	}
	w.answer <- `not a result`
	if result, fault := done(); fault != nil || result != `{"stopReason":"cancelled"}` {
		t.Errorf("the prompt: %s %v", result, fault)
	}
}

// TestACP64CancelRequest: $/cancel_request passes both ways by the ids of each side.
func TestACP64CancelRequest(t *testing.T) {
	w := newWaits()
	began := make(chan struct{}, 1)
	x := openProxy(t, plan{
		agent:  map[string]answer{wire.MethodSessionPrompt: w.prompt},
		editor: map[string]answer{wire.MethodTerminalWaitForExit: hangs(began)},
	})
	x.begin()
	prompt, err := x.editor.Start(t.Context(), wire.MethodSessionPrompt, raw(`{"sessionId":"s1","prompt":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	x.eventually("the agent gets the prompt", func() bool { return len(x.prompts()) == 1 })
	x.must(x.agent, wire.MethodTerminalCreate, `{"sessionId":"s1","command":"x"}`)
	wait, err := x.agent.Start(t.Context(), wire.MethodTerminalWaitForExit, raw(`{"sessionId":"s1","terminalId":"t1"}`))
	if err != nil {
		t.Fatal(err)
	}
	<-began
	if err := x.agent.Notify(wire.MethodCancelRequest, map[string]any{"requestId": wait.ID()}); err != nil {
		t.Fatal(err)
	}
	if _, err := wait.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "-32800") {
		t.Errorf("the agent's request: %v", err)
	}
	x.eventually("the editor is told", func() bool { return len(x.editorGot(wire.MethodCancelRequest)) == 1 })
	for _, unknown := range []string{`"requestId":4711`, `"requestId":"editor-1"`, `"requestId":null`} {
		_ = x.editor.Notify(wire.MethodCancelRequest, raw("{"+unknown+"}"))
		_ = x.agent.Notify(wire.MethodCancelRequest, raw("{"+unknown+"}"))
	}
	if err := x.editor.Notify(wire.MethodCancelRequest, map[string]any{"requestId": prompt.ID()}); err != nil {
		t.Fatal(err)
	}
	if _, err := prompt.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "-32800") {
		t.Errorf("the editor's request: %v", err)
	}
	if got := x.agentGot(wire.MethodCancelRequest); len(got) != 1 || !strings.Contains(got[0], "editor-") {
		t.Errorf("the agent got %q", got)
	}
}

// TestOnePromptAtATime: a second prompt of a session is refused, and the first continues.
func TestOnePromptAtATime(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()
	if _, fault := x.ask(x.editor, wire.MethodSessionPrompt, `{"sessionId":"s1","prompt":[]}`); code(fault) != "-32600 bad_request" {
		t.Errorf("%v", code(fault))
	}
	if _, fault := x.ask(x.editor, wire.MethodSessionPrompt, `{"sessionId":"s1","prompt":[{"type":"audio","data":"","mimeType":"a/b"}]}`); code(fault) != "-32602 bad_request" {
		t.Errorf("content that the agent does not take: %v", code(fault))
	}
	w.answer <- ended
	if result, fault := done(); fault != nil || result != ended {
		t.Errorf("%s %v", result, fault)
	}
}
