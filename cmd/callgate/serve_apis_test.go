package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
)

// TestUnknownPathsOfAPIs: a client of an API reads a refusal in that API's shape at every path of
// it, also where nothing is served (contract, section 9; AM-05, AM-60), and is told not to try
// again.
func TestUnknownPathsOfAPIs(t *testing.T) {
	t.Parallel()
	one, _, _ := threeCallers()
	config, data := keyedConfig(t, one)
	edit(t, config, data, fmt.Sprintf("server: {%s}\nauth: {mode: keys}\nprincipals: principals.yaml\n", anyPort))
	g := serveGate(t, config)
	const ofOpenAI, ofAnthropic, ofCallgate = `{"error":{"message":`, `{"type":"error","error":{"type":`, `{"tool_result":{"tool":null,"output":{"error":{"code":`
	for _, c := range []struct {
		method, path string
		anthropic    bool // the header anthropic-version
		status       int
		shape, code  string
	}{
		{"POST", "/v1/embeddings", false, 404, ofOpenAI, "not_found"},
		{"GET", "/v1/files/file-1/content", false, 404, ofOpenAI, "not_found"},
		{"GET", "/v1/files/file-1/content", true, 404, ofAnthropic, "not_found"},
		{"POST", "/v1/chat/completions/x", false, 404, ofOpenAI, "not_found"},
		{"GET", "/v1/responses/resp_1", false, 404, ofOpenAI, "not_found"},
		{"DELETE", "/v1/responses", false, 405, ofOpenAI, "method_not_allowed"},
		{"GET", "/v1/chat/completions", true, 405, ofOpenAI, "method_not_allowed"},
		{"POST", "/v1/models", false, 405, ofOpenAI, "method_not_allowed"},
		{"POST", "/v1/models", true, 405, ofAnthropic, "method_not_allowed"},
		{"DELETE", "/v1/models/m", true, 405, ofAnthropic, "method_not_allowed"},
		{"POST", "/v1/messages/batches", false, 404, ofAnthropic, "not_found"},
		{"GET", "/v1/messages", false, 405, ofAnthropic, "method_not_allowed"},
		{"GET", "/api/hello", false, 404, ofAnthropic, "not_found"},
		{"GET", "/v1/models", true, 401, ofAnthropic, "unauthenticated"},
		{"GET", "/v1/runs/run_x/y", true, 404, ofCallgate, "not_found"},
		{"GET", "/v1/nothing", true, 404, ofCallgate, "not_found"},
	} {
		if c.path == "/v1/responses" && !app.Has(configs.ResponsesFace) {
			continue
		}
		r, err := http.NewRequest(c.method, "http://"+g.listen+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if c.anthropic {
			r.Header.Set("Anthropic-Version", "2023-06-01")
		}
		answer := g.does(t, r)
		if answer.status != c.status || !strings.HasPrefix(answer.body, c.shape) || !strings.Contains(answer.body, `"`+c.code+`"`) {
			t.Errorf("%s %s: %d %s", c.method, c.path, answer.status, answer.body)
		}
		if retry := answer.header.Get("X-Should-Retry"); (c.shape != ofCallgate) != (retry == "false") || (c.status == 405) != (answer.header.Get("Allow") != "") {
			t.Errorf("%s %s: X-Should-Retry %q, Allow %q", c.method, c.path, retry, answer.header.Get("Allow"))
		}
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
}
