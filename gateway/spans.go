package gateway

import (
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// trace starts the span of a call, or returns nil.
func (k *Kernel) trace(c *Call) *trace.Trace {
	t := trace.Begin(k.deps.Tracer, k.deps.Now, c.request.TraceID, c.request.ParentID, c.request.Sampled)
	if t != nil {
		s := &t.Span
		s.Start, s.CallID, s.Thread, s.Mode, s.Digest = c.started, c.id, c.request.Thread, string(c.mode), c.config.Digest
	}
	return t
}

// dropTraces forgets the spans of a decision.
func (d *Decision) dropTraces() {
	for _, c := range d.calls {
		c.trace = nil
	}
}

// finishTraces passes on the spans of inputs that end with their judgement: texts, and all
// calls if one is refused.
func (d *Decision) finishTraces() {
	refused := d.firstRefused()
	for _, c := range d.calls {
		switch {
		case c.refused != nil:
			c.FinishTrace(VerdictRefused, c.refused, "", 0, nil)
		case refused != nil:
			c.FinishTrace(VerdictRefused, refused, "", 0, nil)
		case c.parsed.Kind == parser.Text:
			c.FinishTrace(VerdictText, nil, "", 0, nil)
		}
	}
}

// FinishTrace passes the span of a call to the tracer, once. outcome and result are those
// of a call that was executed or handed over.
func (c *Call) FinishTrace(verdict Verdict, refused *refusal.Error, outcome audit.Outcome, attempts int, result []byte) {
	t := c.trace
	if t == nil {
		return
	}
	c.trace = nil
	// The call has ended: a tracer that panics takes nothing from it.
	defer safe.Discard()
	s := &t.Span
	s.Verdict, s.Refusal, s.Outcome, s.Attempts = string(verdict), refused, string(outcome), attempts
	tool := c.tool
	if tool == nil && c.parsed.HasName {
		tool, _ = c.config.Tools.Lookup(c.parsed.Name)
	}
	if tool != nil {
		s.Tool, s.Version = tool.Name(), tool.Version()
	}
	if c.config.Agents[c.subject.Agent] {
		s.Agent = c.subject.Agent
	}
	if space, ok := c.config.Workspaces[c.subject.Workspace]; ok {
		s.Workspace = c.subject.Workspace
		if _, ok := space.Projects[c.subject.Project]; ok {
			s.Project = c.subject.Project
		}
	}
	if tool != nil && c.parsed.Arguments != nil && !c.hooks.withheld {
		t.Show(tool, c.parsed.Arguments, result)
	}
	t.End()
}
