package app

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/stops"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/redisstore"
)

// stopped is what operators have stopped, and the connection by which gateways that share limits alone
// share it.
type stopped struct {
	*stops.Desk
	close func() error // of that connection
}

// openStops puts in force what operators have stopped, for a kernel that judges nothing yet. Gateways share it
// where they keep calls, or else where they count limits.
func openStops(ctx context.Context, c *configs.Config, redis redisconn.Options, kernel *gateway.Kernel, kept callStore,
	o Options) (stopped, error) {
	options := stops.Options{
		Kernel: kernel, Shared: kept.shared, Replica: replicaName(), Log: o.Logger,
		File:          stops.File{Path: filepath.Join(c.DataDir, stops.FileName)},
		UnreadRefuses: c.Store.Kind == configs.StoreRedis, // for limits alone, a gateway starts without Redis
	}
	if o.stopsOf != "" {
		options.File = stops.File{Path: filepath.Join(o.stopsOf, stops.FileName), Foreign: true}
	}
	s := stopped{close: func() error { return nil }}
	if c.Redis != nil && options.Shared == nil {
		own, err := redisstore.New(ctx, redisstore.Options{Options: redis, Node: kept.node, Replica: options.Replica, Wait: o.Wait})
		if err == nil {
			options.Shared, s.close = own, own.Close
		} else {
			options.Shared = unfit{err} // which is enough for limits
		}
	}
	var err error
	if s.Desk, err = stops.Open(ctx, options); err != nil {
		return s, errors.Join(err, s.close())
	}
	return s, nil
}

// Close ends the desk and its connection.
func (s stopped) Close() error {
	s.Desk.Close()
	return s.close()
}

// unfit stands for a Redis that cannot share stops.
type unfit struct{ cause error }

func (u unfit) ShareStops(context.Context, []store.Stop) ([]store.Stop, error) { return nil, u.cause }
func (u unfit) ConfirmStops(context.Context, []string) error                   { return u.cause }
func (u unfit) Leases(context.Context) ([]store.Lease, error)                  { return nil, u.cause }
