package redistest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster are the addresses of one cluster of three masters, for all tests that do it no
// harm.
func Cluster(t testing.TB) []string {
	t.Helper()
	Require(t)
	nodes, err := cluster()
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

var cluster = sync.OnceValues(func() ([]string, error) {
	var nodes []string
	var clients []*redis.Client
	for range 3 {
		s, err := startServer("--cluster-enabled", "yes", "--cluster-node-timeout", "30000")
		if err != nil {
			return nil, err
		}
		nodes, clients = append(nodes, s.Address()), append(clients, s.Client())
	}
	ctx := context.Background()
	for i, c := range clients {
		defer func() { _ = c.Close() }()
		from, to := 16384*i/3, 16384*(i+1)/3-1
		if err := c.ClusterAddSlotsRange(ctx, from, to).Err(); err != nil {
			return nil, err
		}
		if err := c.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return nil, err
		}
	}
	for _, node := range nodes[1:] {
		host, port, _ := net.SplitHostPort(node)
		if err := clients[0].ClusterMeet(ctx, host, port).Err(); err != nil {
			return nil, err
		}
	}
	for _, c := range clients {
		for tries := 0; ; tries++ {
			shards, err := c.ClusterShards(ctx).Result()
			info, _ := c.ClusterInfo(ctx).Result()
			if err == nil && len(shards) == 3 && len(info) > 16 && info[:16] == "cluster_state:ok" {
				break
			}
			if tries > 6000 {
				return nil, errors.New("the cluster does not come together")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nodes, nil
})
