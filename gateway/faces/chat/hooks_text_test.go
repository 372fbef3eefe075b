package chat_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/upstream"
)

// hookedTexts is a configuration with a hook at texts.
func hookedTexts(t testing.TB, action string) *configs.Config {
	t.Helper()
	c, err := configs.Load(corpora.HookedConfig(t, `[{name: secrets, at: [text], patterns: [secrets], on_match: `+action+`}]`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHookedTexts: everything that a model says passes the hooks before the application gets it: its
// text, its thoughts, what it speaks and why it refuses; whole, and streamed in pieces of any size.
func TestHookedTexts(t *testing.T) {
	const gone = "[redacted:github-token]"
	said := "say " + token + " now"
	for place, c := range map[string]struct {
		message, left string
		whole         bool // it does not come in pieces
	}{
		"content":           {`{"role":"assistant","content":"` + said + `"}`, `"content":"say ` + gone + ` now"`, false},
		"JSON in content":   {`{"role":"assistant","content":"{\"a\":\"\\u0067` + token[1:] + `\"}"}`, `\"a\":\"` + gone, false},
		"a thought":         {`{"role":"assistant","content":"fine","reasoning_content":"` + said + `"}`, `"reasoning_content":"say ` + gone + ` now"`, false},
		"another thought":   {`{"role":"assistant","content":"fine","reasoning":"` + said + `"}`, `"reasoning":"say ` + gone + ` now"`, true},
		"parts of thoughts": {`{"role":"assistant","content":"fine","reasoning_details":[{"type":"reasoning.text","text":"` + said + `"}]}`, `"text":"say ` + gone + ` now"`, true},
		"a refusal":         {`{"role":"assistant","content":null,"refusal":"` + said + `"}`, `"refusal":"say ` + gone + ` now"`, false},
		"a citation":        {`{"role":"assistant","content":"fine","annotations":[{"type":"url_citation","url_citation":{"title":"` + token + `"}}]}`, `"title":"` + gone + `"`, true},
		"speech":            {`{"role":"assistant","content":null,"audio":{"id":"a1","data":"aGk=","transcript":"` + said + `"}}`, `"transcript":"say ` + gone + ` now"`, true},
	} {
		for _, action := range []string{"redact", "deny"} {
			for _, piece := range []int{0, 1, 7, 1000} {
				if piece > 0 && c.whole {
					continue
				}
				answer, more := says(c.message, "stop"), ""
				if piece > 0 {
					answer, more = func(w http.ResponseWriter, _ *http.Request) { stream(w, piece, "stop", c.message) }, `"stream":true`
				}
				h := openWith(t, hookedTexts(t, action), inTurn(answer), plan{rules: noRepairs})
				w := h.post(asks(more))
				shown := w.Body.String()
				if action == "deny" {
					if got := reads(t, w); got.Error.Code != "hook_denied" || strings.Contains(shown, "ghp_") || strings.Contains(got.text(), "gh") {
						t.Errorf("%s, in pieces of %d: %d %s", place, piece, w.Code, shown)
					}
					if r := h.settled(t); len(r) != 1 || !strings.Contains(r[0], "refused  hook_denied") {
						t.Errorf("%s, in pieces of %d: recorded %s", place, piece, r)
					}
					continue
				}
				if w.Code != http.StatusOK || strings.Contains(together(shown), "ghp_") || !strings.Contains(together(shown), c.left) {
					t.Errorf("%s, in pieces of %d: %d %s", place, piece, w.Code, together(shown))
				}
			}
		}
	}
}

// TestHookedDeltas: members of a stream that are shown unjudged, in two pieces.
func TestHookedDeltas(t *testing.T) {
	const gone = "[redacted:github-token]"
	first, second := "say "+token[:9], token[9:]+" now"
	for place, c := range map[string]struct {
		deltas []string
		left   string
	}{
		"a thought":         {[]string{delta(`"reasoning":"` + first + `"`), delta(`"reasoning":"` + second + `"`), delta(`"content":"fine"`)}, `"reasoning":"say ` + gone + ` now"`},
		"its end":           {[]string{delta(`"reasoning":"` + first + `"`), delta(`"reasoning":"` + token[9:] + `"`), delta(`"content":"fine"`)}, `"reasoning":"say ` + gone + `"`},
		"parts of thoughts": {[]string{delta(`"content":"fine"`), delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"` + first + second + `"}]`)}, gone + ` now"`},
		"a citation":        {[]string{delta(`"content":"fine"`), delta(`"annotations":[{"title":"` + token + `"}]`)}, `"title":"` + gone + `"`},
		"speech":            {[]string{delta(`"audio":{"id":"a1","transcript":"` + first + `"}`), delta(`"audio":{"transcript":"` + second + `"}`)}, `"transcript":"say ` + gone + ` now"`},
	} {
		for _, action := range []string{"redact", "deny"} {
			h := openWith(t, hookedTexts(t, action), inTurn(chunks(append(c.deltas, stops)...)), plan{rules: noRepairs})
			w := h.post(asks(`"stream":true`))
			shown := together(w.Body.String())
			if denied := strings.Contains(shown, "hook_denied"); strings.Contains(shown, "ghp_") || denied != (action == "deny") || !denied && !strings.Contains(shown, c.left) {
				t.Errorf("%s, %s: %d %s", place, action, w.Code, shown)
			}
		}
	}
}

// together is a stream with each member's pieces put together, as far as they stand one after the other.
func together(body string) string {
	for _, name := range []string{"content", "reasoning_content", "reasoning", "refusal"} {
		open := `"delta":{"` + name + `":"`
		var all strings.Builder
		for _, line := range strings.Split(body, "\n") {
			line = strings.Replace(line, `"role":"assistant",`, "", 1)
			if _, rest, ok := strings.Cut(line, open); ok {
				text, _, _ := strings.Cut(rest, `"},"`)
				all.WriteString(text)
			}
		}
		if all.Len() > 0 {
			body += "\n" + `"` + name + `":"` + all.String() + `"`
		}
	}
	return body
}

// TestHookedTextIsRepaired: a denied text that nobody got is told to the model.
func TestHookedTextIsRepaired(t *testing.T) {
	h := openWith(t, hookedTexts(t, "deny"), inTurn(says(content("say "+token), "stop"), says(content("never mind"), "stop")), plan{rules: func(r *upstream.Rules) { r.MaxRepairs = 1 }})
	w := h.post(asks(""))
	if got := reads(t, w); got.text() != "never mind" || strings.Contains(w.Body.String(), token) || !strings.Contains(string(h.model.body(t, 1)), "hook_denied") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestHookedThoughtStopsAtARefusal: what hooks held of a thought is not shown behind a refused text.
func TestHookedThoughtStopsAtARefusal(t *testing.T) {
	answer := chunks(delta(`"reasoning_content":"before "`), delta(`"content":"Sure <tool_call>"`), delta(`"reasoning_content":"behind `+token[:9]+`"`), stops)
	w := openWith(t, hookedTexts(t, "redact"), inTurn(answer), plan{rules: noRepairs}).post(asks(`"stream":true`))
	if got := reads(t, w); got.Error.Code != "foreign_call_syntax" || !strings.Contains(w.Body.String(), "before") || strings.Contains(w.Body.String(), token[:4]) {
		t.Errorf("found %s", w.Body)
	}
}

// TestHookedTextInARun: the model gets back all that it said beside its calls, however much of it was sent in pieces.
func TestHookedTextInARun(t *testing.T) {
	beside := strings.Replace(toolCalls("c1", "time_now", "{}"), `"content":null`, `"content":"I look at `+token+`"`, 1)
	for _, piece := range []int{1, 1000} {
		h := openWith(t, hookedTexts(t, "redact"), inTurn(func(w http.ResponseWriter, _ *http.Request) { stream(w, piece, "tool_calls", beside) }, says(content("noon"), "stop")), plan{rules: orchestrate})
		w := h.post(asks(`"stream":true`))
		if got := reads(t, w); got.text() != "I look at [redacted:github-token]\n\nnoon" || !strings.Contains(string(h.model.body(t, 1)), `"content":"I look at `) {
			t.Errorf("in pieces of %d: found %q; the model was asked %s", piece, got.text(), h.model.body(t, 1))
		}
	}
}
