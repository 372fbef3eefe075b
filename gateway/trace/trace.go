// Package trace measures the judgement and the run of a call: how long its stages took (Times), and its
// span with the steps that waited for something, for a tracer (Trace).
package trace

import (
	"bytes"
	"context"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
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
	Span    tool.Span
	tracer  Tracer
	content bool
	now     func() time.Time
}

// Begin starts the span of a call of a request, or returns nil.
func Begin(tracer Tracer, now func() time.Time, traceID, parentID string, sampled bool) *Trace {
	traced, content := wants(tracer, traceID, parentID, sampled)
	if !traced {
		return nil
	}
	return &Trace{Span: tool.Span{TraceID: traceID, ParentID: parentID}, tracer: tracer, content: content, now: now}
}

// wants asks the tracer; if it panics, the calls are not traced.
func wants(tracer Tracer, traceID, parentID string, sampled bool) (traced, content bool) {
	if tracer == nil {
		return false, false
	}
	defer safe.Catch(func(error) { traced, content = false, false })
	return tracer.Wants(traceID, parentID, sampled)
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

// Add notes a step.
func (t *Trace) Add(name string, start, end time.Time, refused *refusal.Error) {
	if t != nil {
		t.Span.Steps = append(t.Span.Steps, tool.Step{Name: name, Start: start, End: end, Refusal: refused})
	}
}

// StoreStep adds a step of the store to the span. Such a step belongs to no stage.
func (t *Trace) StoreStep(ctx context.Context, start time.Time, err error) {
	if err != nil {
		err = refuse.Unsaved(ctx, err)
	}
	t.Step("store", start, err)
}

// Show adds the content of the call of a tool, if its content is traced: the arguments, redacted, and
// the result where nothing in it can be a secret.
func (t *Trace) Show(of *registry.Entry, arguments, result []byte) {
	if !t.content {
		return
	}
	// Content that cannot be redacted is hidden whole, and the result says so.
	t.Span.Arguments, _ = audit.Redact(arguments, of.Secret)
	// A refusal's words may repeat an argument, and so may an answer: it is shown
	// where the call held no secret, and the tool's schema of results names none.
	if t.Span.Refusal == nil && bytes.Equal(t.Span.Arguments, arguments) && !marksSecret(of.OutputSchema()) {
		t.Span.Result = result
	}
}

// End passes the span, which ends now, to the tracer.
func (t *Trace) End() {
	t.Span.End = t.now()
	t.tracer.Trace(t.Span)
}

// marksSecret reports whether a schema may mark anything x-secret, spelt with
// escapes or without.
func marksSecret(schema []byte) bool {
	return bytes.Contains(schema, []byte("x-secret")) || bytes.Contains(schema, []byte(`\u`))
}
