package store_test

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/parallel"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/internal/testhooks"
	"github.com/callgate/callgate/store/redisstore"
)

func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		os.Exit(child(part))
	}
	// A parallel test may not open a file twice in this process: until a child of another test runs
	// its program, it holds the lock of the first time.
	parallel.Waiting()
	redistest.Main(m)
}

// gateway is one process's share of a store on Redis. It writes what it does to the log of its node.
type gateway struct {
	*redisstore.Store
	node string
	log  *nodeLog
}

// nodeLog is the log of a node, which outlives its processes.
type nodeLog struct {
	mu    sync.Mutex
	facts []store.Fact
	gone  int // so many were moved away
	calls map[string]store.Call
}

var nodeLogs sync.Map // by node

func logOf(node string) *nodeLog {
	log, _ := nodeLogs.LoadOrStore(node, &nodeLog{calls: map[string]store.Call{}})
	return log.(*nodeLog)
}

func (l *nodeLog) write(f store.Fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.At = time.Now()
	l.facts = append(l.facts, f)
}

func (l *nodeLog) options() redisstore.Log {
	return redisstore.Log{
		Mark: func() uint64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return uint64(len(l.facts))
		},
		Read: func(_ context.Context, behind uint64, _ time.Time, do func([]store.Fact) error) (bool, error) {
			l.mu.Lock()
			from := max(int(behind), l.gone)
			facts, complete := slices.Clone(l.facts[from:]), from == int(behind)
			l.mu.Unlock()
			return complete, do(facts)
		},
	}
}

func (g *gateway) Open(ctx context.Context, c store.Call) (*store.Call, error) {
	g.log.mu.Lock()
	g.log.calls[c.ID] = c
	g.log.mu.Unlock()
	return g.Store.Open(ctx, c)
}

func (g *gateway) Dispatch(ctx context.Context, id string, task store.Task) error {
	g.log.mu.Lock()
	f := store.Fact{Call: g.log.calls[id]}
	g.log.mu.Unlock()
	if f.Call.Key != "" {
		f.KeyHash = store.KeyHash(f.Call.Scope, f.Call.Key)
	}
	f.Call.ID, f.Call.Key, f.Call.Task = id, "", task
	f.Call.Task.Effect, f.Call.Task.Arguments = "", nil // which no log has
	g.log.write(f)
	err := g.Store.Dispatch(ctx, id, task)
	if err != nil {
		g.log.write(store.Fact{Kind: store.NotExecuted, Call: store.Call{ID: id}})
	}
	return err
}

func (g *gateway) Finish(ctx context.Context, id string, e store.Ending) (store.Call, error) {
	c, err := g.Store.Finish(ctx, id, e)
	if err == nil {
		g.log.write(store.Fact{Kind: store.OutcomeKnown, Call: store.Call{ID: id}})
	}
	return c, err
}

func (g *gateway) Vote(ctx context.Context, id string, v approval.Vote) (approval.Approval, error) {
	a, err := g.Store.Vote(ctx, id, v)
	if err == nil && !v.Yes {
		g.log.write(store.Fact{Kind: store.ApprovalEnded, Approval: id, Ended: a.Ended})
	}
	return a, err
}

func (g *gateway) EndApproval(ctx context.Context, id string, e approval.Ending) (approval.Approval, error) {
	a, err := g.Store.EndApproval(ctx, id, e)
	if err == nil {
		g.log.write(store.Fact{Kind: store.ApprovalEnded, Approval: id, Ended: a.Ended})
	}
	return a, err
}

func (g *gateway) RevokeGrant(ctx context.Context, id string) (approval.Grant, error) {
	revoked, err := g.Store.RevokeGrant(ctx, id)
	if err == nil {
		g.log.write(store.Fact{Kind: store.GrantRevoked, Grant: id})
	}
	return revoked, err
}

// testHooks of a test: a clock in place of Redis' own, and a short lease.
type testHooks struct {
	now   func() time.Time
	lease time.Duration
}

func at(address string) redisstore.Options {
	return redisstore.Options{Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: redistest.Prefix()}}
}

// join opens a store that is ready, of a node of its own.
func join(t testing.TB, o redisstore.Options, s testHooks) *gateway {
	t.Helper()
	g := joining(t, t.TempDir(), o, s)
	g.wait(t, true)
	return g
}

func joining(t testing.TB, dir string, o redisstore.Options, s testHooks) *gateway {
	t.Helper()
	o.Node = strings.ReplaceAll(dir, "/", "_")
	log := logOf(o.Node)
	if o.Log.Mark == nil {
		o.Log = log.options()
	}
	r, err := newRedis(ctx, o, s.now, s.lease)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return &gateway{r, dir, log}
}

// brief is how long a store waits for a Redis that does not answer on purpose. It is ten times
// as long as in use; all others are patient: a machine that is busy, or stands still, is not
// what is tested.
const brief = 2250 * time.Millisecond

// newRedis opens a store with a clock in place of Redis' own, unless it is nil, and
// another lease.
func newRedis(ctx context.Context, o redisstore.Options, now func() time.Time, lease time.Duration) (*redisstore.Store, error) {
	o.Hooks = testhooks.Redis{Now: now, Lease: lease}
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
