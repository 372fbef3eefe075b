package messages_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/corpora"
)

// token is put together here, so that no scanner takes this file for one that has a secret.
var token = "gh" + "p_" + strings.Repeat("aB3", 12)

// TestHookedHistory: results that a request brings back pass the hooks before the model gets them,
// and before its tokens are counted.
func TestHookedHistory(t *testing.T) {
	for _, action := range []string{"redact", "deny"} {
		c, err := configs.Load(corpora.HookedConfig(t, `[{name: secrets, at: [result], patterns: [secrets], on_match: `+action+`, tools: [web.*]}]`))
		if err != nil {
			t.Fatal(err)
		}
		for place, content := range map[string]string{
			"a text":          `"is ` + token + `"`,
			"JSON in a text":  `"{\"a\":\"\\u0067` + token[1:] + `\"}"`,
			"a block":         `[{"type":"text","text":"is"},{"type":"text","text":"` + token + `"}]`,
			"a document":      `[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + token + `"}}]`,
			"a search result": `[{"type":"search_result","source":"x","title":"` + token + `","content":[{"type":"text","text":"x"}]}]`,
		} {
			for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
				h := openWith(t, c, func(_ int, w http.ResponseWriter, r *http.Request) {
					if strings.HasSuffix(r.URL.Path, "count_tokens") {
						w.Header().Set("Content-Type", "application/json")
						_, _ = w.Write([]byte(`{"input_tokens":3}`))
						return
					}
					says(message("end_turn", textOf("fine")))(0, w, r)
				}, plan{})
				messages := `[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"web_search","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":` + content + `},{"type":"text","text":"and"}]}]`
				w := h.post(path, `{"model":"m","max_tokens":9,"messages":`+messages+`}`)
				if action == "deny" {
					if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "hook_denied") || h.model.times() > 0 || strings.Contains(w.Body.String(), token) {
						t.Errorf("%s, %s: %d %s", path, place, w.Code, w.Body)
					}
					continue
				}
				if asked := h.model.body(t, 0); w.Code != http.StatusOK || strings.Contains(asked, token[1:]) || !strings.Contains(asked, "[redacted:github-token]") || !strings.Contains(asked, `{"type":"text","text":"and"}`) {
					t.Errorf("%s, %s: %d, the model got %s", path, place, w.Code, asked)
				}
			}
		}
	}
}
