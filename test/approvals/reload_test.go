package approvals_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
)

// reload loads other files while the gateway runs.
func (o *office) reload(t *testing.T, files map[string]string) {
	t.Helper()
	loaded, now := facetest.Config(t, config(t, files)), *o.Executor.Kernel.Config()
	now.Tools, now.Policy, now.Approvals, now.Digest = loaded.Tools, loaded.Policy, loaded.Approvals.Rules, loaded.Digest
	if err := o.Executor.Kernel.Swap(&now); err != nil {
		t.Fatal(err)
	}
}

var asking = map[string]string{"policy.csv": "p, Analyst, *, pay, , ask:one\n"}

// with is the files of asking, with one more.
func with(name, text string) map[string]string {
	return map[string]string{"policy.csv": asking["policy.csv"], name: text}
}

// tools replaces a part of the file of tools.
func tools(old, by string) map[string]string {
	return with("tools.yaml", strings.Replace(toolsFile, old, by, 1))
}

// TestApprovedThenChanged: a call that people have approved is judged by the configuration of
// when it is made. A call whose facts behind the yes have changed asks again; a yes counts again
// once the change is taken back.
func TestApprovedThenChanged(t *testing.T) {
	const required, denied = string(refusal.ApprovalRequired), string(refusal.PermissionDenied)
	for name, c := range map[string]struct {
		files map[string]string
		lacks string // the rule that ada no longer approves by
		quarantined,
		anew bool // the same call asks for a second approval
		code string
	}{
		"nothing":                      {files: asking},
		"the policy denies":            {files: map[string]string{"policy.csv": "p, Analyst, *, pay, , ask:one\np, Analyst, *, pay, , deny\n"}, code: denied},
		"the policy no longer permits": {files: map[string]string{"policy.csv": "p, Analyst, *, refund, , allow\n"}, code: denied},
		"the policy no longer asks":    {files: map[string]string{"policy.csv": "p, Analyst, *, pay, , allow\n"}},
		"another rule asks as well":    {files: map[string]string{"policy.csv": "p, Analyst, *, pay, , ask:one\np, Analyst, *, pay, , ask:two\n"}, code: required, anew: true},
		"the rule asks for more":       {files: with("approvals.yaml", strings.Replace(rulesFile, "one: {", "one: {approve: 2, ", 1)), code: required},
		"the approver loses the right": {files: asking, lacks: "one", code: required},
		"the tool is in quarantine":    {files: asking, quarantined: true, code: string(refusal.ToolQuarantined)},
		"the description":              {files: tools("Pays.", "Pays it."), code: required, anew: true},
		"the schema":                   {files: tools("amount: {type: number}", "amount: {type: number, minimum: 1}"), code: required, anew: true},
		"the effect":                   {files: tools("effect: once", "effect: idempotent"), code: required, anew: true},
		"the version":                  {files: tools("version: 1.0.0", "version: 1.0.1"), code: required, anew: true},
		"the kind":                     {files: tools("kind: execute", "kind: edit"), code: required, anew: true},
		"where it runs": {
			files: tools("run: {type: demo}", "run: {type: http, url: \"https://pay.example/v1\"}"), code: required, anew: true,
		},
		"another tool": {files: tools("Refunds.", "Refunds it.")},
	} {
		t.Run(name, func(t *testing.T) {
			o, f, pay := newOffice(t, asking), faces()[0], call{Arguments: `{"amount":7}`}
			first := o.bring(t, f, pay)
			o.vote(t, first.id, vote{By: "ada", Yes: true})
			o.lacks["ada"] = c.lacks
			if c.quarantined {
				o.Executor.Kernel.Quarantine(map[string]bool{"pay": true})
			}
			o.reload(t, c.files)
			if again := o.bring(t, f, pay); again.code != c.code {
				t.Fatalf("after the change: %q, want %q", again.code, c.code)
			}
			if asked := len(o.opened()); asked != 1 && !c.anew || asked != 2 && c.anew {
				t.Errorf("people were asked %d times", asked)
			}
			if c.code == "" {
				return
			}
			delete(o.lacks, "ada")
			o.Executor.Kernel.Quarantine(nil)
			o.reload(t, asking)
			if back := o.bring(t, f, pay); back.code != "" {
				t.Errorf("once it is taken back: %q", back.code)
			}
		})
	}
}
