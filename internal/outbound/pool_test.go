package outbound

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

func TestPoolIsBounded(t *testing.T) {
	p := newPool(Options{Interfaces: nowhere})
	at := func(n int) *url.URL {
		u, err := url.Parse(fmt.Sprintf("http://127.0.0.1:%d/a", n))
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first, err := p.server(at(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 * maxServers {
		if _, err := p.server(at(n+2), nil); err != nil {
			t.Fatal(err)
		}
		if second, _ := p.server(at(1), nil); second != first {
			t.Fatalf("after %d others, the one in use was dropped", n+1)
		}
	}
	if len(p.servers) != maxServers {
		t.Errorf("%d servers, want %d", len(p.servers), maxServers)
	}
	for _, addresses := range [][]string{{"127.0.0.1"}, {"127.0.0.1", "::1"}} {
		if shared, _ := p.server(at(1), addresses); shared == first {
			t.Errorf("%v shares connections", addresses)
		}
	}
}

// stuckConn is a connection whose Close waits, as that of TLS may for the server.
type stuckConn struct {
	net.Conn
	release chan struct{}
}

func (c stuckConn) Close() error {
	<-c.release
	return c.Conn.Close()
}

// TestStuckConnHoldsNoOther: a server is dropped whose connection does not close; calls to
// others go on.
func TestStuckConnHoldsNoOther(t *testing.T) {
	answering := httptest.NewServer(http.NotFoundHandler())
	defer answering.Close()
	release := make(chan struct{})
	defer close(release)
	p := newPool(Options{Interfaces: nowhere})
	at := func(host string) *server {
		s, err := p.server(&url.URL{Scheme: "http", Host: host}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	at("stuck").transports[0] = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		c, err := net.Dial("tcp", answering.Listener.Addr().String())
		return stuckConn{c, release}, err
	}}
	request, _ := http.NewRequest(http.MethodGet, "http://stuck/", nil)
	response, err := at("stuck").transport(false).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range maxServers {
			at(fmt.Sprintf("host-%d", n))
		}
		p.closeIdle()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("the pool waits for a connection of another server to close")
	}
}

// TestUnreadHTTP2Ends: a connection of HTTP/2 that a server does not read is closed. The
// calls on it wait for a write, and their own ends do not end that.
func TestUnreadHTTP2Ends(t *testing.T) {
	p := newPool(Options{Interfaces: nowhere})
	s, err := p.server(&url.URL{Scheme: "https", Host: "a.example"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, fresh := range []bool{false, true} {
		if c := s.transport(fresh).HTTP2; c == nil || c.WriteByteTimeout <= 0 || c.WriteByteTimeout > time.Minute {
			t.Errorf("fresh %t: %+v", fresh, c)
		}
	}
}
