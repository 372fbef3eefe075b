package acp_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/hook"
)

// TestHookedTexts: what a session shows of a model's text and thoughts has passed the hooks, in whatever
// pieces it came; and neither a session that is loaded again nor the model gets what they removed.
func TestHookedTexts(t *testing.T) {
	// It is put together here, so that no scanner takes this file for one that has a secret.
	token := "gh" + "p_" + strings.Repeat("aB3", 12)
	hooks := hook.NewSet([]*hook.Hook{{Name: "secrets", At: []hook.Point{hook.Text}, Patterns: hook.Builtin(hook.Secrets), OnMatch: hook.Redact, MaxBytes: 1 << 20}})
	h := open(t, plan{state: func(c *gateway.Config, _ *calls.Deps) { c.Hooks = hooks }},
		chunks("stop", `{"role":"assistant","reasoning_content":"Hm `+token[:9]+`"}`, `{"reasoning_content":"`+token[9:]+`."}`, `{"content":"Say g"}`, `{"content":"`+token[1:]+`"}`, `{"content":" now"}`),
		chunks("stop", `{"role":"assistant","content":"Bye."}`))
	h.Initialize(nil)
	s := h.Session(h.root(t))
	h.Prompt(s, "Go.")
	text := func(kind string) (all string) {
		for _, c := range updates(t, h, kind) {
			all += c.Update.Content.Text
		}
		return all
	}
	const gone = "[redacted:github-token]"
	if said, thought := text("agent_message_chunk"), text("agent_thought_chunk"); said != "Say "+gone+" now" || thought != "Hm "+gone+"." {
		t.Errorf("shown %q, %q", said, thought)
	}
	h.Prompt(s, "And?")
	if asked := h.asked(t, 1); strings.Contains(asked, "ghp_") || !strings.Contains(asked, "Say "+gone+" now") {
		t.Errorf("the model got %s", asked)
	}
}
