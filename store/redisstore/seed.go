package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/store"
)

// Why what was put back does not count.
var (
	errEmptied    = errors.New("Redis was emptied while data were put back")
	errFailedOver = errors.New("Redis has followed another instance while data were put back")
)

// recent is what this process has written in the last seconds. While Redis is away nothing is forgotten.
type recent struct {
	kept  []timed
	bytes int
}

type timed struct {
	store.Kept
	at time.Time
}

const (
	recentTime  = 10 * time.Second
	recentBytes = 16 << 20
)

func (k *timed) size() int { return 256 + len(k.ID) + len(body(k.Value)) }

func (r *recent) add(k store.Kept, now time.Time) {
	r.kept = append(r.kept, timed{k, now})
	r.bytes += r.kept[len(r.kept)-1].size()
	n := 0
	for n < len(r.kept)-1 && (now.Sub(r.kept[n].at) > recentTime || r.bytes > recentBytes) {
		r.bytes -= r.kept[n].size()
		r.kept[n] = timed{}
		n++
	}
	r.kept = r.kept[n:]
}

// marks are records of the audit log with the times at which they were the last ones.
type marks []struct {
	at  time.Time
	seq uint64
}

// markAge is how old a record must be, so that what it says is in Redis or was refused.
const markAge = 5 * time.Second

// mark returns the last record of the log.
func (r *Store) mark() uint64 {
	if r.options.Log.Mark == nil {
		return 0
	}
	return r.options.Log.Mark()
}

// confirmed returns a record of the log before which everything is in Redis.
func (r *Store) confirmed(now time.Time) (seq uint64) {
	last := r.mark()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, struct {
		at  time.Time
		seq uint64
	}{now, last})
	for len(r.marks) > 1 && now.Sub(r.marks[1].at) >= markAge {
		r.marks = r.marks[1:]
	}
	if now.Sub(r.marks[0].at) < markAge {
		return 0
	}
	seq = r.marks[0].seq
	for _, h := range r.held {
		if call, ok := h.Value.(*store.Call); ok && call.Step == store.Opened {
			seq = min(seq, h.mark)
		}
	}
	return seq
}

// connect opens a conn and makes sure that Redis has what this process knows.
func (r *Store) connect(ctx context.Context) error {
	c, err := r.options.Open(redisconn.Settings{Timeout: r.timeouts.reply, ReadTimeout: r.timeouts.ackReply, PoolSize: poolSize})
	if err != nil {
		return err
	}
	l := &conn{Conn: c, epochKey: r.options.KeyPrefix() + "{store}:epoch"}
	if err := r.handshake(ctx, l); err != nil {
		l.Close()
		return redisconn.Describe(err)
	}
	r.state.Store(&connState{conn: l})
	return nil
}

func (r *Store) handshake(ctx context.Context, l *conn) error {
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var err error
	if l.client, err = l.Node(bounded, l.epochKey); err != nil {
		return err
	}
	run, history, err := r.inspect(bounded, l.client)
	if err != nil {
		return err
	}
	r.greeted = true
	l.instance = run + history
	if !r.options.Hooks.Fake {
		l.Expect(map[string]bool{run: true})
	}
	epoch, err := l.client.Get(bounded, l.epochKey).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	known := r.lastEpoch
	if known != "" && epoch == known && strings.HasPrefix(epoch, l.instance+"/") && !strings.HasSuffix(epoch, "?") {
		l.epoch = epoch
		return nil
	}
	return r.putBack(ctx, l)
}

// inspect returns the run id of a node and, if the node was promoted, the
// replication history that it has had since. A fake of Redis in tests has neither.
func (r *Store) inspect(ctx context.Context, c *redis.Client) (run, history string, err error) {
	if r.options.Hooks.Fake {
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
	if !i.AppendOnly && !r.greeted && r.options.OnMemoryOnly != nil {
		r.options.OnMemoryOnly()
	}
	return i.Run, i.History, nil
}

// putBack puts back what this process and the log of its node know, and then agrees with the others on an epoch.
func (r *Store) putBack(ctx context.Context, l *conn) error {
	attempt := rand.Text()
	base := strings.TrimSuffix(l.epochKey, "epoch")
	if err := l.client.Set(ctx, base+"reading:"+r.options.Node, attempt, 24*time.Hour).Err(); err != nil {
		return err
	}
	b := backend{r, l}
	process := r.process
	process.Wait = 0
	e := store.NewEngine(b, process, r.now, r.bounds)
	mark, err := e.Mark(ctx)
	if err != nil {
		return err
	}
	done := Restored{Behind: mark}
	kept := r.kept()
	done.Records = len(kept)
	if err := e.Restore(ctx, kept); err != nil {
		return err
	}
	missing, complete, err := r.fold(ctx, e, mark, &done.Folded)
	if err != nil {
		return err
	}
	if complete {
		r.gapSince = time.Time{}
	} else if r.gapSince.IsZero() {
		r.gapSince = time.Now()
	}
	done.Incomplete = !complete && !r.acceptsGap()
	// The lease comes last: its mark says that the log was folded up to there.
	if err := e.Renew(ctx, r.lease, mark, false); err != nil {
		return err
	}
	if l.epoch, err = r.agree(ctx, b, attempt, done.Incomplete); err != nil {
		return err
	}
	more, _, err := e.Fold(ctx, missing)
	if err != nil {
		return err
	}
	done.Folded.Keys, done.Folded.Running = done.Folded.Keys+more.Keys, done.Folded.Running+more.Running
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	// A node that has followed another since may have lost what was put back.
	run, history, err := r.inspect(bounded, l.client)
	if err != nil {
		return err
	}
	if run+history != l.instance {
		return errFailedOver
	}
	now := r.now()
	r.since.Store(&now)
	r.lastEpoch = l.epoch
	if r.options.Log.OnRestored != nil {
		r.options.Log.OnRestored(done)
	}
	return nil
}

// kept are the records that this process has written last: of the last seconds, and of calls that it runs.
func (r *Store) kept() (kept []store.Kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[store.Key]bool{}
	add := func(k store.Kept) {
		if !seen[k.Key] {
			seen[k.Key] = true
			kept = append(kept, k)
		}
	}
	for key, h := range r.held {
		switch {
		case h.lost != nil:
			add(store.Kept{Key: key, Value: h.lost})
		case !hereAlone(h.Rev) && key.Kind == store.CallRecord:
			add(store.Kept{Key: key, Value: h.Value})
		}
	}
	for _, k := range slices.Backward(r.recent.kept) {
		// A call that it does not run any more is no longer as it was.
		if call, ok := k.Value.(*store.Call); ok && call.Step != store.Ended {
			seen[k.Key] = true
		}
		add(k.Kept)
	}
	return kept
}

// maxMissing bounds the outcomes of calls that are not there, of which some may come back.
const maxMissing = 65_536

// fold puts back what the log says behind a mark.
func (r *Store) fold(ctx context.Context, e *store.Engine, mark uint64, done *store.Folded) (missing []store.Fact, complete bool, err error) {
	if r.options.Log.Read == nil {
		return nil, true, nil
	}
	complete, err = r.options.Log.Read(ctx, mark, r.now().Add(-store.Retention), func(facts []store.Fact) error {
		some, absent, err := e.Fold(ctx, facts)
		done.Keys, done.Running, done.Uses, done.Approvals = done.Keys+some.Keys, done.Running+some.Running, done.Uses+some.Uses, done.Approvals+some.Approvals
		missing = append(missing, absent...)
		missing = missing[max(0, len(missing)-maxMissing):]
		return err
	})
	return missing, complete, err
}

// agree returns the epoch, once all gateways have put back what they know.
func (r *Store) agree(ctx context.Context, b backend, attempt string, incomplete bool) (epoch string, err error) {
	gap := "0"
	if incomplete {
		gap = "1"
	}
	nodes := max(1, r.options.Replicas)
	code, reply, err := b.run(ctx, 0, agreeScript, []any{b.seeding.instance, b.seeding.instance + "/" + rand.Text(), r.options.Node, attempt, gap, nodes})
	switch {
	case err != nil:
		return "", err
	case code == "again":
		return "", errEmptied
	case len(reply) != 1:
		return "", errForeignReply
	case code == "waiting":
		return "", fmt.Errorf("Redis was emptied, or is another instance: %.9s of %d gateways have put back what they know", reply[0], nodes)
	case code != "ok" || !strings.HasPrefix(reply[0], b.seeding.instance+"/"):
		return "", errForeignReply
	}
	return reply[0], nil
}

// doubt is a commit that may have been made although its caller was told that it was refused, or a call that was
// to be forgotten.
type doubt struct {
	commit *store.Commit
	after  time.Time
	forget string
}

const maxDoubts = 65_536

// doubt has a commit looked for. Above the bound, calls are left for other processes to take over when
// this one has ended.
func (r *Store) doubt(d doubt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.doubts) < maxDoubts {
		r.doubts = append(r.doubts, d)
	}
}

// resolveDoubts takes back what was made all the same. One that Redis refuses holds up no other.
func (r *Store) resolveDoubts() {
	r.mu.Lock()
	doubts := slices.Clone(r.doubts)
	r.mu.Unlock()
	var left []doubt
	for i, d := range doubts {
		if _, err := r.connection(); err != nil {
			left = append(left, doubts[i:]...)
			break
		}
		if d.after.After(r.redisTime()) || r.resolve(d) != nil {
			left = append(left, d)
			continue
		}
		if d.commit != nil {
			id, _ := d.commit.Begins()
			r.begin(id, -1)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubts = append(left, r.doubts[len(doubts):]...)
}

func (r *Store) resolve(d doubt) error {
	if d.commit == nil {
		return r.Engine.Settle(r.ctx, d.forget)
	}
	return r.TakeBack(r.ctx, d.commit)
}

// Retractions is the number of calls that are still to be taken back in Redis.
func (r *Store) Retractions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.doubts)
}

// maintain runs until the store is closed. It renews the lease, which also shows a
// loss while no call comes, takes calls back, polls what is watched, and reconnects to Redis.
func (r *Store) maintain() {
	beat := time.NewTicker(min(r.lease/3, time.Second))
	defer beat.Stop()
	look := time.NewTicker(reconnectInterval)
	defer look.Stop()
	ready := r.state.Load().conn != nil
	started, beats := time.Now(), 0
	var seen map[store.Key]string
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.lost:
			ready = r.reportChange(ready)
			r.reconnect()
		case <-beat.C:
			if beats++; beats%pruneBeats == 0 {
				r.prune()
			}
			if _, err := r.connection(); err == nil {
				err := r.Renew(r.ctx, r.lease, r.confirmed(time.Now()), time.Since(started) > 2*r.lease)
				if errors.Is(err, store.ErrSameNode) {
					r.disconnect(r.state.Load().conn, err)
				}
			}
		case <-look.C:
			r.reconnect()
			r.resolveDoubts()
			seen = r.poll(seen)
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

// reconnect tries to connect to Redis, and records why it could not. Where keys may be missing, it looks
// whether the operator accepts that by now.
func (r *Store) reconnect() {
	if l := r.state.Load().conn; l != nil {
		if !l.incomplete() || r.gapSince.IsZero() || !r.acceptsGap() {
			return
		}
		r.disconnect(l, errGap)
	}
	if err := r.connect(r.ctx); err != nil {
		r.state.Store(&connState{cause: err})
	}
}

// pruneBeats is the number of beats between two looks at the calls that wait.
const pruneBeats = 10

// prune forgets what this process remembers of calls that wait, where another process has finished them.
func (r *Store) prune() {
	if _, err := r.connection(); err != nil {
		return
	}
	var waiting []store.Key
	r.mu.Lock()
	for key, h := range r.held {
		if call, ok := h.Value.(*store.Call); ok && call.Step == store.Waiting {
			waiting = append(waiting, key)
		}
	}
	r.mu.Unlock()
	for keys := range slices.Chunk(waiting, watchBatch) {
		revisions, err := r.revisions(keys)
		if err != nil {
			return
		}
		r.mu.Lock()
		for i, key := range keys {
			if h := r.held[key]; h.Rev != 0 && revText(h.Rev) != revisions[i] {
				delete(r.held, key)
			}
		}
		r.mu.Unlock()
	}
}

// revisions returns the revisions of records.
func (r *Store) revisions(keys []store.Key) ([]string, error) {
	args := make([]any, len(keys))
	for i, key := range keys {
		args[i] = recordKey(key)
	}
	code, revisions, err := backend{Store: r}.run(r.ctx, 0, revisionsScript, args)
	if err == nil && (code != "ok" || len(revisions) != len(keys)) {
		err = errForeignReply
	}
	return revisions, err
}

// acceptsGap reports whether the operator accepts that records of the log are missing.
func (r *Store) acceptsGap() bool {
	return r.options.Log.Accepts != nil && r.options.Log.Accepts(r.gapSince)
}

// watchBatch is how many watched records one request asks for.
const watchBatch = 256

// poll wakes those who watch what another process has changed. What is watched for the first time may have
// changed before.
func (r *Store) poll(before map[store.Key]string) (now map[store.Key]string) {
	if _, err := r.connection(); err != nil {
		return before
	}
	now = map[store.Key]string{}
	for keys := range slices.Chunk(r.Watched(), watchBatch) {
		revisions, err := r.revisions(keys)
		if err != nil {
			return before
		}
		for i, key := range keys {
			now[key] = revisions[i]
			if was, known := before[key]; !known || was != revisions[i] {
				r.Wake(key)
			}
		}
	}
	return now
}
