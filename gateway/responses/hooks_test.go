package responses_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/corpora"
)

// token is put together here, so that no scanner takes this file for one that has a secret.
var token = "gh" + "p_" + strings.Repeat("aB3", 12)

// TestHookedHistory: results that a request brings back pass the hooks before the model gets them, in
// every form that a result can have.
func TestHookedHistory(t *testing.T) {
	const call = `{"type":"function_call","call_id":"c1","name":"web_search","arguments":"{}"}`
	for _, action := range []string{"redact", "deny"} {
		c, err := configs.Load(corpora.HookedConfig(t, `[{name: secrets, at: [result], patterns: [secrets], on_match: `+action+`, tools: [web.*]}]`))
		if err != nil {
			t.Fatal(err)
		}
		for place, output := range map[string]string{
			"a text":         `"is ` + token + `"`,
			"JSON in a text": `"{\"a\":\"\\u0067` + token[1:] + `\"}"`,
			"a part":         `[{"type":"input_text","text":"` + token + `"}]`,
			"with a picture": `[{"type":"input_image","image_url":"data:x"},{"type":"input_text","text":"` + token + `"}]`,
		} {
			h := open(t, plan{config: c}, says(message("fine")))
			w := h.post(`{"model":"m","input":[` + call + `,{"type":"function_call_output","call_id":"c1","output":` + output + `}]}`)
			if action == "deny" {
				if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "hook_denied") || h.model.times() > 0 || strings.Contains(w.Body.String(), token) {
					t.Errorf("%s: %d %s", place, w.Code, w.Body)
				}
				continue
			}
			if asked := string(h.model.asked(t, 0)["input"]); w.Code != http.StatusOK || strings.Contains(asked, token[1:]) || !strings.Contains(asked, "[redacted:github-token]") {
				t.Errorf("%s: %d, the model got %s", place, w.Code, asked)
			}
		}
	}
}
