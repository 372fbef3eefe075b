package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/refusal"
)

// byAgentHook brings calls to the face for the hooks of coding agents. Its denials have a code in their reason, by which the
// stage is known here, and no path.
func byAgentHook(t *testing.T, of vectors) carry {
	config, data := unlimited(t, of.config)
	g := serveGate(t, config)
	loaded, err := configs.Load(config)
	if err != nil {
		t.Fatal(err)
	}
	sent, passed := 0, 0
	t.Cleanup(func() {
		if decisions, outcomes := g.countRecords(t, data); decisions != sent || outcomes != passed {
			t.Errorf("%d decisions and %d outcomes in the log, want %d and %d", decisions, outcomes, sent, passed)
		}
	})
	return func(t *testing.T, v corpora.Vector) (vectorVerdict, bool) {
		name, arguments, ok := called(t, v)
		if !ok || name == "" {
			return vectorVerdict{}, false
		}
		folder := "/"
		if roots := loaded.Workspaces[v.Workspace].Projects[v.Project].Roots; len(roots) > 0 {
			folder = roots[0]
		}
		sent++
		r := g.ask(t, http.MethodPost, "/v1/hooks/claude-code", fmt.Sprintf(`{"session_id":"s","hook_event_name":"PreToolUse","cwd":%s,"tool_use_id":"call-%d","tool_name":%s,"tool_input":%s}`,
			quotedName(folder), sent, quotedName(name), arguments),
			"Content-Type", "application/json", "Callgate-Agent", v.Agent, "Callgate-Workspace", v.Workspace, "Callgate-Project", v.Project)
		if r.status == http.StatusOK && r.body == "{}" {
			passed++
			return vectorVerdict{Verdict: "tool_call"}, true
		}
		var answer struct {
			Specific struct {
				Decision string `json:"permissionDecision"`
				Reason   string `json:"permissionDecisionReason"`
			} `json:"hookSpecificOutput"`
		}
		if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.status != http.StatusOK || answer.Specific.Decision != "deny" {
			t.Errorf("%s: %d %s", v.ID, r.status, r.body)
		}
		code, _, _ := strings.Cut(answer.Specific.Reason, ":")
		got := vectorVerdict{Verdict: "refused", Code: code, Stage: string(refusal.New(refusal.Code(code), "").Stage)}
		if v.Expect.Path != nil {
			got.Path = *v.Expect.Path
		}
		return got, true
	}
}
