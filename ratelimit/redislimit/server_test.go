package redislimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/parallel"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/redislimit"
)

func TestMain(m *testing.M) {
	parallel.Waiting()
	redistest.Main(m)
}

func optionsFor(address string) redislimit.Options {
	return redislimit.Options{Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: redistest.Prefix()}, Clock: time.Now}
}

// opened fails unless the limiter is connected.
func opened(t testing.TB, r *redislimit.Limiter, warnings []string, err error) *redislimit.Limiter {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if shared, cause := r.Shared(); !shared {
		t.Fatalf("not connected: %v, %v", warnings, cause)
	}
	return r
}

func redisBackend(t testing.TB, clock func() time.Time) ratelimit.Limiter {
	o := optionsFor(redistest.Shared(t))
	r, warnings, err := redislimit.NewWithClock(context.Background(), o, clock)
	return opened(t, r, warnings, err)
}

func clusterBackend(t testing.TB, clock func() time.Time) ratelimit.Limiter {
	nodes := redistest.Cluster(t)
	o := redislimit.Options{Options: redisconn.Options{Cluster: nodes[:1], Prefix: redistest.Prefix()}, Clock: time.Now}
	r, warnings, err := redislimit.NewWithClock(context.Background(), o, clock)
	return opened(t, r, warnings, err)
}
