package agenthooks_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// give hands a call of a model over to the agent, as a face in front of the model does.
func (o *office) give(t *testing.T, credential, id, tool, arguments string) calls.Outcome {
	t.Helper()
	a, err := o.Executor.Kernel.Admit(t.Context(), gateway.Request{Credential: credential, Subject: gateway.Subject{Agent: "Coder", Workspace: "local", Project: "work"}, Thread: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	d := a.Judge(t.Context(), gateway.ModeEnforce, gateway.Input{Native: &gateway.NativeCall{ID: id, Name: tool, Arguments: []byte(arguments)}})
	return o.Executor.HandOver(t.Context(), d)[0]
}

// oneAnHour lets one call pass.
func oneAnHour(t *testing.T) func(*gateway.Config, *calls.Deps) {
	t.Helper()
	rate, err := ratelimit.ParseRate("1/h")
	if err != nil {
		t.Fatal(err)
	}
	return func(g *gateway.Config, _ *calls.Deps) {
		g.Limits = &ratelimit.Limits{Replicas: 1, Default: ratelimit.Allowance{Budget: &ratelimit.Budget{Rate: rate, Burst: 1}}}
	}
}

// TestGiven: a call that was judged in front of the model takes nothing where the hook asks about it, and has no second
// decision. Whatever differs is judged, and counted, as a call of its own (AH-13, AH-14): one call an hour may pass.
func TestGiven(t *testing.T) {
	const ls, id = `{"command":"ls"}`, `,"tool_use_id":"i"`
	limited := deny + "rate_limited: "
	for name, c := range map[string]struct {
		given, arguments         string // to the agent, under the id i
		agent, tool, input, more string // that its hook asks about
		cwd, answer              string
		header                   []string
		meanwhile                func(*office)
		changed                  bool
	}{
		"the same":                   {"Bash", ls, "claude-code", "Bash", ls, id, "", "{}", nil, nil, false},
		"read and written again":     {"Bash", "{ \"description\" : \"\\u0064\",\n\"command\": \"ls\"}", "claude-code", "Bash", `{"command":"ls","description":"d"}`, id, "", "{}", nil, nil, false},
		"with a default":             {"Edit", `{"text":"a"}`, "claude-code", "Edit", `{"text":"a","all":false}`, id, "", "{}", nil, nil, false},
		"of a subagent":              {"Bash", ls, "claude-code", "Bash", ls, id + `,"agent_id":"a1"`, "", "{}", nil, nil, false},
		"in a folder below":          {"Read", `{"file_path":"inner"}`, "claude-code", "Read", `{"file_path":"inner"}`, id, "/sub", "{}", nil, nil, false},
		"Codex, a tool of MCP":       {"mcp__github.get_issue", `{"n":1}`, "codex", "mcp__github__get_issue", `{"n": 1}`, id, "", "{}", nil, nil, false},
		"another id":                 {"Bash", ls, "claude-code", "Bash", ls, `,"tool_use_id":"j"`, "", limited, nil, nil, false},
		"another command":            {"Bash", ls, "claude-code", "Bash", `{"command":"make deploy"}`, id, "", limited, nil, nil, true},
		"a command that is denied":   {"Bash", ls, "claude-code", "Bash", `{"command":"rm"}`, id, "", deny + "permission_denied: ", nil, nil, true},
		"one more argument":          {"Bash", ls, "claude-code", "Bash", `{"command":"ls","description":"d"}`, id, "", limited, nil, nil, true},
		"not the default":            {"Edit", `{"text":"a"}`, "claude-code", "Edit", `{"text":"a","all":true}`, id, "", deny + "permission_denied: ", nil, nil, true},
		"a number written otherwise": {"mcp__github.get_issue", `{"n":1}`, "codex", "mcp__github__get_issue", `{"n":1.0}`, id, "", limited, nil, nil, true},
		"another tool":               {"Edit", `{"text":"a"}`, "claude-code", "Bash", ls, id, "", limited, nil, nil, true},
		"another session":            {"Bash", ls, "claude-code", "Bash", ls, id + `,"agent_id":"a1","session_id":"s2"`, "", limited, nil, nil, false},
		"for another user":           {"Bash", ls, "claude-code", "Bash", ls, id, "", limited, []string{"Callgate-User", "u"}, nil, false},
		"in another project":         {"Bash", ls, "claude-code", "Bash", ls, id, "/other", deny + "permission_denied: ", nil, nil, false},
		"a path that leads out":      {"Read", `{"file_path":"out/x"}`, "claude-code", "Read", `{"file_path":"out/x"}`, id, "/sub", limited, nil, nil, false},
		"a tool that was stopped": {"Bash", ls, "claude-code", "Bash", ls, id, "", deny + "stopped: ", nil, func(o *office) {
			o.Executor.Kernel.Stop([]store.Stop{{ID: "stop_1", Tool: "Bash"}}, true)
		}, false},
		"by another configuration": {"Bash", ls, "claude-code", "Bash", ls, id, "", limited, nil, func(o *office) {
			next := *o.Executor.Kernel.Config()
			next.Digest = "another"
			if err := o.Executor.Kernel.Swap(&next); err != nil {
				t.Error(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, oneAnHour(t))
			given := o.give(t, "", "i", c.given, c.arguments)
			if given.Refusal != nil {
				t.Fatal(given.Refusal)
			}
			if c.meanwhile != nil {
				c.meanwhile(o)
			}
			body := strings.Replace(o.body("PreToolUse", c.tool, c.input, c.more), `"cwd":"`+o.folder, `"cwd":"`+o.folder+c.cwd, 1)
			if strings.Contains(c.more, `"session_id"`) {
				body = strings.Replace(body, `"session_id":"s1",`, "", 1)
			}
			w := o.post(c.agent, body, c.header...)
			if !strings.HasPrefix(w.Body.String(), c.answer) {
				t.Errorf("%s; expected %s", w.Body, c.answer)
			}
			decisions, want := o.decided(t), 2
			if c.answer == "{}" {
				want = 1
				if w.Header().Get("Callgate-Call-Id") != given.CallID {
					t.Errorf("the call has the id %q; expected %q", w.Header().Get("Callgate-Call-Id"), given.CallID)
				}
				if w := o.post(c.agent, strings.Replace(body, "PreToolUse", "PostToolUse", 1), c.header...); w.Body.String() != "{}" {
					t.Errorf("after it ran: %s", w.Body)
				}
			}
			if len(decisions) != want {
				t.Errorf("decisions %q; expected %d", decisions, want)
			}
			changed := ""
			for _, r := range o.Journal.Records() {
				if r.Event == audit.Decision && r.AgentHook != nil {
					changed = r.ChangedAfterVerdict
				}
			}
			if c.changed && changed != given.CallID || !c.changed && changed != "" {
				t.Errorf("changed after the verdict on %q", changed)
			}
		})
	}
}

// TestGivenOnce: each call in front of the model counts for one question of a hook, and once in its thread.
func TestGivenOnce(t *testing.T) {
	const once = `{"command":"once"}`
	o := open(t, nil)
	if given := o.give(t, "", "i", "Bash", once); given.Refusal != nil {
		t.Fatal(given.Refusal)
	}
	for _, event := range []string{"PreToolUse", "PermissionRequest", "PreToolUse", "PostToolUse"} {
		if w := o.post("claude-code", o.body(event, "Bash", once, `,"tool_use_id":"i"`)); w.Body.String() != "{}" {
			t.Errorf("%s: %s", event, w.Body)
		}
	}
	if codes := o.decided(t); len(codes) != 1 || codes[0] != "" {
		t.Errorf("%q", codes)
	}
	if w := o.post("claude-code", o.body("PreToolUse", "Bash", once, `,"tool_use_id":"j"`)); !strings.HasPrefix(w.Body.String(), deny+"permission_denied") {
		t.Errorf("another call: %s", w.Body)
	}
	if w := o.post("claude-code", o.body("PreToolUse", "Bash", `{"command":"ls"}`, `,"tool_use_id":"i"`)); w.Body.String() != "{}" {
		t.Errorf("other arguments, which may pass: %s", w.Body)
	}
	// A provider may give an id twice.
	if given := o.give(t, "", "i", "Bash", once); given.Refusal == nil {
		t.Error("a second call of the model under the id is not counted")
	}
	if w := o.post("claude-code", o.body("PreToolUse", "Bash", once, `,"tool_use_id":"i"`)); !strings.HasPrefix(w.Body.String(), deny+"permission_denied") {
		t.Errorf("the verdict on the first call was taken twice: %s", w.Body)
	}
}

// TestGivenToAnother: the call of one caller is no other's.
func TestGivenToAnother(t *testing.T) {
	keys, all := map[string]string{}, map[string]*identity.Principal{}
	for _, name := range []string{"a", "b"} {
		key, sha := identity.NewAPIKey()
		keys[name], all[sha] = key, &identity.Principal{Name: name, Agents: []string{"Coder"}, Workspace: "local", Projects: []string{"work"}}
	}
	by, err := identity.NewAPIKeys(all)
	if err != nil {
		t.Fatal(err)
	}
	limit := oneAnHour(t)
	o := open(t, func(g *gateway.Config, d *calls.Deps) {
		limit(g, d)
		g.Identity = by
	})
	const ls = `{"command":"ls"}`
	if given := o.give(t, keys["a"], "i", "Bash", ls); given.Refusal != nil {
		t.Fatal(given.Refusal)
	}
	body := o.body("PreToolUse", "Bash", ls, `,"tool_use_id":"i"`)
	if w := o.post("claude-code", body, "Authorization", "Bearer "+keys["b"]); !strings.HasPrefix(w.Body.String(), deny+"rate_limited") {
		t.Errorf("another caller: %s", w.Body)
	}
	if w := o.post("claude-code", body, "Authorization", "Bearer "+keys["a"]); w.Body.String() != "{}" {
		t.Errorf("the caller itself: %s", w.Body)
	}
}

// TestGivenApproved: what people have approved in front of the model they are not asked again, as long as it is the same.
func TestGivenApproved(t *testing.T) {
	const deploy = `{"command":"make deploy"}`
	o := open(t, nil)
	asked := o.give(t, "", "h", "Bash", deploy)
	if asked.ApprovalRequest == nil {
		t.Fatal(asked.Refusal)
	}
	a, err := o.Executor.Desk().Get(t.Context(), asked.ApprovalRequest.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Executor.Desk().Vote(t.Context(), approval.Voter{Principal: "ops", Approves: []string{"theirs"}}, a.ID, approvals.Ballot{Yes: true, Digest: a.Digest}); err != nil {
		t.Fatal(err)
	}
	if given := o.give(t, "", "i", "Bash", deploy); given.Refusal != nil {
		t.Fatal(given.Refusal)
	}
	for id, answer := range map[string]string{"i": "{}", "j": deny + "approval_required: "} {
		if w := o.post("claude-code", o.body("PreToolUse", "Bash", deploy, `,"tool_use_id":"`+id+`"`)); !strings.HasPrefix(w.Body.String(), answer) {
			t.Errorf("%s: %s; expected %s", id, w.Body, answer)
		}
	}
}
