package admin

import (
	"sync"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

const (
	recentCalls = 1024 // judgements that are kept
	recentSpan  = 5 * time.Minute
)

// Recent keeps the last judgements, and counts what was judged, run and charged in the last day. Its
// memory is bounded, and nothing of it survives the process. It is safe for concurrent use.
type Recent struct {
	now   func() time.Time
	since time.Time

	mu   sync.Mutex
	ring [recentCalls]gateway.Judgement
	next int
	// The last hour is counted exactly, the last day in longer bins.
	hour, day bins
}

// NewRecent returns an empty one; a nil clock is time.Now.
func NewRecent(now func() time.Time) *Recent {
	if now == nil {
		now = time.Now
	}
	return &Recent{now: now, since: now(), hour: newBins(10*time.Second, time.Hour), day: newBins(5*time.Minute, 24*time.Hour)}
}

// Keep keeps a judgement in the place of the oldest.
func (r *Recent) Keep(j gateway.Judgement) {
	took := j.Took()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.next] = j
	r.next = (r.next + 1) % recentCalls
	r.count(func(b *bin) { b.judge(&j, took) })
}

// Ran counts an executed call, from its dispatch to its outcome.
func (r *Recent) Ran(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(func(b *bin) { b.ran.add(took) })
}

// Charged counts what a request to a model took of its budgets; micros are millionths of the currency, which is
// empty where there are no prices.
func (r *Recent) Charged(tokens, micros int64, currency string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(func(b *bin) { b.charge(tokens, micros, currency) })
}

// count adds to the bins of now. The caller holds mu.
func (r *Recent) count(add func(*bin)) {
	now := r.now()
	add(r.hour.at(now))
	add(r.day.at(now))
}

// find returns the judgement of a call, if it is still kept.
func (r *Recent) find(callID string) (gateway.Judgement, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ring {
		if r.ring[i].CallID == callID && callID != "" {
			return r.ring[i], true
		}
	}
	return gateway.Judgement{}, false
}

// Counts are the judgements of the last five minutes.
type Counts struct {
	Seconds  int                     `json:"seconds"` // that they are of
	Verdicts map[gateway.Verdict]int `json:"verdicts"`
	Codes    map[refusal.Code]int    `json:"codes"` // of the refusals
}

func (r *Recent) counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := bin{}
	last, _ := r.hour.last(r.now(), recentSpan, r.hour.length)
	for i := range last {
		sum.add(&last[i])
	}
	c := Counts{Seconds: int(recentSpan / time.Second), Verdicts: map[gateway.Verdict]int{}, Codes: map[refusal.Code]int{}}
	for verdict, n := range map[gateway.Verdict]int{gateway.VerdictCall: sum.allowed, gateway.VerdictRefused: sum.refused + sum.asked,
		gateway.VerdictText: sum.text} {
		if n > 0 {
			c.Verdicts[verdict] = n
		}
	}
	for code, n := range sum.codes {
		c.Codes[code] = n
	}
	return c
}
