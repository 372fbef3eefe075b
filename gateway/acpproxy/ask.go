package acpproxy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/acp/report"
	"github.com/callgate/callgate/acp/wire"
	"github.com/callgate/callgate/elicitation"
	"github.com/callgate/callgate/gateway/acpproxy/internal/attribution"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/wrapper"
)

// asker asks the user of the editor what a call waits for that a rule lets the caller answer. The
// tool call that show makes is what the user sees: until the answer, the agent cannot replace it. A cancelled
// question, an error and an option that was not offered are no answer: the call is not allowed.
func (p *Proxy) asker(s *session, show func(approvals.Question) wire.ToolCallUpdate) func(context.Context, approvals.Question) approvals.CallerAnswer {
	return func(ctx context.Context, q approvals.Question) approvals.CallerAnswer {
		if !report.MayAsk(q) {
			return approvals.CallerAnswer{Wait: p.options.Executor.ApprovalWait()} // for approvers
		}
		options := report.Options(q)
		update := show(q)
		question := update
		if q.Secret { // what is shown beside the arguments may hold them
			question.Title, question.Content, question.Locations = &q.Tool, nil, nil
		} else if !strings.HasPrefix(q.Tool, ownTools) { // the title is the agent's, and was not judged
			title := report.Line(q.Tool + ": " + *update.Title)
			question.Title = &title
		}
		question.RawInput = q.Arguments
		question.Content = slices.Clone(question.Content)
		for _, hint := range q.Hints {
			question.Content = append(question.Content, wire.TextContent(hint))
		}
		defer s.showing(question.ToolCallID)()
		raw, err := p.call(ctx, wire.MethodRequestPermission, wire.RequestPermissionRequest{SessionID: s.id, ToolCall: question, Options: options})
		if err != nil {
			return approvals.CallerAnswer{}
		}
		answer, err := wire.ReadRequestPermissionResponse(raw)
		if err != nil {
			return approvals.CallerAnswer{}
		}
		return approvals.CallerAnswer{Ballot: report.Ballot(q, options, answer.Outcome)}
	}
}

// answersRules is the exchange with a user who can be asked: rules by the caller pass by it.
func answersRules() *elicit.Dialogue {
	return &elicit.Dialogue{QuestionKinds: []string{elicitation.Form}}
}

// shownCall is a tool call of the agent as the user is asked about it: what was judged, with the
// content that the agent shows.
func (p *Proxy) shownCall(s *session, described attribution.Report, r wire.ToolCallUpdate) wire.ToolCallUpdate {
	title := report.Line(described.Title)
	r.Title, r.Name, r.Kind, r.Status, r.RawInput = &title, described.Name, described.Kind, wire.Pending, described.Input
	r.RawOutput, r.Meta = nil, nil
	r.Content = p.ownTerminals(s, slices.Clone(r.Content))
	for i := range r.Content {
		r.Content[i].Meta, r.Content[i].Content = nil, plain(r.Content[i].Content)
	}
	r.Locations = []wire.ToolLocation{} // also without paths, since none leaves those that were shown before
	for _, path := range described.Paths() {
		r.Locations = append(r.Locations, wire.ToolLocation{Path: path})
	}
	return r
}

// always shows a question as one tool call.
func always(update wire.ToolCallUpdate) func(approvals.Question) wire.ToolCallUpdate {
	return func(approvals.Question) wire.ToolCallUpdate { return update }
}

// toolCall shows a request for a file or a terminal to the user who is asked about it: as it was
// judged, which hooks may have left less of than the agent sent. Its id is none that the agent could
// have reported something of.
func (r *request) toolCall() func(approvals.Question) wire.ToolCallUpdate {
	id := "callgate-" + rand.Text()
	return func(q approvals.Question) wire.ToolCallUpdate {
		title, kind := r.tool, wire.KindExecute
		call := wire.ToolCallUpdate{ToolCallID: id}
		if _, ofFile := r.arguments.(fileArguments); ofFile {
			var a fileArguments
			if json.Unmarshal(q.Arguments, &a) == nil {
				title, kind = "Read "+a.Path, wire.KindRead
				call.Locations = []wire.ToolLocation{{Path: a.Path}}
			}
			if a.Content != nil {
				title, kind = "Write "+a.Path, wire.KindEdit
				call.Content = []wire.ToolContent{{Type: wire.Diff, Path: a.Path, NewText: *a.Content}}
			}
		} else {
			var a commandArguments
			if json.Unmarshal(q.Arguments, &a) == nil {
				title = "Run " + report.CommandLine(a.Command, a.Args...)
			}
			if a.Cwd != "" {
				call.Content = append(call.Content, wire.TextContent(wrapper.EscapeText("In the folder "+strconv.Quote(a.Cwd))))
			}
			for _, name := range slices.Sorted(maps.Keys(a.Env)) {
				call.Content = append(call.Content, wire.TextContent(wrapper.EscapeText("With the variable "+strconv.Quote(name+"="+a.Env[name]))))
			}
		}
		title = report.Line(title)
		call.Title, call.Kind, call.Status = &title, kind, wire.Pending
		return call
	}
}
