package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/checkpoint"
	"github.com/callgate/callgate/configs"
)

// OpenAuditLog opens the audit log of a configuration. A failure that does not refuse calls
// yet is logged; without a logger, it is dropped.
func OpenAuditLog(c *configs.Config, logger *slog.Logger, wait time.Duration) (*audit.Log, error) {
	o := audit.Options{Wait: wait, Record: audit.Content(c.Record), RotateBytes: c.RotateBytes, Preallocate: c.Preallocate}
	if c.SignKey.IsSet() {
		text, err := c.SignKey.Read()
		if err != nil {
			return nil, fmt.Errorf("audit.sign_key: %w", err)
		}
		if o.SignKey, err = checkpoint.ParseSignKey([]byte(text)); err != nil {
			return nil, fmt.Errorf("audit.sign_key: %s: %w", c.SignKey, err)
		}
	}
	if logger != nil {
		o.OnDegraded = func(part audit.Component, err error) {
			if err != nil {
				logger.Error("audit log degraded", "part", string(part), "cause", err.Error())
				return
			}
			logger.Info("audit log recovered", "part", string(part))
		}
		o.OnMissing = func(cause error, oldest bool) {
			if oldest {
				logger.Warn("audit log does not begin with its first record", "cause", cause.Error())
				return
			}
			logger.Error("audit log is not complete", "cause", cause.Error())
		}
		o.OnReadAll = func(reason error, read, total int64) {
			logger.Warn("reading the whole audit log", "cause", reason.Error(), "bytes_read", read, "bytes_total", total)
		}
	}
	log, err := audit.Open(c.DataDir, o)
	var file *fs.PathError
	if errors.As(err, &file) {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	return log, err
}
