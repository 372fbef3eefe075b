package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
)

// TestStrangersCannotFillTheLog: requests without an identified caller write a bounded number
// of lines, and the lines say how many are missing.
func TestStrangersCannotFillTheLog(t *testing.T) {
	const requests = 2000
	for name, send := range map[string]func(d http.Handler){
		"wrong credential": func(d http.Handler) { ask(d, "GET", "/look/1", nil, "Authorization", "Bearer unknown") },
		"other scheme":     func(d http.Handler) { ask(d, "GET", "/look/1", nil, "Authorization", "Basic eDp5") },
		"bad head":         func(d http.Handler) { ask(d, "GET", "/look/1", nil, "Callgate-Nothing", "x") },
		"unknown path":     func(d http.Handler) { ask(d, "GET", "/nothing", nil) },
		"unknown method":   func(d http.Handler) { ask(d, "PUT", "/look/1", nil) },
		"public route":     func(d http.Handler) { ask(d, "GET", "/open", nil) },
		"wrong token":      func(d http.Handler) { ask(d, "GET", "/token", nil) },
	} {
		var log bytes.Buffer
		d := serverOf(&log, nil, strangerRoutes()...)
		start := time.Now()
		for range requests {
			send(d)
		}
		bound := 50 + 11*int(time.Since(start)/time.Second+1) + 1 // lines of requests, and one a second that counts
		d.Drain()
		lines, suppressed := countLines(t, &log)
		if lines > bound || lines >= requests || lines+suppressed != requests {
			t.Errorf("%s: %d lines and %d suppressed of %d requests; expected at most %d lines", name, lines, suppressed, requests, bound)
		}
	}
}

// TestIdentifiedCallersAreLogged: every request of an identified caller has its line, also
// while others are suppressed.
func TestIdentifiedCallersAreLogged(t *testing.T) {
	var log bytes.Buffer
	d := serverOf(&log, nil, strangerRoutes()...)
	const requests = 300
	for range requests {
		ask(d, "GET", "/nothing", nil)
		ask(d, "GET", "/look/1", nil, "Authorization", "Bearer known")
		ask(d, "GET", "/token", nil, "Callgate-Agent", "right")
	}
	for _, route := range []string{"/look/:id", "/token"} {
		if n := strings.Count(log.String(), `"route":"`+route+`","status":200`); n != requests {
			t.Errorf("%s: %d lines; expected %d", route, n, requests)
		}
	}
}

// TestOneCallerCannotFillTheLog: requests of an identified caller beyond a bound are no errors, and
// their lines are bounded and counted; its failures have all theirs.
func TestOneCallerCannotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	refuse := func(code refusal.Code) func(*gin.Context, server.Request) {
		return func(c *gin.Context, _ server.Request) {
			refused := refusal.New(code, "no")
			server.LogRefusal(c, refused)
			c.Status(refused.Status())
		}
	}
	d := serverOf(&log, nil,
		server.Route{Method: http.MethodGet, Path: "/many", Serve: refuse(refusal.Overloaded)},
		server.Route{Method: http.MethodGet, Path: "/failing", Serve: refuse(refusal.AuditUnavailable)})
	const requests, failures = 2000, 200
	start := time.Now()
	for range requests {
		ask(d, "GET", "/many", nil, "Authorization", "Bearer known")
	}
	bound := 50 + 11*int(time.Since(start)/time.Second+1) + 1
	for range failures {
		ask(d, "GET", "/failing", nil, "Authorization", "Bearer known")
	}
	d.Drain()
	if n := strings.Count(log.String(), `"level":"ERROR"`); n != failures || strings.Count(log.String(), `"route":"/failing"`) != failures {
		t.Errorf("%d lines of errors, expected %d", n, failures)
	}
	if lines, suppressed := countLines(t, &log); lines-failures > bound || lines-failures+suppressed != requests {
		t.Errorf("%d lines and %d suppressed; expected at most %d lines", lines-failures, suppressed, bound)
	}
}

// TestStrangersCannotHideErrors: while lines about refused strangers are suppressed, a failure
// of the gateway still has its line; those lines are bounded, too.
func TestStrangersCannotHideErrors(t *testing.T) {
	var log bytes.Buffer
	failing := server.Route{Method: http.MethodGet, Path: "/failing", Public: true, Serve: func(*gin.Context, server.Request) { panic("x") }}
	d := serverOf(&log, nil, append(strangerRoutes(), failing)...)
	for range 1000 {
		ask(d, "GET", "/look/1", nil, "Authorization", "Bearer unknown")
	}
	ask(d, "GET", "/failing", nil)
	if !strings.Contains(log.String(), `"route":"/failing","status":500`) {
		t.Error("the line about a failure is suppressed")
	}
	const requests = 2000
	start := time.Now()
	for range requests {
		ask(d, "GET", "/failing", nil)
	}
	bound := 50 + 11*int(time.Since(start)/time.Second+1) + 1
	if n := strings.Count(log.String(), `"route":"/failing"`); n > bound || n >= requests {
		t.Errorf("%d lines about %d failures; expected at most %d", n, requests, bound)
	}
}

// strangerRoutes are a route that serves everybody, and one that admits by a token.
func strangerRoutes() []server.Route {
	serve := func(c *gin.Context, _ server.Request) { c.String(http.StatusOK, "fine") }
	return []server.Route{
		{Method: http.MethodGet, Path: "/open", Public: true, Serve: serve},
		{Method: http.MethodGet, Path: "/token", Public: true, Serve: serve, ClientKey: func(*gin.Context) string { return "owner" }, Admit: func(c *gin.Context) *refusal.Error {
			if c.GetHeader("Callgate-Agent") == "right" {
				return nil
			}
			return refusal.New(refusal.NotFound, "There is nothing at this path.")
		}},
	}
}

// countLines returns the lines about requests, and the sum of those that were suppressed.
func countLines(t *testing.T, log io.Reader) (lines, suppressed int) {
	t.Helper()
	for d := json.NewDecoder(log); ; {
		var line struct {
			Message    string `json:"msg"`
			Suppressed int    `json:"suppressed"`
		}
		if err := d.Decode(&line); err == io.EOF {
			return lines, suppressed
		} else if err != nil {
			t.Fatal(err)
		}
		if line.Message == "request" {
			lines++
		}
		suppressed += line.Suppressed
	}
}
