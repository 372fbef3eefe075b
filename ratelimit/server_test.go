package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/ports"
	"github.com/callgate/callgate/ratelimit"
)

// server is a redis-server that a test started.
type server struct {
	port    int
	dir     string
	args    []string
	process *exec.Cmd
}

// servers are all that this test binary started; TestMain ends them.
var servers struct {
	sync.Mutex
	all []*server
}

func TestMain(m *testing.M) {
	redis.SetLogger(mute{}) // for the clients of the tests
	code := m.Run()
	servers.Lock()
	for _, s := range servers.all {
		s.kill()
		_ = os.RemoveAll(s.dir)
	}
	servers.Unlock()
	os.Exit(code)
}

type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}

func installed() bool {
	_, err := exec.LookPath("redis-server")
	return err == nil
}

// freePort is held until this process ends, and the one above it where a server of
// a cluster listens for the others: what starts there finds it free, as often as it
// starts.
func freePort() (int, error) {
	port, _, err := ports.Take(10_000)
	return port, err
}

func startServer(args ...string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "callgate-redis")
	if err != nil {
		return nil, err
	}
	s := &server{port: port, dir: dir, args: args}
	servers.Lock()
	servers.all = append(servers.all, s)
	servers.Unlock()
	return s, s.start()
}

// start starts the server, or starts it again on the same port.
func (s *server) start() error {
	all := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no", "--loglevel", "warning",
	}, s.args...)
	if len(s.args) > 0 && s.args[0] == "--sentinel" {
		all = []string{filepath.Join(s.dir, "sentinel.conf"), "--sentinel"}
	}
	s.process = exec.Command("redis-server", all...)
	if err := s.process.Start(); err != nil {
		return err
	}
	c := s.client()
	defer c.Close()
	for range 6000 {
		if c.Ping(context.Background()).Err() == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("redis-server does not answer")
}

func (s *server) kill() {
	if s.process != nil && s.process.ProcessState == nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
}

func (s *server) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *server) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.address(), MaxRetries: -1, DialerRetries: 1, PoolSize: 2})
}

// started starts a server for one test.
func started(t testing.TB, args ...string) *server {
	t.Helper()
	if !installed() {
		t.Skip("redis-server is not installed")
	}
	s, err := startServer(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// shared is one server for all tests that do it no harm.
var shared = sync.OnceValues(func() (string, error) {
	if !installed() {
		m, err := miniredis.Run()
		if err != nil {
			return "", err
		}
		// It has no such section, and a gateway does not serve until it has read it.
		m.Server().SetPreHook(func(c *miniserver.Peer, command string, args ...string) bool {
			about := strings.EqualFold(command, "INFO") && len(args) == 1 && args[0] == "server"
			if about {
				c.WriteBulk("# Server\r\nredis_version:7.0.0\r\nrun_id:miniredis\r\n")
			}
			return about
		})
		return m.Addr(), nil
	}
	s, err := startServer()
	if err != nil {
		return "", err
	}
	return s.address(), nil
})

func sharedAddress(t testing.TB) string {
	t.Helper()
	address, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	if !installed() {
		t.Log("redis-server is not installed: this ran on miniredis, which stands in for it")
	}
	return address
}

// itself is for what the stand-in does not do: with it no key expires by itself, one
// that is to be kept for centuries is gone at once, and what a script runs into is
// worded as an error of the script.
func itself(t testing.TB) {
	t.Helper()
	if !installed() {
		t.Skip("redis-server is not installed, and miniredis does not do this")
	}
}

// cluster is one cluster of three masters for all tests.
var cluster = sync.OnceValues(func() ([]string, error) {
	var nodes []string
	var clients []*redis.Client
	for range 3 {
		s, err := startServer("--cluster-enabled", "yes", "--cluster-node-timeout", "30000")
		if err != nil {
			return nil, err
		}
		nodes, clients = append(nodes, s.address()), append(clients, s.client())
	}
	ctx := context.Background()
	for i, c := range clients {
		defer c.Close()
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

var prefixes atomic.Int64

// fresh is a prefix that no other test has.
func fresh() string { return fmt.Sprintf("test%d:", prefixes.Add(1)) }

func optionsFor(address string) ratelimit.RedisOptions {
	return ratelimit.RedisOptions{URL: func() string { return "redis://" + address }, Prefix: fresh(), Clock: time.Now}
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
	o := optionsFor(sharedAddress(t))
	r, warnings, err := ratelimit.NewRedisOf(context.Background(), o, clock)
	return opened(t, r, warnings, err)
}

func clusterBackend(t testing.TB, clock func() time.Time) ratelimit.Limiter {
	nodes, err := cluster()
	if err != nil {
		t.Fatal(err)
	}
	o := ratelimit.RedisOptions{Cluster: ratelimit.Cluster{Addresses: nodes[:1]}, Prefix: fresh(), Clock: time.Now}
	r, warnings, err := ratelimit.NewRedisOf(context.Background(), o, clock)
	return opened(t, r, warnings, err)
}
