package redisconn

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Settings say how a client uses its connections.
type Settings struct {
	// Timeout bounds connecting, writing, and waiting for a connection of the
	// pool; ReadTimeout bounds waiting for a reply.
	Timeout, ReadTimeout time.Duration
	// PoolSize is the number of connections to each node; ClusterPoolSize is
	// that on a cluster. 0 is the library's default.
	PoolSize, ClusterPoolSize int
	// OnConnect runs for each new connection, those to sentinels included. Its
	// error refuses the connection.
	OnConnect func(context.Context, *redis.Conn) error
}

// NewClient returns a *redis.Client, or a *redis.ClusterClient for a cluster. It sends
// nothing yet. The client never retries a command, follows no redirection of a cluster, and
// its replies are bounded: see Bound.
func (o *Options) NewClient(s Settings) (redis.UniversalClient, error) {
	disableClientLog()
	user, password := login(o.Credentials)
	switch {
	case len(o.Cluster) > 0:
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: o.Cluster, Username: user, Password: password, TLSConfig: o.TLS, Protocol: 2, Dialer: dialer(s.Timeout, o.TLS),
			MaxRedirects: -1, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			DialTimeout: s.Timeout, ReadTimeout: s.ReadTimeout, WriteTimeout: s.Timeout, PoolTimeout: s.Timeout,
			PoolSize: s.ClusterPoolSize, PipelinePoolSize: -1,
			DisableIdentity: true, MaintNotificationsConfig: noMaintNotifications(), OnConnect: s.OnConnect,
		}), nil
	case o.Sentinel.Master != "":
		sentinelUser, sentinelPassword := login(o.Sentinel.Credentials)
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: o.Sentinel.Master, SentinelAddrs: o.Sentinel.Addresses, SentinelUsername: sentinelUser, SentinelPassword: sentinelPassword,
			Username: user, Password: password, TLSConfig: o.TLS, Protocol: 2, Dialer: dialer(s.Timeout, o.TLS),
			MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			DialTimeout: s.Timeout, ReadTimeout: s.ReadTimeout, WriteTimeout: s.Timeout, PoolTimeout: s.Timeout,
			PoolSize: s.PoolSize, PipelinePoolSize: -1, DisableIdentity: true, OnConnect: s.OnConnect,
		}), nil
	}
	c, err := o.parseURL()
	if err != nil {
		return nil, err
	}
	if c.TLSConfig != nil && o.TLS != nil {
		c.TLSConfig.RootCAs = o.TLS.RootCAs
	}
	c.Protocol = 2
	c.Dialer = dialer(s.Timeout, c.TLSConfig)
	c.MaxRetries = -1
	c.DialerRetries = 1
	c.ContextTimeoutEnabled = true
	c.DialTimeout = s.Timeout
	c.ReadTimeout = s.ReadTimeout
	c.WriteTimeout = s.Timeout
	c.PoolTimeout = s.Timeout
	c.PoolSize = s.PoolSize
	c.PipelinePoolSize = -1
	c.DisableIdentity = true
	c.MaintNotificationsConfig = noMaintNotifications()
	c.OnConnect = s.OnConnect
	return redis.NewClient(c), nil
}

func noMaintNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// disableClientLog keeps the library from writing to standard error.
var disableClientLog = sync.OnceFunc(func() { redis.SetLogger(discardLogger{}) })

type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

// IsReply reports whether err is an error reply of Redis that begins with the
// code; "" is any error reply. Redis then did not run the command.
func IsReply(err error, code string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), code)
}
