package messages_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// token is put together here, so that no scanner takes this file for one that has a secret.
var token = "gh" + "p_" + strings.Repeat("aB3", 12)

// fineOrCounted is a model that says "fine", and counts the tokens of a request as three.
func fineOrCounted(_ int, w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "count_tokens") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"input_tokens":3}`))
		return
	}
	says(message("end_turn", textOf("fine")))(0, w, r)
}

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
				h := openWith(t, c, fineOrCounted, plan{})
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

// TestHookedHistoryOfModel: calls and texts of earlier turns pass the hooks before the model gets them.
func TestHookedHistoryOfModel(t *testing.T) {
	const mark = "[redacted:github-token]"
	for _, action := range []string{"redact", "deny"} {
		c, err := configs.Load(corpora.HookedConfig(t, `[{name: calls, at: [call], tools: [web.*], patterns: [secrets], on_match: `+action+`}, {name: texts, at: [text], patterns: [secrets], on_match: `+action+`}]`))
		if err != nil {
			t.Fatal(err)
		}
		for place, row := range map[string]struct{ content, want string }{
			"a string":           {`"is ` + token + `"`, `"is ` + mark + `"`},
			"a block":            {`[{"type":"text","text":"is ` + token + `"},{"type":"text","text":"so"}]`, `"is ` + mark + `"},{"type":"text","text":"so"}`},
			"behind a word":      {`[{"type":"text","text":"is"},{"type":"text","text":"sk-` + token[4:] + `"}]`, `"text":"[redacted:openai-key]"`},
			"across blocks":      {`[{"type":"text","text":"` + token[:9] + `"},{"type":"text","text":"` + token[9:] + `"}]`, `"` + mark + `"},{"type":"text","text":"[redacted]"}`},
			"citations":          {`[{"type":"text","text":"x","citations":[{"type":"char_location","cited_text":"` + token + `"}]}]`, `"cited_text":"` + mark + `"`},
			"a call":             {`[{"type":"tool_use","id":"t1","name":"web_search","input":{"query":"` + token + `"}}]`, `"input":{"query":"` + mark + `"}`},
			"a provider's call":  {`[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"` + token + `"}},{"type":"text","text":"x"}]`, `"input":{"query":"` + mark + `"}`},
			"a call of MCP":      {`[{"type":"mcp_tool_use","id":"s1","name":"find","server_name":"web","input":{"query":"` + token + `"}},{"type":"text","text":"x"}]`, `"input":{"query":"` + mark + `"}`},
			"thinking":           {`[{"type":"thinking","thinking":"` + token + `","signature":""},{"type":"text","text":"x"}]`, `"thinking":"` + mark + `"`},
			"thinking, signed":   {`[{"type":"thinking","thinking":"` + token + `","signature":"s"},{"type":"text","text":"x"}]`, ""},
			"a compaction":       {`[{"type":"compaction","content":"` + token + `"}]`, `"content":"` + mark + `"`},
			"a text of document": {`[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + token + `"}}]`, `"data":"` + mark + `"`},
		} {
			for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
				h := openWith(t, c, fineOrCounted, plan{})
				last := `"go on"`
				if strings.Contains(row.content, `"tool_use"`) {
					last = `[{"type":"tool_result","tool_use_id":"t1","content":"x"}]`
				}
				post := func(content string) *httptest.ResponseRecorder {
					return h.post(path, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":`+content+`},{"role":"user","content":`+last+`}]}`)
				}
				w := post(row.content)
				if action == "deny" || row.want == "" {
					if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "hook_denied") || h.model.times() > 0 || strings.Contains(w.Body.String(), token) {
						t.Errorf("%s, %s, %s: %d %s", path, place, action, w.Code, w.Body)
					}
					continue
				}
				if asked := h.model.body(t, 0); w.Code != http.StatusOK || strings.Contains(asked, token[9:]) || !strings.Contains(asked, row.want) {
					t.Errorf("%s, %s: %d, the model got %s", path, place, w.Code, asked)
				}
				redacted := strings.NewReplacer(token, mark, token[:9], mark, token[9:], "[redacted]").Replace(row.content)
				if w := post(redacted); w.Code != http.StatusOK || !strings.Contains(h.model.body(t, 1), redacted) {
					t.Errorf("%s: what was redacted is changed: %d, %s", place, w.Code, h.model.body(t, 1))
				}
			}
		}
	}
}
