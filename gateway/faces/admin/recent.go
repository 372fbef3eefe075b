package admin

import (
	"sync"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

const (
	recentCalls = 1024 // judgements that are kept
	binLength   = 10 * time.Second
	binCount    = 30 // 5 minutes
)

// Recent keeps the last judgements, and counts those of the last five minutes. Its memory is
// bounded, and nothing of it survives the process. It is safe for concurrent use.
type Recent struct {
	now func() time.Time

	mu   sync.Mutex
	ring [recentCalls]gateway.Judgement
	next int
	bins [binCount]bin
}

// bin counts the judgements of a few seconds.
type bin struct {
	at       int64 // the number of the bin since 1970
	verdicts map[gateway.Verdict]int
	codes    map[refusal.Code]int
}

// NewRecent returns an empty one; a nil clock is time.Now.
func NewRecent(now func() time.Time) *Recent {
	if now == nil {
		now = time.Now
	}
	return &Recent{now: now}
}

// Keep keeps a judgement in the place of the oldest.
func (r *Recent) Keep(j gateway.Judgement) {
	at := r.now().UnixNano() / int64(binLength)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.next] = j
	r.next = (r.next + 1) % recentCalls
	b := &r.bins[at%binCount]
	if b.at != at || b.verdicts == nil {
		*b = bin{at: at, verdicts: map[gateway.Verdict]int{}, codes: map[refusal.Code]int{}}
	}
	b.verdicts[j.Verdict]++
	if j.Refusal != nil {
		b.codes[j.Refusal.Code]++
	}
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
	c := Counts{Seconds: int(binCount * binLength / time.Second), Verdicts: map[gateway.Verdict]int{}, Codes: map[refusal.Code]int{}}
	oldest := r.now().UnixNano()/int64(binLength) - binCount + 1
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.bins {
		if r.bins[i].at < oldest {
			continue
		}
		for verdict, n := range r.bins[i].verdicts {
			c.Verdicts[verdict] += n
		}
		for code, n := range r.bins[i].codes {
			c.Codes[code] += n
		}
	}
	return c
}
