//go:build linux

package ports_test

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/callgate/callgate/internal/testkit/ports"
)

// TestHold: nobody answers at an address that is held; who names it can listen
// there, end, and listen again.
func TestHold(t *testing.T) {
	address := ports.Hold(t)
	for range 3 {
		if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			if err == nil {
				c.Close()
			}
			t.Fatalf("nobody listens, and dialing gives %v", err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHeldIsGivenToNobody: not to a listener that asks for any port, though it asks
// more often than there are ports.
func TestHeldIsGivenToNobody(t *testing.T) {
	held := map[string]bool{}
	for range 200 {
		held[ports.Hold(t)] = true
	}
	if len(held) != 200 {
		t.Errorf("%d different addresses", len(held))
	}
	requests := 40_000
	if testing.Short() {
		requests = 5_000
	}
	for range requests {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if held[l.Addr().String()] {
			t.Errorf("%s was given away", l.Addr())
		}
		l.Close()
	}
}

// TestTakeBeside: both ports are held, and both are free afterwards.
func TestTakeBeside(t *testing.T) {
	const beside = 10_000
	port, release, err := ports.Take(beside)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []int{port, port + beside} {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	release()
	if _, _, err := ports.Take(1 << 16); err == nil {
		t.Error("a port was found that is as far above another as there are ports")
	}
}
