package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Master is how sentinels call the master that they watch.
const Master = "calls"

// Sentinel is the address of a sentinel of one master, for all tests that do them no
// harm.
func Sentinel(t testing.TB) string {
	t.Helper()
	Require(t)
	address, err := sentinel()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

var sentinel = sync.OnceValues(func() (string, error) {
	master, err := startServer()
	if err != nil {
		return "", err
	}
	s, err := watch(master)
	if err != nil {
		return "", err
	}
	return s.Address(), nil
})

// StartSentinel starts a sentinel of a master for one test.
func StartSentinel(t testing.TB, master *Server) *Server {
	t.Helper()
	s, err := watch(master)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

func watch(master *Server) (*Server, error) {
	s, err := newServer([]string{"--sentinel"})
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nlogfile %s\n", s.Port, s.dir, filepath.Join(s.dir, "log")) +
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 1\n", Master, master.Port) +
		fmt.Sprintf("sentinel down-after-milliseconds %s 2000\nsentinel failover-timeout %s 3000\n", Master, Master)
	if err := os.WriteFile(filepath.Join(s.dir, "sentinel.conf"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	return s, s.Start()
}
