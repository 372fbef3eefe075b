package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
)

// TestPages: where nobody is asked for a credential, a web page of another site is
// not taken for a caller of this machine. A browser sends text/plain across sites
// without asking first.
func TestPages(t *testing.T) {
	acted := 0
	open := func(pages server.AllowedOrigins) *httptest.Server {
		d := serverOf(io.Discard, func(o *server.Options) { o.AllowedOrigins = pages },
			server.Route{Method: http.MethodPost, Path: "/act", MaxBody: fixed(10), MediaTypes: []string{"text/plain"}, Serve: func(c *gin.Context, _ server.Request) {
				acted++
				c.Status(http.StatusOK)
			}},
			server.Route{Method: http.MethodPost, Path: "/own", MaxBody: fixed(10), MediaTypes: []string{"text/plain"}, Serve: echo, RefuseOrigin: func(c *gin.Context, _ *refusal.Error) {
				c.AbortWithStatus(http.StatusForbidden)
			}},
			server.Route{Method: http.MethodGet, Path: "/look", Serve: echo},
			server.Route{Method: http.MethodPost, Path: "/open", Public: true, MaxBody: fixed(10), MediaTypes: []string{"text/plain"}, Serve: echo, Admit: func(*gin.Context) *refusal.Error {
				return refusal.New(refusal.NotFound, "m")
			}})
		server := httptest.NewServer(d)
		t.Cleanup(server.Close)
		return server
	}
	post := func(server *httptest.Server, path string, origins ...string) int {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, server.URL+path, strings.NewReader("hi"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		r.Header["Origin"] = origins
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	ambient := open(server.AllowedOrigins{Origins: []string{"https://app.example.com"}})
	for _, origin := range []string{
		"https://evil.example", "null", "", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "https://app.example.com.evil.example",
		"https://app.example.com/", "https://APP.example.com", "http://app.example.com", "http://user@localhost", "file://", "http://0x7f.1", "http://[::ffff:8.8.8.8]",
	} {
		if status := post(ambient, "/act", origin); status != http.StatusBadRequest || acted != 0 {
			t.Errorf("%q: %d, acted %d", origin, status, acted)
		}
	}
	if status := post(ambient, "/act", "https://app.example.com", "https://evil.example"); status != http.StatusBadRequest || acted != 0 {
		t.Errorf("two origins: %d, acted %d", status, acted)
	}
	want := 0
	for _, origins := range [][]string{nil, {"https://app.example.com"}, {"http://localhost:3000"}, {"http://127.0.0.1:8080"}, {"http://[::1]:8080"}} {
		want++
		if status := post(ambient, "/act", origins...); status != http.StatusOK || acted != want {
			t.Errorf("%q: %d, acted %d", origins, status, acted)
		}
	}
	if status := post(ambient, "/own", "https://evil.example"); status != http.StatusForbidden {
		t.Errorf("a route that refuses pages in its own way: %d", status)
	}
	if status := post(ambient, "/open", "https://evil.example"); status != http.StatusBadRequest {
		t.Errorf("a route that is open: %d", status)
	}
	if status := post(ambient, "/open"); status != http.StatusNotFound {
		t.Errorf("a route that is open, without an origin: %d", status)
	}
	if status := post(open(server.AllowedOrigins{}), "/act", "https://app.example.com"); status != http.StatusBadRequest || acted != want {
		t.Errorf("an origin that is not listed: %d", status)
	}
}

// TestHosts: a request to another name than the gateway's is refused on every route, also
// where it only reads. Health checks may use any name.
func TestHosts(t *testing.T) {
	d := serverOf(io.Discard, func(o *server.Options) {
		o.AllowedOrigins = server.AllowedOrigins{Origins: []string{"http://intern.example:8080"}, Hosts: []string{"gateway.example", "192.0.2.1"}}
	},
		server.Route{Method: http.MethodGet, Path: "/look", Serve: echo},
		server.Route{Method: http.MethodGet, Path: "/own", Serve: echo, RefuseOrigin: func(c *gin.Context, _ *refusal.Error) {
			c.AbortWithStatus(http.StatusForbidden)
		}},
		server.Route{Method: http.MethodGet, Path: "/open", Public: true, Serve: echo})
	send := func(local, path, host string) int {
		t.Helper()
		at, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = host
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at))))
		return w.Code
	}
	const here, elsewhere = "127.0.0.1:8080", "10.0.0.1:8080"
	for host, known := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.1": true, "127.9.9.9:1": true, "localhost": true, "localhost:8080": true, "LOCALHOST:8080": true, "[::1]:8080": true,
		"intern.example:8080": true, "gateway.example": true, "gateway.example:8443": true, "Gateway.Example": true, "192.0.2.1:8080": true,
		"evil.example": false, "evil.example:8080": false, "": false, "10.0.0.1": false, "0.0.0.0:8080": false, "[::]:8080": false, "intern.example": false, "intern.example:80": false,
		"localhost.evil.example": false, "127.0.0.1.evil.example": false, "127.0.0.1@evil.example": false, "a.gateway.example": false, "gateway.example.evil.example": false,
		"gateway.example.": false, "127.1": false, "2130706433": false, "gateway.example/x": false,
	} {
		for path, refused := range map[string]int{"/look": 400, "/own": 403, "/open": 400} {
			want := 200
			if !known {
				want = refused
			}
			if got := send(here, path, host); got != want {
				t.Errorf("%s at %s: %d, expected %d", path, host, got, want)
			}
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if got := send(here, path, host); got != 200 {
				t.Errorf("%s at %s: %d", path, host, got)
			}
		}
	}
	// By another way names are looked at where they are configured; a name of this
	// machine means nothing there.
	for host, want := range map[string]int{"gateway.example": 200, "192.0.2.1": 200, "intern.example:8080": 200, "evil.example": 400, "localhost": 400, "10.0.0.1:8080": 400} {
		if got := send(elsewhere, "/look", host); got != want {
			t.Errorf("%s from elsewhere: %d, expected %d", host, got, want)
		}
	}
	d = serverOf(io.Discard, nil, server.Route{Method: http.MethodGet, Path: "/look", Serve: echo})
	if got := send(elsewhere, "/look", "evil.example"); got != 200 {
		t.Errorf("from elsewhere, without names: %d", got)
	}
	if got := send(here, "/look", "evil.example"); got != 400 {
		t.Errorf("on this machine, without names: %d", got)
	}
}
