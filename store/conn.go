package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/callgate/callgate/internal/redisconn"
)

// Sentinel is a master watched by sentinels, host:port each.
type Sentinel struct {
	Master      string
	Addresses   []string
	Credentials func() (user, password string) // of the sentinels; nil: none
}

// Cluster is a Redis cluster.
type Cluster struct{ Addresses []string }

const (
	// decisionWait bounds a decision, with all that is asked for it: with what is
	// around it, it is refused within 250 ms.
	decisionWait = 225 * time.Millisecond
	// replyWait bounds one question: there is time for a second.
	replyWait = 110 * time.Millisecond
	// ackWait is how long replicas have to confirm. Redis looks at the clock of
	// those who wait ten times a second only, so it answers within ackReplyWait.
	ackWait      = 60 * time.Millisecond
	ackReplyWait = 200 * time.Millisecond
	// clusterPartitions is into how many slots calls are spread on a cluster.
	clusterPartitions = 16
	poolSize          = 32
)

// conn is one acquaintance with Redis: its nodes as they were found. When one
// of them is not what it was, or does not answer, the link is closed and another
// is opened.
type conn struct {
	client     redis.UniversalClient
	partitions []partition
	once       sync.Once

	mu    sync.Mutex
	known map[string]bool // of the instances that were found; nil while they are looked for
}

// partition is where the calls of some principals are: a slot, and its node.
type partition struct {
	epochKey string
	client   *redis.Client
	instance string // which instance, and which history of its data
	epoch    string
}

// unfitError is why Redis must not be used though it answers. It is the operator's
// to mend, and a gateway does not start with it.
type unfitError string

func (f unfitError) Error() string { return string(f) }

var errOtherInstance = errors.New("another instance of Redis answers, which may not hold every call")

// close closes the link. That may wait for what is under way.
func (l *conn) close() {
	l.once.Do(func() {
		go func() { _ = l.client.Close() }()
	})
}

// timeouts are how long what is asked may take.
type timeouts struct{ decision, reply, ackReply time.Duration }

func defaultTimeouts() timeouts { return timeouts{decisionWait, replyWait, ackReplyWait} }

// scaledTo are waits of which a decision takes so long; 0 changes nothing.
func (w timeouts) scaledTo(decision time.Duration) timeouts {
	if decision <= 0 {
		return w
	}
	scaled := func(d time.Duration) time.Duration {
		return time.Duration(float64(d) * float64(decision) / float64(w.decision))
	}
	return timeouts{decision, scaled(w.reply), scaled(w.ackReply)}
}

// dial makes the client. Nothing is asked of Redis yet. It repeats nothing by
// itself: a question that was sent twice must be one that may be.
func (o *RedisOptions) dial(w timeouts) (*conn, error) {
	l := &conn{}
	user, password := credentials(o.Credentials)
	switch {
	case len(o.Cluster.Addresses) > 0:
		l.client = redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: o.Cluster.Addresses, Username: user, Password: password, TLSConfig: o.TLS, Protocol: 2, Dialer: redisconn.Dial(w.reply, o.TLS),
			MaxRedirects: -1, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			DialTimeout: w.reply, ReadTimeout: w.ackReply, WriteTimeout: w.reply, PoolTimeout: w.reply,
			PoolSize: poolSize, PipelinePoolSize: -1, DisableIdentity: true, MaintNotificationsConfig: noMaintNotifications(), OnConnect: l.verifyInstance,
		})
	case o.Sentinel.Master != "":
		su, sp := credentials(o.Sentinel.Credentials)
		l.client = redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: o.Sentinel.Master, SentinelAddrs: o.Sentinel.Addresses, SentinelUsername: su, SentinelPassword: sp,
			Username: user, Password: password, TLSConfig: o.TLS, Protocol: 2, Dialer: redisconn.Dial(w.reply, o.TLS),
			MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			DialTimeout: w.reply, ReadTimeout: w.ackReply, WriteTimeout: w.reply, PoolTimeout: w.reply,
			PoolSize: poolSize, PipelinePoolSize: -1, DisableIdentity: true, OnConnect: l.verifyInstance,
		})
	default:
		opt, err := o.parseURL()
		if err != nil {
			return nil, err
		}
		if opt.TLSConfig != nil && o.TLS != nil {
			opt.TLSConfig.RootCAs = o.TLS.RootCAs
		}
		opt.Protocol, opt.MaxRetries, opt.DialerRetries, opt.ContextTimeoutEnabled = 2, -1, 1, true
		opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = w.reply, w.ackReply, w.reply, w.reply
		opt.PoolSize, opt.PipelinePoolSize, opt.Dialer = poolSize, -1, redisconn.Dial(w.reply, opt.TLSConfig)
		opt.DisableIdentity, opt.MaintNotificationsConfig, opt.OnConnect = true, noMaintNotifications(), l.verifyInstance
		l.client = redis.NewClient(opt)
	}
	return l, nil
}

func noMaintNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func credentials(f func() (string, string)) (user, password string) {
	if f == nil {
		return "", ""
	}
	return f()
}

// parseURL says nothing of what it found, since that may hold a password.
// Options in the URL are not taken: they could bring back retries.
func (o *RedisOptions) parseURL() (*redis.Options, error) {
	const expected = "found a url of another form, expected redis://[user:password@]host:port[/db] or rediss://…, without options"
	text := o.URL()
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.RawQuery != "" || u.Fragment != "" || u.Host == "" {
		return nil, errors.New(expected)
	}
	opt, err := redis.ParseURL(text)
	if err != nil {
		return nil, errors.New(expected)
	}
	return opt, nil
}

func (o *RedisOptions) validate() error {
	ways := 0
	for _, given := range []bool{o.URL != nil, o.Sentinel.Master != "" || len(o.Sentinel.Addresses) > 0, len(o.Cluster.Addresses) > 0} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return fmt.Errorf("found %d of url, sentinel and cluster, expected one", ways)
	case o.URL == nil && len(o.Cluster.Addresses) == 0 && (o.Sentinel.Master == "" || len(o.Sentinel.Addresses) == 0):
		return errors.New("found a sentinel without a master's name or without addresses, expected both")
	case o.Journal == nil:
		return errors.New("found no journal: without one, nothing can be restored after a loss")
	case o.Acknowledged < 0 || o.Journals < 0:
		return errors.New("found a negative number of replicas")
	case o.URL != nil:
		_, err := o.parseURL()
		return err
	}
	return nil
}

// verifyInstance runs for each new connection: an instance that is not one of those that
// were found when the link was opened (a restart, a failover) is not spoken to.
func (l *conn) verifyInstance(ctx context.Context, c *redis.Conn) error {
	l.mu.Lock()
	runs := l.known
	l.mu.Unlock()
	if runs == nil {
		return nil
	}
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	said := parseInfo(info)
	if said["redis_mode"] == "sentinel" || runs[said["run_id"]] {
		return nil
	}
	return errOtherInstance
}

func parseInfo(info string) map[string]string {
	said := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			said[name] = value
		}
	}
	return said
}

// inspect finds the node of each part. It must be a master, forget nothing to
// make room, and say which instance it is.
func (l *conn) inspect(ctx context.Context, prefix string, standIn bool) error {
	n := 1
	cluster, spread := l.client.(*redis.ClusterClient)
	if spread {
		n = clusterPartitions
	}
	runs, seen := map[string]bool{}, map[*redis.Client]string{}
	for i := range n {
		p := partition{epochKey: prefix + "{store/" + strconv.Itoa(i) + "}:epoch"}
		if spread {
			var err error
			if p.client, err = cluster.MasterForKey(ctx, p.epochKey); err != nil {
				return err
			}
		} else {
			p.client = l.client.(*redis.Client)
		}
		if p.instance = seen[p.client]; p.instance == "" {
			run, history, err := inspectNode(ctx, p.client, standIn)
			if err != nil {
				return err
			}
			runs[run] = true
			p.instance = run + history
			seen[p.client] = p.instance
		}
		l.partitions = append(l.partitions, p)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known = runs; standIn {
		l.known = nil
	}
	return nil
}

// inspectNode is what a node says of itself: which process it is, and, where it has
// followed another, which history of its data it goes by since. That its replicas come
// and go is no other history. One that stands in for Redis in tests says nothing.
func inspectNode(ctx context.Context, c *redis.Client, standIn bool) (run, history string, err error) {
	if standIn {
		return "standin", "", c.Ping(ctx).Err()
	}
	said := map[string]string{}
	for _, section := range []string{"server", "memory", "replication"} {
		info, err := c.Info(ctx, section).Result()
		if err != nil {
			return "", "", err
		}
		for name, value := range parseInfo(info) {
			said[name] = value
		}
	}
	major, _, _ := strings.Cut(said["redis_version"], ".")
	if n, err := strconv.Atoi(major); err != nil || n < 6 {
		return "", "", unfitError(fmt.Sprintf("found Redis %.20q, expected 6.0 or later", said["redis_version"]))
	}
	if policy := said["maxmemory_policy"]; policy != "noeviction" {
		return "", "", unfitError(fmt.Sprintf("found maxmemory-policy %.20q, expected noeviction: a key whose call was evicted would start a second one", policy))
	}
	if said["role"] != "master" || said["run_id"] == "" {
		return "", "", errors.New("the node is no master")
	}
	if strings.Trim(said["master_replid2"], "0") != "" {
		history = said["master_replid"]
	}
	return said["run_id"], history, nil
}
