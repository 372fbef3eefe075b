package app

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/tool"
)

// Tracing exports traces of calls to the endpoint of the current configuration. It is safe
// for concurrent use, except for reloads.
type Tracing struct {
	logger   *slog.Logger
	replica  string
	version  string
	settings configs.Traces
	current  atomic.Pointer[telemetry.Traces]
	closing  sync.WaitGroup
}

// Wants implements trace.Tracer.
func (t *Tracing) Wants(traceID, parentID string, sampled bool) (traced, content bool) {
	return t.current.Load().Wants(traceID, parentID, sampled)
}

// Trace is the kernel's.
func (t *Tracing) Trace(s tool.Span) { t.current.Load().Trace(s) }

// follow prepares the exporter of a configuration. Nothing of it can fail that the
// configuration has not been checked for.
func (t *Tracing) follow(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
	if reflect.DeepEqual(c.Traces, t.settings) {
		return change{doNothing, doNothing}, nil
	}
	var next *telemetry.Traces
	if c.Traces.Endpoint != "" {
		o := c.Traces.Options()
		o.RootCAs = certPool(c.Traces.CA)
		o.Version = t.version
		o.Replica = t.replica
		o.OnLoss = func(err error) { t.logger.Warn("traces dropped", "cause", err.Error()) }
		var err error
		if next, err = telemetry.NewTraces(o); err != nil {
			return change{}, fmt.Errorf("telemetry.traces: %w", err)
		}
	}
	return change{
		commit: func() {
			t.settings = c.Traces
			t.end(t.current.Swap(next))
		},
		abort: func() { t.end(next) },
	}, nil
}

// flushTimeout bounds the flush of an exporter that is closed.
const flushTimeout = 5 * time.Second

// end flushes and closes an exporter in the background.
func (t *Tracing) end(old *telemetry.Traces) {
	if old == nil {
		return
	}
	t.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		if err := old.Close(ctx); err != nil {
			t.logger.Warn("not all traces were sent", "cause", err.Error())
		}
	})
}

// Close flushes the exporter and waits for those of earlier configurations.
func (t *Tracing) Close() {
	t.end(t.current.Swap(nil))
	t.closing.Wait()
}
