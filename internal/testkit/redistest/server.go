// Package redistest starts redis-servers for tests: one that all harmless tests share, and
// others that a test can kill and restart. If redis-server is not installed, these tests are skipped.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/testkit/ports"
)

// Server is a redis-server, or a sentinel, that was started here.
type Server struct {
	Port    int
	dir     string
	args    []string
	process *exec.Cmd
}

// servers are all that this test binary has started; Run ends them.
var servers struct {
	sync.Mutex
	all []*Server
}

// Main runs the tests of a package, and ends what they have started. It is for
// TestMain, and does not return.
func Main(m *testing.M) { os.Exit(Run(m.Run)) }

// Run is Main for a TestMain that does more.
func Run(tests func() int) (code int) {
	redis.SetLogger(discardLogger{}) // for the clients of the tests
	defer func() {
		servers.Lock()
		defer servers.Unlock()
		for _, s := range servers.all {
			s.Kill()
			_ = os.RemoveAll(s.dir)
		}
	}()
	return tests()
}

type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

// Require skips a test if redis-server is not installed.
func Require(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
}

// Start starts a server for one test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	Require(t)
	s, err := startServer(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

func startServer(args ...string) (*Server, error) {
	s, err := newServer(args)
	if err != nil {
		return nil, err
	}
	return s, s.Start()
}

// newServer is a server that does not run yet. Its port is held until this process
// ends, and the one above it where a server of a cluster listens for the others: what
// starts there finds it free, as often as it starts.
func newServer(args []string) (*Server, error) {
	port, _, err := ports.Take(10_000)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "callgate-redis")
	if err != nil {
		return nil, err
	}
	s := &Server{Port: port, dir: dir, args: args}
	servers.Lock()
	defer servers.Unlock()
	servers.all = append(servers.all, s)
	return s, nil
}

// Start starts the server, or starts it again on the same port.
func (s *Server) Start() error {
	all := append([]string{
		"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no", "--loglevel", "warning",
	}, s.args...)
	if len(s.args) > 0 && s.args[0] == "--sentinel" {
		all = []string{filepath.Join(s.dir, "sentinel.conf"), "--sentinel"}
	}
	s.process = exec.Command("redis-server", all...)
	if err := s.process.Start(); err != nil {
		return err
	}
	c := s.Client()
	defer func() { _ = c.Close() }()
	for range 6000 {
		if c.Ping(context.Background()).Err() == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("redis-server does not answer")
}

// Kill ends the server at once, as kill -9 does.
func (s *Server) Kill() {
	if s.process != nil && s.process.ProcessState == nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
}

// Signal sends the server a signal.
func (s *Server) Signal(t testing.TB, what os.Signal) {
	t.Helper()
	if err := s.process.Process.Signal(what); err != nil {
		t.Fatal(err)
	}
}

// Address is where the server listens.
func (s *Server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// Client is a client of the server, which the caller closes.
func (s *Server) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Address(), MaxRetries: -1, DialerRetries: 1, PoolSize: 2})
}
