package acp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/acptest"
)

// TestACP45Permission: a rule that callers answer asks the user, by the kind of the option that is
// chosen; nothing else lets the call run (ACP-46, 47, 48, 51, 52).
func TestACP45Permission(t *testing.T) {
	for kind, want := range map[string]struct {
		statuses string
		ran      int
	}{
		"allow_once":    {"pending in_progress completed", 1},
		"allow_always":  {"pending in_progress completed", 1},
		"reject_once":   {"pending failed", 0},
		"reject_always": {"pending failed", 0},
		"":              {"pending failed", 0},
	} {
		t.Run("kind "+kind, func(t *testing.T) {
			h := open(t, plan{config: project(t, "0s")}, asks("Let me.", "acp_terminal_create", `{"command":"rm"}`), says("So be it."))
			h.Initialize(nil)
			h.Choose(acptest.OfKind(kind))
			s := h.Session("/w")
			if stop := h.Prompt(s, "Remove it."); stop != "end_turn" {
				t.Errorf("stopped by %q", stop)
			}
			calls := h.Calls(s)
			if len(calls) != 1 || strings.Join(calls[0].Statuses, " ") != want.statuses || calls[0].Title != "Run rm" {
				t.Fatalf("found %+v", calls)
			}
			if n := len(h.Commands()); n != want.ran {
				t.Errorf("%d commands were run", n)
			}
			asked := h.Got("session/request_permission")
			if len(asked) != 1 || !strings.Contains(string(asked[0].Params), calls[0].ToolCallID) || !strings.Contains(string(asked[0].Params), `"command":"rm"`) {
				t.Errorf("asked %v", asked)
			}
		})
	}
}

// TestACP48Remembered: a yes that stands answers the same call, and no other.
func TestACP48Remembered(t *testing.T) {
	h := open(t, plan{config: project(t, "0s")}, asks("", "pay", `{"card":"4111","to":"Ada"}`), asks("", "pay", `{"card":"4111","to":"Ada"}`), asks("", "pay", `{"card":"4111","to":"Bob"}`), says("Paid."))
	h.Initialize(nil)
	h.Choose(acptest.OfKind("allow_always"))
	s := h.Session("/w")
	if stop := h.Prompt(s, "Pay."); stop != "end_turn" {
		t.Errorf("stopped by %q", stop)
	}
	if n := len(h.Got("session/request_permission")); n != 2 {
		t.Errorf("the user was asked %d times", n)
	}
	if ran := h.outcomes(t, "pay"); len(ran) != 3 {
		t.Errorf("found the outcomes %q", ran)
	}
}

// TestACP55Secrets: no secret argument reaches the editor.
func TestACP55Secrets(t *testing.T) {
	h := open(t, plan{config: project(t, "0s")}, asks("", "pay", `{"card":"4111-2222","to":"Ada"}`), says("Paid."))
	h.Initialize(nil)
	s := h.Session("/w")
	h.Prompt(s, "Pay.")
	for _, line := range h.recorder.Lines() {
		if line.From == acptest.Agent && strings.Contains(line.Line, "4111") && !strings.Contains(line.Line, `"did"`) {
			t.Errorf("the editor got %s", line.Line)
		}
	}
	if calls := h.Calls(s); len(calls) != 1 || !strings.Contains(string(calls[0].RawInput), "[redacted]") {
		t.Errorf("found %+v", calls)
	}
}

// TestSeveralAsk: of several calls of one turn each asks, and one no refuses them all.
func TestSeveralAsk(t *testing.T) {
	for _, allowed := range []int{2, 1} {
		h := open(t, plan{config: project(t, "0s")}, asks("Both.", "pay", `{"card":"1"}`, "pay", `{"card":"2"}`), says("So be it."))
		h.Initialize(nil)
		asked := 0
		h.Choose(func(options []acptest.Option) string {
			if asked++; asked <= allowed {
				return acptest.OfKind("allow_once")(options)
			}
			return acptest.OfKind("reject_once")(options)
		})
		s := h.Session("/w")
		h.Prompt(s, "Pay both.")
		want := "pending in_progress completed"
		if allowed < 2 {
			want = "pending failed"
		}
		calls := h.Calls(s)
		if len(calls) != 2 || asked != 2 || slices.ContainsFunc(calls, func(c acptest.Call) bool { return strings.Join(c.Statuses, " ") != want }) {
			t.Errorf("%d allowed: asked %d times, found %+v", allowed, asked, calls)
		}
	}
}

// TestApprovers: a call that approvers decide is pending and says so; the user is not asked.
func TestApprovers(t *testing.T) {
	h := open(t, plan{config: project(t, "10ms")}, asks("", "deploy", `{"to":"here"}`), says("It waits."))
	h.Initialize(nil)
	s := h.Session("/w")
	if stop := h.Prompt(s, "Deploy."); stop != "end_turn" {
		t.Errorf("stopped by %q", stop)
	}
	calls := h.Calls(s)
	if len(calls) != 1 || strings.Join(calls[0].Statuses, " ") != "pending failed" || !strings.Contains(string(calls[0].RawInput), "here") {
		t.Errorf("found %+v", calls)
	}
	reported := slices.ContainsFunc(h.Got("session/update"), func(m acptest.Message) bool { return strings.Contains(string(m.Params), "approval of people (theirs)") })
	if !reported || len(h.Got("session/request_permission")) != 0 {
		t.Error("the user was asked, or was not told who decides")
	}
}

// TestACP45WithoutApprovers: where nobody but the user can be asked, as in a process of its own, the
// user is asked.
func TestACP45WithoutApprovers(t *testing.T) {
	alone := func(_ *gateway.Config, d *calls.Deps) { d.NoApprovers = true }
	h := open(t, plan{config: project(t, "0s"), state: alone}, asks("", "acp_terminal_create", `{"command":"rm"}`), says("Done."))
	h.Initialize(nil)
	s := h.Session("/w")
	if stop := h.Prompt(s, "Remove it."); stop != "end_turn" {
		t.Errorf("stopped by %q", stop)
	}
	if asked := h.Got("session/request_permission"); len(asked) != 1 || len(h.Commands()) != 1 {
		t.Errorf("asked %v, and ran %q", asked, h.Commands())
	}
}
