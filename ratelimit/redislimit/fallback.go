package redislimit

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/internal/charge"
)

const (
	minPause       = 50 * time.Millisecond
	maxPause       = time.Second
	connectTimeout = 2 * time.Second
)

// newFallback returns the state for a loss that begins now. r.mu is held.
func (r *Limiter) newFallback(cause error) *connState {
	r.windows.Lost()
	s := ratelimit.NewShare(r.options.Clock, r.windows)
	for agent, ids := range r.inFlight {
		s.AddInFlight(agent, len(ids))
	}
	return &connState{share: s, cause: cause}
}

// disconnect closes a conn that failed; the fallback takes over.
func (r *Limiter) disconnect(p *connState, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Load() != p || p.conn == nil {
		return
	}
	r.state.Store(r.newFallback(redisconn.Describe(why)))
	p.conn.shutdown()
	select {
	case r.lost <- struct{}{}:
	default:
	}
}

// maintain reconnects to Redis whenever it is away, and renews the leases of calls in flight, three times per
// lease.
func (r *Limiter) maintain() {
	began := r.options.Clock()
	beat := time.NewTicker(maxPause)
	defer beat.Stop()
	leases := time.NewTicker(r.hooks.lease / 3)
	defer leases.Stop()
	var requests uint64
	for missed := 0; ; missed = 0 {
		for waiting := true; waiting; {
			select {
			case <-r.ctx.Done():
				return
			case <-r.lost:
				waiting = false
			case <-leases.C:
				r.renewNow()
			case <-beat.C:
				r.catchUpNow()
				if now := r.count.Load(); now != requests {
					requests, missed = now, 0 // calls see by themselves whether it is there
					continue
				}
				missed = r.healthcheck(missed)
				requests = r.count.Load()
			}
		}
		r.reportChange(false)
		pauses := backoff.ExponentialBackOff{InitialInterval: minPause, Multiplier: 2, MaxInterval: maxPause}
		if r.options.Clock().Sub(began) < maxPause {
			pauses.InitialInterval = maxPause // the connection was lost within a second
		}
		for {
			select {
			case <-r.ctx.Done():
				return
			case <-time.After(r.jitter(pauses.NextBackOff())):
			}
			_, err := r.connect(r.ctx)
			if err == nil {
				break
			}
			r.updateCause(err)
		}
		began = r.options.Clock()
		r.reportChange(true)
	}
}

// catchUpNow sends what Redis has missed though it was not away: the queue was full, or a caller
// had stopped waiting.
func (r *Limiter) catchUpNow() {
	p := r.state.Load()
	if p.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.options.wait(connectTimeout))
	defer cancel()
	if err := r.catchUp(ctx, p.conn, false); err != nil && !errors.Is(err, errQueueFull) && r.ctx.Err() == nil {
		r.disconnect(p, err)
	}
}

// healthcheck runs the script on each node, with an operation on no counter, so that a gateway without calls
// sees a loss too. Two misses in a row mark a node as lost, since one may be a pause of the machine. It
// returns the number of misses in a row.
func (r *Limiter) healthcheck(missed int) int {
	p := r.state.Load()
	if p.conn == nil {
		return 0
	}
	for _, s := range p.conn.batchers {
		j := r.newJob(opBack, s, r.nextID())
		if !s.enqueue(j) {
			continue // it is busy, and its calls see a loss
		}
		over := time.NewTimer(r.options.wait(callTimeout))
		err := j.await(r.ctx, over.C)
		over.Stop()
		if err == nil {
			continue
		}
		if missed++; missed > 1 {
			r.disconnect(p, err)
		}
		return missed
	}
	return 0
}

// jitter shortens a pause by up to a quarter, so that replicas that lost Redis
// together do not come back together.
func (r *Limiter) jitter(d time.Duration) time.Duration {
	var b [1]byte
	if _, err := r.options.Random.Read(b[:]); err != nil {
		return d
	}
	return d - d/4*time.Duration(b[0])/255
}

func (r *Limiter) reportChange(shared bool) {
	if r.options.OnChange == nil {
		return
	}
	_, cause := r.Shared()
	if shared {
		cause = nil
	}
	r.options.OnChange(shared, cause)
}

// updateCause records why Redis is still away.
func (r *Limiter) updateCause(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.state.Load(); p.conn == nil && p.share != nil {
		r.state.Store(&connState{share: p.share, cause: redisconn.Describe(why)})
	}
}

// connect opens a conn, debits what was granted meanwhile, and shares again.
func (r *Limiter) connect(ctx context.Context) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.wait(connectTimeout))
	defer cancel()
	l, err := r.options.dial()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.shutdown()
		}
	}()
	if warnings, err = l.inspect(ctx, r); err != nil {
		return nil, err
	}
	epochs := l.expect()
	for _, s := range l.batchers {
		go s.run()
	}
	// Many grants may have gathered. Most are debited here, so that few remain for the
	// moment of the change.
	share := r.state.Load().share
	for range 2 {
		r.mu.Lock()
		r.undebited = append(r.undebited, share.DrainGrants(false)...)
		r.mu.Unlock()
		if err := r.debitAll(ctx, l); err != nil {
			return nil, err
		}
	}
	if err := r.catchUp(ctx, l, true); err != nil {
		return nil, err
	}
	r.epochs = epochs
	return warnings, r.resumeSharing(ctx, l, share)
}

// resumeSharing lets Redis decide calls again. The remaining grants are queued before
// them.
func (r *Limiter) resumeSharing(ctx context.Context, l *conn, share *ratelimit.Share) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	p := &connState{conn: l}
	for _, d := range share.DrainGrants(true) {
		j, err := r.debitJob(ctx, l, d)
		if err != nil {
			r.undebited = append(r.undebited, d)
			continue
		}
		j.onDone = func(err error) {
			if err != nil && !affectsOneCall(err) {
				r.mu.Lock()
				r.undebited = append(r.undebited, d)
				r.mu.Unlock()
				r.disconnect(p, err)
			}
		}
		if !j.op.batcher.enqueue(j) {
			r.undebited = append(r.undebited, d)
		}
	}
	r.renewAll(p)
	r.windows.Found()
	r.state.Store(p)
	return nil
}

func (r *Limiter) debitJob(ctx context.Context, l *conn, d ratelimit.Grant) (*job, error) {
	key := bucketKey(r.prefix, d.Kind, d.Name)
	s, err := l.route(ctx, key)
	if err != nil {
		return nil, err
	}
	j := r.newJob(opDebit, s, r.nextID())
	j.op.setBucket(key, d.Budget)
	j.op.tokens = min(d.Tokens, charge.MaxCount)
	return j, nil
}

// debitAll debits what was granted. A grant that may not have been debited stays: to debit it
// twice grants less than the limit, never more.
func (r *Limiter) debitAll(ctx context.Context, l *conn) error {
	r.mu.Lock()
	grants := r.undebited
	r.undebited = nil
	r.mu.Unlock()
	for len(grants) > 0 {
		portion := grants[:min(len(grants), maxBatch)]
		var jobs []*job
		var err error
		for _, d := range portion {
			j, fault := r.debitJob(ctx, l, d)
			if fault != nil {
				err = fault
				break
			}
			jobs = append(jobs, j)
		}
		if err = cmp.Or(err, r.sendAll(ctx, jobs)); err != nil {
			r.mu.Lock()
			r.undebited = append(r.undebited, grants...)
			r.mu.Unlock()
			return err
		}
		grants = grants[len(portion):]
	}
	return nil
}
