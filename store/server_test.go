package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/ports"
	"github.com/callgate/callgate/store"
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
	if part := os.Getenv(childEnv); part != "" {
		os.Exit(child(part))
	}
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
	dir, err := os.MkdirTemp("", "callgate-store")
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

// sentinel is a sentinel of one master, for all tests that do it no harm.
var sentinel = sync.OnceValues(func() (string, error) {
	master, err := startServer()
	if err != nil {
		return "", err
	}
	s, err := watching(master)
	if err != nil {
		return "", err
	}
	return s.address(), nil
})

// watching starts a sentinel, which calls the master "calls".
func watching(master *server) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "callgate-store")
	if err != nil {
		return nil, err
	}
	conf := fmt.Sprintf("port %d\nbind 127.0.0.1\nlogfile %s\nsentinel monitor calls 127.0.0.1 %d 1\nsentinel down-after-milliseconds calls 2000\nsentinel failover-timeout calls 3000\n",
		port, filepath.Join(dir, "log"), master.port)
	if err := os.WriteFile(filepath.Join(dir, "sentinel.conf"), []byte(conf), 0o600); err != nil {
		return nil, err
	}
	s := &server{port: port, dir: dir, args: []string{"--sentinel"}}
	servers.Lock()
	servers.all = append(servers.all, s)
	servers.Unlock()
	return s, s.start()
}

var prefixes atomic.Int64

// fresh is a prefix that no other test has.
func fresh() string { return fmt.Sprintf("test%d:", prefixes.Add(1)) }

// gateway is one process's share of a store on Redis.
type gateway struct {
	*store.Redis
	journal string // the folder
}

// seams of a test: a clock in place of Redis' own, and a short lease.
type seams struct {
	now   func() time.Time
	lease time.Duration
}

func at(address string) store.RedisOptions {
	return store.RedisOptions{URL: func() string { return "redis://" + address }, Prefix: fresh()}
}

// join opens a store that is ready, with a journal of its own.
func join(t testing.TB, o store.RedisOptions, s seams) *gateway {
	t.Helper()
	g := joining(t, t.TempDir(), o, s)
	g.wait(t, true)
	return g
}

func joining(t testing.TB, dir string, o store.RedisOptions, s seams) *gateway {
	t.Helper()
	journal, err := store.OpenFile(dir, store.FileOptions{Wait: patient, Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	o.Journal = journal
	r, err := store.NewRedisOf(ctx, o, s.now, s.lease, !installed())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return &gateway{r, dir}
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
