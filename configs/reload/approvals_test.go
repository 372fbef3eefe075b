package reload

import (
	"strings"
	"testing"
	"time"
)

// TestApprovalsReload: rules and approvers take effect when they are saved; a policy that
// asks by a rule that is not there changes nothing.
func TestApprovalsReload(t *testing.T) {
	const (
		main    = "auth: {mode: keys}\nregistry: {files: [tools/*.yaml, tools/*.json]}\nprincipals: principals.yaml\napprovals: approvals.yaml\n# end\n"
		asking  = "p, Analyst, acme/alpha, notes.add, , ask:notes\n# end\n"
		rules   = "rules: {notes: {}}\n# end\n"
		people  = "principals:\n  - {name: ada, key_sha256: aaaabbbbccccddddaaaabbbbccccddddaaaabbbbccccddddaaaabbbbccccdddd, approves: [notes]}\n# end\n"
		another = "p, Analyst, acme/alpha, notes.add, , ask:others\n# end\n"
	)
	files := map[string]string{"callgate.yaml": main, "policy.csv": asking, "approvals.yaml": rules, "principals.yaml": people}
	slow(t, files, func(t *testing.T, h *servedFiles) {
		h.start()
		digest := h.current.Load().Digest
		for _, step := range []struct {
			name, data, event string
			holds             func() bool
		}{
			{"approvals.yaml", strings.Replace(rules, "{}", "{approve: 2, within: 5m}", 1), "reloaded", func() bool {
				r := h.current.Load().Approvals.Rules["notes"]
				return r.Approve == 2 && r.Within == 5*time.Minute
			}},
			{"principals.yaml", strings.Replace(people, "[notes]", "[notes, others]", 1), "reloaded", func() bool {
				return len(h.current.Load().Principals[0].Approves) == 2
			}},
			{"policy.csv", another, "failed", func() bool {
				s := h.State()
				return len(s.Faults) == 1 && strings.Contains(s.Faults[0].Error(), "policy.csv:1: found ask:others") &&
					h.current.Load().Policy.AskingRows()[0].Rule == "notes"
			}},
			{"approvals.yaml", strings.Replace(rules, "notes", "others", 1), "recovered", func() bool {
				return h.current.Load().Policy.AskingRows()[0].Rule == "others" && h.State().Faults == nil
			}},
			{"approvals.yaml", strings.TrimSuffix(rules, "# end\n"), "failed", func() bool {
				return h.current.Load().Approvals.Rules["others"].Approve == 1
			}},
		} {
			h.save(step.name, step.data)
			time.Sleep(bound)
			if e := h.last(); string(e.Kind) != step.event || !step.holds() {
				t.Errorf("%s: %s: found the event %+v", step.name, step.data, e)
			}
		}
		if h.current.Load().Digest == digest {
			t.Error("the digest is the same as at first")
		}
	})
}
