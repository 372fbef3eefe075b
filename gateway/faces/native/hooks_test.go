package native_test

import (
	"context"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/hook"
)

// TestHookedApproval: people are asked about the arguments that hooks have left, and those are what runs
// when the call is taken up or sent again, judged anew by the hooks.
func TestHookedApproval(t *testing.T) {
	// It is put together here, so that no scanner takes this file for one that has a secret.
	token := "gh" + "p_" + strings.Repeat("aB3", 12)
	call := `{"tool":{"name":"pay","arguments":{"amount":7,"note":"for ` + token + `"}}}`
	const left = `{"amount":7,"note":"for [redacted:github-token]"}`
	for name, again := range map[string]func(o office, id string) answered{
		"taken up":   func(o office, id string) answered { return o.send(t, "POST", "/v1/calls/"+id+"/resume", "") },
		"sent again": func(o office, _ string) answered { return o.send(t, "POST", "/v1/calls", call) },
	} {
		o := newOffice(t)
		changed := *o.now
		changed.Tools = officeConfig(t, "p, Analyst, *, pay, , ask:refunds\n", func(tools string) string {
			return strings.Replace(tools, "amount: {type: number}", "amount: {type: number}, note: {type: string}", 1)
		}).Tools
		changed.Hooks = hook.NewSet([]*hook.Hook{{Name: "secrets", At: []hook.Point{hook.Call}, Patterns: hook.Builtin(hook.Secrets), OnMatch: hook.Redact, MaxBytes: 1 << 20}})
		if err := o.Executor.Kernel.Swap(&changed); err != nil {
			t.Fatal(err)
		}
		first := o.send(t, "POST", "/v1/calls", call)
		if first.status != 202 {
			t.Fatalf("%s: %+v", name, first)
		}
		asked, err := o.Executor.Desk().Get(context.Background(), first.CallID)
		if err != nil || string(asked.Arguments) != left {
			t.Errorf("%s: people see %s, %v", name, asked.Arguments, err)
		}
		if err := o.vote(t, first.CallID, "amy", true, ""); err != nil {
			t.Fatal(err)
		}
		done := again(o, first.CallID)
		if done.status != 200 || done.Result == nil || string(done.Result.Output) != left || o.ran.Load() != 1 {
			t.Errorf("%s: %+v", name, done)
		}
	}
}
