package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/store"
)

// callStore is where calls are kept.
type callStore struct {
	gateway.Store
	ready func() (bool, error)
	close func() error
	node  string // names the data folder, beside others
}

// openStore opens the store of a configuration in its data folder, which must be
// locked. One that is shared is ready to refuse even while Redis is away.
func openStore(ctx context.Context, c *configs.Config, logger *slog.Logger, wait time.Duration) (callStore, error) {
	file, err := store.OpenFile(c.DataDir, store.FileOptions{Wait: wait, UnkeyedInMemory: c.Store.Kind != configs.StoreRedis})
	if err != nil {
		return callStore{}, fmt.Errorf("store: %w", err)
	}
	if c.Store.Kind != configs.StoreRedis {
		return callStore{file, file.Ready, file.Close, file.Identity()}, nil
	}
	redis, err := redisOptions(c.Redis)
	if err == nil {
		var shared *store.Redis
		shared, err = store.NewRedis(ctx, store.RedisOptions{
			Options: redis,
			Journal: file, Journals: c.Store.Journals, Acknowledged: c.Store.Acknowledged, Wait: wait,
			OnChange: func(ready bool, cause error) {
				if ready {
					logger.Info("calls are kept on Redis")
					return
				}
				logger.Error("calls cannot be kept on Redis; none is executed", "cause", causeText(cause))
			},
		})
		if err == nil {
			return callStore{shared, shared.Ready, shared.Close, file.Identity()}, nil
		}
	}
	_ = file.Close() // why it cannot be shared matters more
	return callStore{}, fmt.Errorf("store: %w", err)
}

// unavailable says why calls cannot be kept, or nothing.
func (k callStore) unavailable() string {
	if ready, cause := k.ready(); !ready {
		return causeText(cause)
	}
	return ""
}

func causeText(err error) string {
	if err == nil {
		return "the cause is not known"
	}
	return err.Error()
}

// logReconciled tells what became of calls that were left. What cannot be done is told
// once.
func logReconciled(logger *slog.Logger) func(gateway.ReconcileStats) {
	told := ""
	return func(t gateway.ReconcileStats) {
		if t.Unknown+t.Redispatched+t.Recorded+t.Expired > 0 {
			logger.Warn("calls without an outcome were seen to", "unknown", t.Unknown, "dispatched_again", t.Redispatched, "written_down", t.Recorded, "expired", t.Expired)
		}
		trouble := ""
		if t.Err != nil {
			trouble = t.Err.Error()
		}
		if trouble != "" && trouble != told {
			logger.Error("calls without an outcome could not all be seen to; it is tried again", "cause", trouble)
		}
		told = trouble
	}
}
