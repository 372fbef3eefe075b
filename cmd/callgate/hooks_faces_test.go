package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

// TestHooksEveryFace: a hook sees the arguments of a call whatever face it comes by, and in whatever
// pieces; what it leaves is held against the boundaries anew; and it changes nothing for other calls.
// Only the command line, which checks and makes no call, runs no hook.
func TestHooksEveryFace(t *testing.T) {
	t.Parallel()
	// It is put together here, so that no scanner takes this file for one that has a secret.
	token := "gh" + "p_" + strings.Repeat("aB3", 12)
	call := func(id, arguments string) corpora.Vector {
		completion := `{"tool":{"name":"web.search","arguments":` + arguments + `}}`
		return corpora.Vector{ID: id, Agent: "Analyst", Workspace: "acme", Project: "alpha", Completion: &completion}
	}
	outside := call("outside", `{"query":"x","site":"evil.com"}`)
	outside.Expect.Verdict, outside.Expect.Code, outside.Expect.Stage = "refused", "boundary_violation", "project"
	clean := call("clean", `{"query":"x","site":"example.com"}`)
	clean.Expect.Verdict = "tool_call"
	hooked := []corpora.Vector{
		call("denied", `{"query":"\u0067`+token[1:]+`"}`),
		call("redacted out of the boundary", `{"query":"x","site":"hush.example.org"}`),
	}
	main := corpora.HookedConfig(t, `[{name: secrets, at: [call], patterns: [secrets]}, {name: own, at: [call], patterns: [{name: own, regex: hush}], on_match: redact}]`)
	for _, f := range facesOnce() {
		t.Run(f.name, func(t *testing.T) {
			if strings.HasPrefix(f.name, "native") { // it also checks, without hooks
				config, _ := unlimited(t, main)
				g := serveGate(t, config)
				for _, v := range hooked {
					body, headers, ok := asJSON(t, v)
					if f.name == "native, text" {
						body, headers, ok = asText(t, v)
					}
					if r := g.ask(t, http.MethodPost, "/v1/calls", body, headers...); !ok || r.status != http.StatusForbidden || !strings.Contains(r.body, `"code":"hook_denied","stage":"approval"`) {
						t.Errorf("%s: %d %s", v.ID, r.status, r.body)
					}
				}
				return
			}
			all := []corpora.Vector{outside, clean}
			for _, v := range hooked {
				v.Expect.Verdict, v.Expect.Code, v.Expect.Stage = "refused", "hook_denied", "approval"
				if f.name == "the command line" || strings.HasPrefix(f.name, "lines") {
					v.Expect.Verdict, v.Expect.Code, v.Expect.Stage = "tool_call", "", ""
				}
				all = append(all, v)
			}
			carry := f.open(t, vectorsOf(main, all))
			for _, v := range all {
				if !carried(t, carry, v) {
					t.Errorf("%s: the face cannot carry it", v.ID)
				}
			}
		})
	}
}
