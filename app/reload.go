package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/reload"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/telemetry"
)

// ReloadTimeout bounds how long a reload waits for the keys of another issuer. The
// watch comes again while they cannot be had.
const ReloadTimeout = 5 * time.Second

// subscribe adds a subscriber. Each is prepared after those before it and committed before
// them, so that the last one added is committed first.
func (r *Runtime) subscribe(s subscriber) { r.subscribers = append(r.subscribers, s) }

// reload makes a configuration the one that the kernel judges by, or changes nothing.
func (r *Runtime) reload(ctx context.Context, c *configs.Config) error {
	if err := c.CheckParts(Has); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ReloadTimeout)
	defer cancel()
	next := KernelConfig(c, nil)
	var ready []change
	for _, prepare := range r.subscribers {
		prepared, err := prepare(ctx, c, next)
		if err != nil {
			abort(ready)
			return err
		}
		ready = append(ready, prepared)
	}
	if err := r.Executor.Kernel.Swap(next); err != nil {
		abort(ready)
		return err
	}
	for _, prepared := range slices.Backward(ready) {
		prepared.commit()
	}
	return nil
}

// followServers has the tool servers watched that a configuration names.
func (r *Runtime) followServers(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
	r.Servers.Prepare(c)
	return change{commit: r.Servers.Commit, abort: doNothing}, nil
}

// followModels has the upstreams asked that a configuration names, within its budgets.
func (r *Runtime) followModels(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
	return change{commit: func() { r.serveModels(c) }, abort: doNothing}, nil
}

// logWarnings logs the warnings of a configuration that takes effect.
func logWarnings(logger *slog.Logger) subscriber {
	return func(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
		return change{commit: func() {
			for _, w := range c.Warnings {
				logger.Warn("configuration warning", "warning", w.Error())
			}
		}, abort: doNothing}, nil
	}
}

// followRequestLog has as many request lines written as a configuration says.
func followRequestLog(front *server.Server) subscriber {
	return func(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
		return change{commit: func() { front.LogRequests(c.RequestLogRatio) }, abort: doNothing}, nil
	}
}

// watch returns the watch of the configuration's files, which reloads what they say.
func (r *Runtime) watch(path string, first *configs.Config, metrics *telemetry.Metrics, logger *slog.Logger) *reload.Watcher {
	return reload.NewWatcher(path, first, reload.WatcherOptions{
		Swap: r.reload,
		Report: func(e reload.Event) {
			report(e, metrics, logger)
			noteReload(r.changes, &e)
		},
	})
}

// report logs the result of a change of the files.
func report(e reload.Event, metrics *telemetry.Metrics, logger *slog.Logger) {
	switch e.Kind {
	case reload.Reloaded:
		metrics.Reloaded(e.Digest)
		logger.Info("configuration reloaded", "files", e.Files, "digest", e.Digest)
	case reload.Recovered:
		metrics.Reloaded(e.Digest)
		logger.Info("configuration recovered", "digest", e.Digest)
	case reload.Failed:
		metrics.ReloadFailed()
		for _, f := range e.Faults {
			logger.Error("configuration reload failed; keeping the current one", "cause", f.Error(), "digest", e.Digest)
		}
	case reload.RestartRequired:
		logger.Warn("configuration keys changed that need a restart", "keys", e.Keys)
	}
}

// runWatch runs a watch until stop is called, even if ctx ends before: the watch ends last.
func runWatch(ctx context.Context, w *reload.Watcher) (stop func(error) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func(err error) error {
		cancel()
		select {
		case e := <-ended:
			if e != nil {
				err = errors.Join(err, cli.InternalError{Err: e})
			}
		case <-time.After(settleTimeout): // a file system that does not answer holds nothing up
		}
		return err
	}
}
