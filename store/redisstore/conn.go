package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
)

const (
	// decisionWait bounds all requests for one decision, so that a decision is refused
	// within 250 ms.
	decisionWait = 225 * time.Millisecond
	// replyWait bounds one request: there is time for a second.
	replyWait = 110 * time.Millisecond
	// ackWait is how long replicas have to confirm. Redis checks that time only ten
	// times a second, so its reply is awaited for ackReplyWait.
	ackWait      = 60 * time.Millisecond
	ackReplyWait = 200 * time.Millisecond
	// clusterPartitions is the number of slots among which calls are divided on a
	// cluster.
	clusterPartitions = 16
	poolSize          = 32
)

// conn is a connection to Redis and its partitions as they were found.
type conn struct {
	*redisconn.Conn
	partitions []partition
}

// partition holds the calls of some principals: a slot, and its node.
type partition struct {
	epochKey string
	client   *redis.Client
	instance string // which instance, and which history of its data
	epoch    string
}

func (l *conn) close() { l.Close() }

// timeouts bound the requests to Redis.
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

// dial makes the client. Nothing is sent to Redis yet. The client repeats nothing
// by itself: only a command that may run twice is sent twice.
func (o *Options) dial(t timeouts) (*conn, error) {
	c, err := o.Open(redisconn.Settings{Timeout: t.reply, ReadTimeout: t.ackReply, PoolSize: poolSize})
	return &conn{Conn: c}, err
}

func (o *Options) validate() error {
	if err := o.Options.Validate(); err != nil {
		return err
	}
	switch {
	case o.Journal == nil:
		return errors.New("found no journal: without one, nothing can be restored after a loss")
	case o.Node == "" || strings.Contains(o.Node, "/"):
		return errors.New("found no name of the node, or one with a slash")
	case o.MinRedisReplicas < 0 || o.Replicas < 0:
		return errors.New("found a negative number of replicas")
	}
	return nil
}

// inspect finds the node of each partition. A node must be a master, evict nothing,
// and name its instance.
func (l *conn) inspect(ctx context.Context, prefix string, isFake bool) error {
	n := 1
	if _, spread := l.Client.(*redis.ClusterClient); spread {
		n = clusterPartitions
	}
	runs, seen := map[string]bool{}, map[*redis.Client]string{}
	for i := range n {
		p := partition{epochKey: prefix + "{store/" + strconv.Itoa(i) + "}:epoch"}
		var err error
		if p.client, err = l.Node(ctx, p.epochKey); err != nil {
			return err
		}
		if p.instance = seen[p.client]; p.instance == "" {
			run, history, err := inspectNode(ctx, p.client, isFake)
			if err != nil {
				return err
			}
			runs[run] = true
			p.instance = run + history
			seen[p.client] = p.instance
		}
		l.partitions = append(l.partitions, p)
	}
	if isFake {
		runs = nil
	}
	l.Expect(runs)
	return nil
}

// inspectNode returns the run id of a node and, if the node was promoted, the
// replication history that it has had since. A fake of Redis in tests has neither.
func inspectNode(ctx context.Context, c *redis.Client, isFake bool) (run, history string, err error) {
	if isFake {
		return "standin", "", c.Ping(ctx).Err()
	}
	i, err := redisconn.Inspect(ctx, c, "a key whose call was evicted would start a second one")
	switch {
	case err != nil:
		return "", "", err
	case i.Version == "" || i.Policy == "":
		return "", "", redisconn.UnfitError("found no version or no maxmemory-policy in what Redis says of itself, expected both")
	case !i.Master || i.Run == "":
		return "", "", errors.New("the node is no master")
	}
	return i.Run, i.History, nil
}
