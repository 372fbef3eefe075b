package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/history"
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

// add adds a record, unless nothing is put back of it: a call that has not ended is held while this process runs it.
func (r *recent) add(k store.Kept, now time.Time) {
	switch call, running := k.Value.(*store.Call); {
	case k.Kind != store.CallRecord && k.Kind != store.AskRecord && k.Kind != store.GrantRecord:
		return
	case running && call.Step != store.Ended:
		return
	}
	r.kept = append(r.kept, timed{k, now})
	r.bytes += r.kept[len(r.kept)-1].size()
	r.forget(now)
}

// forget forgets what is too old, and what is too much. Redis has answered at that time.
func (r *recent) forget(now time.Time) {
	n := 0
	for n < len(r.kept) && (now.Sub(r.kept[n].at) > recentTime || n < len(r.kept)-1 && r.bytes > recentBytes) {
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
		return r.found
	}
	r.aged = r.marks[0].seq
	seq = r.aged
	for _, h := range r.held {
		if call, ok := h.Value.(*store.Call); ok && call.Step == store.Opened {
			seq = min(seq, h.mark)
		}
	}
	return seq
}

// connect opens a conn and makes sure that Redis has what this process knows. While others have yet to put back what
// they know, it keeps the conn for the next attempt.
func (r *Store) connect(ctx context.Context) error {
	s := r.pending
	r.pending = nil
	var err error
	if s != nil {
		err = r.agree(ctx, s)
	} else {
		c, failed := r.options.Open(redisconn.Settings{Timeout: r.timeouts.reply, ReadTimeout: r.timeouts.ackReply, PoolSize: poolSize})
		if failed != nil {
			return failed
		}
		s = &seeding{conn: &conn{Conn: c, epochKey: r.options.KeyPrefix() + "{store}:epoch"}}
		err = r.handshake(ctx, s)
	}
	var waiting waitingError
	switch {
	case errors.As(err, &waiting):
		r.pending = s
		return err
	case err != nil:
		s.Close()
		return redisconn.Describe(err)
	}
	r.InEpoch(s.epoch)
	r.state.Store(&connState{conn: s.conn})
	return nil
}

func (r *Store) handshake(ctx context.Context, s *seeding) error {
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	l := s.conn
	var err error
	if l.node, err = l.Node(bounded, l.epochKey); err != nil {
		return err
	}
	run, history, err := r.inspect(bounded, l.node)
	if err != nil {
		return err
	}
	r.greeted = true
	l.instance = run + history
	l.Expect(map[string]bool{run: true})
	epoch, err := redisconn.Do(bounded, l.node, "get", l.epochKey).Text()
	if err != nil {
		return err
	}
	process := r.process
	process.Wait = 0
	s.engine = store.NewEngine(backend{r, l}, process, r.now, r.bounds)
	lease, err := s.engine.Lease(bounded)
	if err != nil {
		return err
	}
	known := r.lastEpoch
	if known == "" { // what the process before has seen: it died, and Redis did not
		known = lease.Epoch
	}
	r.found = lease.Mark
	if known == "" || epoch != known || !strings.HasPrefix(epoch, l.instance+"/") || strings.HasSuffix(epoch, "?") {
		s.agreed = strings.HasPrefix(epoch, l.instance+"/")
		return r.putBack(ctx, s)
	}
	now := r.now()
	r.since.Store(&now) // others may have been away as well
	l.epoch, r.lastEpoch = epoch, epoch
	return r.renew(bounded, s.engine, lease.Mark)
}

// inspect returns the run id of a node and, if the node was promoted, the
// replication history that it has had since.
func (r *Store) inspect(ctx context.Context, n redisconn.Node) (run, history string, err error) {
	i, err := redisconn.Inspect(ctx, n, "a key whose call was evicted would start a second one")
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

// seeding is how far a process has come in putting back what it knows.
type seeding struct {
	*conn
	engine  *store.Engine
	attempt string
	agreed  bool      // the others have agreed on an epoch before
	threads bool      // are kept, and put back
	undone  bool      // the log has undone some
	lost    time.Time // see Log.Threads
	missing []store.Fact
	done    Restored
	all     bool // each gateway has put back what it knows, and this one what belongs to records of others
}

// waitingError says how many gateways have put back what they know, while others have not.
type waitingError struct {
	have  string
	nodes int
}

func (e waitingError) Error() string {
	return fmt.Sprintf("Redis was emptied, or is another instance: %.9s of %d gateways have put back what they know", e.have, e.nodes)
}

// putBack puts back what this process and the log of its node know, and then agrees with the others on an epoch.
func (r *Store) putBack(ctx context.Context, s *seeding) error {
	s.attempt = rand.Text()
	base := strings.TrimSuffix(s.epochKey, "epoch")
	if err := redisconn.Do(ctx, s.node, "set", base+"reading:"+r.options.Node, s.attempt, "ex", 24*60*60).Err; err != nil {
		return err
	}
	r.lastEpoch = ""
	lease, err := s.engine.Lease(ctx) // once more: Redis may have been emptied before the attempt was there
	if err != nil {
		return err
	}
	mark := lease.Mark
	r.found = mark
	s.done = Restored{Behind: mark}
	kept := r.kept()
	s.done.Records = len(kept)
	if err := s.engine.Restore(ctx, kept); err != nil {
		return err
	}
	known := r.KeptTerms()
	if known == nil && r.options.Log.Kept != nil {
		if known, err = r.options.Log.Kept(); err != nil {
			return err
		}
	}
	if s.threads, err = s.engine.LoseThreads(ctx, known, r.attemptOf(s)); err != nil {
		return err
	}
	if err := r.foldThreads(ctx, s, false); err != nil {
		return err
	}
	var complete bool
	if s.missing, complete, err = r.fold(ctx, s.engine, mark, &s.done.Folded); err != nil {
		return err
	}
	if complete {
		r.gapSince = time.Time{}
	} else if r.gapSince.IsZero() {
		r.gapSince = time.Now()
	}
	s.done.Incomplete = !complete && !r.acceptsGap()
	// The lease comes last: its mark says that the log was folded up to there.
	if err := r.renew(ctx, s.engine, mark); err != nil {
		return err
	}
	return r.agree(ctx, s)
}

// renew renews the lease. A process that has had one for long does not take it from another.
func (r *Store) renew(ctx context.Context, e *store.Engine, mark uint64) error {
	return e.Renew(ctx, r.lease, mark, r.lastEpoch, time.Since(r.started) > 2*r.lease)
}

// agree agrees with the others on an epoch, in two rounds. After the first, each has put back what it knows. What
// that says of records of others was nothing to put back before these were there, so it is put back once more.
func (r *Store) agree(ctx context.Context, s *seeding) error {
	if !s.all {
		if _, err := r.await(ctx, s, "1"); err != nil {
			return err
		}
		if r.options.Replicas > 1 {
			if err := s.engine.Restore(ctx, r.kept()); err != nil {
				return err
			}
		}
		more, _, err := s.engine.Fold(ctx, s.missing)
		if err != nil {
			return err
		}
		if s.undone {
			if err := r.foldThreads(ctx, s, true); err != nil {
				return err
			}
		}
		if s.threads {
			if err := s.engine.FoldThreads(ctx, r.RecentThreads()); err != nil {
				return err
			}
			if err := s.engine.PutBackThreads(ctx, r.attemptOf(s), s.lost); err != nil {
				return err
			}
		}
		s.done.Folded, s.missing, s.all = s.done.Plus(more), nil, true
	}
	epoch, err := r.await(ctx, s, "2")
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	// A node that has followed another since may have lost what was put back.
	run, history, err := r.inspect(bounded, s.node)
	if err != nil {
		return err
	}
	if run+history != s.instance {
		return errFailedOver
	}
	s.epoch = epoch
	now := r.now()
	r.since.Store(&now)
	r.lastEpoch = epoch
	if err := r.renew(bounded, s.engine, s.done.Behind); err != nil {
		return err
	}
	r.gap, r.gapMark, r.gapSeen = s.done.Incomplete, s.done.Behind, time.Now()
	if r.options.Log.OnRestored != nil {
		r.options.Log.OnRestored(s.done)
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
		add(k.Kept)
	}
	return kept
}

// maxMissing bounds the outcomes of calls that are not there, of which some may come back.
const maxMissing = 65_536

// fold puts back what the log says behind a mark.
func (r *Store) fold(ctx context.Context, e *store.Engine, mark uint64,
	done *store.Folded) (missing []store.Fact, complete bool, err error) {
	if r.options.Log.Read == nil {
		return nil, true, nil
	}
	complete, err = r.options.Log.Read(ctx, mark, r.now().Add(-store.Retention), func(facts []store.Fact) error {
		some, absent, err := e.Fold(ctx, facts)
		*done = done.Plus(some)
		missing = append(missing, absent...)
		missing = missing[max(0, len(missing)-maxMissing):]
		return err
	})
	return missing, complete, err
}

func (r *Store) attemptOf(s *seeding) history.Attempt {
	return history.Attempt{Gateway: r.options.Node, Name: s.attempt, Instance: s.instance, Agreed: s.agreed}
}

// foldThreads puts back what the log says of threads behind the mark: what was added, or what was undone.
func (r *Store) foldThreads(ctx context.Context, s *seeding, undone bool) (err error) {
	switch {
	case !s.threads:
		return nil
	case r.options.Log.Threads == nil:
		s.lost = r.now()
		return nil
	}
	s.lost, err = r.options.Log.Threads(ctx, s.done.Behind, func(facts []store.ThreadFact) error {
		all := len(facts)
		facts = slices.DeleteFunc(facts, func(f store.ThreadFact) bool { return f.Undo != undone })
		s.undone = s.undone || !undone && len(facts) < all
		s.done.Threads += len(facts)
		return s.engine.FoldThreads(ctx, facts)
	})
	return err
}

// await returns once all gateways have come to the end of a round; after the second, with the epoch.
func (r *Store) await(ctx context.Context, s *seeding, round string) (epoch string, err error) {
	gap := "0"
	if s.done.Incomplete {
		gap = "1"
	}
	nodes := max(1, r.options.Replicas)
	code, reply, err := backend{r, s.conn}.run(ctx, 0, agreeScript,
		[]any{s.instance, s.instance + "/" + rand.Text(), r.options.Node, s.attempt, gap, nodes, round})
	switch {
	case err != nil:
		return "", err
	case code == "again":
		return "", errEmptied
	case len(reply) != 1:
		return "", errForeignReply
	case code == "waiting":
		return "", waitingError{reply[0], nodes}
	case code != "ok" || round == "2" && !strings.HasPrefix(reply[0], s.instance+"/"):
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
			// Where there was nothing to remove, a loss may bring it back.
			r.mu.Lock()
			r.recent.add(store.Kept{Key: store.Key{Kind: store.CallRecord, ID: id}}, time.Now())
			r.mu.Unlock()
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
	beats := 0
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
				mark := r.confirmed(time.Now())
				if r.gap { // the next process of the node is to know of it, too
					mark = min(mark, r.gapMark)
				}
				switch err := r.renew(r.ctx, r.Engine, mark); {
				case err == nil:
					r.mu.Lock()
					r.recent.forget(time.Now())
					r.mu.Unlock()
				case errors.Is(err, store.ErrSameNode):
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

// reconnect tries to connect to Redis, and records why it could not. Where records of the log are missing, it looks
// whether they are there by now, or the operator accepts that they are not.
func (r *Store) reconnect() {
	if l := r.state.Load().conn; l != nil {
		if !r.gap || !r.gapIsOver() {
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

// pruneBatch is how many of them are read at once, where others have changed them.
const pruneBatch = 32

// prune learns what has become of calls that wait, and forgets those that another process has finished.
func (r *Store) prune() {
	if _, err := r.connection(); err != nil {
		return
	}
	var waiting []store.Key
	r.mu.Lock()
	for key, h := range r.held {
		call, ok := h.Value.(*store.Call)
		if h.lost != nil {
			call, ok = h.lost, true
		}
		if ok && call.Step == store.Waiting {
			waiting = append(waiting, key)
		}
	}
	r.mu.Unlock()
	for keys := range slices.Chunk(waiting, watchBatch) {
		revisions, err := r.revisions(keys)
		if err != nil {
			return
		}
		var changed []store.Key
		r.mu.Lock()
		for i, key := range keys {
			h, held := r.held[key]
			switch {
			case !held || revText(h.Rev) == revisions[i] && h.lost == nil:
			case revisions[i] == "":
				delete(r.held, key)
			default:
				changed = append(changed, key)
			}
		}
		r.mu.Unlock()
		for some := range slices.Chunk(changed, pruneBatch) {
			if _, err := (backend{Store: r}).View(r.ctx, some, false, nil); err != nil {
				return
			}
		}
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

func (r *Store) gapIsOver() bool {
	if r.acceptsGap() {
		return true
	}
	if time.Since(r.gapSeen) < r.lease {
		return false
	}
	complete, err := r.options.Log.Read(r.ctx, r.gapMark, r.now().Add(-store.Retention), func([]store.Fact) error { return nil })
	r.gapSeen = time.Now()
	return complete && err == nil
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
