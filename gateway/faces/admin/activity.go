package admin

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// spans are how far back an activity goes, and the length of its intervals.
var spans = map[string]struct{ span, interval time.Duration }{
	"15m": {15 * time.Minute, 30 * time.Second}, "1h": {time.Hour, time.Minute}, "24h": {24 * time.Hour, 15 * time.Minute},
}

const defaultSpan = "1h"

// Spans are the values of the parameter span of GET /v1/activity, the shortest first.
func Spans() []string { return []string{"15m", defaultSpan, "24h"} }

// Activity is what this gateway has judged, run and charged in the last time, and what has changed meanwhile.
type Activity struct {
	// Since is when counting began: nothing is known of what was before.
	Since     time.Time  `json:"since"`
	Span      string     `json:"span"`      // 15m, 1h or 24h
	Seconds   int        `json:"seconds"`   // of each interval
	Intervals []Interval `json:"intervals"` // the oldest first; the last one is under way
	Total     Interval   `json:"total"`
	// Changes are those of the configuration, tools and stops, the newest first; at most the last hundred.
	Changes []Change `json:"changes"`
}

// Interval counts what happened in one length of time. The four verdicts have no judgement in common: a call about
// which people are asked is asked, and not refused.
type Interval struct {
	Start   time.Time            `json:"start"`
	Allowed int                  `json:"allowed"`
	Asked   int                  `json:"asked"`
	Refused int                  `json:"refused"`
	Text    int                  `json:"text"`
	Codes   map[refusal.Code]int `json:"codes,omitempty"` // of the asked and the refused
	Judged  Latency              `json:"judged"`
	Ran     Latency              `json:"ran"` // calls that were executed, from dispatch to outcome
	// Tokens and Money are what requests to models took of budgets; of others it is not known.
	Tokens int64             `json:"tokens,omitempty"`
	Money  map[string]string `json:"money,omitempty"` // amounts, by currency
}

// Latency are quantiles of lengths of time in microseconds, off by two fifths at most.
type Latency struct {
	Count int   `json:"count"`
	P50   int64 `json:"p50"`
	P95   int64 `json:"p95"`
}

// Change is something that operators or tool servers have changed.
type Change struct {
	Time time.Time `json:"time"`
	What string    `json:"what"` // reloaded, failed, recovered, restart, tools, quarantined, released, stopped or resumed
	Text string    `json:"text"`
}

func latencyOf(l *latencies) Latency {
	return Latency{l.count(), l.quantile(0.5), l.quantile(0.95)}
}

func intervalOf(b *bin, start time.Time) Interval {
	i := Interval{
		Start: start, Allowed: b.allowed, Asked: b.asked, Refused: b.refused, Text: b.text, Codes: b.codes, Judged: latencyOf(&b.judged),
		Ran: latencyOf(&b.ran), Tokens: b.tokens,
	}
	for currency, micros := range b.money {
		if i.Money == nil {
			i.Money = map[string]string{}
		}
		i.Money[currency] = budget.FormatMoney(micros)
	}
	return i
}

// Activity returns what was counted in a span, one of Spans.
func (r *Recent) Activity(span string) Activity {
	of := spans[span]
	from := &r.hour
	if of.span > time.Hour {
		from = &r.day
	}
	r.mu.Lock()
	sums, first := from.last(r.now(), of.span, of.interval)
	r.mu.Unlock()
	a := Activity{Since: r.since, Span: span, Seconds: int(of.interval / time.Second)}
	total := bin{}
	for i := range sums {
		start := time.Unix(0, (first+int64(i))*int64(of.interval)).UTC()
		a.Intervals = append(a.Intervals, intervalOf(&sums[i], start))
		total.add(&sums[i])
	}
	a.Total = intervalOf(&total, a.Intervals[0].Start)
	return a
}

// activity answers GET /v1/activity.
func (s *Sources) activity(r *Request) (any, error) {
	span, err := r.Choice("span", Spans()...)
	if err != nil {
		return nil, err
	}
	if span == "" {
		span = defaultSpan
	}
	a := s.Recent.Activity(span)
	from := a.Intervals[0].Start
	a.Changes = []Change{}
	if s.Changes != nil {
		a.Changes = s.Changes.Since(from)
	}
	if s.StopsKept != nil {
		a.Changes = append(a.Changes, stopChanges(s.StopsKept(), from, time.Now())...)
	}
	slices.SortStableFunc(a.Changes, func(x, y Change) int { return y.Time.Compare(x.Time) })
	a.Changes = a.Changes[:min(len(a.Changes), maxChanges)]
	return a, nil
}

// stopChanges are the stops that began or ended between two times.
func stopChanges(stops []store.Stop, from, to time.Time) (list []Change) {
	for i := range stops {
		s := &stops[i]
		by := ""
		if s.By != "" {
			by = " by " + s.By
		}
		if !s.Since.Before(from) {
			list = append(list, Change{s.Since, "stopped", s.String() + by + ": " + s.Reason})
		}
		if !s.Until.IsZero() && !s.Until.Before(from) && !s.Until.After(to) {
			list = append(list, Change{s.Until, "resumed", s.String()})
		}
	}
	return list
}

// maxChanges is how many changes are kept, and maxChangeText how long the text of one is, in bytes.
const (
	maxChanges    = 100
	maxChangeText = 1000
)

// Changes keeps the last changes. It is safe for concurrent use; the zero value is empty.
type Changes struct {
	mu   sync.Mutex
	list []Change // the oldest first
}

// Note keeps a change, in the place of the oldest if there are too many.
func (c *Changes) Note(at time.Time, what, text string) {
	if len(text) > maxChangeText {
		text = strings.ToValidUTF8(text[:maxChangeText], "") + " ..."
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, Change{at, what, text})
	if len(c.list) > maxChanges {
		c.list = slices.Clone(c.list[len(c.list)-maxChanges:])
	}
}

// Since returns the changes that are kept of a time and after it, the oldest first.
func (c *Changes) Since(from time.Time) []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []Change{}
	for _, change := range c.list {
		if !change.Time.Before(from) {
			list = append(list, change)
		}
	}
	return list
}
