package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/corpora"
)

// TestHooksEveryFace: a hook sees the arguments of a call whatever face it comes by, and in whatever
// pieces. Only the command line, which checks and makes no call, runs no hook.
func TestHooksEveryFace(t *testing.T) {
	t.Parallel()
	// It is put together here, so that no scanner takes this file for one that has a secret.
	token := "gh" + "p_" + strings.Repeat("aB3", 12)
	completion := `{"tool":{"name":"web.search","arguments":{"query":"\u0067` + token[1:] + `"}}}`
	v := corpora.Vector{ID: "hooked", Agent: "Analyst", Workspace: "acme", Project: "alpha", Completion: &completion}
	main := corpora.HookedConfig(t, `[{name: secrets, at: [call], patterns: [secrets]}]`)
	for _, f := range facesOnce() {
		t.Run(f.name, func(t *testing.T) {
			v := v
			of := vectorsOf(main, []corpora.Vector{v})
			switch {
			case strings.HasPrefix(f.name, "native"): // it also checks, without hooks
				config, _ := unlimited(t, of.config)
				g := serveGate(t, config)
				body, headers, ok := asJSON(t, v)
				if f.name == "native, text" {
					body, headers, ok = asText(t, v)
				}
				if r := g.ask(t, http.MethodPost, "/v1/calls", body, headers...); !ok || r.status != http.StatusForbidden || !strings.Contains(r.body, `"code":"hook_denied","stage":"approval"`) {
					t.Errorf("%d %s", r.status, r.body)
				}
				return
			case f.name == "the command line", strings.HasPrefix(f.name, "lines"):
				v.Expect.Verdict = "tool_call"
			default:
				v.Expect.Verdict, v.Expect.Code, v.Expect.Stage = "refused", "hook_denied", "approval"
			}
			if !carried(t, f.open(t, of), v) {
				t.Error("the face cannot carry it")
			}
		})
	}
}
