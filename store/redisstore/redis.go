// Package redisstore keeps calls in Redis for gateways that share them. What Redis has lost, they put back
// from their memory and from their audit logs.
package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/internal/testhooks"
)

// Options say where Redis is, and how the store uses it.
type Options struct {
	redisconn.Options

	// Node names this gateway among those that share the store, from one of its processes to the next.
	Node string
	// Replica is the name of its machine, for people.
	Replica string
	// Log is the gateway's audit log; the zero value is that of a gateway which has none.
	Log Log
	// Replicas is the number of gateways. After a loss, Redis is used again once so many have put back
	// what they know; 0 is 1.
	Replicas int
	// MinRedisReplicas is the number of replicas of Redis that must have a dispatch before
	// the tool is called. 0 is for a Redis without replicas.
	MinRedisReplicas int
	Bounds           store.Bounds
	// Wait bounds how long a decision waits for Redis; 0 is 225 ms.
	Wait time.Duration
	// OnChange, if not nil, is called in order, from one goroutine, when the store
	// becomes ready or stops being ready; then cause says why.
	OnChange func(ready bool, cause error)
	// OnMemoryOnly, if not nil, is called at the first connection where Redis writes no append-only file.
	OnMemoryOnly func()
	// Hooks are for tests of this package.
	Hooks testhooks.Redis
}

// Log is an audit log, as far as the store asks it.
type Log struct {
	// Mark returns the number of the last record, or of one before it.
	Mark func() uint64
	// Read passes what the records behind one, and not older than a time, say to do. complete is false where
	// records of that time are missing.
	Read func(ctx context.Context, behind uint64, since time.Time, do func([]store.Fact) error) (complete bool, err error)
	// Threads passes what the records behind one say of threads. lost is up to when records may be missing; the zero time: none is.
	// nil: the log says nothing of threads.
	Threads func(ctx context.Context, behind uint64, do func([]store.ThreadFact) error) (lost time.Time, err error)
	// Kept returns what an earlier process has had of the terms of threads that are kept; nil: there was none.
	Kept func() (*history.Keeping, error)
	// Accepts reports whether the operator accepts that records are missing, which was noticed at a time.
	Accepts func(noticed time.Time) bool
	// OnRestored is told what was put back after a loss. It may be called with nothing.
	OnRestored func(Restored)
}

// Restored is what a gateway has put back, or tried to.
type Restored struct {
	store.Folded
	Records int // of this process
	Threads int // records of threads: what they say was there, or was put back
	Behind  uint64
	// Incomplete says that keys may be missing, so calls with a key are refused.
	Incomplete bool
}

const (
	leaseTime         = 10 * time.Second
	reconnectInterval = 200 * time.Millisecond
	// connectTimeout bounds each step of connecting, except putting back.
	connectTimeout = 2 * time.Second
	// decisionWait bounds all requests for one decision, so that a decision is refused
	// within 250 ms.
	decisionWait = 225 * time.Millisecond
	// replyWait bounds one request: there is time for a second.
	replyWait = 110 * time.Millisecond
	// ackWait is how long replicas have to confirm. Redis checks that time only ten
	// times a second, so its reply is awaited for ackReplyWait.
	ackWait      = 60 * time.Millisecond
	ackReplyWait = 200 * time.Millisecond
	poolSize     = 32
	// lateWait is how long a commit may be on its way, by the clock of Redis.
	lateWait = 1500 * time.Millisecond
)

// Store keeps calls for gateways that share them: in one Redis, under Sentinel, or in one slot of a
// cluster. It is safe for concurrent use.
//
// # Commits
//
// The rules are in Go, in store.Engine. Redis compares the revisions of the records that a transition has
// read, and writes all of it or nothing, in one script. A commit has a name: one whose reply was lost is sent
// once more, and gets the same reply. It has a time, by the clock of Redis, after which it is not made any more.
// A commit without a reply is refused; after its time, a call that it has opened or dispatched is taken back. With
// MinRedisReplicas, so many replicas of Redis must confirm a dispatch.
//
// # Loss
//
// Redis may lose what it has confirmed: it is emptied, starts again with an old state, or promotes a
// replica that was behind. What is left is how it was at some earlier moment. So Redis holds an epoch,
// bound to the instance and to the history of its data, which every script compares. Where it is missing, or
// the instance is another, all commits are refused until Replicas gateways have put back what they know; the last
// one sets the next epoch. A gateway puts back the calls that it runs and what it has written in the last
// seconds, and then what its audit log says from the mark on that is in Redis: before that mark everything was
// in Redis, and Redis had the mark. The cases that remain are in docs/failure-behaviour.md.
//
// # Processes that have ended
//
// A process renews a lease of 10 s each second. When it has ended, Recover gives its calls to one other
// process; the next process of the same node takes them over at once.
type Store struct {
	*store.Engine
	options  Options
	timeouts timeouts
	lease    time.Duration
	process  store.Process
	bounds   store.Bounds
	offset   atomic.Int64 // of the clock of Redis, in microseconds

	state  atomic.Pointer[connState]
	lost   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	// since is when the process could renew its lease, and all others theirs, for the first time.
	since atomic.Pointer[time.Time]

	mu sync.Mutex
	// held are the records of calls that this process opens and runs, and of its lease, as it has written them
	// last, and those that are here alone.
	held   map[store.Key]held
	begun  map[string]int // calls that are being opened or dispatched, or may have been, and are to be taken back
	rev    store.Rev      // of the last record that is here alone
	opened int            // how many there are
	recent recent
	doubts []doubt
	marks  marks
	aged   uint64 // the record of the log that was the last one markAge ago

	started time.Time

	// For the goroutine that connects: what waits for other gateways, the epoch of the connection before, and since
	// when records of the log are missing that are asked for.
	pending   *seeding
	lastEpoch string
	found     uint64 // the mark that was found at the last connection
	greeted   bool   // there was a connection
	gapSince  time.Time
	// gap says that nobody has accepted that, gapMark behind which record they are missing, and gapSeen when that was
	// looked at.
	gap     bool
	gapMark uint64
	gapSeen time.Time
}

// connState is a connection to Redis, or why there is none.
type connState struct {
	conn  *conn
	cause error
}

// conn is a connection to Redis, and what was found there.
type conn struct {
	*redisconn.Conn
	node     redisconn.Node
	epochKey string
	instance string // which instance, and which history of its data
	epoch    string
}

// incomplete reports whether keys may be missing.
func (c *conn) incomplete() bool { return c.epoch != "" && c.epoch[len(c.epoch)-1] == '?' }

// timeouts bound the requests to Redis.
type timeouts struct{ decision, reply, ackReply time.Duration }

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

func (o *Options) validate() error {
	if err := o.Options.Validate(); err != nil {
		return err
	}
	switch {
	case o.Node == "" || strings.Contains(o.Node, "/"):
		return errors.New("found no name of this gateway: without one, nobody could tell its calls from those of others")
	case o.MinRedisReplicas < 0 || o.Replicas < 0:
		return errors.New("found a negative number of replicas")
	}
	return nil
}

// New returns a store that is connected, or that refuses calls while it tries to connect. An error means
// that the options are wrong or that Redis is unfit: a version before 6.0, or a
// maxmemory-policy other than noeviction. No text holds a secret.
func New(ctx context.Context, options Options) (*Store, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	r := &Store{
		options: options, timeouts: timeouts{decisionWait, replyWait, ackReplyWait}.scaledTo(options.Wait),
		lease: cmp.Or(options.Hooks.Lease, leaseTime), bounds: options.Bounds.WithDefaults(store.DurableCalls, store.DurableBytes),
		started: time.Now(), lost: make(chan struct{}, 1), held: map[store.Key]held{}, begun: map[string]int{},
	}
	r.process = store.Process{Name: options.Node + "/" + rand.Text(), Node: options.Node, Replica: options.Replica, Holds: r.holds,
		Wait: r.timeouts.decision}
	r.Engine = store.NewEngine(backend{Store: r}, r.process, r.now, r.bounds)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.state.Store(&connState{cause: errors.New("Redis has not been reached yet")})
	err := r.connect(ctx)
	var unfit redisconn.UnfitError
	if errors.As(err, &unfit) {
		r.cancel()
		return nil, err
	}
	if err != nil {
		r.state.Store(&connState{cause: err})
		r.lost <- struct{}{}
	}
	r.group.Go(r.maintain)
	return r, nil
}

// Ready reports whether the store can be relied on now; if not, cause tells the
// operator why.
func (r *Store) Ready() (ready bool, cause error) {
	p := r.state.Load()
	return p.conn != nil, p.cause
}

// Close ends the store. Other processes take over the calls that it has not taken back yet.
func (r *Store) Close() error {
	r.cancel()
	r.group.Wait()
	if r.pending != nil {
		r.pending.Close()
	}
	if p := r.state.Swap(&connState{cause: errClosed}); p.conn != nil {
		p.conn.Close()
	}
	return nil
}

var (
	errStaleEpoch = errors.New("Redis was emptied, or holds another state")
	errWrongToken = errors.New("the reply of Redis belongs to another request")
	errTooFewAcks = errors.New("too few replicas of Redis have confirmed")
	errLate       = errors.New("Redis has received a request too late")
	errClosed     = errors.New("the store is closed")
	errGap        = errors.New(
		"Redis has lost data, and records of the audit log of that time are missing, so keys may be missing that have started a call; " +
			"put the rotated files back, or accept the loss with \"callgate audit accept-loss\"")
)

// Open records a call that is about to be judged. Where its key has already started
// a call, Open returns that call and records nothing.
func (r *Store) Open(ctx context.Context, call store.Call) (prior *store.Call, err error) {
	l, err := r.connection()
	if err != nil {
		return nil, err
	}
	if call.Key != "" && l.incomplete() {
		return nil, store.Unavailable(errGap)
	}
	return r.Engine.Open(ctx, call)
}

// Finish ends a call and returns it as it is then. With ErrEnded it returns the call
// as another attempt has finished it.
func (r *Store) Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	c, err := r.Engine.Finish(ctx, id, ending)
	if errors.Is(err, store.ErrNotFound) {
		// Redis may have lost a call that runs here, without an end of its epoch.
		r.mu.Lock()
		running := r.held[store.Key{Kind: store.CallRecord, ID: id}].lost
		r.mu.Unlock()
		if running != nil {
			if err := r.Restore(ctx, []store.Kept{{Key: store.Key{Kind: store.CallRecord, ID: id}, Value: running}}); err != nil {
				return store.Call{}, err
			}
			c, err = r.Engine.Finish(ctx, id, ending)
		}
	}
	if err != nil && !errors.Is(err, store.ErrEnded) {
		return store.Call{}, err
	}
	return c, err
}

// Settle removes a call that was not dispatched; its key is free again. Other calls stay.
func (r *Store) Settle(ctx context.Context, id string) error {
	err := r.Engine.Settle(ctx, id)
	if errors.Is(err, store.ErrUnavailable) {
		r.doubt(doubt{forget: id})
	}
	return err
}

// Recover returns at most limit calls that need to be recovered for the reason: abandoned
// calls of any process, and expired calls of any process.
func (r *Store) Recover(ctx context.Context, reason store.Reason, limit int) ([]store.Call, error) {
	if reason != store.Abandoned {
		return r.Engine.Recover(ctx, reason, limit)
	}
	if _, err := r.connection(); err != nil {
		return nil, err
	}
	// Others may not have renewed their leases yet.
	since := r.since.Load()
	return r.TakeOver(ctx, limit, since != nil && r.now().Sub(*since) > r.lease)
}

func (r *Store) connection() (*conn, error) {
	p := r.state.Load()
	if p.conn == nil {
		return nil, store.Unavailable(p.cause)
	}
	return p.conn, nil
}

// now is the time of Redis.
func (r *Store) now() time.Time {
	if r.options.Hooks.Now != nil {
		return r.options.Hooks.Now()
	}
	return r.redisTime()
}

func (r *Store) redisTime() time.Time {
	return time.Now().Add(time.Duration(r.offset.Load()) * time.Microsecond)
}

// disconnect closes a conn that failed; maintain opens another.
func (r *Store) disconnect(l *conn, cause error) {
	p := r.state.Load()
	if !errors.Is(cause, store.ErrSameNode) && !errors.Is(cause, errGap) {
		cause = fmt.Errorf("Redis is unavailable: %w", cause)
	}
	if p.conn != l || !r.state.CompareAndSwap(p, &connState{cause: cause}) {
		return
	}
	l.Close()
	select {
	case r.lost <- struct{}{}:
	default:
	}
}
