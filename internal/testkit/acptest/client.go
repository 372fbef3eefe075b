package acptest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// Option is one option of a request for a permission.
type Option struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

// Editor is a scripted client: files in memory, terminals that run nothing, and answers to
// what it is asked.
type Editor struct {
	*Peer

	mu       sync.Mutex
	files    map[string]string
	commands []string
	choose   func(options []Option) (optionID string)
	hangs    bool

	cancelled atomic.Bool
}

// NewEditor returns an Editor for a connection, which chooses the option of the kind
// allow_once.
func NewEditor(t Reporter, in io.Reader, out io.Writer) *Editor {
	e := &Editor{files: map[string]string{}, choose: OfKind("allow_once")}
	e.Peer = NewPeer(t, in, out, map[string]Handler{
		"fs/read_text_file":          e.read,
		"fs/write_text_file":         e.write,
		"session/request_permission": e.permit,
		"terminal/create":            e.create,
		"terminal/output":            e.output,
		"terminal/wait_for_exit":     e.wait,
		"terminal/kill":              e.kill,
		"terminal/release":           func(json.RawMessage) (any, *Error) { return struct{}{}, nil },
	})
	return e
}

// OfKind chooses the first option of a kind, and cancels where there is none.
func OfKind(kind string) func([]Option) string {
	return func(options []Option) string {
		for _, o := range options {
			if o.Kind == kind {
				return o.OptionID
			}
		}
		return ""
	}
}

// Choose sets the choice of an option; "" cancels.
func (e *Editor) Choose(choose func(options []Option) (optionID string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.choose = choose
}

// Ponder chooses nothing until a turn is cancelled or the connection ends.
func (e *Editor) Ponder([]Option) string {
	e.Await(func(Message) bool { return e.cancelled.Load() })
	return ""
}

// Cancel cancels the turn of a session, and with it every choice that is pondered.
func (e *Editor) Cancel(session string) {
	e.Notify("session/cancel", map[string]string{"sessionId": session})
	e.cancelled.Store(true)
	e.Wake()
}

// Hang has commands run until they are killed.
func (e *Editor) Hang() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hangs = true
}

// Put writes a file, as if a person had.
func (e *Editor) Put(path, content string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.files[path] = content
}

// File is the content of a file.
func (e *Editor) File(path string) (content string, there bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	content, there = e.files[path]
	return content, there
}

// Commands are the command lines that were run, in order.
func (e *Editor) Commands() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.commands...)
}

// requestParams are the parameters of what an agent asks for.
type requestParams struct {
	Path       string
	Content    string
	Line       int
	Limit      *int
	Command    string
	Args       []string
	Options    []Option
	TerminalID string
}

// readRequestParams reads parameters that the recorder holds against the schema.
func readRequestParams(params json.RawMessage) (a requestParams) {
	_ = json.Unmarshal(params, &a)
	return a
}

func (e *Editor) read(params json.RawMessage) (any, *Error) {
	a := readRequestParams(params)
	content, there := e.File(a.Path)
	if !there {
		return nil, &Error{Code: -32002, Message: "there is no such file"}
	}
	lines := strings.SplitAfter(content, "\n")
	if a.Line > 1 {
		lines = lines[min(a.Line-1, len(lines)):]
	}
	if a.Limit != nil {
		lines = lines[:min(*a.Limit, len(lines))]
	}
	return map[string]string{"content": strings.Join(lines, "")}, nil
}

func (e *Editor) write(params json.RawMessage) (any, *Error) {
	a := readRequestParams(params)
	e.Put(a.Path, a.Content)
	return struct{}{}, nil
}

func (e *Editor) permit(params json.RawMessage) (any, *Error) {
	e.mu.Lock()
	choose := e.choose
	e.mu.Unlock()
	outcome := map[string]string{"outcome": "cancelled"}
	if id := choose(readRequestParams(params).Options); id != "" {
		outcome = map[string]string{"outcome": "selected", "optionId": id}
	}
	return map[string]any{"outcome": outcome}, nil
}

func (e *Editor) create(params json.RawMessage) (any, *Error) {
	a := readRequestParams(params)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.commands = append(e.commands, strings.Join(append([]string{a.Command}, a.Args...), " "))
	return map[string]string{"terminalId": fmt.Sprintf("terminal-%d", len(e.commands))}, nil
}

func (e *Editor) output(json.RawMessage) (any, *Error) {
	return map[string]any{"output": "ok\n", "truncated": false}, nil
}

func (e *Editor) wait(params json.RawMessage) (any, *Error) {
	e.mu.Lock()
	hangs := e.hangs
	e.mu.Unlock()
	if !hangs {
		return map[string]any{"exitCode": 0, "signal": nil}, nil
	}
	id := readRequestParams(params).TerminalID
	e.Await(func(m Message) bool {
		return m.Method == "terminal/kill" && readRequestParams(m.Params).TerminalID == id
	})
	return map[string]any{"exitCode": nil, "signal": "SIGKILL"}, nil
}

func (e *Editor) kill(json.RawMessage) (any, *Error) { return struct{}{}, nil }

// everything are the capabilities of an Editor.
var everything = json.RawMessage(`{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}`)

// Initialize initializes a connection with capabilities; nil: with all that an Editor has.
func (e *Editor) Initialize(capabilities json.RawMessage) (result json.RawMessage) {
	e.t.Helper()
	if capabilities == nil {
		capabilities = everything
	}
	e.Call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": capabilities,
		"clientInfo": map[string]string{"name": "editor", "version": "1"}}, &result)
	return result
}

// Session opens a session in a folder.
func (e *Editor) Session(cwd string) (id string) {
	e.t.Helper()
	var result struct{ SessionID string }
	e.Call("session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}}, &result)
	return result.SessionID
}

// Prompt sends a text, and waits for the end of the turn.
func (e *Editor) Prompt(session, text string) (stop string) {
	e.t.Helper()
	var result struct{ StopReason string }
	e.Call("session/prompt", TextPrompt(session, text), &result)
	return result.StopReason
}

// TextPrompt are the parameters of a prompt of text.
func TextPrompt(session, text string) any {
	return map[string]any{"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}}}
}

// Call is one tool call as an editor shows it: its updates put together.
type Call struct {
	ToolCallID string
	Name       string
	Title      string
	Kind       string
	Statuses   []string // in order, each once
	Content    json.RawMessage
	Locations  json.RawMessage
	RawInput   json.RawMessage
	RawOutput  json.RawMessage
}

// Status is the last status.
func (c Call) Status() string { return c.Statuses[len(c.Statuses)-1] }

// Calls are the tool calls of a session so far, in the order in which they were reported.
func (e *Editor) Calls(session string) (calls []Call) {
	for _, m := range e.Got("session/update") {
		var u struct {
			SessionID string
			Update    struct {
				SessionUpdate string
				Call
				Status string
			}
		}
		if json.Unmarshal(m.Params, &u) != nil || u.SessionID != session || u.Update.ToolCallID == "" {
			continue
		}
		at := len(calls)
		for i, c := range calls {
			if c.ToolCallID == u.Update.ToolCallID {
				at = i
			}
		}
		if at == len(calls) {
			calls = append(calls, Call{ToolCallID: u.Update.ToolCallID, Kind: "other"})
			if u.Update.Status == "" {
				u.Update.Status = "pending"
			}
		}
		calls[at].add(u.Update.Call, u.Update.Status)
	}
	return calls
}

// add changes a call by an update, whose absent members change nothing.
func (c *Call) add(u Call, status string) {
	for into, from := range map[*string]string{&c.Name: u.Name, &c.Title: u.Title, &c.Kind: u.Kind} {
		if from != "" {
			*into = from
		}
	}
	for into, from := range map[*json.RawMessage]json.RawMessage{&c.Content: u.Content, &c.Locations: u.Locations, &c.RawInput: u.RawInput,
		&c.RawOutput: u.RawOutput} {
		if from != nil {
			*into = from
		}
	}
	if n := len(c.Statuses); status != "" && (n == 0 || c.Statuses[n-1] != status) {
		c.Statuses = append(c.Statuses, status)
	}
}

// Text is the text of the agent in a session so far, without its thoughts.
func (e *Editor) Text(session string) string {
	var b strings.Builder
	for _, m := range e.Got("session/update") {
		var u struct {
			SessionID string
			Update    struct {
				SessionUpdate string
				Content       json.RawMessage
			}
		}
		if json.Unmarshal(m.Params, &u) != nil || u.SessionID != session || u.Update.SessionUpdate != "agent_message_chunk" {
			continue
		}
		var content struct{ Text string }
		_ = json.Unmarshal(u.Update.Content, &content)
		b.WriteString(content.Text)
	}
	return b.String()
}
