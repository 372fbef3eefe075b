package chat_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
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

// pastHooks sees calls of some tools and texts, in the history of requests.
func pastHooks(t *testing.T, action string) *configs.Config {
	t.Helper()
	c, err := configs.Load(corpora.HookedConfig(t, `[{name: calls, at: [call], tools: [web.*], patterns: [secrets], on_match: `+action+`}, {name: texts, at: [text], patterns: [secrets], on_match: `+action+`}]`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHookedHistoryOfModel: calls and texts of earlier turns pass the hooks before the model gets them.
// Of calls and contents the text protocol has the same; other members it does not send.
func TestHookedHistoryOfModel(t *testing.T) {
	call := func(arguments string) string {
		return `"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"web_search","arguments":` + strconv.Quote(arguments) + `}}]`
	}
	const mark = "[redacted:github-token]"
	c := map[string]*configs.Config{"redact": pastHooks(t, "redact"), "deny": pastHooks(t, "deny")}
	for place, row := range map[string]struct {
		members, want string
		text, denied  bool // in the text protocol, too; denied in any case
	}{
		"arguments":                {call(`{"query":"` + token + `"}`), `{\"query\":\"` + mark + `\"}`, true, false},
		"a text beside a call":     {strings.Replace(call(`{"query":"x"}`), "null", `"is `+token+`"`, 1), mark, true, false},
		"a string":                 {`"content":"is ` + token + `"`, `"is ` + mark + `"`, true, false},
		"JSON in a string":         {`"content":"{\"a\":\"\\u0067` + token[1:] + `\"}"`, mark, true, false},
		"a part":                   {`"content":[{"type":"text","text":"is ` + token + `"},{"type":"text","text":"so"}]`, `"is ` + mark + `"},{"type":"text","text":"so"}`, true, false},
		"across parts":             {`"content":[{"type":"text","text":"` + token[:9] + `"},{"type":"text","text":"` + token[9:] + `"}]`, `"` + mark + `"},{"type":"text","text":"[redacted]"}`, true, false},
		"a refusal among parts":    {`"content":[{"type":"refusal","refusal":"` + token + `"}]`, `{"type":"refusal","refusal":"` + mark + `"}`, true, false},
		"a thought among parts":    {`"content":[{"type":"thinking","thinking":[{"type":"text","text":"` + token + `"}]}]`, `"text":"` + mark + `"`, true, false},
		"a string among parts":     {`"content":["` + token + `"]`, `["` + mark + `"]`, true, false},
		"a refusal":                {`"content":null,"refusal":"` + token + `"`, `"refusal":"` + mark + `"`, false, false},
		"reasoning_content":        {`"content":"x","reasoning_content":"` + token + `"`, `"reasoning_content":"` + mark + `"`, false, false},
		"reasoning_details":        {`"content":"x","reasoning_details":[{"type":"reasoning.text","text":"` + token + `"}]`, `"text":"` + mark + `"`, false, false},
		"reasoning that is signed": {`"content":"x","reasoning_details":[{"type":"reasoning.text","text":"` + token + `","signature":"s"}]`, "", false, true},
		"annotations":              {`"content":"x","annotations":[{"type":"url_citation","title":"` + token + `"}]`, `"title":"` + mark + `"`, false, false},
		"a transcript":             {`"content":null,"audio":{"id":"a","data":"AAAA","transcript":"` + token + `"}`, `"audio":{"id":"a","transcript":"` + mark + `"}`, false, false},
	} {
		for _, protocol := range []upstream.Protocol{upstream.Native, upstream.Text} {
			for action := range c {
				if protocol == upstream.Text && !row.text {
					continue
				}
				h := openWith(t, c[action], inTurn(says(`{"role":"assistant","content":"fine"}`, "stop")), plan{rules: func(r *upstream.Rules) { r.Protocol = protocol }})
				result := ""
				if strings.Contains(row.members, "tool_calls") {
					result = `,{"role":"tool","tool_call_id":"c1","content":"x"}`
				}
				post := func(members string) *httptest.ResponseRecorder {
					return h.post(`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant",` + members + `}` + result + `]}`)
				}
				w := post(row.members)
				if row.denied || action == "deny" {
					if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "hook_denied") || h.model.times() > 0 || strings.Contains(w.Body.String(), token) {
						t.Errorf("%s, %s, %s: %d %s", protocol, place, action, w.Code, w.Body)
					}
					continue
				}
				want := row.want
				if protocol == upstream.Text && place == "arguments" {
					want = `\"arguments\":` + want
				}
				asked := string(h.model.body(t, 0))
				if w.Code != http.StatusOK || strings.Contains(asked, token[8:]) || !strings.Contains(asked, want) {
					t.Errorf("%s, %s: %d %s, the model got %s", protocol, place, w.Code, w.Body, asked)
				}
				redacted := strings.ReplaceAll(strings.NewReplacer(token, mark, token[:9], mark, token[9:], "[redacted]").Replace(row.members), `\\u0067`+token[1:], mark)
				if w := post(redacted); protocol == upstream.Native && (w.Code != http.StatusOK || !strings.Contains(string(h.model.body(t, 1)), redacted)) {
					t.Errorf("%s: what was redacted is changed: %d, %s", place, w.Code, h.model.body(t, 1))
				}
			}
		}
	}
	if h := openWith(t, c["redact"], inTurn(says(`{"role":"assistant","content":"fine"}`, "stop")), plan{}); h.post(`{"model":"m","messages":[{"role":"user","content":"`+token+`"},{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.encrypted","data":"`+token+`"}]}]}`).Code != http.StatusOK || strings.Count(string(h.model.body(t, 0)), token) != 2 {
		t.Errorf("texts of people and what is encrypted are not for hooks: %s", h.model.body(t, 0))
	}
}
