package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"github.com/callgate/callgate/acp/wire"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/refusal"
)

// view shows a run to the client while it goes on. It is for the goroutine of the run.
type view struct {
	exchange *exchange
	message  string      // the id of the message of the turn; empty before its first piece
	thought  string      // the same of its reasoning
	calls    []shownCall // of the turn, by its inputs
	reports  []gateway.Report
	asking   *turns.Turn // that was judged last
}

// shownCall is a call that the client was shown; without an id the input is none.
type shownCall struct {
	id    string
	input bool // with its arguments
	ended bool
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
	v.asking = t
	reports := t.Decisions[0].Reports
	v.calls = make([]shownCall, len(reports))
	for i := range reports {
		p := &reports[i]
		if !p.HasTool {
			continue
		}
		shown := &v.calls[i]
		shown.id = p.CallID
		call := wire.ToolCall{ToolCallID: shown.id}
		call.Title, call.ToolDetails = v.describe(p, p.Call)
		shown.input = p.Call != nil
		call.Status = wire.Pending
		v.show(call)
	}
}

// Running shows that the calls run.
func (v *view) Running(t *turns.Turn) {
	for i := range t.Decisions[0].Reports {
		p, shown := &t.Decisions[0].Reports[i], &v.calls[i]
		if shown.id == "" || p.Call == nil {
			continue
		}
		u := wire.ToolCallUpdate{ToolCallID: shown.id}
		if !shown.input {
			title := ""
			title, u.ToolDetails = v.describe(p, p.Call)
			u.Title, shown.input = &title, true
		}
		u.Status = wire.InProgress
		v.show(u)
	}
}

// Ended shows what became of the calls.
func (v *view) Ended(_ *turns.Turn, outcomes []calls.Outcome) {
	for i := range outcomes {
		o, shown := &outcomes[i], &v.calls[i]
		if shown.id == "" || shown.ended {
			continue
		}
		shown.ended = true
		u := wire.ToolCallUpdate{ToolCallID: shown.id}
		u.ToolDetails = resultOf(o)
		v.show(u)
	}
}

// ask asks the client of a call that waits for people, or tells it where approvers decide.
func (v *view) ask(ctx context.Context, q approvals.Question) *approvals.Ballot {
	id := v.idOf(q.ID)
	if id == "" {
		return nil
	}
	u := wire.ToolCallUpdate{ToolCallID: id}
	u.RawInput = q.Arguments
	text := "The call waits for approval; nothing was executed."
	if len(q.Rules) == 0 {
		text = "The call waits for the approval of: " + strings.Join(q.Others, ", ") + ". Nothing was executed."
	}
	if page := v.exchange.session.conn.face.options.Executor.ApprovalURL(q.ID); page != "" && len(q.Others) > 0 {
		text += "\n" + page
	}
	u.Content = []wire.ToolContent{wire.TextContent(text)}
	v.show(u)
	if len(q.Rules) == 0 || len(q.Arguments) == 0 {
		return nil
	}
	options := optionsOf(q)
	request := wire.RequestPermissionRequest{SessionID: v.exchange.session.id, ToolCall: u, Options: options}
	raw, err := v.exchange.session.conn.call(ctx, wire.MethodRequestPermission, request)
	if err != nil {
		return nil
	}
	said, err := wire.ReadRequestPermissionResponse(raw)
	if err != nil {
		return nil
	}
	return ballotOf(q, options, said.Outcome)
}

// idOf is the id of the shown call that waits for an approval.
func (v *view) idOf(approval string) string {
	reports := v.asking.Decisions[0].Reports
	for i := range reports {
		if reports[i].Asked != nil && reports[i].Asked.ID == approval && i < len(v.calls) {
			return v.calls[i].id
		}
	}
	return ""
}

// errNotSent is why a request of ours never reached the client.
var errNotSent = errors.New("the request was not sent")

// call sends a request to the client. When ctx ends the client is told that no answer is needed.
func (c *connection) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	p, err := c.conn.Start(ctx, method, params)
	if errors.Is(err, jsonrpc.ErrEnded) || err != nil && ctx.Err() != nil {
		return nil, errors.Join(errNotSent, err)
	}
	if err != nil {
		return nil, err
	}
	raw, err := p.Wait(ctx)
	if ctx.Err() != nil && err != nil {
		_ = c.conn.Notify(wire.MethodCancelRequest, struct {
			ID jsonrpc.ID `json:"requestId"`
		}{p.ID()})
	}
	return raw, err
}
