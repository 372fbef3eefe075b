package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/redistest"
	"github.com/callgate/callgate/ratelimit"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// itself is for what the stand-in does not do: with it no key expires by itself, one
// that is to be kept for centuries is gone at once, and what a script runs into is
// worded as an error of the script.
func itself(t testing.TB) {
	t.Helper()
	if !redistest.Installed() {
		t.Skip("redis-server is not installed, and miniredis does not do this")
	}
}

func optionsFor(address string) ratelimit.RedisOptions {
	return ratelimit.RedisOptions{Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: redistest.Prefix()}, Clock: time.Now}
}

// opened fails unless the limiter is connected.
func opened(t testing.TB, r *ratelimit.Redis, warnings []string, err error) *ratelimit.Redis {
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
	r, warnings, err := ratelimit.NewRedisOf(context.Background(), o, clock)
	return opened(t, r, warnings, err)
}

func clusterBackend(t testing.TB, clock func() time.Time) ratelimit.Limiter {
	nodes := redistest.Cluster(t)
	o := ratelimit.RedisOptions{Options: redisconn.Options{Cluster: nodes[:1], Prefix: redistest.Prefix()}, Clock: time.Now}
	r, warnings, err := ratelimit.NewRedisOf(context.Background(), o, clock)
	return opened(t, r, warnings, err)
}
