package redislimit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// conn is a connection to Redis and its nodes as they were found when it was opened.
type conn struct {
	*redisconn.Conn
	batchers map[string]*batcher // by address; does not change
	single   *batcher            // where there is one node
	wait     time.Duration       // for each reply
	once     sync.Once
}

// nodeInfo describes a node, by its own report.
type nodeInfo struct {
	id  string
	now int64 // microseconds
}

// route returns the node that has a key.
func (l *conn) route(ctx context.Context, key string) (*batcher, error) {
	if l.single != nil {
		return l.single, nil
	}
	client, err := l.Node(ctx, key)
	if err != nil {
		return nil, err
	}
	s := l.batchers[client.Options().Addr]
	if s == nil {
		return nil, redisconn.ErrOtherInstance
	}
	return s, nil
}

// shutdown closes the conn. Jobs in its queues fail.
func (l *conn) shutdown() {
	l.once.Do(func() {
		for _, s := range l.batchers {
			close(s.stop)
		}
		l.Close()
	})
}

// dial makes the client. Nothing is sent to Redis yet.
func (o *Options) dial() (*conn, error) {
	wait := o.wait(batchTimeout)
	opened, err := o.Open(redisconn.Settings{Timeout: wait, ReadTimeout: wait, PoolSize: poolSize})
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: opened, batchers: map[string]*batcher{}, wait: wait}
	if client, ok := c.Client.(*redis.Client); ok {
		address := client.Options().Addr
		if o.Sentinel.Master != "" {
			address = "sentinel " + o.Sentinel.Master
		}
		c.single = newBatcher(address, client, wait)
		c.batchers[address] = c.single
	}
	return c, nil
}

// poolSize is small, since one goroutine sends to each node.
const poolSize = 3

// inspect checks every node: it must be a master that can be written to, that runs
// the scripts, and that evicts nothing. Warnings say what could not be checked.
func (l *conn) inspect(ctx context.Context, r *Limiter) (found map[string]nodeInfo, warnings []string, err error) {
	if cluster, ok := l.Client.(*redis.ClusterClient); ok {
		if err := l.findNodes(ctx, cluster, r.prefix); err != nil {
			return nil, nil, err
		}
	} else {
		l.single.tag = r.prefix + "{probe/0}"
	}
	found = map[string]nodeInfo{}
	for _, address := range slices.Sorted(maps.Keys(l.batchers)) {
		s := l.batchers[address]
		in, more, err := s.inspect(ctx, r)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", address, err)
		}
		found[address] = in
		for _, w := range more {
			warnings = append(warnings, address+": "+w)
		}
	}
	return found, warnings, nil
}

// findNodes makes a batcher for each master, with a hash tag that is on its node.
func (l *conn) findNodes(ctx context.Context, cluster *redis.ClusterClient, prefix string) error {
	var mu sync.Mutex
	var masters int
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters++
		return nil
	})
	if err != nil {
		return err
	}
	const enough = 20_000 // slots are 16384; most clusters are done after a few
	for i := 0; i < enough && len(l.batchers) < masters; i++ {
		tag := prefix + "{probe/" + strconv.Itoa(i) + "}"
		c, err := cluster.MasterForKey(ctx, tag)
		if err != nil {
			return err
		}
		if address := c.Options().Addr; l.batchers[address] == nil {
			s := newBatcher(address, c, l.wait)
			s.tag, s.cluster = tag, true
			s.findMoved = func(to string) *batcher {
				cluster.ReloadState(context.Background())
				return l.batchers[to]
			}
			l.batchers[address] = s
		}
	}
	if len(l.batchers) == 0 {
		return redisconn.UnfitError("the cluster has no master with slots")
	}
	return nil
}

func (s *batcher) inspect(ctx context.Context, r *Limiter) (in nodeInfo, warnings []string, err error) {
	found, err := redisconn.Inspect(ctx, s.client, "limits that are evicted would begin anew")
	switch {
	case err != nil && forbidden(err):
		warnings = append(warnings, "INFO is forbidden: version and restarts cannot be seen, so after every interruption all budgets begin empty")
	case err != nil:
		return in, nil, err
	}
	if in.id = found.Run; found.Policy == "" {
		warnings = append(warnings, "maxmemory-policy cannot be read: make sure that it is noeviction")
	}
	pipe := s.client.Pipeline()
	pipe.ScriptLoad(ctx, script)
	now := pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return in, nil, err
	}
	in.now = now.Val().UnixMicro()
	return in, warnings, s.probe(ctx, r)
}

// probe runs the script as calls do: it must read, write and reply.
func (s *batcher) probe(ctx context.Context, r *Limiter) error {
	j := r.newJob(opTake, s, r.nextID())
	j.op.count = 1
	j.op.buckets[0] = bucket{key: s.tag + ":bucket", speed: charge.MaxCount * 3600, burst: charge.MaxCount}
	b := batch{places: map[string]int{}}
	b.add(j)
	reply, err := s.client.Do(ctx, b.command(new(string), false)...).Text()
	if err != nil {
		return err
	}
	if err := b.readReply(reply); err != nil || j.op.decision.outcome != charge.Taken {
		return errForeignReply
	}
	return nil
}

func forbidden(err error) bool {
	return redisconn.IsReply(err, "NOPERM") || redisconn.IsReply(err, "ERR unknown command")
}

// sinceKey is the key that says, to gateways that start later, since when buckets
// that Redis does not hold began empty.
func (s *batcher) sinceKey() string { return s.tag + ":since" }

// nodeState is kept of a node from one conn to the next.
type nodeState struct{ id, since string }

// restoreSince finds since when the buckets of each node began empty, and returns the
// state to keep. An instance other than the known one may have lost its counts, so
// its buckets begin empty now. On the first connection of a gateway, Redis says
// whether that has happened.
func (l *conn) restoreSince(ctx context.Context, found map[string]nodeInfo, known map[string]nodeState) (map[string]nodeState, error) {
	next := map[string]nodeState{}
	instances := map[string]bool{}
	for address, in := range found {
		s := l.batchers[address]
		before, seen := known[address]
		switch {
		case seen && in.id != "" && before.id == in.id:
			s.since = before.since
		case len(known) == 0:
			since, err := s.client.Get(ctx, s.sinceKey()).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return nil, err
			}
			if _, err := strconv.ParseInt(since, 10, 64); since != "" && err != nil {
				return nil, errForeignReply
			}
			s.since = since
		default:
			s.since = strconv.FormatInt(in.now, 10)
			if err := s.client.Set(ctx, s.sinceKey(), s.since, 0).Err(); err != nil {
				return nil, err
			}
		}
		next[address] = nodeState{in.id, s.since}
		instances[in.id] = true
	}
	l.Expect(instances)
	return next, nil
}
