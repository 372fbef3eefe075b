package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/server"
)

// boundedServer serves with a bound of connections that wait, and returns its address. A
// request to /slow is answered once release is closed.
func boundedServer(t *testing.T, most int) (address string, l *server.ConnectionLimit, release chan struct{}) {
	t.Helper()
	release = make(chan struct{})
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
		fmt.Fprint(w, "ok")
	})}
	l = server.LimitConnections(s, most)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(listener) }()
	t.Cleanup(func() { s.Close(); <-done })
	return listener.Addr().String(), l, release
}

func dialServer(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// roundTrip sends a request, and reads its answer.
func roundTrip(t *testing.T, c net.Conn, path string) error {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path); err != nil {
		return err
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, err = io.ReadAll(r.Body)
	return err
}

// closedWithin reports whether a connection was closed by the server within the time.
func closedWithin(c net.Conn, within time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(within))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	_, err := c.Read(make([]byte, 1))
	timeout, ok := err.(net.Error)
	return err != nil && (!ok || !timeout.Timeout())
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestConnectionLimit: connections that are silent, that send a head without its end, or
// that rest between two requests are closed beyond the bound, the one that waits longest
// first; one whose request is being answered never is.
// TestStrangersAreDisconnected: a connection that sends one request after the other without an
// identified caller is closed with the hundredth answer; a known caller's is kept.
func TestStrangersAreDisconnected(t *testing.T) {
	s := &http.Server{Handler: serverOf(io.Discard, nil)}
	server.LimitConnections(s, 16)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(listener) }()
	t.Cleanup(func() { s.Close(); <-done })
	const known, unknown = "GET /look/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer known\r\n\r\n", "GET /look/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer unknown\r\n\r\n"
	const health = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
	for name, c := range map[string]struct {
		sent []string // again and again
		want int
	}{
		"wrong keys":         {[]string{unknown}, 100},
		"health":             {[]string{health}, 100},
		"a known caller":     {[]string{known}, 200},
		"known now and then": {append(slices.Repeat([]string{unknown}, 98), known), 200},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialServer(t, listener.Addr().String())
			answers, from := 0, bufio.NewReader(conn)
			for closed := false; !closed && answers < 200; answers++ {
				if _, err := io.WriteString(conn, c.sent[answers%len(c.sent)]); err != nil {
					t.Fatal(err)
				}
				r, err := http.ReadResponse(from, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, r.Body) // the next answer says whether this one was whole
				closed = r.Close
			}
			if answers != c.want {
				t.Errorf("closed after %d answers, expected %d", answers, c.want)
			}
		})
	}
}

func TestConnectionLimit(t *testing.T) {
	const most = 3
	address, l, release := boundedServer(t, most)
	busy := dialServer(t, address)
	answered := make(chan error, 1)
	go func() { answered <- roundTrip(t, busy, "/slow") }()
	rests := dialServer(t, address)
	if err := roundTrip(t, rests, "/"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection that rests does not wait", func() bool { return l.Waiting() == 1 })
	half := dialServer(t, address)
	if _, err := io.WriteString(half, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"); err != nil {
		t.Fatal(err)
	}
	silent := dialServer(t, address)
	eventually(t, "three do not wait", func() bool { return l.Waiting() == most })
	for i, c := range []net.Conn{rests, half, silent} {
		next := dialServer(t, address)
		if !closedWithin(c, time.Minute) {
			t.Fatalf("connection %d was not closed", i)
		}
		if n := l.Waiting(); n > most {
			t.Errorf("%d wait", n)
		}
		if i == 2 {
			if err := roundTrip(t, next, "/"); err != nil {
				t.Errorf("the newest connection: %v", err)
			}
		}
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("a connection was closed whose request is being answered: %v", err)
	}
}

// TestConnectionLimitForgets: what was closed is not counted.
func TestConnectionLimitForgets(t *testing.T) {
	address, l, _ := boundedServer(t, 100)
	for range 20 {
		c := dialServer(t, address)
		if err := roundTrip(t, c, "/"); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	eventually(t, "connections that were closed are counted", func() bool { return l.Waiting() == 0 })
}

// TestWaitingConnectionsLeaveDescriptors: two listeners take half of the descriptors of a
// process at most, so that strangers never hold those that stores and tools need.
func TestWaitingConnectionsLeaveDescriptors(t *testing.T) {
	for descriptors, want := range map[uint64]int{
		0: 16, 64: 16, 256: 64, 1024: 256, 8191: 2047, 8192: 2048, 1 << 20: 2048, 1<<64 - 1: 2048,
	} {
		if got := server.WaitingFor(descriptors); got != want {
			t.Errorf("%d descriptors: %d connections wait, not %d", descriptors, got, want)
		}
	}
}
