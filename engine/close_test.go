package engine_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/tool"
)

// notices gets the notices of servers, and is a server of each kind.
type notices chan string

// server is a server that keeps what it gets under its name, before it answers.
func (n notices) server(t testing.TB, name string, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n <- name + ": " + r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Content-Type") + " " + r.Header.Get("Authorization") + " " + string(body)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Every server is told once that a thread is closed, whether it has a tool that was called or
// not, and whatever becomes of the others: one fails, one breaks off, one sends elsewhere, and
// one hangs. Those whose address or credential is not there are not asked.
func TestLIF01EveryServerIsTold(t *testing.T) {
	elsewhere, got := newCanary(t), make(notices, 64)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(code)
		}
	}
	server := func(name, url string) tool.Server {
		return tool.Server{Name: name, Type: "callback", URL: url, Addresses: []string{"127.0.0.1/32"}}
	}
	with := func(s tool.Server, secret string) tool.Server {
		s.Credential = tool.Bearer(secret)
		return s
	}
	hangs := server("hangs", got.server(t, "hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	good := got.server(t, "good", status(200))
	blocked := server("blocked", elsewhere.URL)
	blocked.Addresses = nil
	options := addressed()
	options.CallbackServers = func() []tool.Server {
		return []tool.Server{
			hangs, blocked, server("unreadable", "http://127.0.0.1:%zz/"), server("no URL", ""),
			with(server("no secret", elsewhere.URL), "env:OTHER"),
			server("fails", got.server(t, "fails", status(500))), server("busy", got.server(t, "busy", status(503))),
			server("moved", got.server(t, "moved", status(302))), server("moved", got.server(t, "moved for good", status(308))),
			server("aborts", got.server(t, "aborts", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })),
			with(server("good", good+"/below/"), "env:TOKEN"),
			server("", good+"/alone/invoke"), server("", good+"/alone/other?x=1"), with(server("", good+"/alone/invoke"), "env:TOKEN"),
		}
	}
	const post, body = ": POST ", ` {"thread_id":"t~\"x"}`
	want := []string{
		"aborts" + post + "/close_thread application/json " + body, "busy" + post + "/close_thread application/json " + body,
		"fails" + post + "/close_thread application/json " + body, "hangs" + post + "/close_thread application/json " + body,
		"moved for good" + post + "/close_thread application/json " + body, "moved" + post + "/close_thread application/json " + body,
		"good" + post + "/alone/close_thread application/json " + body, "good" + post + "/alone/close_thread application/json Bearer hunter2" + body,
		"good" + post + "/below/close_thread application/json Bearer hunter2" + body,
	}
	e := newEngine(t, options)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); e.CloseThread(ctx, `t~"x`) }()
	var found []string
	for range want {
		select {
		case notice := <-got:
			found = append(found, notice)
		case <-time.After(patient):
			t.Fatalf("found %q; expected %q", found, want)
		}
	}
	select {
	case <-done:
		t.Error("it does not wait for the server that hangs")
	default:
	}
	cancel()
	select {
	case <-done:
	case <-time.After(patient):
		t.Fatal("it does not end")
	}
	for len(got) > 0 {
		found = append(found, <-got)
	}
	slices.Sort(found)
	if slices.Sort(want); !slices.Equal(found, want) {
		t.Errorf("found %q; expected %q", found, want)
	}
	if n := elsewhere.hits.Load(); n > 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// Without servers nobody is told.
func TestLIF01NoServers(t *testing.T) {
	newEngine(t, engine.Options{}).CloseThread(context.Background(), "t")
}
