package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
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
	PoolSize             int // the number of connections to each node
}

// newClient returns a client that has sent nothing yet. It never retries a command, follows no redirection of a cluster, and
// its replies are bounded: see Bound. verify runs for each new connection, those to
// sentinels included, and its error refuses the connection.
func newClient(o *Options, s Settings, verify func(info func() (string, error)) error) (backend, error) {
	disableClientLog()
	onConnect := func(ctx context.Context, c *redis.Conn) error {
		return verify(func() (string, error) { return c.Info(ctx, "server").Result() })
	}
	user, password := login(o.Credentials)
	switch {
	case len(o.Cluster) > 0:
		return cluster{redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: o.Cluster, Username: user, Password: password, TLSConfig: o.TLS, Protocol: 2, Dialer: dialer(s.Timeout, o.TLS),
			MaxRedirects: -1, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			DialTimeout: s.Timeout, ReadTimeout: s.ReadTimeout, WriteTimeout: s.Timeout, PoolTimeout: s.Timeout,
			PoolSize: s.PoolSize, PipelinePoolSize: -1,
			DisableIdentity: true, MaintNotificationsConfig: noMaintNotifications(), OnConnect: onConnect,
		})}, nil
	case o.Sentinel.Master != "":
		sentinelUser, sentinelPassword := login(o.Sentinel.Credentials)
		return single{redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: o.Sentinel.Master, SentinelAddrs: o.Sentinel.Addresses, SentinelUsername: sentinelUser,
			SentinelPassword: sentinelPassword,
			Username:         user, Password: password, TLSConfig: o.TLS, Protocol: 2, Dialer: dialer(s.Timeout, o.TLS),
			MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			DialTimeout: s.Timeout, ReadTimeout: s.ReadTimeout, WriteTimeout: s.Timeout, PoolTimeout: s.Timeout,
			PoolSize: s.PoolSize, PipelinePoolSize: -1, DisableIdentity: true, OnConnect: onConnect,
		})}, nil
	}
	c, err := parseURL(o.URL())
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
	c.OnConnect = onConnect
	return single{redis.NewClient(c)}, nil
}

func noMaintNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// disableClientLog keeps the library from writing to standard error.
var disableClientLog = sync.OnceFunc(func() { redis.SetLogger(discardLogger{}) })

type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

// cures say what an error reply means for an operator, by how it begins: the reply's own words may
// quote the keys and values of a command.
var cures = []struct{ reply, cure string }{
	{"WRONGPASS", "the user name or the password is wrong; in a url, percent-encode characters such as / and @"},
	{"NOAUTH", "it asks for a password, and the configuration has none"},
	{"NOPERM", "its ACL does not let this user run the command or use the key; docs/redis.md lists what the user needs"},
	{"READONLY", "it is a replica, which takes no writes; name the primary, or use redis.sentinel"},
	{"CLUSTERDOWN", "it is a node of a cluster that does not serve every slot; a cluster is named by redis.cluster, not redis.url"},
	{"MOVED", "it is a node of a cluster; use redis.cluster in place of redis.url"},
	{"OOM", "its memory is full; raise maxmemory"},
	{"LOADING", "it is still loading its data"},
	{"MASTERDOWN", "it is a replica without a primary"},
	{"NOREPLICAS", "too few of its replicas are connected (min-replicas-to-write)"},
	{"MISCONF", "it cannot save its data to disk; look at its log"},
	{"BUSY", "it is busy with a script"},
	{"ERR This instance has cluster support disabled", "it is no node of a cluster; use redis.url in place of redis.cluster"},
	{"ERR unknown command", "it does not have a command that is needed, or it was renamed"},
	{"ERR Client sent AUTH, but no password is set", "it asks for no password, and the configuration has one"},
	{"ERR AUTH <password> called without any password configured", "it asks for no password, and the configuration has one"},
	{"ERR max number of clients reached", "it has too many connections; raise maxclients"},
	{"ERR DB index is out of range", "it does not have the database that redis.url names"},
}

// ErrTimeout says that Redis has not answered.
var ErrTimeout = errors.New("Redis did not answer in time")

// Describe returns an error without the content of a command, for operators: an error reply by its
// code and its cure, a timeout as ErrTimeout, every other error as it is.
func Describe(err error) error {
	var wire net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &wire) && wire.Timeout() {
		return ErrTimeout
	}
	var reply redis.Error
	if !errors.As(err, &reply) || reply.Error() == "" {
		return err
	}
	code, _, _ := strings.Cut(reply.Error(), " ")
	code = strings.TrimSuffix(code, ":")
	for _, c := range cures {
		if strings.HasPrefix(reply.Error(), c.reply) {
			return fmt.Errorf("Redis answered %s: %s", code, c.cure)
		}
	}
	if code == "ERR" {
		_, words, _ := strings.Cut(reply.Error(), " ")
		code = strings.TrimSpace(code + " " + ownWords.FindString(words))
	}
	return fmt.Errorf("Redis answered %s", code)
}

// ownWords are the first words of a reply. ERR says nothing alone; names, commands and values stand
// behind these words, in quotes, parentheses, or behind a colon.
var ownWords = regexp.MustCompile(`^[A-Za-z]{1,20}( [A-Za-z]{1,20}){0,11}`)

// IsReply reports whether err is an error reply of Redis that begins with the
// code; "" is any error reply. Redis then did not run the command.
func IsReply(err error, code string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), code)
}

// IsOverload reports whether an error reply says that Redis cannot do it now, and nothing about what it holds.
func IsOverload(err error) bool {
	return IsReply(err, "OOM") || IsReply(err, "NOREPLICAS") || IsReply(err, "MISCONF") || IsReply(err, "BUSY")
}
