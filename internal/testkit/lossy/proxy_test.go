package lossy_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/lossy"
)

// patience is far longer than a piece takes to pass.
const patience = 30 * time.Second

// echo is a server that says what it is told, and tells the test of it.
func echo(t *testing.T) (address string, notified <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	pieces := make(chan string, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buffer := make([]byte, 64)
				for {
					n, err := c.Read(buffer)
					if err != nil {
						return
					}
					pieces <- string(buffer[:n])
					if _, err := c.Write(buffer[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), pieces
}

func dial(t *testing.T, p *lossy.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

func say(t *testing.T, c net.Conn, piece string) {
	t.Helper()
	if _, err := io.WriteString(c, piece); err != nil {
		t.Fatal(err)
	}
}

// hears fails unless the next that comes is the piece.
func hears(t *testing.T, c net.Conn, piece string) {
	t.Helper()
	got := make([]byte, len(piece))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != piece {
		t.Fatalf("heard %q, %v; expected %q", got, err, piece)
	}
}

// ends fails unless the connection has ended, with nothing more said.
func ends(t *testing.T, c net.Conn) {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	if timeout, ok := err.(net.Error); n > 0 || err == nil || ok && timeout.Timeout() {
		t.Fatalf("%d bytes, %v; expected the end", n, err)
	}
}

func does(t *testing.T, notified <-chan string, piece string) {
	t.Helper()
	select {
	case got := <-notified:
		if got != piece {
			t.Fatalf("the server was told %q, expected %q", got, piece)
		}
	case <-time.After(patience):
		t.Fatalf("the server was not told %q", piece)
	}
}

// TestHarm: each harm is done to what it says, and Heal undoes it.
func TestHarm(t *testing.T) {
	address, notified := echo(t)
	p := lossy.New(t, address)
	c := dial(t, p)
	say(t, c, "one")
	hears(t, c, "one")
	does(t, notified, "one")

	p.Set(func(h *lossy.Faults) { h.RewriteReply = bytes.ToUpper })
	say(t, c, "two")
	hears(t, c, "TWO")
	does(t, notified, "two")
	p.Clear() // cuts what was lied to
	ends(t, c)

	c = dial(t, p)
	p.Set(func(h *lossy.Faults) { h.CutNextReply = true })
	say(t, c, "three")
	does(t, notified, "three")
	ends(t, c)
	c = dial(t, p) // it was the next alone
	say(t, c, "four")
	hears(t, c, "four")
	does(t, notified, "four")

	p.Set(func(h *lossy.Faults) { h.DropReplies = true })
	say(t, c, "five")
	does(t, notified, "five")
	p.Clear()
	ends(t, c) // and "five" has not come

	c = dial(t, p)
	say(t, c, "six")
	hears(t, c, "six")
	does(t, notified, "six")
	p.Set(func(h *lossy.Faults) { h.DropRequests = true })
	say(t, c, "seven")
	p.Clear()
	ends(t, c)
	c = dial(t, p)
	say(t, c, "eight")
	hears(t, c, "eight")
	does(t, notified, "eight") // and not "seven"

	p.Set(func(h *lossy.Faults) { h.DelayRequests, h.DelayReplies = time.Millisecond, time.Millisecond })
	p.Clear() // nothing was lost, so nothing is cut
	say(t, c, "nine")
	hears(t, c, "nine")
	does(t, notified, "nine")
	p.Cut()
	ends(t, c)
}

// TestLate: what is held back arrives though who said it has hung up.
func TestLate(t *testing.T) {
	address, notified := echo(t)
	p := lossy.New(t, address)
	late := make(chan struct{})
	p.Set(func(h *lossy.Faults) { h.HoldRequests = late })
	c := dial(t, p)
	say(t, c, "one")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case piece := <-notified:
		t.Errorf("%q was not held back", piece)
	default:
	}
	close(late)
	does(t, notified, "one")
}

// TestLead: new connections go to another server, or find nobody.
func TestLead(t *testing.T) {
	first, notified := echo(t)
	second, others := echo(t)
	p := lossy.New(t, first)
	c := dial(t, p)
	say(t, c, "one")
	does(t, notified, "one")
	p.Retarget(second)
	c = dial(t, p)
	say(t, c, "two")
	does(t, others, "two")
	p.Retarget("")
	ends(t, dial(t, p))
}
