package acpproxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/callgate/callgate/acp/report"
	"github.com/callgate/callgate/acp/wire"
	"github.com/callgate/callgate/elicitation"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/elicit"
)

// asker asks the user of the editor what a call waits for that a rule lets the caller answer. The
// tool call is what the user sees. A cancelled question, an error and an option that was not
// offered are no answer: the call is not allowed.
func (p *Proxy) asker(s *session, shown wire.ToolCallUpdate) func(context.Context, approvals.Question) approvals.Said {
	return func(ctx context.Context, q approvals.Question) approvals.Said {
		if !report.MayAsk(q) {
			return approvals.Said{Wait: p.options.Executor.ApprovalWait()} // for approvers
		}
		options := report.Options(q)
		asked := shown
		asked.RawInput = q.Arguments
		asked.Content = slices.Clone(shown.Content)
		for _, hint := range q.Hints {
			asked.Content = append(asked.Content, wire.TextContent(hint))
		}
		raw, err := p.call(ctx, wire.MethodRequestPermission, wire.RequestPermissionRequest{SessionID: s.id, ToolCall: asked, Options: options})
		if err != nil {
			return approvals.Said{}
		}
		answer, err := wire.ReadRequestPermissionResponse(raw)
		if err != nil {
			return approvals.Said{}
		}
		return approvals.Said{Ballot: report.Ballot(q, options, answer.Outcome)}
	}
}

// answersRules is the exchange with a user who can be asked: rules by the caller pass by it.
func answersRules() *elicit.Dialogue {
	return &elicit.Dialogue{QuestionKinds: []string{elicitation.Form}}
}

// shownCall is a tool call of the agent as the user is asked about it: what was judged, with the
// content that the agent shows.
func shownCall(described toolReport, r wire.ToolCallUpdate) wire.ToolCallUpdate {
	r.Title, r.Kind, r.Status, r.RawInput = &described.Title, described.Kind, wire.Pending, described.Input
	r.Locations = nil
	for _, path := range described.paths() {
		r.Locations = append(r.Locations, wire.ToolLocation{Path: path})
	}
	return r
}

// toolCall is a request for a file or a terminal as the user is asked about it.
func (r *request) toolCall() wire.ToolCallUpdate {
	title, kind := r.tool, wire.KindExecute
	call := wire.ToolCallUpdate{ToolCallID: fmt.Sprintf("callgate-%d", r.proxy.asking.Add(1))}
	switch a := r.arguments.(type) {
	case fileArguments:
		if title, kind = "Read "+a.Path, wire.KindRead; a.Content != nil {
			title, kind = "Write "+a.Path, wire.KindEdit
			call.Content = []wire.ToolContent{{Type: wire.Diff, Path: a.Path, NewText: *a.Content}}
		}
		call.Locations = []wire.ToolLocation{{Path: a.Path}}
	case commandArguments:
		title = "Run " + a.Command
		for _, arg := range a.Args {
			title += " " + arg
		}
	}
	call.Title, call.Kind, call.Status = &title, kind, wire.Pending
	return call
}
