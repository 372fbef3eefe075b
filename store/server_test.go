package store_test

import (
	"os"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/lossy"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/redistest"
	"github.com/callgate/callgate/store"
)

func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		os.Exit(child(part))
	}
	redistest.Main(m)
}

// gateway is one process's share of a store on Redis.
type gateway struct {
	*store.Redis
	journal string // the folder
}

// testHooks of a test: a clock in place of Redis' own, and a short lease.
type testHooks struct {
	now   func() time.Time
	lease time.Duration
}

func at(address string) store.RedisOptions {
	return store.RedisOptions{Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: redistest.Prefix()}}
}

// join opens a store that is ready, with a journal of its own.
func join(t testing.TB, o store.RedisOptions, s testHooks) *gateway {
	t.Helper()
	g := joining(t, t.TempDir(), o, s)
	g.wait(t, true)
	return g
}

func joining(t testing.TB, dir string, o store.RedisOptions, s testHooks) *gateway {
	t.Helper()
	journal, err := store.OpenFile(dir, store.FileOptions{Wait: patient, Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	o.Journal = journal
	r, err := store.NewRedisOf(ctx, o, s.now, s.lease, !redistest.Installed())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return &gateway{r, dir}
}

// divided is a server and two gateways of one store: g reaches it through a proxy, the
// other, whose options these are, as it is.
func divided(t testing.TB) (s *redistest.Server, p *lossy.Proxy, o store.RedisOptions, g, other *gateway) {
	t.Helper()
	s = redistest.Start(t)
	p = lossy.New(t, s.Address())
	o = at(p.Address())
	g = join(t, o, testHooks{})
	o.URL = at(s.Address()).URL
	return s, p, o, g, join(t, o, testHooks{})
}

// wait waits until the store is ready, or is not.
func (g *gateway) wait(t testing.TB, want bool) {
	t.Helper()
	for end := time.Now().Add(patient); ; time.Sleep(5 * time.Millisecond) {
		ready, cause := g.Ready()
		if ready == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("ready %v, %v", ready, cause)
		}
	}
}
