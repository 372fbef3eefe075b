package responses_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/upstream"
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

// TestHookedHistoryOfModel: calls and texts of earlier turns pass the hooks before the model gets them.
func TestHookedHistoryOfModel(t *testing.T) {
	const mark = "[redacted:github-token]"
	said := func(content string) string {
		return `{"type":"message","id":"m1","status":"completed","role":"assistant","content":` + content + `}`
	}
	answered := func(kind string) string { return `,{"type":"` + kind + `_output","call_id":"c1","output":"x"}` }
	for _, action := range []string{"redact", "deny"} {
		c, err := configs.Load(corpora.HookedConfig(t, `[{name: calls, at: [call], tools: [web.*], patterns: [secrets], on_match: `+action+`}, {name: texts, at: [text], patterns: [secrets], on_match: `+action+`}]`))
		if err != nil {
			t.Fatal(err)
		}
		for place, row := range map[string]struct{ item, more, want string }{
			"a string":           {`{"role":"assistant","content":"is ` + token + `"}`, "", `"is ` + mark + `"`},
			"a part":             {said(`[{"type":"output_text","text":"is ` + token + `","annotations":[]}]`), "", `"is ` + mark + `","annotations":[]`},
			"across parts":       {said(`[{"type":"output_text","text":"` + token[:9] + `"},{"type":"output_text","text":"` + token[9:] + `","logprobs":[{"token":"` + token[9:] + `"}]}]`), "", `"` + mark + `"},{"type":"output_text","text":"[redacted]"}`},
			"a refusal":          {said(`[{"type":"refusal","refusal":"` + token + `"}]`), "", `"refusal":"` + mark + `"`},
			"annotations":        {said(`[{"type":"output_text","text":"x","annotations":[{"type":"url_citation","title":"` + token + `"}]}]`), "", `"title":"` + mark + `"`},
			"a call":             {`{"type":"function_call","call_id":"c1","name":"web_search","arguments":"{\"query\":\"` + token + `\"}"}`, answered("function_call"), `"arguments":"{\"query\":\"` + mark + `\"}"`},
			"a custom call":      {`{"type":"custom_tool_call","call_id":"c1","name":"web_search","input":"is ` + token + `"}`, answered("custom_tool_call"), `"input":"is ` + mark + `"`},
			"a search":           {`{"type":"web_search_call","id":"w1","status":"completed","action":{"type":"search","query":"` + token + `"}}`, "", `"query":"` + mark + `"`},
			"a query":            {`{"type":"file_search_call","id":"w1","status":"completed","queries":["` + token + `"]}`, "", `"queries":["` + mark + `"]`},
			"code":               {`{"type":"code_interpreter_call","id":"w1","status":"completed","code":"say('` + token + `')"}`, "", `"code":"say('` + mark + `')"`},
			"a call of MCP":      {`{"type":"mcp_call","id":"w1","server_label":"web","name":"search","arguments":"{\"query\":\"` + token + `\"}","output":"x"}`, "", `"arguments":"{\"query\":\"` + mark + `\"}"`},
			"a thought":          {`{"type":"reasoning","id":"r1","summary":[{"type":"summary_text","text":"` + token + `"}]}`, "", `"text":"` + mark + `"`},
			"a thought, in full": {`{"type":"reasoning","id":"r1","summary":[],"content":[{"type":"reasoning_text","text":"` + token + `"}]}`, "", `"text":"` + mark + `"`},
			"encrypted beside":   {`{"type":"reasoning","id":"r1","summary":[{"type":"summary_text","text":"` + token + `"}],"encrypted_content":"e"}`, "", "denied"},
		} {
			for _, path := range []string{"/v1/responses", "/v1/responses/input_tokens"} {
				h := open(t, plan{config: c, rules: func(r *upstream.Rules) {
					r.Responses.HostedTools, r.Responses.MCPServers = []string{"web_search", "file_search", "code_interpreter"}, []string{"web"}
				}}, func(w http.ResponseWriter, streamed bool) {
					if path == "/v1/responses" {
						says(message("fine"))(w, streamed)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"object":"response.input_tokens","input_tokens":3}`))
				})
				post := func(item string) *httptest.ResponseRecorder {
					return h.postTo(path, `{"model":"m","input":[`+item+row.more+`,{"role":"user","content":"and"}]}`)
				}
				w := post(row.item)
				if action == "deny" || row.want == "denied" {
					if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "hook_denied") || h.model.times() > 0 || strings.Contains(w.Body.String(), token) {
						t.Errorf("%s, %s, %s: %d %s", path, place, action, w.Code, w.Body)
					}
					continue
				}
				if w.Code != http.StatusOK {
					t.Errorf("%s, %s: %d %s", path, place, w.Code, w.Body)
					continue
				}
				if asked := string(h.model.asked(t, 0)["input"]); strings.Contains(asked, token[9:]) || !strings.Contains(asked, row.want) {
					t.Errorf("%s, %s: the model got %s", path, place, asked)
				}
				redacted := strings.NewReplacer(token, mark, token[:9], mark, token[9:], "[redacted]").Replace(row.item)
				if w := post(redacted); w.Code != http.StatusOK || !strings.Contains(string(h.model.asked(t, 1)["input"]), redacted) {
					t.Errorf("%s: what was redacted is changed: %d, %s", place, w.Code, h.model.asked(t, 1)["input"])
				}
			}
		}
	}
}
