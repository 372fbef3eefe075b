package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestProfiling: with server.profiling the admin listener serves profiles, and without it
// nothing; the public listener never does. The arguments of the process are not shown.
func TestProfiling(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		keys := "server: {" + anyPort + "}\n"
		want := http.StatusNotFound
		if on {
			keys, want = "server: {"+anyPort+", profiling: true}\n", http.StatusOK
		}
		config, data := unlimitedVectors(t)
		edit(t, config, data, keys)
		g := serveGate(t, config)
		for path, status := range map[string]int{
			"/debug/pprof/": want, "/debug/pprof/heap": want, "/debug/pprof/profile?seconds=1": want,
			"/debug/pprof/cmdline": http.StatusNotFound, "/debug/pprof/none": http.StatusNotFound, "/readyz": http.StatusOK,
		} {
			answer := g.askAdmin(t, path)
			if answer.status != status || status == http.StatusOK && answer.body == "" {
				t.Errorf("profiling %v: %s answers %d, expected %d", on, path, answer.status, status)
			}
			if path == "/readyz" {
				continue
			}
			if public := g.ask(t, http.MethodGet, path, ""); public.status == http.StatusOK || !strings.Contains(public.body, "tool_result") {
				t.Errorf("profiling %v: the public listener answers %s with %d", on, path, public.status)
			}
		}
		if got := g.sent(t, http.MethodGet, "http://"+g.admin+"/debug/pprof/heap", "", "", "evil.example", "", ""); got.status != http.StatusBadRequest {
			t.Errorf("profiling %v: another host is answered %d", on, got.status)
		}
		g.stop(t)
	}
}
