package ratelimit

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisOptions say where Redis is; exactly one of URL, Sentinel and Cluster.
// Secrets are behind functions, so that no print of the options shows them;
// each is called when a connection is set up anew.
type RedisOptions struct {
	// URL returns redis://[user:password@]host:port[/db], or rediss:// for TLS.
	URL func() string
	// Sentinel names the master that sentinels watch.
	Sentinel Sentinel
	// Cluster lists some nodes of a cluster, host:port.
	Cluster Cluster
	// Credentials are for Sentinel's master and Cluster; nil: none.
	Credentials func() (user, password string)
	// TLS is for Sentinel and Cluster; nil: no TLS. Of a URL, which says itself
	// whether there is TLS, it gives the certificates that are believed.
	TLS *tls.Config
	// Prefix begins every key; "" is callgate:. Gateways that share limits have
	// the same.
	Prefix string
	// Clock is time.Now but for tests. It serves while Redis is away; the shared
	// budgets go by the clock of Redis.
	Clock func() time.Time
	// Random makes the ids of requests; nil is the system's.
	Random io.Reader
	// Wait bounds how long a call waits for Redis; 0 is 150 ms.
	Wait time.Duration
	// OnChange, if not nil, is called in order, from one goroutine, when the
	// limits are shared again, or are not: then cause says why.
	OnChange func(shared bool, cause error)
}

// Sentinel is a master watched by sentinels, host:port each.
type Sentinel struct {
	Master      string
	Addresses   []string
	Credentials func() (user, password string) // of the sentinels; nil: none
}

// Cluster is a Redis cluster.
type Cluster struct{ Addresses []string }

const (
	defaultPrefix = "callgate:"
	leaseTime     = 15 * time.Second
)

// testHooks are what tests of this package replace.
type testHooks struct {
	clock    func() time.Time // instead of Redis' clock
	lease    time.Duration
	extraTTL time.Duration
}

// wait is how long Redis has for something that it usually has so long for.
func (o *RedisOptions) wait(usual time.Duration) time.Duration {
	if o.Wait <= 0 {
		return usual
	}
	return time.Duration(float64(usual) * float64(o.Wait) / float64(callTimeout))
}

// Redis is the limiter that replicas share.
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
// A request is sent at most once. A slot is a lease that is renewed while the
// call runs and ends by itself when the gateway dies. What is kept in Redis
// expires when it says nothing any more. Unlike Local, Redis has no bound on
// the number of names.
//
// # While Redis is away
//
// It is away from the first request that fails, is answered oddly, or takes
// longer than 150 ms, until it has been found in order again; it is looked for
// at least each second. While nobody asks, it is asked each second whether it is
// there, and is away when it misses that twice. Meanwhile nobody waits for it. Limits.OnStoreLoss says
// what happens: every call is limiter_unavailable, or each replica grants its
// share, limit / Replicas, from buckets that begin empty, and from slots that
// round down (none, if there are more replicas than slots). Afterwards the
// shared budgets are debited with what was granted, so that rate and burst hold
// across the loss. Where another instance answers than before, which may hold
// an old state or none, all budgets begin empty.
//
// A budget that Redis holds in a form that is not ours is limiter_unavailable,
// for the calls that need it.
type Redis struct {
	options RedisOptions
	prefix  string
	hooks   testHooks
	id      string // of this gateway; begins the ids of its requests
	count   atomic.Uint64
	state   atomic.Pointer[connState]
	lost    chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	group   sync.WaitGroup
	nodes   map[string]nodeState // only for the goroutine that tends

	mu       sync.Mutex                     // guards changes of phase too
	inFlight map[string]map[string]struct{} // ids of calls in flight, by agent
	debts    []debt                         // not yet debited
}

var _ Limiter = (*Redis)(nil)

// connState is where calls are judged: a link, or, while Redis is away, a Local.
type connState struct {
	conn  *conn
	local *Local
	cause error // why Redis is away
}

// NewRedis returns a limiter that is connected, or that looks for Redis if it
// is away, of which the warnings then tell. Warnings are for the operator.
// An error means that the options, or what Redis says of itself, are not fit:
// a version before 6.0, or a maxmemory-policy other than noeviction. No text
// holds a secret. Close ends the limiter.
func NewRedis(ctx context.Context, options RedisOptions) (r *Redis, warnings []string, err error) {
	return newRedis(ctx, options, testHooks{lease: leaseTime})
}

func newRedis(ctx context.Context, options RedisOptions, seams testHooks) (*Redis, []string, error) {
	if err := options.validate(); err != nil {
		return nil, nil, err
	}
	disableClientLog()
	if options.Random == nil {
		options.Random = rand.Reader
	}
	var id [12]byte
	if _, err := io.ReadFull(options.Random, id[:]); err != nil {
		return nil, nil, fmt.Errorf("no random bytes: %w", err)
	}
	r := &Redis{
		options: options, prefix: options.Prefix, hooks: seams, id: hex.EncodeToString(id[:]) + "-",
		lost: make(chan struct{}, 1), inFlight: map[string]map[string]struct{}{},
	}
	if r.prefix == "" {
		r.prefix = defaultPrefix
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.state.Store(r.newFallback(errors.New("Redis has not been reached yet")))
	warnings, err := r.connect(ctx)
	var unfit unfitError
	if errors.As(err, &unfit) {
		r.cancel()
		return nil, nil, err
	}
	if err != nil {
		r.updateCause(err)
		warnings = append(warnings, "Redis cannot be reached yet: "+sanitized(err).Error())
		r.lost <- struct{}{}
	}
	r.group.Go(r.maintain)
	r.group.Go(r.renewLeases)
	return r, warnings, nil
}

// disableClientLog keeps the library from writing to standard error.
var disableClientLog = sync.OnceFunc(func() { redis.SetLogger(discardLogger{}) })

type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

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
	case o.Clock == nil:
		return errNoLimiter
	case o.URL == nil && len(o.Cluster.Addresses) == 0 && (o.Sentinel.Master == "" || len(o.Sentinel.Addresses) == 0):
		return errors.New("found a sentinel without a master's name or without addresses, expected both")
	case o.URL != nil:
		_, err := o.parseURL()
		return err
	}
	return nil
}

// parseURL says nothing of what it found, since that may hold a password.
// Options in the URL are not taken: they could bring back retries.
func (o *RedisOptions) parseURL() (*redis.Options, error) {
	const expected = "expected redis://[user:password@]host:port[/db] or rediss://…, without options"
	text := o.URL()
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.RawQuery != "" || u.Fragment != "" || u.Host == "" {
		return nil, errors.New("found a url of another form, " + expected)
	}
	opt, err := redis.ParseURL(text)
	if err != nil {
		return nil, errors.New("found a url of another form, " + expected)
	}
	return opt, nil
}

func credentials(f func() (string, string)) (user, password string) {
	if f == nil {
		return "", ""
	}
	return f()
}

// Shared tells whether the budgets are counted in Redis now; if not, cause is
// why, for the operator.
func (r *Redis) Shared() (shared bool, cause error) {
	p := r.state.Load()
	return p.conn != nil, p.cause
}

// Close ends the limiter: its questions are refused from then on, and leases
// that are still held end by themselves.
func (r *Redis) Close() error {
	r.cancel()
	r.group.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.state.Load()
	r.state.Store(&connState{cause: errClosed})
	if p.conn != nil {
		p.conn.shutdown()
	}
	return nil
}

const errClosed cause = "the limiter is closed"

func (r *Redis) validate(ctx context.Context, limits *Limits) error {
	switch {
	case r == nil || r.options.Clock == nil:
		return errNoLimiter
	case ctx == nil:
		return errNoContext
	case limits == nil:
		return errNoLimits
	}
	return ctx.Err()
}

// Take is Limiter's.
func (r *Redis) Take(ctx context.Context, limits *Limits, key Key) (Lease, error) {
	if err := r.validate(ctx, limits); err != nil {
		return Lease{}, unavailable(err)
	}
	if key.Agent == "" || key.Tool == "" {
		return Lease{}, unavailable(errNoNames)
	}
	var d charges
	d.collect(limits, key)
	if !d.valid() {
		return Lease{}, unavailable(errInvalidLimits)
	}
	lease, v, err := r.decide(ctx, limits, &d)
	switch {
	case err != nil:
		return Lease{}, unavailable(err)
	case v.outcome == taken:
		return lease, nil
	case v.outcome == exhausted:
		return Lease{}, rateLimited(v.ms, v.by)
	case v.outcome == noSlot:
		return Lease{}, concurrencyLimited(*d.slots)
	}
	return Lease{}, unavailable(errDisagree)
}

// Caller is Limiter's.
func (r *Redis) Caller(ctx context.Context, limits *Limits, caller string) error {
	if err := r.validate(ctx, limits); err != nil {
		return unavailable(err)
	}
	if caller == "" {
		return unavailable(errNoNames)
	}
	if limits.Caller == nil {
		return nil
	}
	var d charges
	d.add(callers, false, true, name{boundedName(caller), ""}, *limits.Caller)
	if !d.valid() {
		return unavailable(errInvalidLimits)
	}
	_, v, err := r.decide(ctx, limits, &d)
	switch {
	case err != nil:
		return unavailable(err)
	case v.outcome == taken:
		return nil
	case v.outcome == exhausted:
		return callerRateLimited(v.ms, v.by)
	}
	return unavailable(errDisagree)
}

// decide asks Redis, or the Local that stands in for it.
func (r *Redis) decide(ctx context.Context, limits *Limits, d *charges) (Lease, verdict, error) {
	if d.count == 0 && d.slots == nil {
		return Lease{}, verdict{outcome: taken}, nil
	}
	id := r.nextID()
	// Between the question and the answer Redis may go, or come back. It is
	// asked once: what was asked may have been counted.
	var asked error
	for range 3 {
		p := r.state.Load()
		if p.conn != nil {
			if asked != nil {
				return Lease{}, verdict{}, asked
			}
			v, err := r.query(ctx, p.conn, d, id)
			if err == nil {
				return r.lease(p, v, d, id), v, nil
			}
			if ctx.Err() != nil {
				return Lease{}, verdict{}, ctx.Err()
			}
			if asked = sanitized(err); errors.Is(err, errQueueFull) || affectsOneCall(err) {
				return Lease{}, verdict{}, asked
			}
			r.disconnect(p, err)
			continue
		}
		if p.local == nil || limits.OnStoreLoss != LossLocal {
			return Lease{}, verdict{}, fmt.Errorf("Redis is away: %w", p.cause)
		}
		if limits.Replicas < 1 || limits.Replicas > maxCount {
			return Lease{}, verdict{}, errInvalidLimits
		}
		part := *d
		part.divide(limits.Replicas)
		set := &p.local.calls
		if d.count > 0 && d.list[0].kind == callers {
			set = &p.local.callers
		}
		_, v := set.take(&part, p.local.clock(), p.local.capacity)
		if v.outcome != closed {
			return r.lease(p, v, d, id), v, nil
		}
	}
	return Lease{}, verdict{}, errors.New("Redis comes and goes")
}
