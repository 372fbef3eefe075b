package telemetry

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/callgate/callgate/internal/safe"
)

// TraceOptions say where traces go, and what stands in them. The environment
// says nothing: the variables OTEL_* change none of it.
type TraceOptions struct {
	// Endpoint is the collector's address, which takes OTLP over HTTP in protobuf:
	// http or https. Without a path it is /v1/traces.
	Endpoint string
	// Headers are sent with every export, such as the collector's credential; nil
	// are none. They are asked for anew each time, and never reported.
	Headers func() map[string]string
	// RootCAs are believed for the certificate of an https collector; nil means the
	// system's.
	RootCAs *x509.CertPool
	// SampleRatio is the share of traces, from 0 to 1, that is taken of those that begin
	// here. Where the caller named a parent, its decision holds.
	SampleRatio float64
	// Content adds the arguments and the results of calls, without what is marked
	// x-secret, each up to 8 KiB.
	Content bool
	// Service, Version and Replica name this process; an empty Service is callgate.
	Service, Version, Replica string
	// Timeout bounds the export of one batch, with all its attempts; 0 is 10 s.
	Timeout time.Duration
	// Delay is how long a span waits for others at most; 0 is 5 s.
	Delay time.Duration
	// OnLoss is told what was lost and why, at most once a minute; nil tells
	// nobody. It must not block.
	OnLoss func(error)
}

// maxTimeout bounds how long one batch may hold up those after it.
const maxTimeout = time.Minute

// Validate tells what is wrong with the options.
func (o TraceOptions) Validate() error {
	_, err := o.address()
	switch {
	case err != nil:
		return err
	case math.IsNaN(o.SampleRatio) || o.SampleRatio < 0 || o.SampleRatio > 1:
		return fmt.Errorf("sampling_ratio: found %v; expected a number from 0 to 1", o.SampleRatio)
	case o.Timeout < 0 || o.Timeout > maxTimeout:
		return fmt.Errorf("timeout: found %v; expected at most %v", o.Timeout, maxTimeout)
	case o.Delay < 0 || o.Delay > maxTimeout:
		return fmt.Errorf("delay: found %v; expected at most %v", o.Delay, maxTimeout)
	}
	return nil
}

// address is the collector's URL. What its errors say holds nothing of the
// text: it may have been given a credential by mistake.
func (o TraceOptions) address() (string, error) {
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("endpoint: found something else; expected an address such as http://localhost:4318/v1/traces")
	case u.User != nil:
		return "", errors.New("endpoint: found a user in the address; expected its credential among the headers")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("endpoint: found a query or a fragment; expected none")
	}
	if u.Path == "" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

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
	queue      chan Call
	overflowed atomic.Int64 // calls that found no room
	cancel     context.CancelFunc
	done       chan struct{} // closed once nothing is exported any more
}

// NewTraces starts taking traces. The caller must Close it. What
// OpenTelemetry's own code reports, for the whole process, goes to Report too.
func NewTraces(o TraceOptions) (*Traces, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Timeout, o.Delay = orDefault(o.Timeout, 10*time.Second), orDefault(o.Delay, 5*time.Second)
	t := &Traces{
		options: o, sampler: sdk.TraceIDRatioBased(o.SampleRatio), drops: dropCounter{report: o.OnLoss},
		queue: make(chan Call, maxQueued), done: make(chan struct{}),
	}
	client, err := newCollector(o)
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

func orDefault(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}

// Wants tells whether the calls of a request are traced, and whether with their
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
func (t *Traces) Trace(c Call) {
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

// export sends the batch. What could not be sent is lost.
func (t *Traces) export(ctx context.Context) {
	if n := t.overflowed.Swap(0); n > 0 {
		t.drops.add(n, errors.New("the collector takes less than there is"))
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
// process; what was thrown may hold content, and is not told.
func (t *Traces) safely(part func()) {
	defer func() {
		if p := recover(); p != nil {
			t.drops.add(0, safe.PanicError(p))
		}
	}()
	part()
}
