package app

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
)

// subscriber follows the configuration. It makes ready what c asks for, may add to the
// kernel's next configuration, and fails where c cannot be followed.
type subscriber func(ctx context.Context, c *configs.Config, next *gateway.Config) (change, error)

// change is a subscriber's prepared change: exactly one of its functions is called.
type change struct {
	commit func() // the kernel judges by the new configuration
	abort  func() // it does not; the prepared change is discarded
}

func doNothing() {}

func abort(ready []change) {
	for _, prepared := range slices.Backward(ready) {
		prepared.abort()
	}
}

// keep writes a configuration that takes effect to the data folder, and removes old ones there: see
// configs.KeptDir. A failure is logged and holds nothing up.
func keep(c *configs.Config, bounds configs.KeptBounds, logger *slog.Logger) {
	if err := c.Keep(); err != nil {
		logger.Warn("configuration could not be kept", "digest", c.Digest, "cause", err.Error())
		return
	}
	swept, err := c.SweepKept(bounds, time.Now())
	switch {
	case err != nil:
		logger.Warn("old kept configurations could not be removed", "cause", err.Error())
	case swept.Recent > 0:
		logger.Warn("kept configurations removed; there were too many, and replay cannot use those of recent calls",
			"removed", swept.Removed, "recent", swept.Recent)
	case swept.Removed > 0:
		logger.Info("old kept configurations removed", "removed", swept.Removed)
	}
}

// keepEach keeps each configuration that takes effect.
func keepEach(logger *slog.Logger) subscriber {
	return func(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
		return change{commit: func() { keep(c, configs.Kept(), logger) }, abort: doNothing}, nil
	}
}
