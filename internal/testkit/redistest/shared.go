package redistest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// shared is one server for all tests that do it no harm.
var shared = sync.OnceValues(func() (*Server, error) { return startServer() })

// Shared is the address of one server for all tests that do it no harm.
func Shared(t testing.TB) string {
	t.Helper()
	Require(t)
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s.Address()
}

var prefixes atomic.Int64

// Prefix is one that no other test of this binary has.
func Prefix() string { return fmt.Sprintf("test%d:", prefixes.Add(1)) }
