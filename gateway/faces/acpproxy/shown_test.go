package acpproxy_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
)

// asksForAll is a policy in which the user is asked for all that an agent does.
func asksForAll() map[string]string {
	return map[string]string{"policy.csv": "p, Analyst, *, *, , ask:mine\n"}
}

// question is what the user was asked.
type question struct {
	ToolCall struct {
		wire.ToolCallUpdate
		Locations *[]wire.ToolLocation `json:"locations"`
		Meta      json.RawMessage      `json:"_meta"`
		Content   json.RawMessage      `json:"content"`
	}
}

// asked returns the questions of the user.
func (x *proxied) asked() (all []question) {
	x.t.Helper()
	for _, params := range x.editorGot(wire.MethodRequestPermission) {
		var q question
		if err := json.Unmarshal([]byte(params), &q); err != nil {
			x.t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

// TestNothingShownChangesWhileTheUserIsAsked: what an agent reports of a call that its user is being
// asked about does not replace what the user sees; its status passes.
func TestNothingShownChangesWhileTheUserIsAsked(t *testing.T) {
	w := newWaits()
	decide := make(chan struct{})
	user := func(ctx context.Context, params json.RawMessage) (any, *jsonrpc.Error) {
		<-decide
		return chooses(wire.AllowOnce)(ctx, params)
	}
	x := openProxy(t, plan{files: asksForAll(), agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}, editor: map[string]answer{wire.MethodRequestPermission: user}})
	x.begin()
	done := x.prompt()
	answered := make(chan string, 1)
	go func() { answered <- x.must(x.agent, wire.MethodRequestPermission, asksRM) }()
	x.eventually("the user is asked", func() bool { return len(x.asked()) == 1 })
	x.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"LIE","status":"in_progress","rawInput":{"command":"LIE"},"content":[{"type":"content","content":{"type":"text","text":"LIE"}}]}`)
	x.update(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"LIE","kind":"execute"}`)
	x.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"after"}}`)
	x.eventually("the text passes", func() bool {
		return strings.Contains(strings.Join(x.editorGot(wire.MethodSessionUpdate), "\n"), "after")
	})
	got := strings.Join(x.editorGot(wire.MethodSessionUpdate), "\n")
	if strings.Contains(got, "LIE") || strings.Count(got, `"c1"`) != 1 || !strings.Contains(got, `"status":"in_progress"`) {
		t.Errorf("while the user was asked, the editor got\n%s", got)
	}
	close(decide)
	<-answered
	x.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"later","status":"completed"}`)
	x.eventually("later updates pass", func() bool {
		return strings.Contains(strings.Join(x.editorGot(wire.MethodSessionUpdate), "\n"), "later")
	})
	w.answer <- ended
	done()
}

// TestAgentCannotPrepareTheQuestion: the id under which the user is asked for a file or a command is
// none that an agent could have described before.
func TestAgentCannotPrepareTheQuestion(t *testing.T) {
	ids := map[string]bool{}
	for range 2 {
		w := newWaits()
		x := openProxy(t, plan{files: asksForAll(), agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}, editor: map[string]answer{wire.MethodRequestPermission: chooses(wire.AllowOnce)}})
		x.begin()
		done := x.prompt()
		x.must(x.agent, wire.MethodTerminalCreate, runsRM)
		ids[x.asked()[0].ToolCall.ToolCallID] = true
		w.answer <- ended
		done()
	}
	if len(ids) != 2 {
		t.Errorf("the first question of each connection has the id %v", ids)
	}
}

// TestSecretsAreNotShown: what an argument marked x-secret holds is in no other member of the question.
func TestSecretsAreNotShown(t *testing.T) {
	w := newWaits()
	f := asksForAll()
	f["tools.yaml"] = strings.Replace(files()["tools.yaml"], "content: {type: string}", "content: {type: string, x-secret: true}", 1)
	x := openProxy(t, plan{files: f, agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}, editor: map[string]answer{wire.MethodRequestPermission: chooses(wire.RejectOnce)}})
	x.begin()
	done := x.prompt()
	x.ask(x.agent, wire.MethodWriteTextFile, `{"sessionId":"s1","path":"/w/a","content":"hunter2"}`)
	if got := x.editorGot(wire.MethodRequestPermission); len(got) != 1 || strings.Contains(got[0], "hunter2") {
		t.Errorf("the user was asked %q", got)
	}
	w.answer <- ended
	done()
}

// TestUserSeesWhatIsJudged: the user sees the tool that is judged, all of a command, no character
// that hides, no _meta of the agent and no terminal that is not the session's.
func TestUserSeesWhatIsJudged(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{files: asksForAll(), agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}, editor: map[string]answer{wire.MethodRequestPermission: chooses(wire.RejectOnce)}})
	x.begin()
	done := x.prompt()
	x.ask(x.agent, wire.MethodTerminalCreate, `{"sessionId":"s1","command":"make\u202e","args":["a b","c"],"env":[{"name":"LD_PRELOAD","value":"/w/x.so"}],"cwd":"/w/sub"}`)
	const options = `,"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}`
	x.must(x.agent, wire.MethodRequestPermission, `{"sessionId":"s1","toolCall":{"toolCallId":"c1","title":"ls\u202e\nls","kind":"execute","rawInput":{},"rawOutput":"LIE","_meta":{"LIE":1},`+
		`"content":[{"type":"terminal","terminalId":"foreign"},{"type":"content","content":{"type":"text","text":"kept","_meta":{"LIE":1}}}]}`+options)
	x.must(x.agent, wire.MethodRequestPermission, `{"sessionId":"s1","toolCall":{"toolCallId":"c2","title":"List files","name":"deploy","rawInput":{"to":"staging"}}`+options)
	asked := x.asked()
	if len(asked) != 3 {
		t.Fatalf("the user was asked %d times", len(asked))
	}
	if q := asked[0].ToolCall; *q.Title != `Run make\u202e "a b" c` || !strings.Contains(string(q.Content), "LD_PRELOAD=/w/x.so") || !strings.Contains(string(q.Content), "/w/sub") {
		t.Errorf("a command: %q %s", *q.Title, q.Content)
	}
	if q := asked[1].ToolCall; *q.Title != `ls\u202e ls` || q.Meta != nil || q.RawOutput != nil || strings.Contains(string(q.Content), "foreign") ||
		strings.Contains(string(q.Content), "LIE") || !strings.Contains(string(q.Content), "kept") || q.Locations == nil {
		t.Errorf("a permission: %q %s, locations %v, output %s, meta %s", *q.Title, q.Content, q.Locations, q.RawOutput, q.Meta)
	}
	if q := asked[2].ToolCall; *q.Title != "deploy: List files" {
		t.Errorf("a registered tool: %q", *q.Title)
	}
	w.answer <- ended
	done()
}
