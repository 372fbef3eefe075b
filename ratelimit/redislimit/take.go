package redislimit

import (
	"errors"
	"strconv"
	"strings"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// Bounds of one run of takeScript, during which Redis does nothing else.
const (
	maxTakeCalls = 128
	maxTakeKeys  = 255
)

var errForeignBucket = errors.New("Redis holds a budget or the slots of the call in another form")

// bucket is a key of Redis with its budget.
type bucket struct {
	key          string
	speed, burst int64 // in units a microsecond, and in tokens
}

// take is the part of a call's charges that one node decides. It owns its data, since its
// job may outlive the call.
type take struct {
	limiter  *Limiter
	batcher  *batcher
	id       string
	testTime string
	count    int // of the buckets
	buckets  [charge.Callers]bucket
	charges  [charge.Callers]int // the place of each bucket's charge in the call's
	slots    int                 // 0: not limited
	slotsKey string
	decision decision
}

// refund gives back what is known to be granted. It is sent once: if it is lost, the tokens
// come back with the rate, and the slot when its lease ends.
func (t *take) refund() {
	t.batcher.enqueue(newJob(refundScript, t.keys(), append(t.limiter.scriptArgs(t.batcher, t.id, 1), t.count)...))
}

// decision is what Redis decided on a take. Failed means that a key holds something else.
type decision struct {
	outcome charge.Outcome
	ms      int64 // how long to wait
	by      int   // for which of the buckets, from 0
}

func (t *take) tag() string {
	if t.count == 0 {
		return tagOf(t.slotsKey)
	}
	return tagOf(t.buckets[0].key)
}

func (t *take) keys() []string {
	keys := make([]string, 0, len(t.buckets)+1)
	for i := range t.count {
		keys = append(keys, t.buckets[i].key)
	}
	if t.slots > 0 {
		keys = append(keys, t.slotsKey)
	}
	return keys
}

// takeBatch is the calls of one run of takeScript. Its memory is used again.
type takeBatch struct {
	jobs    []*job
	places  map[string]int // of the keys of buckets, from 0
	buckets []*bucket
	slots   []*string
	args    []any
}

func (b *takeBatch) reset() {
	clear(b.jobs)
	clear(b.places)
	clear(b.buckets)
	clear(b.slots)
	clear(b.args)
	b.jobs, b.buckets, b.slots, b.args = b.jobs[:0], b.buckets[:0], b.slots[:0], b.args[:0]
}

// fits reports whether a call can be taken in the same run: one with another budget of the
// same key, and in a cluster one with another hash tag, cannot.
func (b *takeBatch) fits(t *take, cluster bool) bool {
	if len(b.jobs) == 0 {
		return true
	}
	first := b.jobs[0].take
	if len(b.jobs) == maxTakeCalls || len(b.buckets)+len(b.slots)+t.count+1 > maxTakeKeys ||
		t.testTime != first.testTime || cluster && t.tag() != first.tag() {
		return false
	}
	for i := range t.count {
		if place, known := b.places[t.buckets[i].key]; known && *b.buckets[place] != t.buckets[i] {
			return false
		}
	}
	return true
}

func (b *takeBatch) add(j *job) {
	t := j.take
	b.jobs = append(b.jobs, j)
	for i := range t.count {
		if _, known := b.places[t.buckets[i].key]; !known {
			b.places[t.buckets[i].key] = len(b.buckets)
			b.buckets = append(b.buckets, &t.buckets[i])
		}
	}
	if t.slots > 0 {
		b.slots = append(b.slots, &t.slotsKey)
	}
}

// runEnd returns where the run of equal calls ends that begins at a place of jobs.
func (b *takeBatch) runEnd(start int) int {
	t := b.jobs[start].take
	end := start + 1
	for end < len(b.jobs) && t.slots == 0 && b.jobs[end].take.slots == 0 && b.jobs[end].take.buckets == t.buckets {
		end++
	}
	return end
}

// command returns the arguments of takeScript. Pointers are written as what they point to;
// they and small numbers need no memory of their own.
func (b *takeBatch) command(since *string, whole bool) []any {
	first := b.jobs[0].take
	args := append(b.args[:0], "evalsha", takeScript.sha, len(b.buckets)+len(b.slots))
	if whole {
		args[0], args[1] = "eval", takeScript.source
	}
	for _, k := range b.buckets {
		args = append(args, &k.key)
	}
	for _, key := range b.slots {
		args = append(args, key)
	}
	hooks := &first.limiter.hooks
	args = append(args, &first.testTime, since, hooks.extraTTL.Milliseconds(), &first.id, hooks.lease.Microseconds(), len(b.buckets))
	for _, k := range b.buckets {
		args = append(args, &k.speed, &k.burst)
	}
	slots := len(b.buckets)
	for i := 0; i < len(b.jobs); {
		t, end := b.jobs[i].take, b.runEnd(i)
		args = append(args, t.count)
		for k := range t.count {
			args = append(args, b.places[t.buckets[k].key]+1)
		}
		if t.slots > 0 {
			slots++
			args = append(args, 0, slots, &t.slots, &t.id)
		} else {
			args = append(args, end-i)
		}
		i = end
	}
	b.args = args
	return args
}

// readReply reads the reply of takeScript into the decisions on the calls. Anything that is
// not exactly a reply to this request is an error.
func (b *takeBatch) readReply(reply string) error {
	rest, own := strings.CutPrefix(reply, b.jobs[0].take.id)
	for i := 0; i < len(b.jobs); {
		end := b.runEnd(i)
		var ok bool
		if rest, ok = strings.CutPrefix(rest, " "); !ok || !own {
			return errForeignReply
		}
		word := rest
		if space := strings.IndexByte(rest, ' '); space >= 0 {
			word = rest[:space]
		}
		rest = rest[len(word):]
		taken, others, ok := readWord(word, end-i, b.jobs[i].take)
		if !ok {
			return errForeignReply
		}
		for k, j := range b.jobs[i:end] {
			j.take.decision = others
			if k < taken {
				j.take.decision = decision{outcome: charge.Taken}
			}
		}
		i = end
	}
	if rest != "" {
		return errForeignReply
	}
	return nil
}

// readWord reads the word for a run of n calls equal to t: how many were taken, and the
// decision on the others.
func readWord(word string, n int, t *take) (taken int, others decision, ok bool) {
	switch word {
	case "foreign":
		return 0, decision{outcome: charge.Failed}, true
	case "crowded":
		return 0, decision{outcome: charge.NoSlot}, t.slots > 0
	}
	figures, wait, refused := strings.Cut(word, "/")
	first, err := strconv.ParseUint(figures, 10, 16)
	if err != nil || int(first) > n || refused != (int(first) < n) {
		return 0, others, false
	}
	if !refused {
		return n, others, true
	}
	milliseconds, place, _ := strings.Cut(wait, "/")
	ms, err1 := strconv.ParseUint(milliseconds, 10, 63)
	by, err2 := strconv.ParseUint(place, 10, 8)
	others = decision{outcome: charge.Exhausted, ms: int64(ms), by: int(by) - 1}
	return int(first), others, err1 == nil && err2 == nil && ms >= 1 && by >= 1 && int(by) <= t.count
}
