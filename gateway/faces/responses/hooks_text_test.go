package responses_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// TestHookedTexts: everything that a model says passes the hooks before the application gets it: its
// texts, in one message and across messages, its refusals, its reasoning and annotations, whole and in
// every event of a stream that states them.
func TestHookedTexts(t *testing.T) {
	const gone = "[redacted:github-token]"
	said := "say " + token + " now"
	second := strings.Replace(message(token[9:]+" two"), `"id":"msg_`, `"id":"msg_2`, 1)
	for place, c := range map[string]struct {
		items []string
		left  []string
	}{
		"a text":          {[]string{message(said)}, []string{`"text":"say ` + gone + ` now"`}},
		"JSON in a text":  {[]string{message(`{"a":"\u0067` + token[1:] + `"}`)}, []string{`\"a\":\"` + gone}},
		"across messages": {[]string{message("one " + token[:9]), second}, []string{`"text":"one ` + gone + `"`, `"text":" two"`}},
		"a refusal":       {[]string{refusing(said)}, []string{`"refusal":"say ` + gone + ` now"`}},
		"a summary":       {[]string{`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":` + quoted(said) + `}]}`, message("fine")}, []string{`"text":"say ` + gone + ` now"`}},
		"a thought":       {[]string{`{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":` + quoted(said) + `}]}`, message("fine")}, []string{`"text":"say ` + gone + ` now"`}},
		"an unknown item": {[]string{`{"id":"n_1","type":"new_thing","v":` + quoted(said) + `}`, message("fine")}, []string{`"v":"say ` + gone + ` now"`}},
		"an annotation":   {[]string{strings.Replace(message("fine"), `"annotations":[]`, `"annotations":[{"type":"url_citation","title":`+quoted(said)+`}]`, 1)}, []string{`"title":"say ` + gone + ` now"`}},
	} {
		for _, action := range []string{"redact", "deny"} {
			config, err := configs.Load(corpora.HookedConfig(t, `[{name: secrets, at: [text], patterns: [secrets], on_match: `+action+`}]`))
			if err != nil {
				t.Fatal(err)
			}
			h := open(t, plan{config: config, rules: permissive}, says(c.items...))
			h.bothBodies(func(how, body string) {
				w := h.post(body)
				shown := w.Body.String()
				if strings.Contains(shown, "ghp_") || strings.Contains(shown, token[10:20]) {
					t.Errorf("%s, %s, %s: %s", place, action, how, shown)
				}
				if action == "deny" {
					if w.Code != http.StatusForbidden || !strings.Contains(shown, "hook_denied") || !strings.Contains(strings.Join(h.settled(t), "\n"), "hook_denied") {
						t.Errorf("%s, %s: %d %s", place, how, w.Code, shown)
					}
					return
				}
				for _, left := range c.left {
					if w.Code != http.StatusOK || !strings.Contains(shown, left) {
						t.Errorf("%s, %s: %d %s", place, how, w.Code, shown)
					}
				}
			})
		}
	}
}

// TestHookedThoughtInRun: what a model thought goes back to it as hooks leave it.
func TestHookedThoughtInRun(t *testing.T) {
	config, err := configs.Load(corpora.HookedConfig(t, `[{name: secrets, at: [text], patterns: [secrets], on_match: redact}]`))
	if err != nil {
		t.Fatal(err)
	}
	thought := strings.Replace(reasoning, `"hm"`, quoted("say "+token+" now"), 1)
	for how, body := range map[string]string{"whole": asks(), "streamed": asksStream()} {
		h := open(t, plan{config: config, rules: orchestrate}, says(thought, function("call_1", "web_search", `{"query":"go"}`)), says(message("Found.")))
		if w := h.post(body); w.Code != http.StatusOK || h.model.times() != 2 {
			t.Fatalf("%s: %d %s", how, w.Code, w.Body)
		}
		if input := string(h.model.asked(t, 1)["input"]); strings.Contains(input, token) || !strings.Contains(input, "say [redacted:github-token] now") {
			t.Errorf("%s: the model got %s", how, input)
		}
	}
}

// bothBodies calls a function with a request for a whole answer and for a stream.
func (h *fixture) bothBodies(each func(how, body string)) {
	each("whole", asks())
	each("streamed", asksStream())
}
