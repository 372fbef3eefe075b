package threads_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/redisstore"
)

// inMemory and sharedOn are where threads are kept; each call of what they return is another, empty one. Redis has a clock of
// its own.
func inMemory(_ *testing.T, now func() time.Time) *store.Engine {
	return store.NewThreads(now, store.ThreadBounds{})
}

func sharedOn(address string) func(*testing.T, func() time.Time) *store.Engine {
	n := 0
	return func(t *testing.T, _ func() time.Time) *store.Engine {
		n++
		return onRedis(t, address, fmt.Sprintf("p%d:", n), "a").Engine
	}
}

// onRedis is the store of a gateway on Redis, which is ready.
func onRedis(t *testing.T, address, prefix, node string) *redisstore.Store {
	t.Helper()
	r, err := redisstore.New(t.Context(), redisstore.Options{
		Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: prefix}, Node: node, Wait: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	for ready, cause := r.Ready(); !ready; ready, cause = r.Ready() {
		if time.Sleep(time.Millisecond); cause == nil {
			t.Fatal("it is not ready, and does not say why")
		}
	}
	return r
}
