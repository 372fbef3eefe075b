// Package redislimit is the limiter that replicas share: it counts the budgets of
// ratelimit in Redis, and grants a replica's share of them while Redis is away. It
// keeps the contract of ratelimit.Limiter.
package redislimit

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/internal/charge"
	"github.com/callgate/callgate/ratelimit/internal/windows"
)

// Options say where Redis is, and how the limiter uses it.
type Options struct {
	redisconn.Options
	// Clock is time.Now except in tests. It is used while Redis is away; the shared
	// budgets follow the clock of Redis.
	Clock func() time.Time
	// Random makes the ids of requests; nil is the system's.
	Random io.Reader
	// Wait bounds how long a call waits for Redis; 0 is 150 ms.
	Wait time.Duration
	// OnChange, if not nil, is called in order, from one goroutine, when the
	// limits are shared again, or are not: then cause says why.
	OnChange func(shared bool, cause error)
}

const leaseTime = 15 * time.Second

// testHooks are replaced by tests of this package.
type testHooks struct {
	clock    func() time.Time // instead of Redis' clock
	lease    time.Duration
	extraTTL time.Duration
}

// wait scales a usual time bound by Wait.
func (o *Options) wait(usual time.Duration) time.Duration {
	if o.Wait <= 0 {
		return usual
	}
	return time.Duration(float64(usual) * float64(o.Wait) / float64(callTimeout))
}

// Limiter is the limiter that replicas share.
//
// Budgets are counted in Redis, in whole microseconds of its own clock, by one
// script that takes all budgets of a call or none. Times to wait are as exact
// as Local's; where Local's time stands still for all budgets while the clock
// stands back, here each budget waits for the last time it was used at. On one node that is one
// round trip. On a cluster the budgets of an agent, of a tool and of a project
// may lie on three nodes: three scripts run at once, and where one refuses,
// what the others took is given back. So a call may be refused there for a
// token that another call takes and hands back; a token that cannot be given
// back is lost, and comes back with the rate.
//
// A request is sent at most once. A slot is a lease that is renewed while the call
// runs and ends by itself when the gateway dies. A key in Redis expires when its
// bucket is full. Unlike Local, Redis has no bound on the number of names.
//
// # While Redis is away
//
// Redis counts as away from the first request that fails, gets a foreign reply, or
// takes longer than 150 ms, until a new connection passes all checks; one is tried at
// least each second. While no call comes, Redis is asked each second, and counts as
// away after two misses. Meanwhile no call waits for it. Limits.OnStoreLoss says what
// happens: every call is limiter_unavailable, or each replica grants its share,
// limit / Replicas, from buckets that begin empty, and from slots that round down
// (none, if there are more replicas than slots). Afterwards the shared budgets are
// debited with what was granted, so that rate and burst hold across the loss. If
// another instance answers than before, which may hold an old state or none, or one that
// was emptied meanwhile, all budgets begin empty.
//
// A budget that Redis holds in a foreign form makes the calls that need it
// limiter_unavailable.
type Limiter struct {
	options Options
	prefix  string
	hooks   testHooks
	id      string // of this gateway; begins the ids of its requests
	count   atomic.Uint64
	skew    atomic.Int64 // nanoseconds that the clock of Redis is ahead
	state   atomic.Pointer[connState]
	windows *windows.Table // what is known of them
	lost    chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	group   sync.WaitGroup
	epochs  map[string]string // of the nodes, as last found, by address; used by connect alone

	mu        sync.Mutex                     // guards changes of phase too
	inFlight  map[string]map[string]struct{} // ids of calls in flight, by agent
	undebited []ratelimit.Grant              // not yet debited
	pending   []settlement
}

var (
	_ ratelimit.Limiter = (*Limiter)(nil)
	_ budget.Limiter    = (*Limiter)(nil)
)

// connState says where calls are decided: in Redis by a conn or, while it is away, by a share.
type connState struct {
	conn  *conn
	share *ratelimit.Share
	cause error // why Redis is away
}

func (p *connState) away() error { return fmt.Errorf("Redis is away: %w", p.cause) }

// New returns a limiter that is connected or, if Redis is away, tries to connect
// and says so in the warnings. Warnings are for the operator. An error means that the
// options are wrong or that Redis is unfit: a version before 6.0, or a
// maxmemory-policy other than noeviction. No text holds a secret. Close ends the
// limiter.
func New(ctx context.Context, options Options) (r *Limiter, warnings []string, err error) {
	return newLimiter(ctx, options, testHooks{lease: leaseTime})
}

func newLimiter(ctx context.Context, options Options, hooks testHooks) (*Limiter, []string, error) {
	if err := options.validate(); err != nil {
		return nil, nil, err
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	var id [12]byte
	if _, err := io.ReadFull(options.Random, id[:]); err != nil {
		return nil, nil, fmt.Errorf("no random bytes: %w", err)
	}
	r := &Limiter{
		options: options, prefix: options.KeyPrefix(), hooks: hooks, id: hex.EncodeToString(id[:]) + "-",
		lost: make(chan struct{}, 1), inFlight: map[string]map[string]struct{}{},
	}
	r.windows = windows.NewShared(r.now, keep, func(c budget.Counter, start time.Time) string { return windowKey(r.prefix, c, start) })
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.state.Store(r.newFallback(errors.New("Redis has not been reached yet")))
	warnings, err := r.connect(ctx)
	var unfit redisconn.UnfitError
	if errors.As(err, &unfit) {
		r.cancel()
		return nil, nil, err
	}
	if err != nil {
		r.updateCause(err)
		warnings = append(warnings, "Redis cannot be reached yet: "+redisconn.Describe(err).Error())
		r.lost <- struct{}{}
	}
	r.group.Go(r.maintain)
	return r, warnings, nil
}

func (o *Options) validate() error {
	if o.Clock == nil {
		return charge.ErrNoLimiter
	}
	return o.Options.Validate()
}

// Shared reports whether the budgets are counted in Redis now; if not, cause tells the
// operator why.
func (r *Limiter) Shared() (shared bool, cause error) {
	p := r.state.Load()
	return p.conn != nil, p.cause
}

// Close sends what Redis has still to be told, as far as it answers, and ends the limiter: every
// request is refused from then on, and leases in Redis end by themselves.
func (r *Limiter) Close() error {
	r.cancel()
	r.group.Wait()
	r.mu.Lock()
	p := r.state.Swap(&connState{cause: errClosed})
	r.mu.Unlock()
	if p.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), r.options.wait(callTimeout))
		defer cancel()
		_ = r.catchUp(ctx, p.conn, false)
		p.conn.shutdown()
	}
	return nil
}

var errClosed = errors.New("the limiter is closed")

// ready reports whether r can judge at all.
func (r *Limiter) ready() bool { return r != nil && r.options.Clock != nil }

// Take implements Limiter.
func (r *Limiter) Take(ctx context.Context, limits *ratelimit.Limits, key ratelimit.Key) (ratelimit.Lease, error) {
	var d charge.Charges
	if err := ratelimit.ChargeCall(ctx, &d, r.ready(), limits, key); err != nil {
		return ratelimit.Lease{}, charge.Unavailable(err)
	}
	lease, v, err := r.decide(ctx, replicasOf(limits), &d)
	if err != nil {
		return ratelimit.Lease{}, charge.Unavailable(err)
	}
	if err := v.CallError(&d); err != nil {
		return ratelimit.Lease{}, err
	}
	return lease, nil
}

// Caller implements Limiter.
func (r *Limiter) Caller(ctx context.Context, limits *ratelimit.Limits, caller string) error {
	var d charge.Charges
	if err := ratelimit.ChargeCaller(ctx, &d, r.ready(), limits, caller); err != nil {
		return charge.Unavailable(err)
	}
	_, v, err := r.decide(ctx, replicasOf(limits), &d)
	if err != nil {
		return charge.Unavailable(err)
	}
	return v.CallerError()
}

// replicasOf is how many replicas grant a share each while Redis is away; 0: nothing is granted.
func replicasOf(limits *ratelimit.Limits) int {
	if limits.OnStoreLoss != ratelimit.LossLocal {
		return 0
	}
	return cmp.Or(limits.Replicas, -1)
}

// now is the time by the clock of Redis, as far as it is known.
func (r *Limiter) now() time.Time {
	if r.hooks.clock != nil {
		return r.hooks.clock()
	}
	return r.options.Clock().Add(time.Duration(r.skew.Load()))
}

// decide lets Redis decide or, while it is away, the fallback.
func (r *Limiter) decide(ctx context.Context, replicas int, d *charge.Charges) (ratelimit.Lease, charge.Verdict, error) {
	if d.Count == 0 && d.Slots == nil && len(d.Windows) == 0 {
		return ratelimit.Lease{}, charge.Verdict{Outcome: charge.Taken}, nil
	}
	id := r.nextID()
	// Redis may be lost or come back meanwhile. The request is sent once, since one
	// that failed may have been counted.
	var failed error
	for range 3 {
		p := r.state.Load()
		if p.conn != nil {
			if failed != nil {
				return ratelimit.Lease{}, charge.Verdict{}, failed
			}
			v, err := r.query(ctx, p.conn, d, id)
			if err == nil {
				return r.lease(p, v, d, id), v, nil
			}
			if ctx.Err() != nil {
				return ratelimit.Lease{}, charge.Verdict{}, ctx.Err()
			}
			if failed = redisconn.Describe(err); errors.Is(err, errQueueFull) || errors.Is(err, errClockLeft) || affectsOneCall(err) {
				return ratelimit.Lease{}, charge.Verdict{}, failed
			}
			r.disconnect(p, err)
			continue
		}
		if p.share == nil || replicas == 0 {
			return ratelimit.Lease{}, charge.Verdict{}, p.away()
		}
		if replicas < 1 || replicas > charge.MaxCount {
			return ratelimit.Lease{}, charge.Verdict{}, charge.ErrInvalidLimits
		}
		if v := p.share.Take(d, replicas); v.Outcome != charge.Closed {
			return r.lease(p, v, d, id), v, nil
		}
	}
	return ratelimit.Lease{}, charge.Verdict{}, errors.New("the connection to Redis changed three times during one call")
}
