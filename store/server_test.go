package store_test

import (
	"cmp"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/internal/testhooks"
	"github.com/callgate/callgate/store/redisstore"
)

func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		os.Exit(child(part))
	}
	redistest.Main(m)
}

// gateway is one process's share of a store on Redis.
type gateway struct {
	*redisstore.Store
	journal string // the folder
}

// testHooks of a test: a clock in place of Redis' own, and a short lease.
type testHooks struct {
	now   func() time.Time
	lease time.Duration
}

func at(address string) redisstore.Options {
	return redisstore.Options{Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: redistest.Prefix()}}
}

// join opens a store that is ready, with a journal of its own.
func join(t testing.TB, o redisstore.Options, s testHooks) *gateway {
	t.Helper()
	g := joining(t, t.TempDir(), o, s)
	g.wait(t, true)
	return g
}

func joining(t testing.TB, dir string, o redisstore.Options, s testHooks) *gateway {
	t.Helper()
	journal, err := boltstore.Open(dir, boltstore.Options{Wait: patient, Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	o.Node, o.Journal = nodeOf(dir), journal
	r, err := newRedis(ctx, o, s.now, s.lease, !redistest.Installed())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return &gateway{r, dir}
}

// nodeOf is the node whose journal is in a folder.
func nodeOf(dir string) string { return strings.ReplaceAll(dir, "/", "-") }

// brief is how long a store waits for a Redis that does not answer on purpose. It is ten times
// as long as in use; all others are patient: a machine that is busy, or stands still, is not
// what is tested.
const brief = 2250 * time.Millisecond

// newRedis opens a store with a clock in place of Redis' own, unless it is nil, and
// another lease; fake says that the server is a fake of Redis.
func newRedis(ctx context.Context, o redisstore.Options, now func() time.Time, lease time.Duration, fake bool) (*redisstore.Store, error) {
	o.Hooks = testhooks.Redis{Now: now, Lease: lease, Fake: fake}
	o.Wait = cmp.Or(o.Wait, patient)
	return redisstore.New(ctx, o)
}

// beforeCommit makes a file call f before each commit.
func beforeCommit(o boltstore.Options, f func() error) boltstore.Options {
	o.Hooks.BeforeCommit = f
	return o
}

// divided is a server and two gateways of one store: g reaches it through a proxy, the
// other, whose options these are, as it is.
func divided(t testing.TB) (s *redistest.Server, p *lossy.Proxy, o redisstore.Options, g, other *gateway) {
	t.Helper()
	s = redistest.Start(t)
	p = lossy.New(t, s.Address())
	o = at(p.Address())
	o.Wait = brief
	g = join(t, o, testHooks{})
	o.URL, o.Wait = at(s.Address()).URL, patient
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
