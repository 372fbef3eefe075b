package deadline_test

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/deadline"
)

// TestConnAborts: over TCP, a read that another goroutine ends by a time long ago, as net/http
// does, ends at once, however deadlines came before; and no byte is lost.
func TestConnAborts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all sync.WaitGroup
	for range 8 {
		far, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		near, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer far.Close()
			defer near.Close()
			c := deadline.NewConn(near, deadline.NewAlarms())
			var sent, got byte
			for range 1500 {
				_ = c.SetReadDeadline(time.Now().Add(time.Duration(rand.IntN(300)) * time.Microsecond))
				if rand.IntN(2) == 0 {
					_ = c.SetReadDeadline(time.Time{})
				} else {
					_ = c.SetReadDeadline(time.Now().Add(time.Hour))
				}
				ended := make(chan error, 1)
				go func() {
					b := make([]byte, 1)
					n, err := c.Read(b)
					if n == 1 && b[0] != got {
						t.Errorf("found byte %d, want %d", b[0], got)
					}
					got += byte(n)
					ended <- err
				}()
				if rand.IntN(3) == 0 {
					_, _ = far.Write([]byte{sent})
					sent++
				}
				time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
				_ = c.SetReadDeadline(time.Unix(1, 0))
				select {
				case err := <-ended:
					if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Error(err)
					}
				case <-time.After(time.Minute):
					t.Error("a read was not ended")
					return
				}
				_ = c.SetReadDeadline(time.Time{})
			}
			for got != sent {
				b := make([]byte, 1)
				_ = c.SetReadDeadline(time.Now().Add(time.Minute))
				if n, err := c.Read(b); n != 1 || err != nil || b[0] != got {
					t.Errorf("found byte %d and %v, want %d", b[0], err, got)
					return
				}
				got++
			}
		})
	}
	all.Wait()
}
