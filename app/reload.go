package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/telemetry"
)

// watch keeps the kernel at what the configuration's files say.
func (h *Runtime) watch(path string, first *configs.Config, who *Authn, traces *Tracing, metrics *telemetry.Metrics, logger *slog.Logger) *configs.Watcher {
	return configs.NewWatcher(path, first, configs.WatcherOptions{
		Swap: func(ctx context.Context, c *configs.Config) error {
			ctx, cancel := context.WithTimeout(ctx, ReloadTimeout)
			defer cancel()
			offer, err := who.prepare(ctx, c)
			if err != nil {
				return err
			}
			follow, drop, err := traces.prepare(c)
			if err != nil {
				offer.abort()
				return fmt.Errorf("telemetry.traces: %w", err)
			}
			answers, err := h.callbacks.prepare(c)
			if err != nil {
				drop()
				offer.abort()
				return err
			}
			h.Servers.Prepare(c)
			if err := h.Kernel.Swap(KernelConfig(c, offer.Authenticator)); err != nil {
				drop()
				offer.abort()
				return err
			}
			h.Servers.Commit()
			answers()
			h.models.Store(c.Upstreams)
			offer.commit()
			follow()
			for _, w := range c.Warnings {
				logger.Warn("configuration", "warning", w.Error())
			}
			return nil
		},
		Report: func(e configs.Event) {
			switch e.Kind {
			case configs.Reloaded, configs.Recovered:
				metrics.Reloaded(e.Digest)
				logger.Info("configuration "+string(e.Kind), "digest", e.Digest)
			case configs.Failed:
				metrics.ReloadFailed()
				for _, f := range e.Faults {
					logger.Error("configuration failed; the old one is served", "fault", f.Error(), "digest", e.Digest)
				}
			case configs.RestartRequired:
				logger.Warn("configuration keys wait for a restart", "keys", e.Keys)
			case configs.Polling:
				for _, f := range e.Faults {
					logger.Warn("no notice of changes in some folders; looking every second", "fault", f.Error())
				}
			}
		},
	})
}
