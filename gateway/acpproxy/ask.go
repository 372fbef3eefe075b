package acpproxy

import (
	"context"
	"fmt"
	"time"

	"github.com/callgate/callgate/acp/wire"
	"github.com/callgate/callgate/gateway/approvals"
)

// maxStands is how long a yes of a user stands at most.
const maxStands = time.Hour

// asker asks the user of the editor what a call waits for that a rule lets the caller answer. The
// tool call is what the user sees. A cancelled question, an error and an option that was not
// offered are no answer: the call is not allowed.
func (p *Proxy) asker(s *session, shown wire.ToolCallUpdate) func(context.Context, approvals.Question) approvals.Said {
	return func(ctx context.Context, q approvals.Question) approvals.Said {
		if len(q.Rules) == 0 || len(q.Arguments) == 0 { // approvers decide, or nothing can be shown
			return approvals.Said{Wait: p.options.Executor.ApprovalWait()}
		}
		options := userOptions(q)
		shown.RawInput = q.Arguments
		for _, hint := range q.Hints {
			shown.Content = append(shown.Content, wire.TextContent(hint))
		}
		raw, err := p.call(ctx, wire.MethodRequestPermission, wire.RequestPermissionRequest{SessionID: s.id, ToolCall: shown, Options: options})
		if err != nil {
			return approvals.Said{}
		}
		answer, err := wire.ReadRequestPermissionResponse(raw)
		if err != nil || answer.Outcome.Outcome != wire.OutcomeSelected {
			return approvals.Said{}
		}
		for _, o := range options {
			if o.OptionID == answer.Outcome.OptionID {
				return approvals.Said{Ballot: ballotOf(q, o.Kind)}
			}
		}
		return approvals.Said{}
	}
}

// userOptions are the options of a user: a yes that stands only where the rule lets it.
func userOptions(q approvals.Question) []wire.PermissionOption {
	options := []wire.PermissionOption{{OptionID: string(wire.AllowOnce), Name: "Allow once", Kind: wire.AllowOnce}}
	if stands := min(q.Remember, maxStands).Truncate(time.Second); stands > 0 {
		options = append(options, wire.PermissionOption{
			OptionID: string(wire.AllowAlways), Name: fmt.Sprintf("Allow the same for %s", stands), Kind: wire.AllowAlways,
		})
	}
	return append(options, wire.PermissionOption{OptionID: string(wire.RejectOnce), Name: "Deny", Kind: wire.RejectOnce})
}

// ballotOf is the vote of a user by the kind of an option.
func ballotOf(q approvals.Question, kind wire.OptionKind) *approvals.Ballot {
	switch kind {
	case wire.AllowOnce:
		return q.Yes(0)
	case wire.AllowAlways:
		return q.Yes(min(q.Remember, maxStands).Truncate(time.Second))
	}
	return q.No()
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
