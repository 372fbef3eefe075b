package redistest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
)

// shared is one server for all tests that do it no harm.
var shared = sync.OnceValues(func() (string, error) {
	if !Installed() {
		m, err := miniredis.Run()
		if err != nil {
			return "", err
		}
		// It does not say what a gateway reads before it serves.
		m.Server().SetPreHook(func(c *miniserver.Peer, command string, args ...string) bool {
			about := strings.EqualFold(command, "INFO")
			if about {
				c.WriteBulk("# Server\r\nredis_version:7.0.0\r\nrun_id:miniredis\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n")
			}
			return about
		})
		return m.Addr(), nil
	}
	s, err := startServer()
	if err != nil {
		return "", err
	}
	return s.Address(), nil
})

// Shared is the address of one server for all tests that do it no harm.
func Shared(t testing.TB) string {
	t.Helper()
	address, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	if !Installed() {
		t.Log("redis-server is not installed: this ran on miniredis, which stands in for it")
	}
	return address
}

var prefixes atomic.Int64

// Prefix is one that no other test of this binary has.
func Prefix() string { return fmt.Sprintf("test%d:", prefixes.Add(1)) }
