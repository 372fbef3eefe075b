package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/store"
)

// Why a restored journal does not count.
var (
	errEmptied           = errors.New("Redis was emptied while the journal was restored")
	errFailedOver        = errors.New("Redis has followed another instance while the journal was restored")
	errRestoredMeanwhile = errors.New("the journal was restored meanwhile, perhaps without this call")
)

// maintain runs until the store is closed. It renews the lease, which also shows a
// loss while no call comes, retracts calls, removes orphans, polls the calls that are
// watched, and reconnects to Redis.
func (r *Store) maintain() {
	beat := time.NewTicker(min(r.lease/3, time.Second))
	defer beat.Stop()
	look := time.NewTicker(reconnectInterval)
	defer look.Stop()
	ready := r.state.Load().conn != nil
	var revisions map[string]string // of the approvals that are watched
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.lost:
			ready = r.reportChange(ready)
			r.reconnect()
		case <-beat.C:
			r.renewLease()
			r.retractOrphans()
		case <-look.C:
			if r.state.Load().conn == nil {
				r.reconnect()
			}
			r.flushRetractions()
			r.pollWatched()
			revisions = r.pollApprovals(revisions)
		}
		ready = r.reportChange(ready)
	}
}

// reportChange calls OnChange if the store has become ready or has stopped being so.
func (r *Store) reportChange(before bool) (now bool) {
	p := r.state.Load()
	if now = p.conn != nil; now != before && r.options.OnChange != nil {
		r.options.OnChange(now, p.cause)
	}
	return now
}

// reconnect tries to connect to Redis, and records why it could not.
func (r *Store) reconnect() {
	if r.state.Load().conn != nil {
		return
	}
	if err := r.connect(r.ctx); err != nil {
		r.state.Store(&connState{cause: err})
	}
}

// connectTimeout bounds each step of connecting, except restoring the journal.
const connectTimeout = 2 * time.Second

// connect opens a conn and makes sure that Redis has the calls of this process.
func (r *Store) connect(ctx context.Context) error {
	l, err := r.options.dial(r.timeouts)
	if err != nil {
		return err
	}
	if err := r.handshake(ctx, l); err != nil {
		l.close()
		return withoutCredentials(err)
	}
	r.state.Store(&connState{conn: l})
	r.renewLease()
	return nil
}

func (r *Store) handshake(ctx context.Context, l *conn) error {
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	err := l.inspect(bounded, r.prefix, r.options.Hooks.Fake)
	cancel()
	if err != nil {
		return err
	}
	unread := false
	for i := range l.partitions {
		p := &l.partitions[i]
		bounded, cancel := context.WithTimeout(ctx, connectTimeout)
		epoch, err := p.client.Get(bounded, p.epochKey).Result()
		cancel()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		known, err := r.journal.RestoredEpoch(p.epochKey)
		if err != nil {
			return err
		}
		if epoch == "" || epoch != known || !strings.HasPrefix(epoch, p.instance+"/") {
			unread = true
		} else {
			p.epoch = epoch
		}
	}
	if !unread {
		return nil
	}
	attempt := rand.Text()
	if err := r.restoreJournal(ctx, l, attempt); err != nil {
		return err
	}
	for i := range l.partitions {
		if l.partitions[i].epoch == "" {
			if err := r.agreeEpoch(ctx, &l.partitions[i], attempt); err != nil {
				return err
			}
		}
	}
	return r.verifyUnchanged(ctx, l)
}

// verifyUnchanged checks that each node is the instance that it was when the conn was
// opened. A node that has followed another since may have lost restored calls.
func (r *Store) verifyUnchanged(ctx context.Context, l *conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	seen := map[*redis.Client]bool{}
	for i := range l.partitions {
		p := &l.partitions[i]
		if seen[p.client] {
			continue
		}
		seen[p.client] = true
		run, history, err := inspectNode(ctx, p.client, r.options.Hooks.Fake)
		if err != nil {
			return err
		}
		if run+history != p.instance {
			return errFailedOver
		}
	}
	return nil
}

// restoreBatch is how many calls of the journal are read at once.
const restoreBatch = 128

// restoreJournal restores the journal into every partition whose epoch is not known.
// A dispatch in flight may not be in the journal yet: it is refused.
func (r *Store) restoreJournal(ctx context.Context, l *conn, attempt string) error {
	r.restores.Add(1)
	for i := range l.partitions {
		if p := &l.partitions[i]; p.epoch == "" {
			if code, _, err := r.eval(ctx, p, 0, beginRestoreScript, []any{r.journal.Node, attempt}); err != nil || code != "ok" {
				return cmp.Or(err, errForeignReply)
			}
		}
	}
	for after := ""; ; {
		calls, last, err := r.journal.Page(after, restoreBatch, r.now())
		if err != nil {
			return err
		}
		for i := range calls {
			c := &calls[i]
			p := &l.partitions[l.partitionOf(c.Scope.Principal)]
			if p.epoch != "" {
				continue
			}
			if err := r.restoreCall(ctx, p, c); err != nil {
				return err
			}
		}
		if last == "" {
			break
		}
		after = last
	}
	return r.restoreApprovals(ctx, l)
}

// restoreApprovals restores the approvals of the journal.
func (r *Store) restoreApprovals(ctx context.Context, l *conn) error {
	for after := ""; ; {
		approvals, err := r.journal.PageOfApprovals(ctx, after, restoreBatch)
		if err != nil || len(approvals) == 0 {
			return err
		}
		for _, a := range approvals {
			if p := &l.partitions[l.partitionOf(a.Principal)]; p.epoch == "" {
				if err := r.restoreApproval(ctx, p, a); err != nil {
					return err
				}
			}
			after = a.ID
		}
	}
}

// restoreCall restores a call of the journal, unless Redis has a later step of it.
func (r *Store) restoreCall(ctx context.Context, p *partition, c *store.Call) error {
	key, principal := keyAndPrincipalHash(c)
	args := append([]any{c.ID, key, principal, c.Size(), c.Step.Rank(), c.Attempts}, journalFields(c)...)
	code, _, err := r.eval(ctx, p, 0, restoreScript, args)
	if err == nil && code != "ok" {
		err = errForeignReply
	}
	if err != nil {
		return err
	}
	return r.restoreUse(ctx, p, c.ID, c.Task.Using)
}

// agreeEpoch reads, or sets, the epoch of a partition into which the journal was
// restored.
func (r *Store) agreeEpoch(ctx context.Context, p *partition, attempt string) error {
	journals := max(1, r.options.Replicas)
	code, reply, err := r.eval(ctx, p, 0, agreeEpochScript, []any{p.instance, p.instance + "/" + rand.Text(), r.journal.Node, journals, r.lease.Milliseconds(), attempt})
	switch {
	case err != nil:
		return err
	case code == "again":
		return errEmptied
	case len(reply) != 1:
		return errForeignReply
	case code == "waiting":
		return fmt.Errorf("Redis was emptied, or is another instance: %.9s of %d journals are restored", reply[0], journals)
	case code != "ok" || !strings.HasPrefix(reply[0], p.instance+"/"):
		return errForeignReply
	}
	p.epoch = reply[0]
	return r.journal.RecordEpoch(ctx, p.epochKey, p.epoch)
}

// withoutCredentials replaces an error that may name a credential.
func withoutCredentials(err error) error {
	if redis.HasErrorPrefix(err, "WRONGPASS") || redis.HasErrorPrefix(err, "NOAUTH") {
		return errors.New("Redis refuses the credentials")
	}
	return err
}

// renewLease renews the lease.
func (r *Store) renewLease() {
	l, err := r.connection()
	if err != nil {
		return
	}
	for i := range l.partitions {
		if _, err := r.runAt(r.ctx, l, i, 0, leaseScript, r.owner, r.lease.Milliseconds()); err != nil {
			return // runAt has closed the conn if it had to
		}
	}
}

// flushRetractions takes back calls that were refused while it was unknown whether
// Redis has them.
func (r *Store) flushRetractions() {
	for range 256 {
		r.mu.Lock()
		if len(r.retractions) == 0 {
			r.mu.Unlock()
			return
		}
		o := r.retractions[0]
		r.mu.Unlock()
		if _, err := r.run(r.ctx, o.principal, retractScript, o.id, r.owner, o.nonce); err != nil {
			return
		}
		r.mu.Lock()
		r.retractions = r.retractions[1:]
		r.mu.Unlock()
	}
}

// watchBatch is how many watched calls one request asks for.
const watchBatch = 256

// pollWatched notifies those who watch a call that another process has finished.
func (r *Store) pollWatched() {
	l, err := r.connection()
	if err != nil {
		return
	}
	for ids := r.watchers.IDs(); len(ids) > 0; {
		some := ids[:min(len(ids), watchBatch)]
		ids = ids[len(some):]
		args := make([]any, len(some))
		for i, id := range some {
			args[i] = id
		}
		for at := range l.partitions {
			steps, err := r.runAt(r.ctx, l, at, 0, stepsScript, args...)
			if err != nil || len(steps) != len(some) {
				return
			}
			for i, step := range steps {
				// Whether the metadata have changed is not known here: a call with
				// metadata notifies its watchers each time.
				if s, ok := strings.CutSuffix(step, " noted"); ok || store.Step(s) == store.Ended {
					r.watchers.Notify(some[i])
				}
			}
		}
	}
}
