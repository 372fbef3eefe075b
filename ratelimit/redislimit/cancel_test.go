package redislimit_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/redislimit"
	"github.com/callgate/callgate/refusal"
)

// TestCanceledAmongOthers: callers leave while their calls are decided together with those of
// others. The others are decided as if they were alone, and in the end exactly the tokens and
// slots of the admitted calls are taken.
func TestCanceledAmongOthers(t *testing.T) {
	const callers, burst = 6000, 3000
	ctx := context.Background()
	address := redistest.Shared(t)
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2})
	defer client.Close()
	options := optionsFor(address)
	r, warnings, err := redislimit.NewWithClock(ctx, options, func() time.Time { return limittest.Epoch })
	opened(t, r, warnings, err)
	budget := limittest.Budget("1/h", burst)
	limits := &ratelimit.Limits{Default: ratelimit.Allowance{Budget: &budget, Concurrency: new(burst + callers)}}
	free := &ratelimit.Limits{Default: ratelimit.Allowance{Budget: &budget}}
	var admitted, withSlot, left atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			own, cancel := context.WithCancel(ctx)
			defer cancel()
			if i%2 == 0 {
				time.AfterFunc(time.Duration(i%300)*time.Millisecond, cancel)
			}
			l := limits
			if i%3 == 0 {
				l = free
			}
			_, err := r.Take(own, l, limittest.KeyOf("a", "t", ""))
			var refused *refusal.Error
			switch {
			case err == nil:
				admitted.Add(1)
				if l == limits {
					withSlot.Add(1)
				}
			case i%2 == 0 && errors.Is(err, context.Canceled):
				left.Add(1)
			case !errors.As(err, &refused) || refused.Code != refusal.RateLimited:
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	all.Wait()
	taken := func() (tokens, slots int64) {
		state, err := client.Get(ctx, redislimit.KeyOf(options.KeyPrefix(), "a")).Result()
		if err != nil {
			t.Fatal(err)
		}
		level, err := strconv.ParseInt(strings.Split(state, " ")[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return burst - level/3_600_000_000, client.ZCard(ctx, redislimit.SlotsKeyOf(options.KeyPrefix(), "a")).Val()
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		tokens, slots := taken()
		if tokens == admitted.Load() && slots == withSlot.Load() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d tokens and %d slots are taken by %d admitted calls, %d with a slot; %d callers left", tokens, slots, admitted.Load(), withSlot.Load(), left.Load())
		}
	}
	t.Logf("%d admitted, %d left", admitted.Load(), left.Load())
}
