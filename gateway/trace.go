package gateway

import (
	"bytes"
	"context"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Tracer takes the traces of calls. It must not block, and must be safe for
// concurrent use. A call is the same with it and without, whatever it does.
type Tracer interface {
	// Wants reports whether the calls of a request are traced, and whether with their
	// content. sampled is the caller's decision, if it named a parent.
	Wants(traceID, parentID string, sampled bool) (traced, content bool)
	// Trace takes a call that has ended. The span is the tracer's own, but for the
	// bytes of the content, which must not change.
	Trace(tool.Span)
}

// Trace is the span of a call while it runs. A nil Trace takes nothing.
type Trace struct {
	span    tool.Span
	content bool
	now     func() time.Time
}

// trace starts the span of a call, or returns nil.
func (k *Kernel) trace(c *Call) *Trace {
	traced, content := k.wants(&c.request)
	if !traced {
		return nil
	}
	t := &Trace{content: content, now: k.deps.Now}
	t.span = tool.Span{
		TraceID: c.request.TraceID, ParentID: c.request.ParentID, Start: c.started,
		CallID: c.id, Thread: c.request.Thread, Mode: string(c.mode), Digest: c.config.Digest,
	}
	return t
}

// wants asks the tracer; if it panics, the calls are not traced.
func (k *Kernel) wants(r *Request) (traced, content bool) {
	if k.deps.Tracer == nil {
		return false, false
	}
	defer func() {
		if recover() != nil {
			traced, content = false, false
		}
	}()
	return k.deps.Tracer.Wants(r.TraceID, r.ParentID, r.Sampled)
}

// Start is when a step begins; nothing where nothing is traced.
func (t *Trace) Start() time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.now()
}

// Step notes a step that ends now.
func (t *Trace) Step(name string, start time.Time, err error) {
	if t != nil {
		t.Add(name, start, t.now(), refusal.From(refusal.Any, err))
	}
}

func (t *Trace) Add(name string, start, end time.Time, refused *refusal.Error) {
	if t != nil {
		t.span.Steps = append(t.span.Steps, tool.Step{Name: name, Start: start, End: end, Refusal: refused})
	}
}

// StoreStep adds a step of the store to the span. Such a step belongs to no stage.
func (t *Trace) StoreStep(ctx context.Context, start time.Time, err error) {
	if err != nil {
		err = refuse.Unsaved(ctx, err)
	}
	t.Step("store", start, err)
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
	defer func() { _ = recover() }()
	s := &t.span
	s.End, s.Verdict, s.Refusal, s.Outcome, s.Attempts = t.now(), string(verdict), refused, string(outcome), attempts
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
	if t.content && tool != nil && c.parsed.Arguments != nil && !c.withheld {
		// Content that cannot be redacted is hidden whole, and the result says so.
		s.Arguments, _ = audit.Redact(c.parsed.Arguments, tool.Secret)
		// A refusal's words may repeat an argument, and so may an answer: it is shown
		// where the call held no secret, and the tool's schema of results names none.
		if refused == nil && bytes.Equal(s.Arguments, c.parsed.Arguments) && !marksSecret(tool.OutputSchema()) {
			s.Result = result
		}
	}
	c.kernel.deps.Tracer.Trace(*s)
}

// marksSecret reports whether a schema may mark anything x-secret, spelt with
// escapes or without.
func marksSecret(schema []byte) bool {
	return bytes.Contains(schema, []byte("x-secret")) || bytes.Contains(schema, []byte(`\u`))
}
