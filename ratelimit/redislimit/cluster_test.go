package redislimit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/redislimit"
	"github.com/callgate/callgate/refusal"
)

// A key that has moved to another node is found there, and counted once.
func TestAKeyMoves(t *testing.T) {
	nodes := redistest.Cluster(t)
	ctx := context.Background()
	o := redislimit.Options{Options: redisconn.Options{Cluster: nodes, Prefix: redistest.Prefix()}, Clock: time.Now}
	r, warnings, err := redislimit.NewWithSlack(ctx, o, redislimit.Patient)
	opened(t, r, warnings, err)
	limits := limittest.OnlyDefault(limittest.Budget("1/h", 5))
	clients := make([]*redis.Client, len(nodes))
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		clients[i] = redis.NewClient(&redis.Options{Addr: n})
		defer clients[i].Close()
		ids[i] = clients[i].Do(ctx, "cluster", "myid").Val().(string)
	}
	// An agent whose slot holds nothing yet, since keys do not move with it here.
	key := limittest.KeyOf("", "web.search", "alpha")
	var slot int64
	var from int
	for i := range 100 {
		key.Agent = fmt.Sprintf("Mover%d", i)
		slot = clients[0].ClusterKeySlot(ctx, redislimit.KeyOf(o.Prefix, key.Agent)).Val()
		from = int(slot * 3 / 16384)
		if clients[from].ClusterCountKeysInSlot(ctx, int(slot)).Val() == 0 {
			break
		}
	}
	to := (from + 1) % 3
	give := func(from, to int) {
		// A node that imports the slot takes a new epoch with it: else the gossip of the
		// node that loses it can win it back.
		if err := clients[to].Do(ctx, "cluster", "setslot", slot, "importing", ids[from]).Err(); err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{to, 0, 1, 2} {
			if err := clients[i].Do(ctx, "cluster", "setslot", slot, "node", ids[to]).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	give(from, to)
	defer give(to, from)
	defer func() { clients[to].Del(ctx, redislimit.KeyOf(o.Prefix, key.Agent)) }()
	if n := limittest.Drain(r, limits, key, 9); n != 5 {
		t.Errorf("%d admitted, want 5", n)
	}
	if shared, cause := r.Shared(); !shared {
		t.Errorf("not shared: %v", cause)
	}
}

// TestSettledWhileTheSlotMoves: a settlement that a node cannot take, since the counters are on their way
// to another one, is sent again when they have arrived.
func TestSettledWhileTheSlotMoves(t *testing.T) {
	nodes := redistest.Cluster(t)
	ctx := context.Background()
	o := redislimit.Options{Options: redisconn.Options{Cluster: nodes, Prefix: redistest.Prefix()}, Clock: time.Now}
	r, warnings, err := redislimit.NewWithSlack(ctx, o, redislimit.Patient)
	opened(t, r, warnings, err)
	_, charges := monthly(1000, 0)
	held, err := r.Reserve(ctx, nil, charges, budget.Amount{Tokens: 300})
	if err != nil {
		t.Fatal(err)
	}
	clients, ids := make([]*redis.Client, len(nodes)), make([]string, len(nodes))
	for i, n := range nodes {
		clients[i] = redis.NewClient(&redis.Options{Addr: n})
		defer clients[i].Close()
		ids[i] = clients[i].Do(ctx, "cluster", "myid").Val().(string)
	}
	do := func(c *redis.Client, args ...any) {
		t.Helper()
		if err := c.Do(ctx, args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	slot := clients[0].ClusterKeySlot(ctx, "{budgets}").Val()
	begin := func(from, to int) {
		do(clients[to], "cluster", "setslot", slot, "importing", ids[from])
		do(clients[from], "cluster", "setslot", slot, "migrating", ids[to])
		host, port, _ := strings.Cut(nodes[to], ":")
		for _, key := range clients[from].ClusterGetKeysInSlot(ctx, int(slot), 1000).Val() {
			do(clients[from], "migrate", host, port, key, 0, 5000)
		}
	}
	end := func(to int) {
		for _, i := range []int{to, 0, 1, 2} {
			do(clients[i], "cluster", "setslot", slot, "node", ids[to])
		}
	}
	from := int(slot * 3 / 16384)
	to := (from + 1) % 3
	begin(from, to)
	held.Settle(budget.Amount{Tokens: 20})
	end(to)
	defer func() {
		begin(to, from)
		end(from)
	}()
	until(t, "it is settled", func() bool {
		states, err := r.Read(ctx, charges)
		return err == nil && states[0].Spent.Tokens == 20 && states[0].Reserved.Tokens == 0
	})
}

// The node of one budget stands still: everything is judged locally until it continues.
func TestANodeOfAClusterIsAway(t *testing.T) {
	nodes := redistest.Cluster(t)
	ctx := context.Background()
	o := redislimit.Options{Options: redisconn.Options{Cluster: nodes, Prefix: redistest.Prefix()}, Clock: time.Now}
	r, warnings, err := redislimit.NewWithSlack(ctx, o, slack())
	opened(t, r, warnings, err)
	limits := limittest.Combined(limittest.Budget("50/s", 20), limittest.Budget("60/s", 20), limittest.Budget("70/s", 20), limittest.Budget("80/s", 20))
	limits.OnStoreLoss, limits.Replicas = ratelimit.LossLocal, 1
	w := startLoad(r, limits)
	time.Sleep(200 * time.Millisecond)
	c := redis.NewClient(&redis.Options{Addr: nodes[0]})
	defer c.Close()
	slot := c.ClusterKeySlot(ctx, redislimit.KeyOf(o.Prefix, "Analyst")).Val()
	node := redis.NewClient(&redis.Options{Addr: nodes[slot*3/16384], ReadTimeout: time.Minute})
	defer node.Close()
	if err := node.Do(ctx, "client", "pause", "5000", "all").Err(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, r, false)
	if err := node.Ping(ctx).Err(); err != nil { // is answered when the pause is over
		t.Fatal(err)
	}
	waitFor(t, r, true)
	time.Sleep(200 * time.Millisecond)
	w.end(t, 50, 20)
}

// If one node grants a call and another refuses it, the grant is given back.
func TestWhatOthersGrantedIsGivenBack(t *testing.T) {
	nodes := redistest.Cluster(t)
	ctx := context.Background()
	o := redislimit.Options{Options: redisconn.Options{Cluster: nodes, Prefix: redistest.Prefix()}, Clock: time.Now}
	r, warnings, err := redislimit.NewWithSlack(ctx, o, redislimit.Patient)
	opened(t, r, warnings, err)
	wide := limittest.Budget("1/h", 100)
	limits := limittest.Combined(wide, wide, limittest.Budget("1/h", 1), wide)
	limits.Default.Concurrency = new(2)
	limittest.Admitted(t, r, limits, limittest.Alpha).Release()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if _, err := r.Take(ctx, limits, limittest.Alpha); err == nil {
					t.Error("admitted")
				}
			}
		})
	}
	group.Wait()
	for name, probe := range map[string]*ratelimit.Limits{"agent": limittest.OnlyAgent(wide), "agent's tool": limittest.OnlyAgentTool(wide), "project": limittest.OnlyProject(wide)} {
		if n := limittest.Drain(r, probe, limittest.Alpha, 200); n != 99 {
			t.Errorf("%s: %d tokens left, want 99", name, n)
		}
	}
	slots := &ratelimit.Limits{Default: limits.Default}
	limittest.Admitted(t, r, slots, limittest.Alpha)
	limittest.Admitted(t, r, slots, limittest.Alpha)
	_, err = r.Take(ctx, slots, limittest.Alpha)
	limittest.Refused(t, err, refusal.ConcurrencyLimited)
}

// A master dies and its replica takes over, which may not have seen the last
// calls: nobody gets a second burst.
func TestFailover(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.Start(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", master.Port))
	sentinel := redistest.StartSentinel(t, master)
	ctx := context.Background()
	m := master.Client()
	defer m.Close()
	for tries := 0; !strings.Contains(m.Info(ctx, "replication").Val(), "state=online"); tries++ {
		if tries > 6000 {
			t.Fatal("the replica does not come online")
		}
		time.Sleep(10 * time.Millisecond)
	}
	sc := sentinel.Client()
	defer sc.Close()
	for tries := 0; ; tries++ {
		known, _ := sc.Do(ctx, "sentinel", "replicas", redistest.Master).Slice()
		if len(known) == 1 {
			break
		}
		if tries > 6000 {
			t.Fatal("the sentinel does not find the replica")
		}
		time.Sleep(10 * time.Millisecond)
	}
	o := redislimit.Options{Options: redisconn.Options{Sentinel: redisconn.Sentinel{Master: redistest.Master, Addresses: []string{sentinel.Address()}}, Prefix: redistest.Prefix()}, Clock: time.Now}
	r, warnings, err := redislimit.NewWithSlack(ctx, o, slack())
	opened(t, r, warnings, err)
	limits := local(limittest.Budget("100/s", 40), 1)
	limits.Default.Concurrency = new(6)
	w := startLoad(r, limits)
	time.Sleep(300 * time.Millisecond)
	master.Kill()
	waitFor(t, r, false)
	for tries := 0; ; tries++ {
		c := replica.Client()
		role := c.Info(ctx, "replication").Val()
		_ = c.Close()
		if strings.Contains(role, "role:master") {
			break
		}
		if tries > 18_000 { // sentinels whose machine stood still for two seconds do nothing for half a minute
			t.Fatal("no failover")
		}
		time.Sleep(10 * time.Millisecond)
	}
	waitFor(t, r, true)
	time.Sleep(300 * time.Millisecond)
	w.end(t, 100, 40)
}
