package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// canary counts the requests that it gets. It must get none.
func canary(t testing.TB) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		io.WriteString(w, "canary")
	}))
	t.Cleanup(server.Close)
	return server, &hits
}

// The engine's own table of spellings, through the ways in which this package connects. The
// engine's own tests cover the resolution of names.
func TestHostsThatMustNotBeReached(t *testing.T) {
	server, hits := canary(t)
	port := server.Listener.Addr().String()[len("127.0.0.1:"):]
	table, err := os.ReadFile("../testdata/hosts.txt")
	if err != nil {
		t.Fatal(err)
	}
	none := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no names here") }}
	h := newFixture(t, engine.Options{Resolver: none}, nil)
	n := 0
	for line := range bytes.Lines(table) {
		row := strings.Fields(string(line))
		if len(row) != 2 || row[0] == "#" || strings.Contains(row[1], ".test") {
			continue
		}
		n++
		url := "http://" + row[1] + ":" + port + "/"
		for _, effect := range []string{"read", "once"} {
			c := call(url, "echo", effect)
			c.Run.Addresses, c.Run.Server = nil, row[1]+effect // no session that was refused just now
			if _, refused := h.run(t, c); refused == nil || string(refused.Code) != row[0] {
				t.Errorf("%s (%s): %v, want %s", row[1], effect, refused, row[0])
			}
		}
		if found, err := h.Discover(t.Context(), tool.Server{Name: row[1], Type: "mcp", URL: url, Timeout: patient}); err == nil {
			t.Errorf("%s: listed %v", row[1], found)
		}
	}
	if n < 40 {
		t.Errorf("%d spellings", n)
	}
	if hits.Load() != 0 {
		t.Errorf("the canary got %d requests", hits.Load())
	}
	// It is reached where it is allowed, so that its silence says something.
	if _, refused := h.run(t, call(server.URL, "echo", "once")); refused == nil || hits.Load() == 0 {
		t.Errorf("%v after %d requests", refused, hits.Load())
	}
}

// No redirect is followed: not from a greeting, not from a call, and not to end a
// session.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere, hits := canary(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		away := func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Location", elsewhere.URL)
			w.Header().Set("Refresh", "0; url="+elsewhere.URL)
			w.WriteHeader(status)
		}
		all := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { away(w, r, "") }))
		h := newFixture(t, engine.Options{}, nil)
		if _, refused := h.run(t, call(all.URL, "echo", "read")); refused == nil || refused.Code != refusal.ToolUnavailable {
			t.Errorf("%d: %v", status, refused)
		}
		all.Close()
		for _, legacy := range []bool{false, true} {
			f := newFake(t, legacy, away)
			if _, refused := h.run(t, call(f.url, "echo", "read")); refused == nil || refused.Code != refusal.ToolFailed || f.count("tools/call") != 1 {
				t.Errorf("%d, legacy %v: %v after %d calls", status, legacy, refused, f.count("tools/call"))
			}
		}
	}
	if hits.Load() != 0 {
		t.Errorf("the canary got %d requests", hits.Load())
	}
}

// No proxy is asked, and no cookie is kept.
func TestNoProxyAndNoCookies(t *testing.T) {
	proxy, hits := canary(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	f := newFake(t, true, func(w http.ResponseWriter, _ *http.Request, id string) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		result(w, id, text("hi"))
	})
	h := newFixture(t, engine.Options{}, nil)
	for range 2 {
		must(t, h, call(f.url, "echo", "read"))
	}
	if header, _ := f.last(t, "tools/call"); header.Get("Cookie") != "" || hits.Load() != 0 {
		t.Errorf("cookie %q, %d requests to the proxy", header.Get("Cookie"), hits.Load())
	}
}
