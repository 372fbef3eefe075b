package telemetry

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// The bounds of one value, in bytes.
const (
	maxName    = 256
	maxContent = 8 << 10
)

// boundedCall is a call without what need not wait in memory: of refusals only stage
// and code, of what may be long only its beginning, and one byte more where there
// is more.
func boundedCall(c tool.Span, content bool) tool.Span {
	c.Refusal = withoutDetail(c.Refusal)
	for i := range c.Steps {
		c.Steps[i].Refusal = withoutDetail(c.Steps[i].Refusal)
	}
	c.Thread = strings.Clone(c.Thread[:min(len(c.Thread), maxName+1)])
	if !content {
		c.Arguments, c.Result = nil, nil
	}
	c.Arguments = bytes.Clone(c.Arguments[:min(len(c.Arguments), maxContent+1)])
	c.Result = bytes.Clone(c.Result[:min(len(c.Result), maxContent+1)])
	return c
}

func withoutDetail(r *refusal.Error) *refusal.Error {
	if r == nil {
		return nil
	}
	return &refusal.Error{Stage: r.Stage, Code: r.Code}
}

// truncate is the beginning of a text. Bytes that are not UTF-8 are replaced: a collector
// takes nothing else.
func truncate(s string, most int) string {
	beginning := strings.ToValidUTF8(text.Cut(s, most), "\uFFFD")
	if len(s) <= most {
		return beginning
	}
	return beginning + "…"
}

// spanBuffer are spans that have ended. It is OpenTelemetry's SpanProcessor, of
// one goroutine.
type spanBuffer struct{ spans []sdk.ReadOnlySpan }

func (c *spanBuffer) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (c *spanBuffer) OnEnd(s sdk.ReadOnlySpan)                   { c.spans = append(c.spans, s) }
func (c *spanBuffer) Shutdown(context.Context) error             { return nil }
func (c *spanBuffer) ForceFlush(context.Context) error           { return nil }

func (c *spanBuffer) take() []sdk.ReadOnlySpan {
	spans := c.spans
	c.spans = nil
	return spans
}

// newProvider makes spans. Every option is given that the environment would
// decide otherwise, but for the resource, which the collector adds.
func newProvider(into sdk.SpanProcessor) *sdk.TracerProvider {
	limits := sdk.SpanLimits{
		AttributeValueLengthLimit: -1, AttributeCountLimit: sdk.DefaultAttributeCountLimit,
		EventCountLimit: sdk.DefaultEventCountLimit, LinkCountLimit: sdk.DefaultLinkCountLimit,
		AttributePerEventCountLimit: sdk.DefaultAttributePerEventCountLimit, AttributePerLinkCountLimit: sdk.DefaultAttributePerLinkCountLimit,
	}
	return sdk.NewTracerProvider(
		sdk.WithSampler(sdk.AlwaysSample()), // Wants has decided already
		sdk.WithRawSpanLimits(limits), sdk.WithResource(resource.Empty()), sdk.WithSpanProcessor(into),
	)
}

// parentOf is where a call stands: below the caller's span, or else in the trace.
func parentOf(traceID, parentID string) trace.SpanContext {
	var at trace.SpanContextConfig
	var err error
	if at.TraceID, err = trace.TraceIDFromHex(traceID); err != nil {
		return trace.SpanContext{}
	}
	if at.SpanID, err = trace.SpanIDFromHex(parentID); err == nil {
		at.Remote = true
	}
	at.TraceFlags = trace.FlagsSampled
	return trace.NewSpanContext(at)
}

// endSpan says how a span ended. A refusal of what was asked is an answer; an error
// is what failed here, or at the tool.
func endSpan(span trace.Span, refused *refusal.Error, at time.Time) {
	if refused != nil {
		span.SetAttributes(errorTypeKey.String(string(refused.Code)), stageKey.String(string(refused.Stage)), codeKey.String(string(refused.Code)))
		if refused.Stage == refusal.Execute || refused.Stage == refusal.Wrap || refused.Status() >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, string(refused.Code))
		}
	}
	span.End(trace.WithTimestamp(at))
}

// attributes says of a call what is known; what is empty is left out.
func attributes(c tool.Span) []attribute.KeyValue {
	var list []attribute.KeyValue
	add := func(key attribute.Key, value string, most int) {
		if value != "" {
			list = append(list, key.String(truncate(value, most)))
		}
	}
	if c.Tool != "" {
		add(operationKey, executeTool, maxName)
		add(toolNameKey, c.Tool, maxName)
		add(toolTypeKey, typeFunction, maxName)
		add(toolCallIDKey, c.CallID, maxName)
	}
	add(versionKey, c.Version, maxName)
	add(toolArgumentsKey, string(c.Arguments), maxContent)
	add(toolResultKey, string(c.Result), maxContent)
	add(agentNameKey, c.Agent, maxName)
	add(conversationKey, c.Thread, maxName)
	add(callIDKey, c.CallID, maxName)
	add(modeKey, c.Mode, maxName)
	add(verdictKey, c.Verdict, maxName)
	add(outcomeKey, c.Outcome, maxName)
	add(digestKey, c.Digest, maxName)
	add(workspaceKey, c.Workspace, maxName)
	add(projectKey, c.Project, maxName)
	if c.Attempts > 0 {
		list = append(list, attemptsKey.Int(c.Attempts))
	}
	return list
}

// countCalls counts the calls among spans: what is a child of another of ours is none.
func countCalls(spans []sdk.ReadOnlySpan) int64 {
	n := int64(0)
	for _, s := range spans {
		if p := s.Parent(); p.IsRemote() || !p.HasSpanID() {
			n++
		}
	}
	return n
}
