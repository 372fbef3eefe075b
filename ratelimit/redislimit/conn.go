package redislimit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

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

// route returns the node that has a key.
func (l *conn) route(ctx context.Context, key string) (*batcher, error) {
	if l.single != nil {
		return l.single, nil
	}
	node, err := l.Node(ctx, key)
	if err != nil {
		return nil, err
	}
	s := l.batchers[node.Address()]
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
	if len(o.Cluster) > 0 {
		return c, nil // its nodes are found by inspect
	}
	node, err := c.Node(context.Background(), "")
	if err != nil {
		return nil, err
	}
	address := node.Address()
	if o.Sentinel.Master != "" {
		address = "sentinel " + o.Sentinel.Master
	}
	c.single = newBatcher(address, node, wait)
	c.batchers[address] = c.single
	return c, nil
}

// poolSize is small, since one goroutine sends to each node.
const poolSize = 3

// inspect checks every node: it must be a master that can be written to, that runs
// the scripts, and that evicts nothing. Warnings say what could not be checked.
func (l *conn) inspect(ctx context.Context, r *Limiter) (warnings []string, err error) {
	if l.single != nil {
		l.single.tag = r.prefix + "{probe/0}"
	} else if err := l.findNodes(ctx, r.prefix); err != nil {
		return nil, err
	}
	for _, address := range slices.Sorted(maps.Keys(l.batchers)) {
		more, err := l.batchers[address].inspect(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		for _, w := range more {
			warnings = append(warnings, address+": "+w)
		}
	}
	return warnings, nil
}

// findNodes makes a batcher for each master, with a hash tag that is on its node.
func (l *conn) findNodes(ctx context.Context, prefix string) error {
	masters, err := l.Masters(ctx)
	if err != nil {
		return err
	}
	const enough = 20_000 // slots are 16384; most clusters are done after a few
	for i := 0; i < enough && len(l.batchers) < masters; i++ {
		tag := prefix + "{probe/" + strconv.Itoa(i) + "}"
		node, err := l.Node(ctx, tag)
		if err != nil {
			return err
		}
		if address := node.Address(); l.batchers[address] == nil {
			s := newBatcher(address, node, l.wait)
			s.tag, s.cluster = tag, true
			s.findMoved = func(to string) *batcher {
				l.Reload(context.Background())
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

func (s *batcher) inspect(ctx context.Context, r *Limiter) (warnings []string, err error) {
	found, err := redisconn.Inspect(ctx, s.node, "limits that are evicted would begin anew")
	switch {
	case err != nil && forbidden(err):
		warnings = append(warnings, "INFO is forbidden: version and restarts cannot be seen, so after every interruption all budgets begin empty")
	case err != nil:
		return nil, err
	}
	if found.Policy == "" {
		warnings = append(warnings, "maxmemory-policy cannot be read: make sure that it is noeviction")
	}
	replies := s.node.Send(ctx, nil, []any{"script", "load", script.Source}, []any{"time"})
	now, err := timeOf(replies[1])
	if err = cmp.Or(replies[0].Err, err); err != nil {
		return nil, err
	}
	r.skew.Store(int64(now.Sub(r.options.Clock())))
	s.epochKey, s.instance, s.epoch = s.tag+":epoch", found.Run, epochOf(r.epochs, s.address, found.Run)
	return warnings, s.probe(ctx, r)
}

// timeOf reads a reply of seconds and microseconds.
func timeOf(r redisconn.Reply) (time.Time, error) {
	parts, err := r.Texts()
	if err != nil || len(parts) != 2 {
		return time.Time{}, cmp.Or(err, errForeignReply)
	}
	seconds, err1 := strconv.ParseInt(parts[0], 10, 64)
	micros, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return time.Time{}, errForeignReply
	}
	return time.Unix(seconds, micros*1000), nil
}

// probe runs the script as calls do: it must read, write and reply. It finds the epoch of the node, in which
// its bucket may be empty.
func (s *batcher) probe(ctx context.Context, r *Limiter) error {
	j := r.newJob(opTake, s, r.nextID())
	j.op.count = 1
	j.op.buckets[0] = bucket{key: s.tag + ":bucket", speed: charge.MaxCount * 3600, burst: charge.MaxCount}
	b := batch{places: map[string]int{}}
	b.add(j)
	reply, err := redisconn.Do(ctx, s.node, b.command(s, false)...).Text()
	if err != nil {
		return err
	}
	if err := b.readReply(s, reply); err != nil || j.op.decision.outcome == charge.Failed {
		return errForeignReply
	}
	return nil
}

func forbidden(err error) bool {
	return redisconn.IsReply(err, "NOPERM") || redisconn.IsReply(err, "ERR unknown command")
}

// epochOf is what a gateway that knows these nodes knows of the epoch of one of them.
func epochOf(known map[string]string, address, run string) string {
	before, seen := known[address]
	switch {
	case seen && run == "":
		return "lost" // whether it is the instance of before cannot be seen
	case seen:
		return before
	case len(known) > 0:
		return "0/" // it is not new, though found only now
	}
	return ""
}

// expect has the conn refuse instances that were not found, and returns the epochs to keep.
func (l *conn) expect() map[string]string {
	next, runs := map[string]string{}, map[string]bool{}
	for address, s := range l.batchers {
		next[address] = s.epoch
		runs[s.instance] = true
	}
	l.Expect(runs)
	return next
}
