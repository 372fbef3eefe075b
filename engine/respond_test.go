package engine_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A person's choice is sent to the tool's own server alone, and once, whatever that answers.
func TestUCH01Respond(t *testing.T) {
	var hits atomic.Int64
	var status atomic.Int64
	var got atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		line := r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Content-Type") + " " + string(body)
		got.Store(&line)
		hits.Add(1)
		w.Header().Set("Location", "/again")
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	base := httptest.NewServer(http.NotFoundHandler())
	defer base.Close()
	options := addressed()
	options.ServerURL = func(name string) string { return map[string]string{"known": base.URL}[name] }
	e := newEngine(t, options)
	call := later(server.URL+"/rap/invoke", "once")
	for code, good := range map[int64]bool{200: true, 202: true, 204: true, 307: false, 404: false, 500: false, 503: false} {
		hits.Store(0)
		status.Store(code)
		err := e.Respond(context.Background(), call, server.URL+"/chosen?to=1", 2)
		if want := `POST /chosen?to=1 application/json {"id":"call-1","selected":2}`; (err == nil) != good || hits.Load() != 1 || *got.Load() != want {
			t.Errorf("%d: %v, %d hits: %s", code, err, hits.Load(), *got.Load())
		}
	}
	hits.Store(0)
	known := call
	known.Run.Server = "known"
	if err := e.CheckResponse(known, base.URL+"/chosen"); err != nil {
		t.Error(err)
	}
	for name, url := range map[string]string{
		"another server": base.URL + "/chosen", "a name": strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + "/", "user info": strings.Replace(server.URL, "http://", "http://127.0.0.1@", 1) + "/",
		"TLS": strings.Replace(server.URL, "http:", "https:", 1) + "/", "a path": "/chosen", "a file": "file:///etc/passwd", "a fragment": server.URL + "/#a", "nothing": "", "no host": "http:///chosen", "backslashes": strings.Replace(server.URL, "//", "\\\\", 1),
	} {
		if err := e.CheckResponse(call, url); err == nil || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", name, err)
		}
		if err := e.Respond(context.Background(), call, url, 0); err == nil || hits.Load() > 0 {
			t.Errorf("%s: it is sent", name)
		}
	}
	call.Run.Addresses = nil // public ones only
	if err := e.Respond(context.Background(), call, server.URL+"/chosen", 0); err == nil || hits.Load() > 0 {
		t.Error("an address that the tool may not have is sent to")
	}
}
