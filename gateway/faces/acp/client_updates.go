package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/acpreport"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

// view shows a run to the client as it happens. It is for the goroutine of the run.
type view struct {
	exchange  *exchange
	admission *gateway.Admission
	message   string      // the id of the message of the turn; empty before its first piece
	thought   string      // the same of its reasoning
	turn      *turns.Turn // that was judged last
	calls     []shownCall // of it, by its inputs
}

// shownCall is a call that the client was shown; without an id the input is none.
type shownCall struct {
	id        string
	tool      *registry.Entry // nil: it was shown without its arguments
	waitShown bool            // the client was told that it waits for people
	replaces  *replaced       // nil: it writes no file, or the client does not read files
}

// replaced is the text of a file before a call writes it, as report.Replacing takes it.
type replaced struct {
	text  *string
	known bool
}

// show sends an update, and remembers it.
func (v *view) show(u wire.Update) {
	v.exchange.session.shown.add(u)
	v.exchange.send(u)
}

// BeginTurn has the next piece begin a message.
func (v *view) BeginTurn() { v.message, v.thought = "", "" }

// Text shows a piece of the answer.
func (v *view) Text(text []byte) {
	if v.message == "" {
		v.message = rand.Text()
	}
	chunk := wire.AgentMessage(string(text))
	chunk.MessageID = v.message
	v.show(chunk)
}

// Reasoning shows a piece of what the model thought.
func (v *view) Reasoning(text string) {
	if v.thought == "" {
		v.thought = rand.Text()
	}
	chunk := wire.AgentThought(text)
	chunk.MessageID = v.thought
	v.show(chunk)
}

// note shows why a run has ended, as a message of its own.
func (v *view) note(text string, refused *refusal.Error) {
	if text == "" {
		text = "Callgate has ended this turn. " + string(refused.Code) + ": " + refused.Message
	}
	v.BeginTurn()
	v.Text([]byte(text))
}

// Judged shows the calls of a turn. Those that are refused end with the turn.
func (v *view) Judged(t *turns.Turn) {
	v.turn = t
	v.showUsage(t.Tokens)
	reports := t.Decisions[0].Reports
	v.calls = make([]shownCall, len(reports))
	for i := range reports {
		p := &reports[i]
		if !p.HasTool {
			continue
		}
		c := &v.calls[i]
		c.id = p.CallID
		call := wire.ToolCall{ToolCallID: c.id}
		if p.Call == nil {
			call.Title, call.ToolDetails = report.Unknown(p.Tool)
		} else {
			call.Title, call.ToolDetails = v.describe(c, p.Call.Tool, p.Call.Version, p.Call.Arguments)
			if p.Refusal == nil || p.ApprovalRequest != nil { // it may run
				v.readReplaced(c, p.Call.Arguments, &call.ToolDetails)
			}
		}
		call.Status = wire.Pending
		v.show(call)
	}
}

// showUsage tells the client how full the context of the model is, where that is known. A turn
// takes the whole conversation, and its answer joins it.
func (v *view) showUsage(tokens int64) {
	if size := v.exchange.session.conn.face.options.ContextTokens; size > 0 && tokens > 0 {
		v.exchange.send(wire.UsageUpdate{Used: uint64(tokens), Size: size})
	}
}

// describe describes a call whose arguments are valid.
func (v *view) describe(call *shownCall, tool, version string, arguments []byte) (title string, d wire.ToolDetails) {
	s := v.exchange.session
	entry, err := s.conn.face.options.Turns.Executor.Kernel.ToolVersion(tool, version)
	if err != nil || entry == nil { // it was taken out of the configuration
		return report.Unknown(tool)
	}
	call.tool = entry
	bounds, _ := v.admission.Bounds() // without any, relative paths lead nowhere
	title, d = report.Describe(entry, arguments, bounds.Roots)
	if call.replaces != nil && d.Content != nil {
		d.Content = report.Replacing(d.Content, call.replaces.text, call.replaces.known)
	}
	return title, d
}

// readReplaced has the client read the file that a call is about to write, for the diff that its user
// sees. The model does not get it.
func (v *view) readReplaced(call *shownCall, arguments []byte, d *wire.ToolDetails) {
	client := v.exchange.client()
	if len(d.Content) != 1 || d.Content[0].Type != wire.Diff || !client.Offers(wire.MethodReadTextFile) {
		return
	}
	call.replaces = &replaced{}
	var file struct{ Path string }
	// Of a path with .. the diff may name another file than was judged, since links come first.
	if json.Unmarshal(arguments, &file) == nil && !slices.Contains(strings.Split(file.Path, "/"), "..") {
		call.replaces.text, call.replaces.known = delegate.OldText(v.exchange.ctx, client.call, client.session, d.Content[0].Path)
	}
	d.Content = report.Replacing(d.Content, call.replaces.text, call.replaces.known)
}

// Running shows that the calls run.
func (v *view) Running(t *turns.Turn) {
	for i := range t.Decisions[0].Reports {
		p, call := &t.Decisions[0].Reports[i], &v.calls[i]
		if call.id == "" || p.Call == nil {
			continue
		}
		u := wire.ToolCallUpdate{ToolCallID: call.id}
		if call.tool == nil || call.waitShown {
			title := ""
			title, u.ToolDetails = v.describe(call, p.Call.Tool, p.Call.Version, p.Call.Arguments)
			if u.Title = &title; u.Content == nil {
				u.Content = []wire.ToolContent{} // the call waits no longer
			}
		}
		u.Status = wire.InProgress
		v.show(u)
	}
}

// showTerminal shows the terminal in which the command of a call runs, until its output is shown. A session
// that is loaded has it no longer. It is for the goroutine of the call, while the run waits for it.
func (v *view) showTerminal(callID string, created json.RawMessage) {
	terminal, err := wire.Read[wire.CreateTerminalResponse](created)
	if err != nil || !slices.ContainsFunc(v.calls, func(c shownCall) bool { return c.id != "" && c.id == callID }) {
		return
	}
	content := []wire.ToolContent{{Type: wire.Terminal, TerminalID: terminal.TerminalID}}
	v.exchange.send(wire.ToolCallUpdate{ToolCallID: callID, ToolDetails: wire.ToolDetails{Content: content}})
}

// Ended shows what became of the calls.
func (v *view) Ended(_ *turns.Turn, outcomes []calls.Outcome) {
	for i := range outcomes {
		o, call := &outcomes[i], &v.calls[i]
		if call.id == "" {
			continue
		}
		u := wire.ToolCallUpdate{ToolCallID: call.id}
		switch {
		case o.Value.Line != nil:
			u.ToolDetails = report.Result(call.tool, o.Value)
		case o.Refusal != nil:
			u.ToolDetails = report.Refused(o.Refusal)
		default: // the tool has taken the call, and answers later
			u.Status, u.Content = wire.Completed, []wire.ToolContent{wire.TextContent(acceptedCall)}
		}
		v.show(u)
	}
}

// acceptedCall is what is shown of a call whose tool answers after the prompt.
const acceptedCall = "The tool has taken the call, and has not answered yet."

// ask asks the client of a call that waits for people, or tells it where approvers decide.
func (v *view) ask(ctx context.Context, q approvals.Question) *approvals.Ballot {
	s := v.exchange.session
	call := v.waiting(q.ID)
	if call == nil {
		return nil
	}
	call.waitShown = true
	u := wire.ToolCallUpdate{ToolCallID: call.id}
	if len(q.Arguments) > 0 {
		title := ""
		title, u.ToolDetails = v.describeQuestion(call, q)
		u.Title = &title
	}
	u.Content = append(u.Content, report.Waiting(q, s.conn.face.options.Turns.Executor.Kernel.ApprovalURL(q.ID))...)
	v.show(u)
	if !report.MayAsk(q) {
		return nil
	}
	options := report.Options(q)
	raw, err := s.conn.call(ctx, wire.MethodRequestPermission,
		wire.RequestPermissionRequest{SessionID: s.id, ToolCall: u, Options: options})
	if err != nil {
		return nil
	}
	response, err := wire.Read[wire.RequestPermissionResponse](raw)
	if err != nil {
		return nil
	}
	return report.Ballot(q, options, response.Outcome)
}

// describeQuestion describes a call that waits for people; its secrets are redacted already.
func (v *view) describeQuestion(call *shownCall, q approvals.Question) (title string, d wire.ToolDetails) {
	tool, err := v.admission.Tool(q.Tool)
	if err != nil || tool == nil {
		return report.Unknown(q.Tool)
	}
	return v.describe(call, tool.Name, tool.Version, q.Arguments)
}

// waiting is the shown call that waits for an approval.
func (v *view) waiting(approval string) *shownCall {
	reports := v.turn.Decisions[0].Reports
	for i := range v.calls {
		if i < len(reports) && reports[i].ApprovalRequest != nil && reports[i].ApprovalRequest.ID == approval && v.calls[i].id != "" {
			return &v.calls[i]
		}
	}
	return nil
}
