// Package redisstore keeps calls in Redis for gateways that share them, each with a
// journal of its own on disk, from which they restore what Redis has lost.
package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/internal/testhooks"
)

// Options say where Redis is, and how the store uses it.
type Options struct {
	redisconn.Options

	// Node is the same for every process with this journal, and for no other. It has no slash.
	Node string
	// Journal holds this process's own calls, on its own disk. The store owns it and
	// closes it.
	Journal *boltstore.Store
	// Replicas is the number of journals: as many as there are gateways. After a loss,
	// Redis is used again once so many journals are restored; 0 is 1.
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
	// LossAccepted reports whether an operator has accepted a loss that was noticed at a time. nil accepts
	// none.
	LossAccepted func(noticed time.Time) bool
	// Hooks are for tests of this package.
	Hooks testhooks.Redis
}

const (
	leaseTime         = 10 * time.Second
	reconnectInterval = 200 * time.Millisecond
	maxOpened         = 65_536
	maxRetractions    = 65_536
)

// Store keeps calls for gateways that share them: in one Redis, under Sentinel,
// or on a cluster. It is safe for concurrent use.
//
// # Claims
//
// A call claims its key under its id, and one attempt of one process dispatches the
// call; Redis holds the name of both. A request whose reply was lost is sent once
// more, under the same name, and gets the same reply; the client repeats nothing by
// itself. A call without a reply within 250 ms is refused, and retracted when Redis
// answers again; each second, orphans that have arrived since are looked for.
// A dispatch verifies that the key still belongs to its call and, with MinRedisReplicas,
// that so many replicas of Redis have it; else it is refused and retracted.
//
// The calls of one principal are in one slot, so that each transition is one script
// on one node. A cluster therefore divides principals, not calls.
//
// # Loss
//
// Redis may lose what it has confirmed: it is emptied, starts again with an old
// state, or promotes a replica that was behind. So Redis holds an epoch, bound to
// the instance and to the history of its data, which every script compares. Where
// the epoch is missing, or the instance is another or has followed another
// meanwhile, all claims are refused until Replicas gateways have restored their
// journals; the last one sets the next epoch. A journal holds the calls that its
// process has dispatched and finished, and is synced with each. The cases that
// remain are in docs/failure-behaviour.md: a gateway whose disk is lost together
// with the memory of Redis, and Replicas or MinRedisReplicas lower than the true numbers.
//
// # Processes that have ended
//
// A process holds a lease of 10 s and renews it each second. When the lease has
// ended, Recover gives its calls to one other process. A process that starts with
// the journal of another takes over its calls at once.
type Store struct {
	options          Options
	prefix           string
	lease            time.Duration
	timeouts         timeouts
	journal          boltstore.Journal
	owner            string
	bounds           [4]any
	watchers         store.Watchers
	approvalWatchers store.Watchers

	state atomic.Pointer[connState]
	// restores counts how often this process has begun to restore its journal.
	restores atomic.Uint64
	lost     chan struct{}
	ctx      context.Context
	cancel   context.CancelFunc
	group    sync.WaitGroup

	mu              sync.Mutex
	opened          store.OpenedCalls
	beingOpened     map[string]bool   // ids of calls that are being opened in Redis
	running         map[string]string // principals of the calls that this process runs, by id
	retractions     []retraction
	unreported      bool   // calls may have been taken over and not returned by Recover
	reconcileCursor string // the last call of the journal that was reconciled
}

// connState is a connection to Redis, or why there is none.
type connState struct {
	conn  *conn
	cause error
}

// retraction is a call that is to be taken back in Redis.
type retraction struct{ id, principal, nonce string }

// New returns a store that is connected, or that refuses calls while it tries
// to connect. It restores the journal into Redis where that is needed. An error means
// that the options are wrong or that Redis is unfit: a version before 6.0, or a
// maxmemory-policy other than noeviction. No text holds a secret.
func New(ctx context.Context, options Options) (*Store, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	lease := options.Hooks.Lease
	if lease == 0 {
		lease = leaseTime
	}
	journal := boltstore.Journal{Store: options.Journal, Node: options.Node}
	b := options.Bounds.WithDefaults(store.DurableCalls, store.DurableBytes)
	if len(options.Cluster) > 0 {
		b.Calls, b.Bytes = max(1, b.Calls/clusterPartitions), max(1, b.Bytes/clusterPartitions)
	}
	r := &Store{
		options: options, prefix: options.KeyPrefix(), journal: journal, owner: journal.Owner(),
		lease: lease, timeouts: defaultTimeouts().scaledTo(options.Wait),
		bounds: [4]any{b.Calls, b.Bytes, b.PerPrincipal().Calls, b.PerPrincipal().Bytes},
		lost:   make(chan struct{}, 1), beingOpened: map[string]bool{}, running: map[string]string{},
	}
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
	if p.conn == nil {
		return false, p.cause
	}
	return r.journal.Ready()
}

// Close ends the store and its journal. Other processes take over the calls that it
// has not retracted yet.
func (r *Store) Close() error {
	r.cancel()
	r.group.Wait()
	if p := r.state.Swap(&connState{cause: errClosed}); p.conn != nil {
		p.conn.close()
	}
	return r.journal.Close()
}

// partitionOf returns the index of the partition with the calls of a principal.
func (l *conn) partitionOf(principal string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(principal)) // a hash takes everything
	return int(h.Sum32() % uint32(len(l.partitions)))
}

// refusals are the codes with which scripts refuse.
var refusals = map[string]error{
	"full": store.ErrFull, "absent": store.ErrNotFound, "ended": store.ErrEnded, "dispatched": store.ErrDispatched, "lost": store.ErrNotOwner, "early": store.ErrTooEarly, "changed": store.ErrConflict, "delivered": store.ErrDelivered,
	"used": approval.ErrUsed, "over": approval.ErrEnded,
}

var (
	errStaleEpoch = errors.New("Redis was emptied, or holds another state")
	errWrongToken = errors.New("the reply of Redis belongs to another request")
	errTooFewAcks = errors.New("too few replicas of Redis have confirmed")
	errClosed     = errors.New("the store is closed")
)

// run runs a script in the partition of a principal. With a refusal it returns the
// rest of the reply too.
func (r *Store) run(ctx context.Context, principal string, s *redis.Script, args ...any) ([]string, error) {
	l, err := r.connection()
	if err != nil {
		return nil, err
	}
	return r.runAt(ctx, l, l.partitionOf(principal), 0, s, args...)
}

func (r *Store) connection() (*conn, error) {
	p := r.state.Load()
	if p.conn == nil {
		return nil, store.Unavailable(p.cause)
	}
	return p.conn, nil
}

// runAt runs a script in one partition, and once more if there was no reply. Every
// script may run twice for the same request.
func (r *Store) runAt(ctx context.Context, l *conn, at int, acknowledged int, s *redis.Script, args ...any) (rest []string, err error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, r.timeouts.decision)
	defer cancel()
	for range 2 {
		var code string
		code, rest, err = r.eval(ctx, &l.partitions[at], acknowledged, s, args)
		switch refusal := refusals[code]; {
		case err == nil && code == "ok":
			return rest, nil
		case err == nil && refusal != nil:
			return rest, refusal
		case err == nil && code == "epoch":
			err = errStaleEpoch
		case err == nil && code == "prior":
			return append(rest, "prior"), nil
		case err == nil:
			err = errForeignReply
		}
		if ctx.Err() != nil || errors.Is(err, errForeignReply) || errors.Is(err, errWrongToken) || errors.Is(err, errStaleEpoch) || errors.Is(err, errTooFewAcks) || redisconn.IsReply(err, "") {
			break
		}
	}
	if !errors.Is(err, errForeignReply) && !errors.Is(err, errTooFewAcks) && !isOverload(err) && caller.Err() == nil {
		r.disconnect(l, err)
	}
	return nil, store.Unavailable(err)
}

// isOverload reports whether an error reply of Redis says nothing about its data.
func isOverload(err error) bool {
	return redis.HasErrorPrefix(err, "OOM") || redis.HasErrorPrefix(err, "NOREPLICAS") || redis.HasErrorPrefix(err, "MISCONF") || redis.HasErrorPrefix(err, "BUSY")
}

// eval sends a script once. The reply repeats a token, by which the reply to another
// request is recognised.
func (r *Store) eval(ctx context.Context, p *partition, acknowledged int, s *redis.Script, args []any) (code string, rest []string, err error) {
	wait := r.timeouts.reply
	if acknowledged > 0 {
		wait = r.timeouts.ackReply
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	token := rand.Text()
	full := append([]any{p.epoch, r.testTime(), token, store.Retention.Milliseconds()}, args...)
	reply, acks, err := send(ctx, p, acknowledged, s, full, true)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, acks, err = send(ctx, p, acknowledged, s, full, false)
	}
	if err != nil {
		return "", nil, err
	}
	if len(reply) < 2 || reply[1] != token {
		return "", nil, errWrongToken
	}
	if reply[0] == "ok" && acks < int64(acknowledged) {
		return "", nil, errTooFewAcks
	}
	return reply[0], reply[2:], nil
}

// send sends a script and, on the same connection, waits for the replicas.
func send(ctx context.Context, p *partition, acknowledged int, s *redis.Script, args []any, known bool) (reply []string, acks int64, err error) {
	run := s.EvalSha
	if !known {
		run = s.Eval
	}
	if acknowledged == 0 {
		reply, err = run(ctx, p.client, []string{p.epochKey}, args...).StringSlice()
		return reply, 0, err
	}
	pipe := p.client.Pipeline()
	evaluated := run(ctx, pipe, []string{p.epochKey}, args...)
	waited := pipe.Do(ctx, "WAIT", acknowledged, ackWait.Milliseconds())
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, err
	}
	if reply, err = evaluated.StringSlice(); err != nil {
		return nil, 0, err
	}
	acks, err = waited.Int64()
	return reply, acks, err
}

func (r *Store) testTime() string {
	if r.options.Hooks.Now == nil {
		return ""
	}
	return strconv.FormatInt(r.options.Hooks.Now().UnixMilli(), 10)
}

func (r *Store) now() time.Time {
	if r.options.Hooks.Now == nil {
		return time.Now()
	}
	return r.options.Hooks.Now()
}

// disconnect closes a conn that failed; maintain opens another.
func (r *Store) disconnect(l *conn, cause error) {
	p := r.state.Load()
	if p.conn != l || !r.state.CompareAndSwap(p, &connState{cause: fmt.Errorf("Redis is unavailable: %w", cause)}) {
		return
	}
	l.close()
	select {
	case r.lost <- struct{}{}:
	default:
	}
}

// Retractions is the number of calls that are still to be taken back in Redis.
func (r *Store) Retractions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.retractions)
}
