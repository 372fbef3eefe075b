package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
)

// TestConsoleKey: the admin listener serves the console unless server.console is false, and the
// admin API in any case; the public listener has neither.
func TestConsoleKey(t *testing.T) {
	t.Parallel()
	requires(t, configs.Console)
	for keys, want := range map[string]int{
		"server: {" + anyPort + "}\n":                 http.StatusOK,
		"server: {" + anyPort + ", console: false}\n": http.StatusNotFound,
	} {
		config, data := unlimitedVectors(t)
		edit(t, config, data, keys)
		g := serveGate(t, config)
		for path, status := range map[string]int{"/console": want, "/console/calls": want, "/v1/status": http.StatusOK, "/readyz": http.StatusOK} {
			if got := g.askAdmin(t, path); got.status != status {
				t.Errorf("%s %s answers %d, expected %d", keys, path, got.status, status)
			}
		}
		for _, path := range []string{"/console", "/v1/status", "/v1/decisions"} {
			if got := g.ask(t, http.MethodGet, path, ""); got.status == http.StatusOK || !strings.Contains(got.body, "tool_result") {
				t.Errorf("the public listener answers %s with %d", path, got.status)
			}
		}
		if got := g.sent(t, http.MethodGet, "http://"+g.admin+"/console", "", "", "evil.example", "", ""); want == http.StatusOK && got.status != http.StatusBadRequest {
			t.Errorf("another host is answered %d", got.status)
		}
		g.stop(t)
	}
}
