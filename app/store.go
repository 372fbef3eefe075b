package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/stops"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/redisstore"
)

// callStore is where calls are stored, in a file or on Redis.
type callStore struct {
	calls.Store
	ready  func() (bool, error)
	close  func() error
	node   string       // see nodeName
	shared stops.Shared // nil where no other gateway keeps calls there
}

// openStore opens the store of a configuration. Its data folder must be locked. A store on
// Redis opens even while Redis is unreachable; it refuses calls until Redis answers. The open calls of
// the log were read.
func openStore(ctx context.Context, c *configs.Config, redis redisconn.Options, log *audit.Log, anonymous bool, logger *slog.Logger,
	wait time.Duration) (callStore, error) {
	node, err := nodeName(c.DataDir)
	if err != nil {
		return callStore{}, err
	}
	if c.Store.Kind != configs.StoreRedis {
		file, err := boltstore.Open(c.DataDir, boltstore.Options{Wait: wait, UnkeyedInMemory: true})
		if err != nil {
			return callStore{}, fmt.Errorf("store: %w", err)
		}
		return callStore{Store: file, ready: file.Ready, close: file.Close, node: node}, nil
	}
	shared, err := redisstore.New(ctx, redisstore.Options{
		Options: redis,
		Node:    node, Replica: replicaName(), Log: logOfStore(log, anonymous, c.DataDir, threadBounds(c), logger),
		Replicas: c.Store.Replicas, MinRedisReplicas: c.Store.MinRedisReplicas, Bounds: store.Bounds{Threads: threadBounds(c)},
		Wait: wait,
		OnMemoryOnly: func() {
			logger.Warn("Redis writes no append-only file: a restart of Redis loses what it holds, and answers of calls with it; set appendonly yes")
		},
		OnChange: func(ready bool, cause error) {
			if ready {
				logger.Info("calls are stored on Redis")
				return
			}
			logger.Error("calls cannot be stored on Redis, and are not executed", "cause", causeText(cause))
		},
	})
	if err != nil {
		return callStore{}, fmt.Errorf("store: %w", err)
	}
	return callStore{shared, shared.Ready, shared.Close, node, shared}, nil
}

// unavailable says why calls cannot be stored; empty if they can.
func (k callStore) unavailable() string {
	if ready, cause := k.ready(); !ready {
		return causeText(cause)
	}
	return ""
}

// unfinished lists calls without an outcome, in the order of their ids.
func (k callStore) unfinished(ctx context.Context, after string, limit int) ([]store.Call, error) {
	lister, ok := k.Store.(interface {
		Unfinished(ctx context.Context, after string, limit int) ([]store.Call, error)
	})
	if !ok {
		return nil, errors.New("the store of calls cannot list them")
	}
	return lister.Unfinished(ctx, after, limit)
}

// running passes the calls that were dispatched and have no outcome to do.
func (k callStore) running(ctx context.Context, do func(*store.Call) (more bool)) error {
	lister, ok := k.Store.(interface {
		Running(ctx context.Context, do func(*store.Call) (more bool)) error
	})
	if !ok {
		return errors.New("the store of calls cannot list them")
	}
	return lister.Running(ctx, do)
}

func causeText(err error) string {
	if err == nil {
		return "the cause is not known"
	}
	return err.Error()
}

// logReconciled logs the outcomes of calls that a crash left unfinished. A failure is
// logged once, until its cause changes.
func logReconciled(logger *slog.Logger) func(calls.ReconcileStats) {
	reported := ""
	return func(t calls.ReconcileStats) {
		if t.Unknown+t.Redispatched+t.Recorded+t.Expired > 0 {
			logger.Warn("recovered unfinished calls", "unknown", t.Unknown, "redispatched", t.Redispatched, "recorded", t.Recorded,
				"expired", t.Expired)
		}
		trouble := ""
		if t.Err != nil {
			trouble = t.Err.Error()
		}
		if trouble != "" && trouble != reported {
			logger.Error("some unfinished calls could not be recovered; retrying", "cause", trouble)
		}
		reported = trouble
	}
}
