package redislimit

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/internal/charge"
	"github.com/callgate/callgate/ratelimit/internal/windows"
)

// Bounds of one run of the script, during which Redis does nothing else.
const (
	maxOps  = 128
	maxKeys = 255
)

var errForeignKey = errors.New("Redis holds a budget or the slots of the call in another form")

// The operations of the script.
const (
	opTake   = "take" // written as hold where it has a slot or windows
	opBack   = "back"
	opDebit  = "debit"
	opRenew  = "renew"
	opSettle = "settle"
	opRead   = "read"
)

// bucket is a key of Redis with its budget.
type bucket struct {
	key          string
	speed, burst int64 // in units a microsecond, and in tokens
}

// op is one operation on counters of one node. It owns its data, since its job may outlive the
// request.
type op struct {
	kind     string
	limiter  *Limiter
	batcher  *batcher
	id       string // of the request, also of the one that is given back or settled
	count    int    // of the buckets
	buckets  [charge.Callers]bucket
	charges  [charge.Callers]int // the place of each bucket's charge in the request's
	slots    int                 // 0: not limited, where it takes
	slotsKey string              // "": it has none
	windows  []*windows.Window
	bounds   []budget.Charge // of the windows, where it takes
	amount   budget.Amount
	tokens   int64    // of a debit
	ids      []string // of a renewal
	decision decision
}

// giveBack gives back what is known to be granted of buckets and slots. It is sent once: if it is
// lost, the tokens come back with the rate, and the slot when its lease ends.
func (o *op) giveBack() {
	if o.count == 0 && o.slotsKey == "" {
		return
	}
	j := o.limiter.newJob(opBack, o.batcher, o.id)
	j.op.count, j.op.buckets, j.op.slotsKey = o.count, o.buckets, o.slotsKey
	o.batcher.enqueue(j)
}

// setBucket makes a bucket its only one.
func (o *op) setBucket(key string, b charge.Budget) {
	o.count = 1
	o.buckets[0] = bucket{key: key, speed: unitsPerMicrosecond(b.Rate), burst: int64(b.Burst)}
}

// decision is what Redis decided on an operation. Failed means that a key holds something else.
type decision struct {
	outcome charge.Outcome
	ms      int64           // how long to wait
	by      int             // for which of the buckets, or of the windows, from 0
	full    int64           // of a bucket that was read: the microseconds until then
	left    int             // tokens of it, or slots that are taken
	now     time.Time       // of windows
	states  []windows.State // of windows that were read
}

func (o *op) tag() string {
	switch {
	case o.count > 0:
		return tagOf(o.buckets[0].key)
	case len(o.windows) > 0:
		return tagOf(o.windows[0].StoreKey)
	}
	return tagOf(o.slotsKey)
}

// batch is the operations of one run of the script. Its memory is used again.
type batch struct {
	id       string
	testTime string
	jobs     []*job
	places   map[string]int // of the keys, from 0 among their kind
	buckets  []*bucket
	windows  []*windows.Window
	slots    []*string
	sent     []windows.Window // what was known of windows
	args     []any
}

func (b *batch) reset() {
	clear(b.jobs)
	clear(b.places)
	clear(b.buckets)
	clear(b.windows)
	clear(b.slots)
	clear(b.sent)
	clear(b.args)
	b.jobs, b.buckets, b.windows, b.slots, b.sent, b.args = b.jobs[:0], b.buckets[:0], b.windows[:0], b.slots[:0], b.sent[:0], b.args[:0]
}

// fits reports whether an operation can be in the same run: one with another budget of the
// same key, and in a cluster one with another hash tag, cannot.
func (b *batch) fits(o *op, cluster bool) bool {
	if len(b.jobs) == 0 {
		return true
	}
	first := b.jobs[0].op
	if len(b.jobs) == maxOps || len(b.buckets)+len(b.windows)+len(b.slots)+o.count+len(o.windows)+1 > maxKeys ||
		cluster && o.tag() != first.tag() {
		return false
	}
	for i := range o.count {
		if place, known := b.places[o.buckets[i].key]; known && *b.buckets[place] != o.buckets[i] {
			return false
		}
	}
	return true
}

func (b *batch) add(j *job) {
	o := j.op
	b.jobs = append(b.jobs, j)
	for i := range o.count {
		if _, known := b.places[o.buckets[i].key]; !known {
			b.places[o.buckets[i].key] = len(b.buckets)
			b.buckets = append(b.buckets, &o.buckets[i])
		}
	}
	for _, w := range o.windows {
		if _, known := b.places[w.StoreKey]; !known {
			b.places[w.StoreKey] = len(b.windows)
			b.windows = append(b.windows, w)
		}
	}
	if _, known := b.places[o.slotsKey]; o.slotsKey != "" && !known {
		b.places[o.slotsKey] = len(b.slots)
		b.slots = append(b.slots, &o.slotsKey)
	}
}

// holds reports whether it takes more than tokens.
func (o *op) holds() bool { return o.slotsKey != "" || len(o.windows) > 0 }

// runEnd returns where the run of equal calls ends that begins at a place of jobs.
func (b *batch) runEnd(start int) int {
	o := b.jobs[start].op
	end := start + 1
	if o.kind != opTake || o.holds() {
		return end
	}
	for end < len(b.jobs) && b.jobs[end].op.kind == opTake && !b.jobs[end].op.holds() && b.jobs[end].op.buckets == o.buckets {
		end++
	}
	return end
}

// command returns the arguments of the script. Pointers are written as what they point to;
// they and small numbers need no memory of their own.
func (b *batch) command(s *batcher, whole bool) []any {
	first := b.jobs[0].op
	b.id = first.id
	if len(b.windows) > 0 {
		b.id = first.limiter.nextID() // a history that begins is named by it
		b.sent = first.limiter.windows.Send(b.windows, b.sent[:0])
	}
	args := script.AppendCall(b.args[:0], whole, len(b.buckets)+len(b.windows)+len(b.slots))
	for _, k := range b.buckets {
		args = append(args, &k.key)
	}
	for _, w := range b.windows {
		args = append(args, &w.StoreKey)
	}
	for _, key := range b.slots {
		args = append(args, key)
	}
	hooks := &first.limiter.hooks
	b.testTime = first.limiter.testTime()
	args = append(args, &b.testTime, &s.epochKey, &s.epoch, &s.instance, hooks.extraTTL.Milliseconds(), &b.id, hooks.lease.Microseconds(),
		len(b.buckets), len(b.windows))
	for _, k := range b.buckets {
		args = append(args, &k.speed, &k.burst)
	}
	for i := range b.sent {
		w := &b.sent[i]
		args = append(args, w.Start.UnixMilli(), w.End.UnixMilli(), keep.Milliseconds(),
			&w.Epoch, &w.Number, &w.Spent.Tokens, &w.Spent.Micros, &w.Owed.Tokens, &w.Owed.Micros)
	}
	for i := 0; i < len(b.jobs); {
		o, end := b.jobs[i].op, b.runEnd(i)
		at := 0 // of the slots
		if o.slotsKey != "" {
			at = len(b.buckets) + len(b.windows) + b.places[o.slotsKey] + 1
		}
		args = b.appendOp(args, o, at, end-i)
		i = end
	}
	b.args = args
	return args
}

// appendOp appends an operation, for so many equal calls; slots is the place of its slots, or 0.
func (b *batch) appendOp(args []any, o *op, slots, calls int) []any {
	switch o.kind {
	case opTake:
		if !o.holds() {
			return append(b.appendBuckets(append(args, opTake), o), calls)
		}
		args = append(b.appendBuckets(append(args, "hold"), o), slots, &o.slots, &o.id, len(o.windows))
		if len(o.windows) > 0 {
			args = append(args, &o.amount.Tokens, &o.amount.Micros)
		}
		for i, w := range o.windows {
			limit := &o.bounds[i].Budget.Limit
			args = append(args, b.windowPlace(w), &limit.Tokens, &limit.Micros)
		}
	case opBack:
		args = append(b.appendBuckets(append(args, opBack), o), slots, &o.id)
	case opDebit:
		args = append(args, opDebit, b.places[o.buckets[0].key]+1, &o.tokens)
	case opRenew:
		args = append(args, opRenew, slots, len(o.ids))
		for i := range o.ids {
			args = append(args, &o.ids[i])
		}
	case opSettle:
		args = append(args, opSettle, &o.id, &o.amount.Tokens, &o.amount.Micros, len(o.windows))
		for _, w := range o.windows {
			args = append(args, b.windowPlace(w))
		}
	case opRead:
		switch {
		case o.count > 0:
			slots = b.places[o.buckets[0].key] + 1
		case len(o.windows) > 0:
			slots = b.windowPlace(o.windows[0])
		}
		args = append(args, opRead, slots)
	}
	return args
}

func (b *batch) windowPlace(w *windows.Window) int { return len(b.buckets) + b.places[w.StoreKey] + 1 }

func (b *batch) appendBuckets(args []any, o *op) []any {
	args = append(args, o.count)
	for i := range o.count {
		args = append(args, b.places[o.buckets[i].key]+1)
	}
	return args
}

// readReply reads the reply of the script into the decisions on the operations. Anything that is
// not exactly a reply to this request is an error.
func (b *batch) readReply(s *batcher, reply string) error {
	rest, own := strings.CutPrefix(reply, b.id)
	if !own {
		return errForeignReply
	}
	next := func() string { // "" is no word
		word := ""
		if strings.HasPrefix(rest, " ") {
			word, _, _ = strings.Cut(rest[1:], " ")
			rest = rest[1+len(word):]
		}
		return word
	}
	epoch := ""
	if strings.HasPrefix(rest, " =") {
		epoch = next()[1:]
	}
	for i := 0; i < len(b.jobs); {
		end := b.runEnd(i)
		taken, others, ok := readWord(next(), end-i, b.jobs[i].op)
		if !ok {
			return errForeignReply
		}
		for k, j := range b.jobs[i:end] {
			j.op.decision = others
			if k < taken {
				j.op.decision = decision{outcome: charge.Taken}
			}
		}
		i = end
	}
	if len(b.windows) > 0 {
		if err := b.readWindows(next); err != nil {
			return err
		}
	}
	if rest != "" {
		return errForeignReply
	}
	if epoch != "" {
		s.epoch = epoch
	}
	return nil
}

// readWindows reads the states of the windows and the time.
func (b *batch) readWindows(next func() string) error {
	states := make([]windows.State, len(b.windows))
	for i := range states {
		if err := readState(next(), &states[i]); err != nil {
			return err
		}
	}
	micros, err := strconv.ParseInt(next(), 10, 64)
	if err != nil {
		return errForeignReply
	}
	now := time.UnixMicro(micros)
	for _, j := range b.jobs {
		o := j.op
		o.decision.now = now
		if o.kind == opRead {
			for _, w := range o.windows {
				o.decision.states = append(o.decision.states, states[b.places[w.StoreKey]])
			}
		}
	}
	limiter := b.jobs[0].op.limiter
	limiter.windows.Received(b.windows, b.sent, states, now, true)
	limiter.skew.Store(int64(now.Sub(limiter.options.Clock())))
	b.sent = b.sent[:0]
	return nil
}

// failed ends a request that had no answer; it certainly did nothing, or perhaps something.
func (b *batch) failed(certain bool) {
	if len(b.sent) > 0 {
		b.jobs[0].op.limiter.windows.Received(b.windows, b.sent, nil, time.Time{}, certain)
		b.sent = b.sent[:0]
	}
}

func readState(word string, s *windows.State) error {
	if word == "-" || word == "foreign" {
		return nil
	}
	parts := strings.Split(word, "/")
	if len(parts) != 6 || parts[0] == "" {
		return errForeignReply
	}
	var err error
	s.Epoch = parts[0]
	if s.Number, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return errForeignReply
	}
	for i, into := range []*int64{&s.Spent.Tokens, &s.Spent.Micros, &s.Open.Tokens, &s.Open.Micros} {
		if *into, err = strconv.ParseInt(parts[2+i], 10, 64); err != nil || *into < 0 || *into > budget.Most {
			return errForeignReply
		}
	}
	return nil
}

// readWord reads the word for a run of n calls equal to o: how many were taken, and the
// decision on the others. An operation of another kind is a run of one.
func readWord(word string, n int, o *op) (taken int, others decision, ok bool) {
	first, rest, divided := strings.Cut(word, "/")
	figure, err := strconv.ParseUint(first, 10, 31)
	switch {
	case word == "foreign":
		return 0, decision{outcome: charge.Failed}, true
	case o.kind == opRead && len(o.windows) == 0:
		full := int64(0)
		if err == nil && divided {
			full, err = strconv.ParseInt(rest, 10, 64)
		}
		return 0, decision{outcome: charge.Taken, left: int(figure), full: full}, err == nil && divided == (o.count > 0)
	case o.kind != opTake:
		return 1, others, word == "ok"
	case word == "crowded":
		return 0, decision{outcome: charge.NoSlot}, o.slots > 0
	case word == "window":
		return 0, decision{outcome: charge.Moved}, len(o.windows) > 0
	case first == "full":
		by, err := strconv.ParseUint(rest, 10, 31)
		return 0, decision{outcome: charge.Refused, by: int(by) - 1}, err == nil && by >= 1 && int(by) <= len(o.windows)
	case err != nil || int(figure) > n || divided != (int(figure) < n):
		return 0, others, false
	case !divided:
		return n, others, true
	}
	milliseconds, place, _ := strings.Cut(rest, "/")
	ms, err1 := strconv.ParseUint(milliseconds, 10, 63)
	by, err2 := strconv.ParseUint(place, 10, 8)
	others = decision{outcome: charge.Exhausted, ms: int64(ms), by: int(by) - 1}
	return int(figure), others, err1 == nil && err2 == nil && ms >= 1 && by >= 1 && int(by) <= o.count
}
