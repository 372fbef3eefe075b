package callback_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/hook"
)

// hooked is a gateway whose hook sees what tools say.
func hooked(t testing.TB, action hook.Action) (w *world, token string) {
	t.Helper()
	w = newWorld(t)
	w.config.Hooks = hook.NewSet([]*hook.Hook{{Name: "secrets", At: []hook.Point{hook.Result}, Patterns: hook.Builtin(hook.Secrets), OnMatch: action, MaxBytes: 1 << 20}})
	// It is put together here, so that no scanner takes this file for one that has a secret.
	return w.again(), "gh" + "p_" + strings.Repeat("aB3", 12)
}

const gone = "[redacted:github-token]"

// TestHookedLateResults: a result that comes after its call was accepted passes the hooks before it is
// stored.
func TestHookedLateResults(t *testing.T) {
	for action, want := range map[hook.Action]string{hook.Redact: `{"text":"is ` + gone + `"}`, hook.Deny: `"code":"hook_denied"`} {
		w, token := hooked(t, action)
		c := w.begin("later.do", "t")
		c.says(200, c.result("text", "is "+token))
		if got := c.output(); !strings.Contains(got, want) || strings.Contains(got, token) {
			t.Errorf("%s: %s", action, got)
		}
	}
}

// TestHookedDisplays: what a tool shows to people is bound by its bytes: what would be redacted is
// denied, with the result.
func TestHookedDisplays(t *testing.T) {
	for _, action := range []hook.Action{hook.Redact, hook.Deny} {
		w, token := hooked(t, action)
		c := w.begin("later.do", "t")
		c.says(200, c.result("text", "fine", "display_as", []any{map[string]any{"type": "text", "content": "is " + token}}))
		if got := c.output(); !strings.Contains(got, `"code":"hook_denied"`) || c.state().Display != nil || strings.Contains(c.state().raw, token) {
			t.Errorf("%s: %s", action, c.state().raw)
		}
		c = w.begin("later.do", "t")
		c.says(200, c.result("text", "fine", "display_as", []any{map[string]any{"type": "text", "content": "shown"}}))
		if !strings.Contains(string(c.state().Display), "shown") {
			t.Errorf("%s: %s", action, c.state().raw)
		}
	}
}

// TestHookedEvents: events of a subscription pass the hooks before they are told; one that is denied
// says only that, and ends the subscription where it is the last.
func TestHookedEvents(t *testing.T) {
	for action, want := range map[hook.Action]string{hook.Redact: "is " + gone, hook.Deny: "A hook of this gateway does not let the text of this event pass."} {
		w, token := hooked(t, action)
		c := w.begin("later.do", "t")
		events := c.follow()
		c.says(200, c.result("text", "subscribed", "subscription", true))
		for range 2 { // pending and done
			next(t, events)
		}
		c.says(200, c.message("subscription_event", "text", "is "+token, "final", true))
		if e := next(t, events); e != `subscription {"text":"`+want+`","associative":false,"final":true}` {
			t.Errorf("%s: %s", action, e)
		}
		if e := next(t, events); e != "" {
			t.Errorf("%s: the subscription continues with %s", action, e)
		}
	}
}

// TestHookedViews: a view in which a hook finds something is not shown, and its tool is told.
func TestHookedViews(t *testing.T) {
	for _, action := range []hook.Action{hook.Redact, hook.Deny} {
		w, token := hooked(t, action)
		c := w.begin("later.do", "t")
		follower := c.follow()
		next(t, follower) // pending
		c.says(403, c.view("diff", map[string]any{"patch": []string{"is " + token}}))
		c.says(200, c.view("diff", map[string]any{"patch": "fine"}))
		if got := next(t, follower); got != `view {"view_type":"diff","content":{"patch":"fine"}}` {
			t.Errorf("%s: %s", action, got)
		}
	}
}

// TestHookedChoices: the texts of a choice pass the hooks before a person sees them.
func TestHookedChoices(t *testing.T) {
	w, token := hooked(t, hook.Redact)
	c := w.begin("later.do", "t")
	c.says(200, c.asks("Keep "+token+"?", "choices", []string{"keep " + token, "drop it"}))
	if got := c.state().raw; strings.Contains(got, token) || strings.Count(got, gone) != 2 {
		t.Errorf("redacted: %s", got)
	}
	w, token = hooked(t, hook.Deny)
	c = w.begin("later.do", "t")
	c.says(403, c.asks("Keep "+token+"?"))
	c.pending()
}
