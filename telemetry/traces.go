package telemetry

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/tool"
)

// Bounds of what waits for the collector. A call takes up to 20 KiB here with
// content, and less than 2 KiB without.
const (
	maxQueued = 1024 // calls
	maxBatch  = 512  // spans
)

// Traces takes what the gateway tells of its calls to an OpenTelemetry
// collector. It never slows a call: what a collector that is away or slow leaves
// no room for is lost, and reported. It is safe for concurrent use. A nil Traces
// traces nothing.
type Traces struct {
	options  TraceOptions
	sampler  sdk.Sampler
	tracer   trace.Tracer
	batch    spanBuffer
	exporter *otlptrace.Exporter
	drops    dropCounter

	mu         sync.RWMutex // against sending on waiting after it is closed
	closed     bool
	queue      chan tool.Span
	overflowed atomic.Int64 // calls that found no room
	cancel     context.CancelFunc
	done       chan struct{} // closed once nothing is exported any more
}

// NewTraces starts taking traces. The caller must Close it. Errors
// that OpenTelemetry's own code reports, for the whole process, go to Report too.
func NewTraces(o TraceOptions) (*Traces, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Timeout, o.Delay = cmp.Or(o.Timeout, 10*time.Second), cmp.Or(o.Delay, 5*time.Second)
	t := &Traces{
		options: o, sampler: sdk.TraceIDRatioBased(o.SampleRatio), drops: dropCounter{report: o.OnLoss},
		queue: make(chan tool.Span, maxQueued), done: make(chan struct{}),
	}
	client, err := newCollector(o.CollectorOptions, tracesPath, "spans")
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { t.drops.add(0, err) }))
	ctx, cancel := context.WithCancel(context.Background())
	if t.exporter, err = otlptrace.New(ctx, client); err != nil {
		cancel()
		return nil, err
	}
	t.cancel = cancel
	t.tracer = newProvider(&t.batch).Tracer("callgate", trace.WithInstrumentationVersion(o.Version))
	go t.run(ctx)
	return t, nil
}

// Wants reports whether the calls of a request are traced, and whether with their
// content: as the caller decided, where it named a parent.
func (t *Traces) Wants(traceID, parentID string, sampled bool) (traced, content bool) {
	if t == nil {
		return false, false
	}
	parent := parentOf(traceID, parentID)
	switch {
	case parent.IsValid():
		traced = sampled
	case !parent.HasTraceID():
		traced = rand.Float64() < t.options.SampleRatio
	default:
		traced = t.sampler.ShouldSample(sdk.SamplingParameters{ParentContext: context.Background(), TraceID: parent.TraceID()}).Decision == sdk.RecordAndSample
	}
	return traced, traced && t.options.Content
}

// Trace takes a call that has ended. It does not block: where there is no room,
// the call is lost.
func (t *Traces) Trace(c tool.Span) {
	if t == nil {
		return
	}
	c = boundedCall(c, t.options.Content)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return
	}
	select {
	case t.queue <- c:
	default:
		t.overflowed.Add(1)
	}
}

// Close exports what is waiting, until ctx ends, and takes no more. Its error
// says that some was lost.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.queue)
	}
	t.mu.Unlock()
	defer t.cancel()
	select {
	case <-t.done:
	case <-ctx.Done():
		t.cancel() // of what is being exported
		<-t.done
	}
	return t.drops.err()
}

// run exports in batches until the traces are closed.
func (t *Traces) run(ctx context.Context) {
	defer close(t.done)
	defer t.drops.flush()
	defer func() { _ = t.exporter.Shutdown(context.Background()) }()
	tick := time.NewTicker(t.options.Delay)
	defer tick.Stop()
	for {
		select {
		case c, open := <-t.queue:
			if !open {
				t.export(ctx)
				return
			}
			t.safely(func() { t.spans(c) })
			if len(t.batch.spans) >= maxBatch {
				t.export(ctx)
			}
		case <-tick.C:
			t.export(ctx)
		}
	}
}

// export sends the batch. Spans that could not be sent are lost.
func (t *Traces) export(ctx context.Context) {
	if n := t.overflowed.Swap(0); n > 0 {
		t.drops.add(n, errors.New("the collector takes spans more slowly than calls end"))
	}
	spans := t.batch.take()
	if len(spans) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.options.Timeout)
	defer cancel()
	t.safely(func() {
		var refused *rejectedError
		if err := t.exporter.ExportSpans(ctx, spans); errors.As(err, &refused) {
			t.drops.add(0, refused)
		} else if err != nil {
			t.drops.add(countCalls(spans), err)
		}
	})
}

// safely runs a part of the export. One that panics costs traces, and not the
// process; its value may hold content, and is not reported.
func (t *Traces) safely(part func()) {
	defer safe.Catch(func(panicked error) { t.drops.add(0, panicked) })
	part()
}

// spans makes the spans of a call: one of it, and one of each of its steps.
func (t *Traces) spans(c tool.Span) {
	ctx := trace.ContextWithSpanContext(context.Background(), parentOf(c.TraceID, c.ParentID))
	name := judgeSpan
	if c.Tool != "" {
		name = executeTool + " " + c.Tool
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithTimestamp(c.Start), trace.WithAttributes(attributes(c)...))
	for _, s := range c.Steps {
		_, step := t.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Start))
		endSpan(step, s.Refusal, s.End)
	}
	endSpan(span, c.Refusal, c.End)
}
