package acpproxy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/faces/acpproxy/internal/attribution"
	"github.com/callgate/callgate/gateway/faces/acpreport"
	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// asker asks the user of the editor what a call waits for that a rule lets the caller answer. The
// tool call that show makes is what the user sees: until the answer, the agent cannot replace it. A cancelled
// question, an error and an option that was not offered are no answer: the call is not allowed.
func (p *Proxy) asker(s *session, show func(context.Context,
	approvals.Question) wire.ToolCallUpdate) func(context.Context, approvals.Question) approvals.CallerAnswer {
	return func(ctx context.Context, q approvals.Question) approvals.CallerAnswer {
		if !report.MayAsk(q) {
			return approvals.CallerAnswer{Wait: p.options.Executor.Kernel.ApprovalWait()} // for approvers
		}
		options := report.Options(q)
		update := show(ctx, q)
		question := update
		if q.Secret { // what is shown beside the arguments may hold them
			question.Title, question.Content, question.Locations = &q.Tool, []wire.ToolContent{}, []wire.ToolLocation{}
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
		raw, err := p.call(ctx, wire.MethodRequestPermission,
			wire.RequestPermissionRequest{SessionID: s.id, ToolCall: question, Options: options})
		if err != nil {
			return approvals.CallerAnswer{}
		}
		answer, err := wire.Read[wire.RequestPermissionResponse](raw)
		if err != nil {
			return approvals.CallerAnswer{}
		}
		return approvals.CallerAnswer{Ballot: report.Ballot(q, options, answer.Outcome)}
	}
}

// answersRules is the exchange with a user who can be asked: rules by the caller pass by it.
func answersRules() *elicit.Dialogue {
	return &elicit.Dialogue{QuestionKinds: []string{tool.QuestionForm}}
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
func always(update wire.ToolCallUpdate) func(context.Context, approvals.Question) wire.ToolCallUpdate {
	return func(context.Context, approvals.Question) wire.ToolCallUpdate { return update }
}

// caller asks the user about a request for a file or a terminal, unless it is an edit that this user has
// approved in this turn.
func (r *request) caller() func(context.Context, approvals.Question) approvals.CallerAnswer {
	ask := r.proxy.asker(r.session, r.toolCall)
	return func(ctx context.Context, q approvals.Question) approvals.CallerAnswer {
		if ballot := r.approved(ctx, q); ballot != nil {
			return approvals.CallerAnswer{Ballot: ballot}
		}
		return ask(ctx, q)
	}
}

// approved is the ballot of the user for a write that does what a permission, which this user has given,
// was shown to do.
func (r *request) approved(ctx context.Context, q approvals.Question) *approvals.Ballot {
	var a fileArguments
	if r.tool != toolWrite || q.Secret || json.Unmarshal(q.Arguments, &a) != nil || a.Content == nil || !r.session.mayHaveApproved(a.Path) {
		return nil
	}
	old, known := r.oldText(ctx, a.Path)
	e, ok := r.session.takeApproved(func(e *approvedEdit) bool { return e.allows(q.Rules, a.Path, *a.Content, old, known) })
	if !ok {
		return nil
	}
	return q.Yes(min(e.remember, q.Remember))
}

// oldText is the text that the editor has of the file of the request.
func (r *request) oldText(ctx context.Context, path string) (text *string, known bool) {
	if !r.Offers(wire.MethodReadTextFile) {
		return nil, false
	}
	if r.old == nil {
		r.old = &oldText{}
		r.old.text, r.old.known = delegate.OldText(ctx, r.proxy.call, r.session.id, path)
	}
	return r.old.text, r.old.known
}

// toolCall shows a request for a file or a terminal to the user who is asked about it: as it was
// judged, which hooks may have left less of than the agent sent. It is the tool call that the agent has
// reported for it, of which nothing is left that the agent has shown, or one of its own that the editor
// is told of first, under an id that the agent could not have reported something of.
func (r *request) toolCall(ctx context.Context, q approvals.Question) wire.ToolCallUpdate {
	title, kind := r.tool, wire.KindExecute
	call := wire.ToolCallUpdate{}
	call.Locations, call.Content = []wire.ToolLocation{}, []wire.ToolContent{}
	command := ""
	if _, ofFile := r.arguments.(fileArguments); ofFile {
		var a fileArguments
		if json.Unmarshal(q.Arguments, &a) == nil {
			title, kind = "Read "+a.Path, wire.KindRead
			call.Locations = []wire.ToolLocation{{Path: a.Path}}
		}
		if a.Content != nil {
			title, kind = "Write "+a.Path, wire.KindEdit
			call.Content = []wire.ToolContent{{Type: wire.Diff, Path: a.Path, NewText: *a.Content}}
			if !q.Secret && r.Offers(wire.MethodReadTextFile) {
				old, known := r.oldText(ctx, a.Path)
				call.Content = report.Replacing(call.Content, old, known)
			}
		}
	} else {
		var a commandArguments
		if json.Unmarshal(q.Arguments, &a) == nil {
			command = report.CommandLine(a.Command, a.Args...)
			title = "Run " + command
		}
		if a.Cwd != "" {
			call.Content = append(call.Content, wire.TextContent(wrapper.EscapeText("In the folder "+strconv.Quote(a.Cwd))))
		}
		for _, name := range slices.Sorted(maps.Keys(a.Env)) {
			call.Content = append(call.Content,
				wire.TextContent(wrapper.EscapeText("With the variable "+strconv.Quote(name+"="+a.Env[name]))))
		}
	}
	title = report.Line(title)
	call.Title, call.Kind = &title, kind
	if call.ToolCallID = r.session.reported(r.method, r.path, command); call.ToolCallID == "" {
		call.ToolCallID, call.Status = r.introduce(call, q.Secret), wire.Pending
	}
	return call
}

// introduce tells the editor of a call that no tool call of the agent stands for, without its content where
// that may hold a secret.
func (r *request) introduce(call wire.ToolCallUpdate, secret bool) (id string) {
	if r.shownAs == "" {
		r.shownAs = "callgate-" + rand.Text()
		shown := wire.ToolCall{ToolCallID: r.shownAs, Title: r.tool, ToolDetails: wire.ToolDetails{Kind: call.Kind, Status: wire.Pending}}
		if !secret {
			shown.Title, shown.Content, shown.Locations = *call.Title, call.Content, call.Locations
		}
		r.proxy.introduce(r.session, shown)
	}
	return r.shownAs
}

// close tells the editor what has become of a call that it was told of.
func (r *request) close(refused *refusal.Error, terminal string) {
	d := wire.ToolDetails{Status: wire.Completed}
	switch {
	case refused != nil:
		d = report.Refused(refused)
	case terminal != "":
		d.Content = []wire.ToolContent{{Type: wire.Terminal, TerminalID: terminal}}
	}
	r.proxy.closeIntroduced(r.session, d, r.shownAs)
}

// introduce shows a call of the gateway's own, in a turn alone, after which the editor expects nothing.
func (p *Proxy) introduce(s *session, call wire.ToolCall) {
	s.passing.Lock()
	defer s.passing.Unlock()
	if s.inTurn() {
		s.introduced[call.ToolCallID] = true
		// a failure ends the connection
		_ = p.editor.Notify(wire.MethodSessionUpdate, wire.SessionNotification{SessionID: s.id, Update: call})
	}
}

// closeIntroduced ends those of some calls of the gateway's own that have not ended.
func (p *Proxy) closeIntroduced(s *session, d wire.ToolDetails, ids ...string) {
	s.passing.Lock()
	defer s.passing.Unlock()
	for _, id := range ids {
		if s.introduced[id] {
			delete(s.introduced, id)
			_ = p.editor.Notify(wire.MethodSessionUpdate,
				wire.SessionNotification{SessionID: s.id, Update: wire.ToolCallUpdate{ToolCallID: id, ToolDetails: d}})
		}
	}
}
