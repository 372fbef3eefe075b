package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
)

// untouched is a body that nobody may read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// TestCredentialBeforeBody: of who is not known, and of who has spent the caller's rate,
// no byte of a body is read; what the head alone is wrong in is said first, and a route
// that is open asks for no credential.
func TestCredentialBeforeBody(t *testing.T) {
	limited := refusal.New(refusal.CallerRateLimited, "Too many requests.")
	open := server.Route{Method: http.MethodPost, Path: "/open", Public: true, Serve: echo, MaxBody: fixed(10)}
	d := serverOf(io.Discard, func(o *server.Options) {
		o.Identify = func(ctx context.Context, r *gateway.Request) (string, error) {
			if r.Credential == "limited" {
				return "", limited
			}
			return byWord(ctx, r)
		}
	}, open)
	for name, c := range map[string]struct {
		path, credential, media string
		body                    io.Reader
		status                  int
		close                   bool
	}{
		"unknown":              {"/talk", "unknown", "application/json", untouched{t}, 401, true},
		"limited":              {"/talk", "limited", "application/json", untouched{t}, 429, false},
		"unknown, of no type":  {"/talk", "unknown", "image/png", untouched{t}, 415, false},
		"unknown, and nothing": {"/talk", "unknown", "application/json", nil, 401, false},
		"known":                {"/talk", "known", "application/json", strings.NewReader("hi"), 200, false},
		"open":                 {"/open", "unknown", "application/json", strings.NewReader("hi"), 200, false},
	} {
		w := ask(d, http.MethodPost, c.path, c.body, "Content-Type", c.media, "Authorization", "Bearer "+c.credential)
		if w.Code != c.status || (w.Header().Get("Connection") == "close") != c.close {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
	}
	if d.InFlight() != 0 || server.HeldBytes(d) != 0 {
		t.Errorf("%d in flight, %d bytes held", d.InFlight(), server.HeldBytes(d))
	}
}

// TestNobodyIdentifies: a server without Identify admits nobody.
func TestNobodyIdentifies(t *testing.T) {
	d := serverOf(io.Discard, func(o *server.Options) { o.Identify = nil })
	for _, path := range []string{"/talk", "/say"} {
		if w := ask(d, http.MethodPost, path, untouched{t}, "Content-Type", "application/json", "Authorization", "Bearer known"); w.Code/100 == 2 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := ask(d, http.MethodGet, "/look/1", nil); w.Code != 500 || !strings.Contains(w.Body.String(), "internal") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// served is a server behind a listener. Its connections have small buffers, so that what a
// client does not read stops its sender soon.
func served(t *testing.T, d *server.Server) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(d)
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
		return ctx
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// sends sends a raw request on a connection of its own, that takes little.
func sends(t *testing.T, s *httptest.Server, raw string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestUnknownIsAnsweredAtOnce: who is not known is answered while the body is still to
// come, and the connection ends without it.
func TestUnknownIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	s := served(t, serverOf(io.Discard, func(o *server.Options) { o.BodyTimeout = time.Hour }))
	clients := map[string]net.Conn{} // all at once: each connection lingers for half a second
	for _, length := range []string{"Content-Length: 100", "Content-Length: 190000", "Transfer-Encoding: chunked", "Content-Length: 100\r\nExpect: 100-continue"} {
		clients[length] = sends(t, s, "POST /talk HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer unknown\r\nContent-Type: application/json\r\n"+length+"\r\n\r\n")
	}
	for length, c := range clients {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		all, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 401 ") || strings.Count(string(all), "HTTP/1.1") != 1 {
			t.Errorf("%s: %v %q", length, err, all)
		}
	}
}

// TestUnreadBodies: a body that nothing here reads holds its connection no longer than a
// moment, from any sender.
func TestUnreadBodies(t *testing.T) {
	t.Parallel()
	s := served(t, serverOf(io.Discard, func(o *server.Options) { o.BodyTimeout = time.Hour }))
	clients := map[string]net.Conn{}
	for _, head := range []string{"GET /look/1", "GET /healthz", "POST /nowhere", "POST /talk?a=b"} {
		clients[head] = sends(t, s, head+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n")
	}
	for head, c := range clients {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		all, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 ") {
			t.Errorf("%s: %v %q", head, err, all)
		}
	}
}

// TestUnreadAnswers: a client that does not take its answer loses its slot, and what its
// body holds is given back as soon as the answer begins.
func TestUnreadAnswers(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 8<<20)
	started, ended := make(chan int64, 1), make(chan error, 1)
	var d *server.Server
	d = serverOf(io.Discard, func(o *server.Options) { o.WriteTimeout = 200 * time.Millisecond }, server.Route{
		Method: http.MethodPost, Path: "/long", MaxBody: fixed(1000),
		Serve: func(c *gin.Context, _ server.Request) {
			before := server.HeldBytes(d)
			_, err := c.Writer.Write([]byte("begins"))
			started <- before - server.HeldBytes(d)
			if err == nil {
				_, err = c.Writer.Write(long)
			}
			ended <- err
		},
	})
	s := served(t, d)
	sends(t, s, fmt.Sprintf("POST /long HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n%1000s", "{}"))
	if released := <-started; released != 1000 {
		t.Errorf("%d bytes were given back when the answer began", released)
	}
	select {
	case err := <-ended:
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("writing ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the client still holds its slot")
	}
	s.Close()
	if d.InFlight() != 0 || server.HeldBytes(d) != 0 {
		t.Errorf("%d in flight, %d bytes held", d.InFlight(), server.HeldBytes(d))
	}
}

// TestSlowReaders: a client that takes its answer slowly, but does, is told all of it.
func TestSlowReaders(t *testing.T) {
	const length = 4 << 20
	d := serverOf(io.Discard, func(o *server.Options) { o.WriteTimeout = time.Minute }, server.Route{
		Method: http.MethodGet, Path: "/long",
		Serve: func(c *gin.Context, _ server.Request) {
			c.Data(http.StatusOK, "text/plain", bytes.Repeat([]byte("x"), length))
		},
	})
	r, err := http.Get(served(t, d).URL + "/long")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if n, err := io.Copy(io.Discard, r.Body); err != nil || n != length {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestKeep: the body of a face that needs it beyond the beginning of its answer counts
// until the end.
func TestKeep(t *testing.T) {
	var d *server.Server
	d = serverOf(io.Discard, nil, server.Route{
		Method: http.MethodPost, Path: "/keep", MaxBody: fixed(1000),
		Serve: func(c *gin.Context, _ server.Request) {
			server.KeepBody(c)
			c.String(http.StatusOK, "begun")
			if server.HeldBytes(d) != 10 {
				t.Errorf("%d bytes are held", server.HeldBytes(d))
			}
		},
	})
	if w := ask(d, http.MethodPost, "/keep", strings.NewReader("0123456789"), "Content-Type", "application/json"); w.Code != 200 || server.HeldBytes(d) != 0 {
		t.Errorf("%d, %d bytes held", w.Code, server.HeldBytes(d))
	}
}

// TestFreePool: what is answered to anybody takes no slot.
func TestFreePool(t *testing.T) {
	inside := false
	var d *server.Server
	d = serverOf(io.Discard, func(o *server.Options) { o.MaxInFlight = 1 }, server.Route{
		Method: http.MethodGet, Path: "/health", Pool: server.Free, Public: true,
		Serve: func(c *gin.Context, _ server.Request) {
			inside = true
			c.String(http.StatusOK, "%d", d.InFlight())
		},
	})
	if w := ask(d, http.MethodGet, "/health", nil); !inside || w.Body.String() != "0" {
		t.Errorf("%t %d %s", inside, w.Code, w.Body)
	}
}
