package redislimit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/internal/charge"
)

var _ ratelimit.Meter = (*Limiter)(nil)

// unit is a token, as the scripts count.
const unit = 3_600_000_000

// Levels implements ratelimit.Meter. It reads the keys of one page: a GET for each budget and a
// ZCOUNT for each agent's slots, in one request to each node, and changes nothing. Names that
// only other gateways use are not found: Redis is not searched for keys. While Redis is away it
// returns an error.
func (r *Limiter) Levels(ctx context.Context, limits *ratelimit.Limits, q ratelimit.LevelQuery) (ratelimit.LevelPage, error) {
	if !r.ready() {
		return ratelimit.LevelPage{}, charge.ErrNoLimiter
	}
	state := r.state.Load()
	if state.conn == nil {
		return ratelimit.LevelPage{}, fmt.Errorf("Redis is away: %w", state.cause)
	}
	r.mu.Lock()
	in := ratelimit.Extra{Agents: slices.Collect(maps.Keys(r.inFlight))}
	r.mu.Unlock()
	refs, next, err := ratelimit.LevelRefs(limits, q, in)
	if err != nil {
		return ratelimit.LevelPage{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*r.options.wait(callTimeout))
	defer cancel()
	page := ratelimit.LevelPage{Levels: make([]ratelimit.Level, len(refs)), Next: next}
	nodes := map[*batcher][]int{} // the places in refs, by the node that has the key
	for i := range refs {
		s, err := state.conn.route(ctx, r.keyOf(&refs[i]))
		if err != nil {
			return ratelimit.LevelPage{}, sanitized(err)
		}
		nodes[s] = append(nodes[s], i)
	}
	for s, places := range nodes {
		if err := r.readLevels(ctx, s, refs, places, page.Levels); err != nil {
			return ratelimit.LevelPage{}, sanitized(err)
		}
	}
	return page, nil
}

func (r *Limiter) keyOf(ref *ratelimit.LevelRef) string {
	if ref.Slots > 0 {
		return slotsKey(r.prefix, ref.Name.First)
	}
	return bucketKey(r.prefix, ref.Kind, ref.Name)
}

// readLevels reads the levels whose keys a node has.
func (r *Limiter) readLevels(ctx context.Context, s *batcher, refs []ratelimit.LevelRef, places []int, levels []ratelimit.Level) error {
	now, err := r.nodeTime(ctx, s)
	if err != nil {
		return err
	}
	since, err := strconv.ParseFloat(s.since, 64)
	if err != nil { // it is empty
		since = math.Inf(-1)
	}
	pipe := s.client.Pipeline()
	for _, i := range places {
		if key := r.keyOf(&refs[i]); refs[i].Slots > 0 {
			pipe.ZCount(ctx, key, "("+strconv.FormatInt(now, 10), "+inf")
		} else {
			pipe.Get(ctx, key)
		}
	}
	replies, err := pipe.Exec(ctx)
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for n, i := range places {
		ref := &refs[i]
		switch reply := replies[n].(type) {
		case *redis.IntCmd:
			levels[i] = ref.Level(ref.Slots-int(reply.Val()), 0)
		case *redis.StringCmd:
			level, ok := levelOf(ref, reply.Val(), float64(now), since)
			if !ok {
				return errForeignReply
			}
			levels[i] = level
		}
	}
	return nil
}

// nodeTime is the time of a node in microseconds.
func (r *Limiter) nodeTime(ctx context.Context, s *batcher) (int64, error) {
	if r.hooks.clock != nil {
		return r.hooks.clock().UnixMicro(), nil
	}
	t, err := s.client.Time(ctx).Result()
	return t.UnixMicro(), err
}

// levelOf is the level of a bucket by its state in Redis, which is empty where there is no key.
// It computes what the function read of the scripts computes.
func levelOf(ref *ratelimit.LevelRef, state string, now, since float64) (ratelimit.Level, bool) {
	speed, most := float64(unitsPerMicrosecond(ref.Budget.Rate)), float64(ref.Budget.Burst)*unit
	at, level := now, most
	if state != "" {
		var n [5]float64
		fields := strings.Fields(state)
		if len(fields) < 4 || len(fields) > len(n) {
			return ratelimit.Level{}, false
		}
		for i, f := range fields {
			var err error
			if n[i], err = strconv.ParseFloat(f, 64); err != nil {
				return ratelimit.Level{}, false
			}
		}
		at, level = n[0], n[1]
		if at < since {
			at, level = since, 0
		}
		if now > at { // by the budget of the last take
			at, level = now, min(level+(now-at)*n[2], n[3]*unit)
		}
		level = min(level, most)
	} else if !math.IsInf(since, -1) {
		at, level = max(now, since), min(max(now-since, 0)*speed, most)
	}
	full := time.Duration(at-now+math.Ceil((most-level)/speed)) * time.Microsecond
	return ref.Level(ratelimit.WholeTokens(level/unit), full), true
}
