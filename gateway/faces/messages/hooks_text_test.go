package messages_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/upstream"
)

// TestHookedHead: what the provider says around the blocks passes the hooks too.
func TestHookedHead(t *testing.T) {
	for _, action := range []string{"redact", "deny"} {
		config, err := configs.Load(corpora.HookedConfig(t, `[{name: secrets, at: [text], patterns: [secrets], on_match: `+action+`}]`))
		if err != nil {
			t.Fatal(err)
		}
		for _, member := range []string{"stop_details", "container", "context_management", "diagnostics", "input_transformations"} {
			said := strings.Replace(message("end_turn", textOf("fine")), `"stop_sequence"`, `"`+member+`":{"explanation":`+quoted("say "+token)+`},"stop_sequence"`, 1)
			w := openWith(t, config, says(said), plan{rules: noRepairs}).create(asks())
			if strings.Contains(w.Body.String(), token) || (w.Code == http.StatusOK) != (action == "redact") {
				t.Errorf("%s, %s: found %d %s", member, action, w.Code, w.Body)
			}
		}
	}
}

// TestHookedTexts: everything that a model says passes the hooks before the application gets it: its
// text, in one block and across blocks, its thinking, citations and summaries; whole, and streamed in
// pieces of any size. Thinking that is signed cannot be redacted, and is denied.
func TestHookedTexts(t *testing.T) {
	const gone = "[redacted:github-token]"
	said := "say " + token + " now"
	for place, c := range map[string]struct {
		blocks []string
		left   []string
		bound  bool
	}{
		"a text":          {[]string{textOf(said)}, []string{`"text":"say ` + gone + ` now"`}, false},
		"JSON in a text":  {[]string{textOf(`{"a":"\u0067` + token[1:] + `"}`)}, []string{`\"a\":\"` + gone}, false},
		"across texts":    {[]string{textOf("one " + token[:9]), thinkingBlock, textOf(token[9:] + " two")}, []string{`"text":"one ` + gone + `"`, `"text":" two"`}, false},
		"thinking":        {[]string{`{"type":"thinking","thinking":` + quoted(said) + `,"signature":""}`, textOf("fine")}, []string{`"thinking":"say ` + gone + ` now"`}, false},
		"signed thinking": {[]string{`{"type":"thinking","thinking":` + quoted(said) + `,"signature":"c2ln"}`, textOf("fine")}, nil, true},
		"a citation":      {[]string{`{"type":"text","text":"fine","citations":[{"type":"char_location","cited_text":` + quoted(said) + `,"document_index":0}]}`}, []string{`"cited_text":"say ` + gone + ` now"`}, false},
		"a summary":       {[]string{`{"type":"compaction","content":` + quoted(said) + `}`, textOf("fine")}, []string{`"content":"say ` + gone + ` now"`}, false},
	} {
		for _, action := range []string{"redact", "deny"} {
			config, err := configs.Load(corpora.HookedConfig(t, `[{name: secrets, at: [text], patterns: [secrets], on_match: `+action+`}]`))
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{0, 1, 7, 1000} {
				h := openWith(t, config, saysIn("deltas", max(size, 1), message("end_turn", c.blocks...)), plan{rules: noRepairs})
				body := asks()
				if size > 0 {
					body = asks(streamed)
				}
				w := h.create(body)
				shown := w.Body.String()
				if strings.Contains(shown, "ghp_") || strings.Contains(shown, token[10:20]) {
					t.Errorf("%s, %s, in pieces of %d: %s", place, action, size, shown)
				}
				if action == "deny" || c.bound {
					if w.Code != http.StatusForbidden || !strings.Contains(shown, "hook_denied") || !strings.Contains(h.settled(t), "hook_denied") {
						t.Errorf("%s, %s, in pieces of %d: %d %s", place, action, size, w.Code, shown)
					}
					continue
				}
				for _, left := range c.left {
					if w.Code != http.StatusOK || !strings.Contains(shown, left) {
						t.Errorf("%s, in pieces of %d: %d %s", place, size, w.Code, shown)
					}
				}
			}
		}
	}
}

// TestDeniedSummary: a turn whose summary, or a block of a type that is not known, hooks deny goes back to the model as it
// was received.
func TestDeniedSummary(t *testing.T) {
	config, err := configs.Load(corpora.HookedConfig(t, `[{name: secrets, at: [text], patterns: [secrets], on_match: deny}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range []string{`{"type":"compaction","content":` + quoted("say "+token) + `}`, `{"type":"new_block","data":` + quoted("say "+token) + `}`} {
		for how, body := range map[string]string{"whole": asks(), "streamed": asks(streamed)} {
			h := openWith(t, config, func(turn int, w http.ResponseWriter, r *http.Request) {
				blocks := []string{block, textOf("fine")}
				saysIn("deltas", 100, message("end_turn", blocks[min(turn, 1):]...))(turn, w, r)
			}, plan{rules: func(r *upstream.Rules) { r.Messages.UnknownBlocks = upstream.Pass }})
			w := h.create(body)
			if w.Code != http.StatusOK || h.model.times() != 2 || !json.Valid([]byte(h.model.body(t, 1))) {
				t.Errorf("%s, %s: %d %s, and the model got %s", block, how, w.Code, w.Body, h.model.body(t, h.model.times()-1))
			}
		}
	}
}
