package admin

import (
	"math/bits"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// bins count in equal lengths of time, of which the last ones are kept.
type bins struct {
	length time.Duration
	list   []bin
}

func newBins(length, span time.Duration) bins { return bins{length, make([]bin, span/length)} }

// bin counts what happened in one length of time.
type bin struct {
	number                        int64 // since 1970
	allowed, asked, refused, text int
	codes                         map[refusal.Code]int
	judged, ran                   latencies
	tokens                        int64
	money                         map[string]int64 // millionths, by currency
}

// at is the bin of a time, which takes the place of an old one.
func (b *bins) at(t time.Time) *bin {
	n := t.UnixNano() / int64(b.length)
	at := &b.list[n%int64(len(b.list))]
	if at.number != n {
		*at = bin{number: n}
	}
	return at
}

// last sums the bins of the last span by groups of equal length, the oldest first, and returns the number of
// the first group since 1970. The last group is under way.
func (b *bins) last(now time.Time, span, group time.Duration) (sums []bin, first int64) {
	perGroup := int64(group / b.length)
	sums = make([]bin, span/group)
	first = now.UnixNano()/int64(group) - int64(len(sums)) + 1
	for i := range b.list {
		if at := b.list[i].number/perGroup - first; at >= 0 && at < int64(len(sums)) {
			sums[at].add(&b.list[i])
		}
	}
	return sums, first
}

func (b *bin) judge(j *gateway.Judgement, took time.Duration) {
	b.judged.add(took)
	switch {
	case j.Verdict == gateway.VerdictCall:
		b.allowed++
	case j.Verdict == gateway.VerdictText:
		b.text++
	case j.Refusal != nil && j.Refusal.Code == refusal.ApprovalRequired:
		b.asked++
	default:
		b.refused++
	}
	if j.Refusal != nil {
		b.code(j.Refusal.Code, 1)
	}
}

func (b *bin) code(code refusal.Code, n int) {
	if b.codes == nil {
		b.codes = map[refusal.Code]int{}
	}
	b.codes[code] += n
}

func (b *bin) charge(tokens, micros int64, currency string) {
	b.tokens += tokens
	if currency == "" {
		return
	}
	if b.money == nil {
		b.money = map[string]int64{}
	}
	b.money[currency] += micros
}

// add adds what another bin has counted.
func (b *bin) add(o *bin) {
	b.allowed, b.asked, b.refused, b.text, b.tokens = b.allowed+o.allowed, b.asked+o.asked, b.refused+o.refused, b.text+o.text,
		b.tokens+o.tokens
	for code, n := range o.codes {
		b.code(code, n)
	}
	for currency, micros := range o.money {
		b.charge(0, micros, currency)
	}
	b.judged.addAll(&o.judged)
	b.ran.addAll(&o.ran)
}

// steps is how many buckets of latencies there are: two for each power of two, from 1 µs to 17 min.
const steps = 60

// latencies counts lengths of time. A quantile of them is off by two fifths at most.
type latencies [steps]uint32

func (l *latencies) add(took time.Duration) { l[stepOf(took)]++ }

func (l *latencies) addAll(o *latencies) {
	for i, n := range o {
		l[i] += n
	}
}

// stepOf is the bucket of a length of time.
func stepOf(took time.Duration) int {
	micros := uint64(max(took.Microseconds(), 1))
	power := bits.Len64(micros) - 1
	step := 2 * power
	if power < 32 && micros*micros >= 1<<(2*power+1) { // beyond the middle, by factors
		step++
	}
	return min(step, steps-1)
}

// edge is the lower edge of a bucket, in microseconds.
func edge(step int) float64 {
	const root = 1.4142135623730951
	micros := float64(uint64(1) << (step / 2))
	if step%2 == 1 {
		micros *= root
	}
	return micros
}

// quantile is the length of time, in microseconds, that a part of all does not exceed; 0 if there is none.
func (l *latencies) quantile(part float64) int64 {
	all := l.count()
	rank, before := part*float64(all), 0.0
	for i, n := range l {
		if n > 0 && before+float64(n) >= rank {
			from, to := edge(i), edge(i+1)
			return int64(from + (to-from)*(rank-before)/float64(n))
		}
		before += float64(n)
	}
	return 0
}

func (l *latencies) count() (all int) {
	for _, n := range l {
		all += int(n)
	}
	return all
}
