package acpproxy_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/tool"
)

// engineFunc is an engine.
type engineFunc func(context.Context, tool.Call) (tool.Result, error)

func (f engineFunc) Run(ctx context.Context, c tool.Call) (tool.Result, error) { return f(ctx, c) }

// logFunc is an audit log.
type logFunc func(context.Context, audit.Record) error

func (f logFunc) Append(ctx context.Context, r audit.Record) error { return f(ctx, r) }

// TestFailClosed: whatever the gateway lacks, nothing passes, and every refusal has a code.
func TestFailClosed(t *testing.T) {
	for name, c := range map[string]struct {
		plan    plan
		code    string // of requests for files and terminals
		allowed bool   // a permission may be given
	}{
		"no executor": {plan: plan{options: func(o *acp.ProxyOptions) { o.Executor = nil }}, code: "internal"},
		"no log":      {plan: plan{deps: func(_ *gateway.Config, d *calls.Deps) { d.Journal = nil }}, code: "audit_unavailable"},
		"a log that cannot be written": {plan: plan{deps: func(_ *gateway.Config, d *calls.Deps) {
			d.Journal = logFunc(func(context.Context, audit.Record) error { return context.DeadlineExceeded })
		}}, code: "internal"},
		"a log that panics": {plan: plan{deps: func(_ *gateway.Config, d *calls.Deps) {
			d.Journal = logFunc(func(context.Context, audit.Record) error { panic("SECRET") })
		}}, code: "internal"},
		"no store":   {plan: plan{deps: func(_ *gateway.Config, d *calls.Deps) { d.Store = nil }}, code: "store_unavailable", allowed: true},
		"no limiter": {plan: plan{deps: func(_ *gateway.Config, d *calls.Deps) { d.Limiter = nil }}, code: "limiter_unavailable"},
		"no engine":  {plan: plan{deps: func(_ *gateway.Config, d *calls.Deps) { d.Engine = nil }}, code: "tool_unavailable", allowed: true},
		"an engine that lies": {plan: plan{engine: engineFunc(func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Body: []byte("{}"), JSON: true}, nil
		})}, code: "outcome_unknown", allowed: true},
		"an engine that panics": {plan: plan{engine: engineFunc(func(context.Context, tool.Call) (tool.Result, error) { panic("SECRET") })}, code: "internal", allowed: true},
		"an unknown agent":      {plan: plan{options: func(o *acp.ProxyOptions) { o.Request.Agent = "Nobody" }}, code: "agent_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaits()
			c.plan.agent = map[string]answer{wire.MethodSessionPrompt: w.prompt}
			x := openProxy(t, c.plan)
			x.begin()
			done := x.prompt()
			for method, params := range map[string]string{
				wire.MethodReadTextFile: `{"sessionId":"s1","path":"/w/a"}`, wire.MethodWriteTextFile: `{"sessionId":"s1","path":"/w/a","content":""}`, wire.MethodTerminalCreate: `{"sessionId":"s1","command":"x"}`,
			} {
				_, fault := x.ask(x.agent, method, params)
				if code(fault) != "-32000 "+c.code || strings.Contains(fault.Message, "SECRET") {
					t.Errorf("%s: %q %v", method, code(fault), fault)
				}
			}
			got := x.must(x.agent, wire.MethodRequestPermission, `{"sessionId":"s1","toolCall":{"toolCallId":"c1","title":"t","kind":"edit"},`+
				`"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}`)
			if strings.Contains(got, `"optionId":"y"`) != c.allowed || !c.allowed && !strings.Contains(got, `"code":"`) {
				t.Errorf("a permission: %s", got)
			}
			if got := x.got(&x.toEditor); len(got) != 0 {
				t.Errorf("the editor got %q", got)
			}
			w.answer <- ended
			done()
		})
	}
}

// TestSlowEditor: a file that the editor does not read in the tool's time is refused, and the editor
// told so; a terminal that it creates later is ended, since the agent does not get it.
func TestSlowEditor(t *testing.T) {
	w := newWaits()
	began, proceed := make(chan struct{}, 1), make(chan struct{})
	files := files()
	files["tools.yaml"] = strings.ReplaceAll(files["tools.yaml"], "run: {type: demo}", "run: {type: demo, timeout: 100ms}")
	x := openProxy(t, plan{
		files: files, agent: map[string]answer{wire.MethodSessionPrompt: w.prompt},
		editor: map[string]answer{
			wire.MethodReadTextFile: hangs(began),
			wire.MethodTerminalCreate: func(context.Context, json.RawMessage) (any, *jsonrpc.Error) {
				<-proceed
				return json.RawMessage(`{"terminalId":"late"}`), nil
			},
		},
	})
	x.begin()
	done := x.prompt()
	if _, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`); !strings.HasPrefix(code(fault), "-32000 tool_") {
		t.Errorf("a slow read: %q", code(fault))
	}
	if _, fault := x.ask(x.agent, wire.MethodTerminalCreate, `{"sessionId":"s1","command":"x"}`); !strings.HasPrefix(code(fault), "-32000 ") {
		t.Errorf("a slow terminal: %q", code(fault))
	}
	close(proceed)
	if _, fault := x.ask(x.agent, wire.MethodTerminalOutput, `{"sessionId":"s1","terminalId":"late"}`); code(fault) != "-32000 not_found" {
		t.Errorf("a terminal that the agent did not get: %q", code(fault))
	}
	w.answer <- ended
	done()
}

// TestEditorsError: the code of an error of the editor reaches the agent, which takes it for "there
// is no such file"; its data do not.
func TestEditorsError(t *testing.T) {
	x := openProxy(t, plan{editor: map[string]answer{wire.MethodReadTextFile: func(context.Context, json.RawMessage) (any, *jsonrpc.Error) {
		return nil, &jsonrpc.Error{Code: wire.CodeNotFound, Message: "no such file", Data: map[string]string{"x": "SECRET"}}
	}}})
	x.begin()
	_, fault := x.ask(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`)
	if code(fault) != "-32002 tool_failed" || fault.Message != "no such file" || strings.Contains(string(fault.Data.(json.RawMessage)), "SECRET") {
		t.Errorf("%+v", fault)
	}
}

// TestHostileAgent: lines that are no messages, and messages that are no answers, end nothing and
// pass nothing.
func TestHostileAgent(t *testing.T) {
	w := newWaits()
	x := openProxy(t, plan{agent: map[string]answer{wire.MethodSessionPrompt: w.prompt}})
	x.begin()
	done := x.prompt()
	for _, line := range []string{
		"hello", "{}", "[]", `{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":"editor-99","result":{}}`, `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`,
		`{"jsonrpc":"2.0","id":"editor-3","id":"editor-3","result":{"stopReason":"end_turn"}}`, `{"jsonrpc":"1.0","id":"editor-98","result":{"stopReason":"end_turn"}}`,
		`{"jsonrpc":"2.0","id":"editor-3","result":{"stopReason":"end_turn"},"x":1}x`, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1"}}`,
		`{"jsonrpc":"2.0","method":"session/update"}`, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}`, strings.Repeat("x", 9<<20),
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s2","update":{"sessionUpdate":"current_mode_update","currentModeId":"yolo"}}}`,
	} {
		if _, err := x.raw.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	x.must(x.agent, wire.MethodReadTextFile, `{"sessionId":"s1","path":"/w/a"}`) // it still works
	if got := x.editorGot(wire.MethodSessionUpdate); len(got) != 0 {
		t.Errorf("the editor got %q", got)
	}
	w.answer <- ended
	if result, fault := done(); fault != nil || result != ended {
		t.Errorf("%s %v", result, fault)
	}
}
