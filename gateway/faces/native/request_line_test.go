package native_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// The line of a request names agent, tool, verdict and code, where the configuration knows them,
// and nothing that a model or a caller made up.
func TestRequestLineNamesTheJudgement(t *testing.T) {
	var log bytes.Buffer
	f := faceOf(t, &log, nil)
	for _, c := range []struct {
		agent, body string
		want        map[string]any
	}{
		{"Analyst", `{"tool":{"name":"web.search","arguments":{"query":"x"}}}`, map[string]any{"verdict": "tool_call", "agent": "Analyst", "tool": "web.search"}},
		{"Analyst", `{"tool":{"name":"canary.name","arguments":{}}}`, map[string]any{"verdict": "refused", "agent": "Analyst", "code": "unknown_tool"}},
		{"canary", `{"tool":{"name":"web.search","arguments":{"query":"x"}}}`, map[string]any{"verdict": "refused", "code": "agent_unknown"}},
		{"Analyst", `canary`, map[string]any{"verdict": "text", "agent": "Analyst"}},
	} {
		for _, path := range []string{"/v1/check", "/v1/calls"} {
			log.Reset()
			ask(f, http.MethodPost, path, c.body, "Content-Type", "text/plain", "Callgate-Agent", c.agent)
			got := map[string]any{}
			for line := range strings.Lines(log.String()) {
				var members map[string]any
				if err := json.Unmarshal([]byte(line), &members); err != nil {
					t.Fatal(err)
				}
				if members["msg"] != "request" {
					continue
				}
				for _, name := range []string{"verdict", "agent", "tool", "code"} {
					if v, ok := members[name]; ok {
						got[name] = v
					}
				}
			}
			if a, b := asJSON(t, got), asJSON(t, c.want); a != b || strings.Contains(log.String(), "canary") {
				t.Errorf("%s of %s for %s: %s, want %s in\n%s", path, c.body, c.agent, a, b, &log)
			}
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
