package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/ship"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/telemetry"
)

// shipping sends the records of the audit log to a collector; nil sends none.
type shipping struct {
	shipper *ship.Shipper
	logs    *telemetry.Logs
}

// startShipping starts it where the configuration asks for it. It holds nothing up: the collector
// is asked in the background.
func startShipping(c *configs.Config, log *audit.Log, o Options) (*shipping, error) {
	if c.OTLP.Endpoint == "" {
		return nil, nil
	}
	options := c.OTLP.LogOptions()
	options.RootCAs, options.Version, options.Replica = certPool(c.OTLP.CA), o.Version, replicaName()
	logs, err := telemetry.NewLogs(options)
	if err != nil {
		return nil, fmt.Errorf("audit.otlp: %w", err)
	}
	lost := lossReport{logger: o.Logger}
	s := &shipping{logs: logs, shipper: ship.Start(ship.Options{
		Dir: c.DataDir, Last: log.Last, Export: logs.Export,
		OnShipped: func(n uint64) { o.Metrics.AuditShipped(n) },
		OnLost: func(n uint64, why error) {
			o.Metrics.AuditNotShipped(n)
			lost.add(n, why)
		},
		OnFailing: func(err error) {
			if err != nil {
				o.Logger.Error("audit records are not shipped to the collector; they wait in the file", "cause", err.Error())
				return
			}
			o.Logger.Info("audit records are shipped to the collector again")
		},
	})}
	o.Metrics.AuditBehind(s.shipper.Behind)
	return s, nil
}

// Close ships what waits, until the collector fails or a bounded time is over.
func (s *shipping) Close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	s.shipper.Close(ctx)
	s.logs.Close()
}

// lossReport logs losses: the first at once, those of the minute after together. It is safe for
// concurrent use.
type lossReport struct {
	logger *slog.Logger

	mu       sync.Mutex
	count    uint64
	reported time.Time
}

func (l *lossReport) add(n uint64, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count += n
	if time.Since(l.reported) < time.Minute {
		return
	}
	l.logger.Error("audit records dropped on the way to the collector; the file has them unless the cause says otherwise",
		"records", l.count, "cause", why.Error())
	l.count, l.reported = 0, time.Now()
}
