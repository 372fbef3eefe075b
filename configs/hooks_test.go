package configs

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// hooked loads a configuration with hooks.
func hooked(t *testing.T, hooks string) *Config {
	t.Helper()
	main := strings.Replace(configtest.Base(t)["callgate.yaml"].Data, "# end", "hooks: hooks.yaml\n# end", 1)
	return loads(t, configtest.With(t, map[string]string{"callgate.yaml": main, "hooks.yaml": "hooks: " + hooks + "\n# end\n"}))
}

func TestHooks(t *testing.T) {
	c := hooked(t, `[{name: own, at: [result], patterns: [jwt, {name: ticket, regex: "T-[0-9]+"}], on_match: redact, max_bytes: 10, tools: [web.*], agents: [Analyst]}, {name: all, at: [call], patterns: [secrets]}]`)
	all := c.Hooks.All()
	if len(all) != 2 || len(c.Warnings) > 0 {
		t.Fatalf("found %d hooks, and %v", len(all), c.Warnings)
	}
	first, second := all[0], all[1]
	if first.Name != "own" || len(first.Patterns) != 2 || first.OnMatch != hook.Redact || first.MaxBytes != 10 || !first.Patterns[1].Matches("T-1") {
		t.Errorf("found %+v", first)
	}
	if second.OnMatch != hook.Deny || second.MaxBytes != 1<<20 || len(second.Patterns) != len(hook.Builtin(hook.Secrets)) {
		t.Errorf("found %+v", second)
	}
	if !c.Hooks.Applies(hook.Result, "Analyst", "web.search") || c.Hooks.Applies(hook.Result, "Intern", "web.search") {
		t.Error("it is not for whom it should be")
	}
	if none := loads(t, configtest.Base(t)); none.Hooks != nil || none.Digest == c.Digest {
		t.Errorf("without the key hooks there are %+v", none.Hooks)
	}
	if empty := hooked(t, "[]"); empty.Hooks != nil {
		t.Errorf("an empty list is %+v", empty.Hooks)
	}
}

func TestHookWarnings(t *testing.T) {
	c := hooked(t, `[{name: a, at: [call], tools: [wep.search, nothing.*, "*"], agents: [analyst], url: "http://dlp.example"}]`)
	var found []string
	for _, w := range c.Warnings {
		_, message, _ := strings.Cut(w.Error(), "hooks.yaml:")
		found = append(found, message)
	}
	want := []string{
		`1:39: the hook "a" is for "wep.search", which matches none of the tools (did you mean "web.search"?)`,
		`1:51: the hook "a" is for "nothing.*", which matches none of the tools`,
		`1:77: the hook "a" is for "analyst", which matches none of the agents (did you mean "Analyst"?)`,
		`1:87: the hook is asked without TLS: anyone on the way can read the arguments and results that it is asked about`,
	}
	if !slices.Equal(found, want) {
		t.Errorf("found\n%s\nexpected\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
}

func TestCalloutHeader(t *testing.T) {
	c := hooked(t, `[{name: a, at: [call], url: "https://dlp.example/x", timeout: 50ms, headers: {authorization: "env:HOOK_AUTH"}, key: "env:HOOK_KEY"}]`)
	callout := c.Hooks.All()[0].Callout
	if callout.Timeout != 50*time.Millisecond || callout.URL.String() != "https://dlp.example/x" {
		t.Errorf("found %+v", callout)
	}
	header := func() (http.Header, error) { return callout.Header("hook_1", time.Unix(1, 0), []byte("{}")) }
	if _, err := header(); err == nil {
		t.Error("a header without its secret")
	}
	t.Setenv("HOOK_AUTH", "Bearer x")
	t.Setenv("HOOK_KEY", "not-a-key")
	if _, err := header(); err == nil || strings.Contains(err.Error(), "not-a-key") {
		t.Errorf("a key that is none: %v", err)
	}
	t.Setenv("HOOK_KEY", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	h, err := header()
	if err != nil || h.Get("Authorization") != "Bearer x" || h.Get("Webhook-Id") != "hook_1" || h.Get("Webhook-Signature") == "" {
		t.Errorf("found %v, %v", h, err)
	}
	t.Setenv("HOOK_AUTH", "a\nb: c")
	if _, err := header(); err == nil {
		t.Error("a header of two lines")
	}
}
