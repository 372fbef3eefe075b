package framing_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/gateway/server/framing"
	"github.com/callgate/callgate/internal/sse"
)

// counted counts the writes of a connection; past the failing one they fail.
type counted struct {
	net.Conn
	writes, failing int
	closed          bool
	sent            bytes.Buffer
}

func (c *counted) Write(p []byte) (int, error) {
	if c.writes++; c.failing > 0 && c.writes >= c.failing || c.closed {
		return 0, io.ErrClosedPipe
	}
	return c.sent.Write(p)
}

func (c *counted) Close() error { c.closed = true; return nil }

// one is a listener of one connection.
type one struct{ net.Conn }

func (l one) Accept() (net.Conn, error) { return l.Conn, nil }
func (one) Close() error                { return nil }
func (one) Addr() net.Addr              { return nil }

func accept(t interface{ Fatal(...any) }, under *counted) net.Conn {
	c, err := framing.NewListener(one{under}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGather: whatever is written between Hold and Release, all of it is sent, in order, and by one
// write where it is less than 64 KiB.
func TestGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		under := &counted{}
		c := accept(t, under)
		g := c.(sse.Gatherer)
		var want []byte
		held, before, size := false, 0, 0 // since Hold: the writes before it, and the bytes
		for _, step := range rapid.SliceOf(rapid.SampledFrom([]int{-2, -1, 1, 10, 5000, 30 << 10, 70 << 10})).Draw(t, "steps") {
			switch step {
			case -2:
				g.Hold()
				if !held {
					held, before, size = true, under.writes, 0
				}
			case -1:
				g.Release()
				if held && size > 0 && size <= 64<<10 && under.writes != before+1 {
					t.Fatalf("%d writes for %d bytes", under.writes-before, size)
				}
				held = false
			default:
				piece := bytes.Repeat([]byte{byte('a' + len(want)%26)}, step)
				if n, err := c.Write(piece); n != step || err != nil {
					t.Fatalf("%d bytes of %d, %v", n, step, err)
				}
				want = append(want, piece...)
				if size += step; held && size <= 64<<10 && under.writes != before {
					t.Fatal("what is held was written")
				}
			}
			if !held && !bytes.Equal(under.sent.Bytes(), want) {
				t.Fatalf("%d bytes were sent, want %d", under.sent.Len(), len(want))
			}
		}
	})
}

// TestGatherFails: where what was held cannot be written, the connection is closed, and net/http
// learns of it by its next write, which sends nothing.
func TestGatherFails(t *testing.T) {
	for _, size := range []int{10, 70 << 10} {
		under := &counted{failing: 1}
		c := accept(t, under)
		g := c.(sse.Gatherer)
		g.Hold()
		_, _ = c.Write(make([]byte, size))
		g.Release()
		if _, err := c.Write([]byte("more")); err == nil || !under.closed || under.writes > 1 || under.sent.Len() > 0 {
			t.Errorf("%d bytes: %v, closed is %v, %d writes", size, err, under.closed, under.writes)
		}
	}
}

// TestGatherEndsRequest: over TCP, an answer whose client has left ends the request's context, and
// answers of all sizes arrive as they were written.
func TestGatherEndsRequest(t *testing.T) {
	ended := make(chan error, 1)
	var g sse.Gatherer
	s, address := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			g.Hold()
			_, _ = w.Write(bytes.Repeat([]byte("b"), 20<<10))
			_ = http.NewResponseController(w).Flush()
			g.Release()
		}
		if r.URL.Path == "/more" {
			for r.Context().Err() == nil {
				g.Hold()
				_, _ = w.Write(bytes.Repeat([]byte("b"), 20<<10))
				_ = http.NewResponseController(w).Flush()
				g.Release()
			}
			ended <- r.Context().Err()
		}
	})
	s.ConnState = func(c net.Conn, _ http.ConnState) { g = c.(sse.Gatherer) }
	c, r := dial(t, address)
	for range 2 {
		send(t, c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		answer(t, r, string(bytes.Repeat([]byte("b"), 60<<10)))
	}
	send(t, c, "GET /more HTTP/1.1\r\nHost: x\r\n\r\n")
	_ = c.Close()
	if err := <-ended; err == nil {
		t.Error("the request went on")
	}
}
