package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
)

// TestLogRequests: the share of lines concerns requests that succeed. Lines of failures are in
// the log that writes at once.
func TestLogRequests(t *testing.T) {
	var direct, later bytes.Buffer
	s := serverOf(&direct, func(o *server.Options) { o.RequestLog = slog.New(slog.NewJSONHandler(&later, nil)) },
		server.Route{Method: http.MethodGet, Path: "/fails", Serve: func(*gin.Context, server.Request) { panic("broken") }},
		server.Route{Method: http.MethodGet, Path: "/refuses", Serve: func(c *gin.Context, _ server.Request) {
			server.LogRefusal(c, refusal.New(refusal.ToolFailed, "The tool failed."))
			c.String(http.StatusOK, "failed")
		}})
	count := func(ratio float64, path string, n int) (lines, errors int) {
		t.Helper()
		direct.Reset()
		later.Reset()
		s.LogRequests(ratio)
		for range n {
			ask(s, http.MethodGet, path, nil, "Authorization", "Bearer known")
		}
		return strings.Count(later.String(), `"msg":"request"`), strings.Count(direct.String(), `"msg":"request"`)
	}
	for _, c := range []struct {
		ratio  float64
		path   string
		later  int
		direct int
	}{
		{1, "/look/1", 30, 0},
		{0, "/look/1", 0, 0},
		{0, "/refuses", 30, 0},
		{0, "/fails", 0, 30},
		{0, "/unknown", 30, 0},
	} {
		if lines, errors := count(c.ratio, c.path, 30); lines != c.later || errors != c.direct {
			t.Errorf("%s, of which %v are logged: %d lines, and %d of failures; expected %d and %d", c.path, c.ratio, lines, errors, c.later, c.direct)
		}
	}
	if lines, _ := count(0.5, "/look/1", 1000); lines < 350 || lines > 650 {
		t.Errorf("%d lines for 1000 requests, of which half are logged", lines)
	}
}

// TestUnwrittenLinesSuppressNothing: successes of unidentified callers whose lines are not to be
// written leave the bound of such lines to refusals.
func TestUnwrittenLinesSuppressNothing(t *testing.T) {
	var log bytes.Buffer
	s := serverOf(&log, nil, server.Route{Method: http.MethodGet, Path: "/open", Public: true, Serve: func(c *gin.Context, _ server.Request) { c.String(http.StatusOK, "ok") }})
	s.LogRequests(0)
	for range 200 {
		ask(s, http.MethodGet, "/open", nil)
	}
	ask(s, http.MethodGet, "/unknown", nil)
	s.Drain()
	if lines := log.String(); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, `"status":404`) {
		t.Errorf("the log: %s", lines)
	}
}
