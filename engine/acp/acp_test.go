package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// editor is a client that keeps the last request, as JSON.
type editor struct {
	without string // the method that it does not offer
	err     error
	hangs   bool
	ran     delegate.Command
	content string
	asked   string
}

func (e *editor) Offers(method string) bool { return method != e.without }

func (e *editor) keep(ctx context.Context, request any) error {
	raw, err := json.Marshal(request)
	e.asked = string(raw)
	if e.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.Join(err, e.err)
}

func (e *editor) ReadTextFile(ctx context.Context, r wire.ReadTextFileRequest) (wire.ReadTextFileResponse, error) {
	return wire.ReadTextFileResponse{Content: e.content}, e.keep(ctx, r)
}

func (e *editor) WriteTextFile(ctx context.Context, r wire.WriteTextFileRequest) error {
	return e.keep(ctx, r)
}

func (e *editor) RunCommand(ctx context.Context, r wire.CreateTerminalRequest) (delegate.Command, error) {
	return e.ran, e.keep(ctx, r)
}

const read, write, terminal = wire.MethodReadTextFile, wire.MethodWriteTextFile, wire.MethodTerminalCreate

func run(ctx context.Context, method, arguments string) (tool.Result, error) {
	effect := "once"
	if method == read {
		effect = "read"
	}
	return engine.New(engine.Options{}).Run(ctx, tool.Call{
		Tool: "t", Effect: effect, Arguments: []byte(arguments), Roots: []string{"/root", "/other"},
		Run: tool.Run{Type: "acp", Tool: method, Timeout: time.Minute, MaxResultBytes: 100},
	})
}

// TestACP70Files and its neighbours: a call becomes the request of its method, and the client's
// answer the result.
func TestACP70Files(t *testing.T) {
	code := uint32(3)
	ended := delegate.Command{Output: wire.TerminalOutputResponse{Output: "o", Truncated: true, ExitStatus: &wire.TerminalExitStatus{ExitCode: &code}}, TimedOut: true}
	for _, c := range []struct {
		client                          editor
		method, arguments, asks, result string
	}{
		{editor{content: "text\n"}, read, `{"path":"/root/a","line":2,"limit":0}`, `{"sessionId":"session","path":"/root/a","line":2,"limit":0}`, `{"content":"text\n"}`},
		{editor{}, read, `{"path":"/root/a/../b"}`, `{"sessionId":"session","path":"/root/a/../b"}`, `{"content":""}`},
		{editor{}, read, `{"path":"a/../b"}`, `{"sessionId":"session","path":"/root/a/../b"}`, `{"content":""}`},
		{editor{}, write, `{"path":"a","content":""}`, `{"sessionId":"session","path":"/root/a","content":""}`, `{}`},
		{editor{ran: delegate.Command{ID: "t1"}}, terminal, `{"command":"go"}`, `{"sessionId":"session","command":"go"}`, `{"terminalId":"t1"}`},
		{editor{ran: ended}, terminal, `{"command":"go","args":["test",""],"env":{"B":"","A":"é"},"cwd":".","outputByteLimit":7}`,
			`{"sessionId":"session","command":"go","args":["test",""],"env":[{"name":"A","value":"é"},{"name":"B","value":""}],"cwd":"/root/.","outputByteLimit":7}`,
			`{"output":"o","truncated":true,"exit":{"exitCode":3},"timed_out":true}`},
	} {
		got, err := run(delegate.WithClient(t.Context(), &c.client), c.method, c.arguments)
		if err != nil || string(got.Body) != c.result || !got.JSON || got.Attempts != 1 {
			t.Errorf("%s: %s, %v; expected %s", c.arguments, got.Body, err, c.result)
		}
		if c.client.asked != c.asks {
			t.Errorf("%s asks %s; expected %s", c.arguments, c.client.asked, c.asks)
		}
	}
}

// TestRefusals: what a client answers, or does not, decides what a call reports. A call that may
// have acted is never taken for one that has not.
func TestRefusals(t *testing.T) {
	lost := errors.New("the connection is lost")
	for name, c := range map[string]struct {
		client            *editor
		method, arguments string
		code              refusal.Code
		says              string
		attempts          int
	}{
		"no client":              {nil, read, `{"path":"/a"}`, refusal.ToolUnavailable, "ACP session", 0},
		"not offered":            {&editor{without: read}, read, `{"path":"/a"}`, refusal.ToolUnavailable, "does not offer", 0},
		"another method":         {&editor{}, "fs/delete", `{"path":"/a"}`, refusal.ToolUnavailable, "", 0},
		"not sent":               {&editor{err: fmt.Errorf("closed: %w", delegate.ErrNotSent)}, write, `{"path":"/a","content":""}`, refusal.ToolUnavailable, "", 0},
		"refused by the client":  {&editor{err: &delegate.Refused{Code: -32002, Message: "no such \u202e file"}}, read, `{"path":"/a"}`, refusal.ToolFailed, `(error -32002): "no such \u202e file"`, 1},
		"no answer to a write":   {&editor{err: lost}, write, `{"path":"/a","content":""}`, refusal.OutcomeUnknown, "", 1},
		"no answer to a command": {&editor{err: lost}, terminal, `{"command":"c"}`, refusal.OutcomeUnknown, "", 1},
		"no answer to a read":    {&editor{err: lost}, read, `{"path":"/a"}`, refusal.ToolUnavailable, "", 1},
		"a wrong answer":         {&editor{err: &wire.Error{Expected: "an object", Found: "null"}}, read, `{"path":"/a"}`, refusal.InvalidResult, "", 1},
		"too much":               {&editor{content: strings.Repeat("x", 100)}, read, `{"path":"/a"}`, refusal.ResultTooLarge, "", 1},
		"an argument too many":   {&editor{}, read, `{"path":"/a","encoding":"latin1"}`, refusal.ToolFailed, "no other members", 0},
		"a session":              {&editor{}, read, `{"path":"/a","sessionId":"other"}`, refusal.ToolFailed, "sessionId", 0},
		"meta":                   {&editor{}, read, `{"path":"/a","_meta":{}}`, refusal.ToolFailed, "_meta", 0},
		"line 0":                 {&editor{}, read, `{"path":"/a","line":0}`, refusal.ToolFailed, "/line", 0},
		"a list of variables":    {&editor{}, terminal, `{"command":"c","env":[]}`, refusal.ToolFailed, "/env", 0},
		"a path that is none":    {&editor{}, write, `{"path":7,"content":""}`, refusal.ToolFailed, "/path", 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.client != nil {
				ctx = delegate.WithClient(ctx, c.client)
			}
			got, err := run(ctx, c.method, c.arguments)
			var refused *refusal.Error
			if !errors.As(err, &refused) || refused.Code != c.code || !strings.Contains(refused.Message, c.says) {
				t.Fatalf("%v; expected %s with %q", err, c.code, c.says)
			}
			if got.Attempts != c.attempts || len(got.Body) > 0 {
				t.Errorf("%d attempts and %q; expected %d and no result", got.Attempts, got.Body, c.attempts)
			}
			if c.attempts == 0 && c.client != nil && c.client.err == nil && c.client.asked != "" {
				t.Errorf("the client was asked %s", c.client.asked)
			}
		})
	}
}

// TestTimeout: a client that does not answer in time leaves a read without a result, and the
// outcome of a write unknown.
func TestTimeout(t *testing.T) {
	for method, code := range map[string]refusal.Code{read: refusal.ToolTimeout, write: refusal.OutcomeUnknown} {
		ctx, cancel := context.WithTimeout(delegate.WithClient(t.Context(), &editor{hangs: true}), 20*time.Millisecond)
		_, err := run(ctx, method, map[string]string{read: `{"path":"/a"}`, write: `{"path":"/a","content":""}`}[method])
		cancel()
		var refused *refusal.Error
		if !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("%s: %v; expected %s", method, err, code)
		}
	}
}

// TestWithoutRoots: a relative path of a project without roots is not sent.
func TestWithoutRoots(t *testing.T) {
	client := &editor{}
	_, err := engine.New(engine.Options{}).Run(delegate.WithClient(t.Context(), client), tool.Call{
		Tool: "t", Arguments: []byte(`{"path":"a"}`), Run: tool.Run{Type: "acp", Tool: read},
	})
	if err == nil || client.asked != "" {
		t.Errorf("%v; the client was asked %q", err, client.asked)
	}
}
