package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/store"
)

// backend is Redis as the back end of an engine. With a conn it puts back what was lost, before there is an
// epoch.
type backend struct {
	*Store
	seeding *conn
}

// held is a record as this process has written it last. Where its revision is even, it is here alone.
type held struct {
	store.Record
	bounds *store.Bounds // which a call that is here alone was opened under
	mark   uint64        // of the log, before the decision of the call, which may come before it is opened
	lost   *store.Call   // a running call that Redis does not have any more
}

func hereAlone(rev store.Rev) bool { return rev != 0 && rev&1 == 0 }

// maxOpened bounds the calls that are here alone.
const maxOpened = 65_536

func newRev() store.Rev {
	var b [8]byte
	_, _ = rand.Read(b[:]) // which cannot fail
	return store.Rev(binary.LittleEndian.Uint64(b[:]) | 1)
}

// run runs a script, and once more if there was no reply: every script may run twice for the same request.
func (b backend) run(ctx context.Context, acknowledged int, s *redisconn.Script, args []any) (code string, rest []string, err error) {
	l := b.seeding
	if l == nil {
		if l, err = b.connection(); err != nil {
			return "", nil, err
		}
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, b.timeouts.decision)
	defer cancel()
	for range 2 {
		code, rest, err = b.eval(ctx, l, acknowledged, s, args)
		if err == nil && code == "epoch" {
			err = errStaleEpoch
		}
		if err == nil {
			return code, rest, nil
		}
		if ctx.Err() != nil || errors.Is(err, errForeignReply) || errors.Is(err, errWrongToken) || errors.Is(err, errStaleEpoch) ||
			errors.Is(err, errTooFewAcks) || redisconn.IsReply(err, "") {
			break
		}
	}
	if b.seeding == nil && !errors.Is(err, errForeignReply) && !errors.Is(err, errTooFewAcks) && !redisconn.IsOverload(err) &&
		caller.Err() == nil {
		b.disconnect(l, err)
	}
	return "", nil, store.Unavailable(redisconn.Describe(err))
}

// eval sends a script once.
func (b backend) eval(ctx context.Context, l *conn, acknowledged int, s *redisconn.Script,
	args []any) (code string, rest []string, err error) {
	wait := b.timeouts.reply
	if acknowledged > 0 {
		wait = b.timeouts.ackReply
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	epoch, token := l.epoch, rand.Text()
	if b.seeding != nil {
		epoch = "*"
	}
	full := append([]any{epoch, token}, args...)
	reply, acks, err := send(ctx, l, acknowledged, s, full, true)
	if redisconn.IsReply(err, "NOSCRIPT") {
		reply, acks, err = send(ctx, l, acknowledged, s, full, false)
	}
	if err != nil {
		return "", nil, err
	}
	if len(reply) < 3 || reply[1] != token {
		return "", nil, errWrongToken
	}
	now, err := strconv.ParseInt(reply[2], 10, 64)
	if err != nil {
		return "", nil, errForeignReply
	}
	b.offset.Store(now - time.Now().UnixMicro())
	if reply[0] == "ok" && acks < int64(acknowledged) {
		return "", nil, errTooFewAcks
	}
	return reply[0], reply[3:], nil
}

// send sends a script and, on the same connection, waits for the replicas.
func send(ctx context.Context, l *conn, acknowledged int, s *redisconn.Script, args []any,
	known bool) (reply []string, acks int64, err error) {
	command := append(append(s.AppendCall(make([]any, 0, 4+len(args)), !known, 1), l.epochKey), args...)
	if acknowledged == 0 {
		reply, err = redisconn.Do(ctx, l.node, command...).Texts()
		return reply, 0, err
	}
	replies := l.node.Send(ctx, nil, command, []any{"wait", acknowledged, ackWait.Milliseconds()})
	if reply, err = replies[0].Texts(); err == nil {
		acks, err = replies[1].Int()
	}
	if err != nil {
		return nil, 0, err
	}
	return reply, acks, nil
}

// View implements store.Backend. What is here alone is not in Redis.
func (b backend) View(ctx context.Context, keys []store.Key, transition bool, found []store.Record) ([]store.Record, error) {
	n := len(found)
	var args []any
	var before []store.Rev // of what this process has written last
	b.mu.Lock()
	for _, key := range keys {
		h := b.held[key]
		rev := h.Rev
		if b.seeding != nil || !transition && !hereAlone(h.Rev) {
			h = held{}
		}
		if found = append(found, h.Record); h.Rev == 0 {
			args, before = append(args, recordKey(key)), append(before, rev)
		}
	}
	b.mu.Unlock()
	if len(args) == 0 {
		return found, nil
	}
	code, reply, err := b.run(ctx, 0, viewScript, args)
	switch {
	case err != nil:
		return nil, err
	case code != "ok" || len(reply) != 3*len(args):
		return nil, store.Unavailable(errForeignReply)
	}
	for i, key := range keys {
		if found[n+i].Rev != 0 {
			continue
		}
		rev, head, body, was := reply[0], reply[1], reply[2], before[0]
		if reply, before = reply[3:], before[1:]; rev == "" {
			continue
		}
		number, err := strconv.ParseUint(rev, 36, 64)
		if err != nil || number&1 == 0 {
			return nil, store.Unavailable(errForeignReply)
		}
		value, err := decode(key, []byte(head), []byte(body))
		if err != nil {
			return nil, err
		}
		found[n+i] = store.Record{Rev: store.Rev(number), Value: value}
		if b.seeding == nil {
			b.learn(key, was, found[n+i])
		}
	}
	return found, nil
}

// learn remembers what Redis has in the place of what this process has written last, unless it has written
// more since Redis was asked.
func (r *Store) learn(key store.Key, was store.Rev, is store.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[key]
	if h.Rev != was || hereAlone(h.Rev) || h.Rev == is.Rev || h.Rev == 0 && h.lost == nil {
		return
	}
	if call, ok := is.Value.(*store.Call); ok && call.Step != store.Ended && call.Owner == r.process.Name {
		r.held[key] = held{Record: is, mark: h.mark}
	} else {
		delete(r.held, key)
	}
}

// Scan implements store.Backend.
func (b backend) Scan(ctx context.Context, index store.Index, behind, to store.Row, limit int, rows []store.Row) ([]store.Row, error) {
	from, until := "-inf", "+inf"
	if behind.At != math.MinInt64 {
		from = strconv.FormatInt(behind.At, 10)
	}
	if to.At != math.MaxInt64 {
		until = "(" + strconv.FormatInt(to.At, 10)
	}
	if indexes[index.Name].untimed {
		from = "" // the rows are in the order of their ids
	}
	code, reply, err := b.run(ctx, 0, scanScript, []any{indexKey(index), from, behind.ID, until, limit})
	switch {
	case err != nil:
		return nil, err
	case code != "ok" || len(reply)%2 != 0:
		return nil, store.Unavailable(errForeignReply)
	}
	for ; len(reply) > 0; reply = reply[2:] {
		at, err := strconv.ParseInt(reply[0], 10, 64)
		if err != nil {
			return nil, store.Unavailable(errForeignReply)
		}
		rows = append(rows, store.Row{At: at, ID: reply[1]})
	}
	return rows, nil
}

// Commit implements store.Backend.
func (b backend) Commit(ctx context.Context, c *store.Commit) (store.Outcome, error) {
	if b.seeding == nil && c.Volatile {
		if outcome, done := b.commitHere(c); done {
			return outcome, nil
		}
	}
	if b.seeding == nil && b.isStale(c) {
		return store.Conflicted, nil
	}
	began, _ := c.Begins()
	if began != "" {
		b.begin(began, 1)
	}
	rev := newRev()
	args, err := b.arguments(c, rev)
	acknowledged := 0
	if err == nil && began != "" && !c.Volatile && b.seeding == nil {
		acknowledged = b.options.MinRedisReplicas
	}
	var code string
	var reply []string
	if err == nil {
		code, reply, err = b.run(ctx, acknowledged, commitScript, args)
	}
	switch {
	case err != nil:
	case code == "late":
		err = store.Unavailable(errLate)
	default:
		err = b.committed(c, code, reply, rev)
	}
	if began != "" && b.seeding == nil && errors.Is(err, store.ErrUnavailable) {
		// It is taken back, and no longer begun, once it cannot be made any more.
		kept := &store.Commit{Changes: slices.Clone(c.Changes)}
		b.mu.Lock()
		for i := range c.Changes {
			b.forget(c.Changes[i].Key)
		}
		b.mu.Unlock()
		d := doubt{commit: kept}
		if !errors.Is(err, errTooFewAcks) { // it may still be on its way
			d.after = b.redisTime().Add(b.onWay() + lateWait/4)
		}
		b.doubt(d)
		return store.Conflicted, err
	}
	if began != "" {
		b.begin(began, -1)
	}
	switch {
	case err != nil:
		return store.Conflicted, err
	case code == "full":
		return store.Full, nil
	case code == "conflict":
		return store.Conflicted, nil
	}
	c.Rev = rev
	return store.Committed, nil
}

// isStale reports whether this process has written a record since a commit has read it.
func (r *Store) isStale(c *store.Commit) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(c.Changes, func(change store.Replacement) bool {
		h := r.held[change.Key]
		return h.Rev != 0 && h.Rev != change.Was.Rev
	})
}

// begin counts a call that is being opened or dispatched, or one less.
func (r *Store) begin(id string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun[id] += n; r.begun[id] == 0 {
		delete(r.begun, id)
	}
}

// holds reports whether this process opens or runs a call, or is to take it back.
func (r *Store) holds(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[store.Key{Kind: store.CallRecord, ID: id}]
	return r.begun[id] > 0 || h.Rev != 0 || h.lost != nil
}

// commitHere makes a commit of records that are here alone: a call without a key has nothing to claim before
// it is dispatched. done is false where Redis has to be asked.
func (b backend) commitHere(c *store.Commit) (outcome store.Outcome, done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range c.Changes {
		r := &c.Changes[i]
		h := b.held[r.Key]
		switch {
		case r.Kind != store.CallRecord || r.Was.Rev != 0 && !hereAlone(r.Was.Rev):
			return 0, false
		case h.Rev != r.Was.Rev:
			return store.Conflicted, true
		}
	}
	for i := range c.Changes {
		r := &c.Changes[i]
		switch r.Now {
		case r.Was.Value:
		case nil:
			delete(b.held, r.Key)
			b.opened--
		default:
			if r.Was.Rev == 0 {
				if b.opened >= maxOpened {
					return store.Full, true
				}
				b.opened++
			}
			b.rev += 2
			b.held[r.Key] = held{Record: store.Record{Rev: b.rev, Value: r.Now}, bounds: c.Bounds, mark: b.aged}
		}
	}
	return store.Committed, true
}

// onWay is how long a commit may be on its way.
func (r *Store) onWay() time.Duration { return max(lateWait, r.timeouts.decision) }

// arguments are what a commit is for its script.
func (b backend) arguments(c *store.Commit, rev store.Rev) (args []any, err error) {
	bounds := c.Bounds
	add := c.Add
	counts := c.Counts
	args = make([]any, 0, 16+4*len(c.Changes)+3*len(c.Add)+2*len(c.Remove)+5*len(c.Counts))
	args = append(args, revText(rev), b.redisTime().Add(b.onWay()).UnixMicro(), len(c.Changes))
	for i := range c.Changes {
		r := &c.Changes[i]
		was, alone := r.Was.Rev, hereAlone(r.Was.Rev)
		if alone {
			was = 0
		}
		args = append(args, recordKey(r.Key), revText(was))
		if call, ok := r.Was.Value.(*store.Call); ok && alone && r.Now != r.Was.Value {
			// Redis has no rows of it, and has not counted it.
			counts = slices.Clone(counts)
			at := slices.IndexFunc(counts, func(n store.Count) bool { return n.Principal == call.Scope.Principal })
			counts[at].Of = counts[at].Of.Plus(call.Usage())
		}
		switch r.Now {
		case r.Was.Value:
			args = append(args, "=")
			continue
		case nil:
			args = append(args, "-")
			continue
		}
		head, err := encode(r.Now)
		if err != nil {
			return nil, err
		}
		if was != 0 && sameBody(r.Was.Value, r.Now) {
			args = append(args, "h", head)
		} else {
			args = append(args, "b", head, body(r.Now))
		}
		if alone {
			add = store.Entries(r.Now, slices.Clone(add))
			b.mu.Lock()
			bounds = b.held[r.Key].bounds
			b.mu.Unlock()
		}
	}
	args = append(args, len(c.Rooms))
	for _, room := range c.Rooms {
		from := "-inf"
		if room.Behind.At != math.MinInt64 {
			from = strconv.FormatInt(room.Behind.At, 10)
		}
		args = append(args, indexKey(room.Index), from, room.Max)
	}
	if bounds == nil {
		args = append(args, "")
	} else {
		own := bounds.PerPrincipal()
		args = append(args, owner(counts[0].Principal), own.Calls, own.Bytes, bounds.Calls, bounds.Bytes)
	}
	args = append(args, len(c.Remove))
	for i := range c.Remove {
		args = append(args, indexKey(c.Remove[i].Index), c.Remove[i].ID)
	}
	args = append(args, len(add))
	for i := range add {
		args = append(args, indexKey(add[i].Index), add[i].At, add[i].ID)
	}
	args = append(args, len(counts))
	for _, n := range counts {
		args = append(args, owner(n.Principal), n.Of.Total.Calls, n.Of.Total.Bytes, n.Of.Evictable.Calls, n.Of.Evictable.Bytes)
	}
	return args, nil
}

// committed follows the reply to a commit.
func (b backend) committed(c *store.Commit, code string, reply []string, rev store.Rev) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch code {
	case "full":
		return nil
	case "conflict":
		for _, at := range reply {
			i, err := strconv.Atoi(at)
			if err != nil || i < 0 || i >= len(c.Changes) {
				return store.Unavailable(errForeignReply)
			}
			b.drop(&c.Changes[i])
		}
		if len(reply) == 0 {
			return store.Unavailable(errForeignReply)
		}
		return nil
	case "ok":
	default:
		return store.Unavailable(errForeignReply)
	}
	var usage [8]int64
	for i := range min(len(reply), len(usage)) {
		n, err := strconv.ParseInt(reply[i], 10, 64)
		if err != nil {
			return store.Unavailable(errForeignReply)
		}
		usage[i] = n
	}
	if len(reply) == len(usage) {
		c.Own, c.All = usageOf(usage[:4]), usageOf(usage[4:])
	}
	begun, to := c.Begins()
	for i := range c.Changes {
		r := &c.Changes[i]
		if r.Now == r.Was.Value {
			continue
		}
		was := b.forget(r.Key)
		keep := false
		switch now := r.Now.(type) {
		case *store.Call:
			keep = now.Owner == b.process.Name && now.Step != store.Ended
		case *store.Started:
			keep = now.Call == begun && to == store.Opened
		case *store.Lease:
			keep = now.Process == b.process.Name
		}
		if keep = keep && (b.seeding == nil || was.Rev != 0 || was.lost != nil); keep {
			b.held[r.Key] = held{Record: store.Record{Rev: rev, Value: r.Now}, mark: b.aged}
		}
		b.recent.add(store.Kept{Key: r.Key, Value: r.Now}, time.Now())
	}
	return nil
}

func usageOf(n []int64) store.Usage {
	return store.Usage{Total: store.Amount{Calls: int(n[0]), Bytes: n[1]}, Evictable: store.Amount{Calls: int(n[2]), Bytes: n[3]}}
}

// forget forgets what this process has written, and returns it.
func (r *Store) forget(key store.Key) held {
	was := r.held[key]
	if hereAlone(was.Rev) {
		r.opened--
	}
	delete(r.held, key)
	return was
}

// drop forgets a record that Redis has in another state.
func (b backend) drop(r *store.Replacement) {
	if b.held[r.Key].Rev != r.Was.Rev || r.Was.Rev == 0 {
		return
	}
	was := b.forget(r.Key)
	if call, ok := was.Value.(*store.Call); ok && call.Step != store.Opened {
		b.held[r.Key] = held{lost: call}
	}
}
