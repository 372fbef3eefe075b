package acpproxy

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/gateway/faces/acpproxy/internal/attribution"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/text"
)

// unsolicited takes an answer of the agent to a request of the editor.
func (p *Proxy) unsolicited(_ context.Context, m *jsonrpc.Message, fault *jsonrpc.Error) {
	if !p.forwards.Answered(m, fault) {
		p.options.Log.Warn("the agent answered a request that it was not sent; the answer was dropped")
	}
}

// agentNotified takes a notification of the agent.
func (p *Proxy) agentNotified(_ context.Context, m *jsonrpc.Message) {
	switch m.Method {
	case wire.MethodSessionUpdate:
		p.update(m.Params)
	case wire.MethodCancelRequest:
		if id, ok := cancelledID(m.Params); ok {
			p.agent.Cancel(id)
		}
	}
}

// update passes an update of a session, and looks at what it says of tool calls and modes.
func (p *Proxy) update(params json.RawMessage) {
	n, err := wire.ReadReport(params)
	if err != nil {
		p.options.Log.Warn("an update of the agent could not be read; it was dropped", "cause", err.Error())
		p.unreadable(params)
		return
	}
	s := p.sessions.get(n.SessionID)
	if s == nil {
		p.options.Log.Warn("the agent sent an update of a session that is not open; it was dropped")
		return
	}
	var found []attribution.Finding
	switch u := n.Update.(type) {
	case wire.ToolCall:
		s.completePaths(u.ToolCallID, u.ToolDetails)
		r := reportOf(u.ToolCallID, u.Title, u.ToolDetails)
		if r.Kind == "" {
			r.Kind = wire.KindOther
		}
		u.Content = p.ownTerminals(s, u.Content)
		n.Update = u
		if f := s.report(r, true, time.Now()); f != nil {
			found = append(found, *f)
		}
	case wire.ToolCallUpdate:
		s.completePaths(u.ToolCallID, u.ToolDetails)
		title := ""
		if u.Title != nil {
			title = *u.Title
		}
		r := reportOf(u.ToolCallID, title, u.ToolDetails)
		u.Content = p.ownTerminals(s, u.Content)
		n.Update = u
		if f := s.report(r, false, time.Now()); f != nil {
			found = append(found, *f)
		}
	case wire.CurrentModeUpdate:
		if !s.offered().hasMode(u.CurrentModeID) {
			p.found(s, modeFinding("a mode"))
			return
		}
	case wire.ConfigOptionUpdate:
		filtered, asks := p.modes.filterOptions(u.ConfigOptions)
		s.show(nil, filtered)
		u.ConfigOptions = filtered
		n.Update = u
		if !asks {
			p.found(s, modeFinding("an option"))
			return
		}
	}
	p.show(s, n)
	p.found(s, found...)
}

// show passes an update to the editor.
func (p *Proxy) show(s *session, n wire.SessionNotification) {
	s.passing.Lock()
	defer s.passing.Unlock()
	var passes bool
	if n.Update, passes = s.duringPermission(n.Update); passes {
		_ = p.editor.Notify(wire.MethodSessionUpdate, n) // a failure ends the connection
	}
}

// unreadable treats an update that cannot be read as a tool call that ran unjudged, if it may be
// about one.
func (p *Proxy) unreadable(params json.RawMessage) {
	var n struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			Kind   wire.UpdateKind `json:"sessionUpdate"`
			CallID string          `json:"toolCallId"`
		} `json:"update"`
	}
	_ = json.Unmarshal(params, &n) // what can be read of it
	s := p.sessions.get(n.SessionID)
	if s == nil || n.Update.Kind != wire.UpdateToolCall && n.Update.Kind != wire.UpdateToolCallUpdate {
		return
	}
	r := attribution.Report{ID: text.Cut(n.Update.CallID, wire.MaxID), Kind: wire.KindOther}
	p.found(s, attribution.Finding{Report: r, Reason: "what was reported of it cannot be read"})
}

// reportOf is what an update says of a tool call.
func reportOf(id, title string, d wire.ToolDetails) attribution.Report {
	r := attribution.Report{ID: id, Title: title, Name: d.Name, Kind: d.Kind, Status: d.Status, Input: d.RawInput}
	for _, l := range d.Locations {
		r.Locations = append(r.Locations, l.Path)
	}
	r.Output, r.Exited = outputOf(d)
	for _, c := range d.Content {
		switch c.Type {
		case wire.Diff:
			r.Diffs = append(r.Diffs, c.Path)
		case wire.Terminal:
			r.Terminals = append(r.Terminals, c.TerminalID)
		}
	}
	return r
}

// outputOf reports whether a report shows an output, and whether that names the exit status of a program.
// An output that is an object of an error alone says why a call failed, and so does the text beside it.
func outputOf(d wire.ToolDetails) (output, exited bool) {
	var texts []string
	for _, c := range d.Content {
		if c.Type == wire.Content {
			output = output || c.Content.Type != wire.Text || strings.TrimSpace(c.Content.Text) != ""
			texts = append(texts, c.Content.Text)
		}
	}
	var value any
	if d.RawOutput != nil && json.Unmarshal(d.RawOutput, &value) == nil {
		switch v := value.(type) {
		case string:
			output, texts = output || strings.TrimSpace(v) != "", append(texts, v)
		case map[string]any:
			maps.DeleteFunc(v, func(_ string, member any) bool { return member == nil })
			why, failed := v["error"]
			if why, ok := why.(string); ok {
				texts = append(texts, why)
			}
			output = (output || len(v) > 0) && !(failed && len(v) == 1)
			for _, name := range []string{"exit", "exit_code", "exitCode", "exit_status", "exitStatus"} {
				exited = exited || v[name] != nil
			}
		case []any:
			output = output || len(v) > 0
		default:
			output = output || v != nil
		}
	}
	return output, exited || slices.ContainsFunc(texts, exitStatus.MatchString)
}

// exitStatus is an exit status in a text, as in "Exit code 1".
var exitStatus = regexp.MustCompile(`(?i)\bexit(ed)?( with)?( (code|status))+:? -?[0-9]`)

// ownTerminals is content without terminals that were not created through the gate in this
// session.
func (p *Proxy) ownTerminals(s *session, content []wire.ToolContent) []wire.ToolContent {
	return slices.DeleteFunc(content, func(c wire.ToolContent) bool { return c.Type == wire.Terminal && !s.hasTerminal(c.TerminalID) })
}

// modeFinding is the finding where an agent has changed to a mode that asks nobody.
func modeFinding(of string) attribution.Finding {
	return attribution.Finding{Report: attribution.Report{Kind: wire.KindSwitchMode},
		Reason: "the agent set " + of + " in which it asks nobody"}
}
