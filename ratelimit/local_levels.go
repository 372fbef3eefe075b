package ratelimit

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/callgate/callgate/ratelimit/internal/charge"
)

// levelBatch is how many buckets are looked at under one hold of the lock that calls take:
// some microseconds.
const levelBatch = 256

// Levels implements Meter.
func (l *Local) Levels(ctx context.Context, limits *Limits, q LevelQuery) (LevelPage, error) {
	if err := validate(ctx, l.ready(), limits); err != nil {
		return LevelPage{}, err
	}
	in := Extra{l.calls.inUse(charge.Agents, l.clock()), l.callers.inUse(charge.Callers, l.clock())}
	l.calls.mu.Lock()
	in.Agents = slices.AppendSeq(in.Agents, maps.Keys(l.calls.inFlight))
	l.calls.mu.Unlock()
	refs, next, err := LevelRefs(limits, q, in)
	if err != nil {
		return LevelPage{}, err
	}
	page := LevelPage{Levels: make([]Level, len(refs)), Next: next}
	for i := range refs {
		set := &l.calls
		if refs[i].Kind == charge.Callers {
			set = &l.callers
		}
		page.Levels[i] = set.level(&refs[i], l.clock())
	}
	return page, nil
}

// level reads one level.
func (s *bucketSet) level(r *LevelRef, raw time.Time) Level {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Slots > 0 {
		return r.Level(r.Slots-s.inFlight[r.Name.First], 0)
	}
	b := s.tables[r.Kind].byName[r.Name]
	if b == nil {
		return r.Level(r.Budget.Burst, 0)
	}
	at := s.latest
	if at.Before(raw) {
		at = raw
	}
	left := min(wholeTokens(b.limiter.TokensAt(at)), r.Budget.Burst)
	return r.Level(left, time.Duration(max(0, b.full-int64(at.Sub(s.start)))))
}

// inUse returns the names of the buckets of a kind that are not full. It holds the lock only
// as long as a part of them takes.
func (s *bucketSet) inUse(k charge.Kind, raw time.Time) (names []string) {
	s.mu.Lock()
	all := slices.Clone(s.tables[k].byFull)
	s.mu.Unlock()
	for batch := range slices.Chunk(all, levelBatch) {
		s.mu.Lock()
		now := int64(max(raw.Sub(s.start), s.latest.Sub(s.start)))
		for _, b := range batch {
			if b.full > now {
				names = append(names, b.name.First)
			}
		}
		s.mu.Unlock()
	}
	return names
}

// wholeTokens is how many calls tokens admit: the part of a token that a rounding has cost is
// not missing.
func wholeTokens(tokens float64) int { return int(math.Floor(tokens + 1e-6)) }
