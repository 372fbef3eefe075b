package reload

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/configtest"
)

// TestBrokenTestsAreNotServed saves 1,000 policies, each of which breaks the tests of the
// configuration in another way: none is served, and the last good one stays. Then the tests
// follow, and both are served.
func TestBrokenTestsAreNotServed(t *testing.T) {
	const (
		tests = "tests:\n  - {name: interns add no notes, agent: Intern, project: acme/alpha, tool: notes.add, arguments: {text: a}, expect: %s}\n# end\n"
		saves = 1000
	)
	policy := configtest.Base(t)["policy.csv"].Data
	main := strings.Replace(configtest.Base(t)["callgate.yaml"].Data, "policy: policy.csv", "policy: policy.csv\ntests: [policy_test.yaml]", 1)
	files := map[string]string{"callgate.yaml": main, "policy_test.yaml": fmt.Sprintf(tests, "deny")}
	slow(t, files, func(t *testing.T, h *servedFiles) {
		first := h.current.Load()
		h.start()
		for n := range saves {
			condition := "\"args.text != 'word'\""
			broken := strings.Replace(policy, "p, Intern,      *,          notes.add,  ,                          deny", "p, Intern, *, notes.add, "+condition+", allow", 1)
			broken = strings.Replace(broken, "# end\n", fmt.Sprintf("# save %d\n# end\n", n), 1)
			if !strings.Contains(broken, condition) {
				t.Fatal("the policy was not broken")
			}
			h.save("policy.csv", broken)
			h.Reload()
			time.Sleep(bound)
			if h.current.Load() != first || h.swaps.Load() != 0 {
				t.Fatalf("save %d is served", n)
			}
			if h.loads.Load() < int64(n) {
				t.Fatalf("%d loads of %d saves: nothing was tested", h.loads.Load(), n)
			}
		}
		h.expect("failed")
		found := h.State().Faults[0].Error()
		want := filepath.Join(h.dir, "policy_test.yaml") + ":2: the test \"interns add no notes\" fails: Intern in acme/alpha, notes.add: found allow; expected deny. Allowed by " +
			filepath.Join(h.dir, "policy.csv") + ":4: allow Intern in *, tool notes.add: its condition is met: args.text != 'word', where args.text is \"a\"."
		if found != want {
			t.Errorf("found    %s\nexpected %s", found, want)
		}
		h.save("policy_test.yaml", fmt.Sprintf(tests, "allow"))
		time.Sleep(bound)
		h.expect("failed reloaded recovered")
		if h.current.Load().Digest == first.Digest {
			t.Error("the digest is the same as at first")
		}
	})
}

// TestTestsArePartOfTheDigest edits a comment of the tests alone, and removes the file.
func TestTestsArePartOfTheDigest(t *testing.T) {
	const tests = "tests:\n  - {name: readers search, agent: Analyst, project: acme/alpha, tool: web.search, expect: always}\n# end\n"
	files := map[string]string{"callgate.yaml": "registry: {files: [tools/*.yaml, tools/*.json]}\ntests: ['*_test.yaml']\n# end\n", "a_test.yaml": tests}
	slow(t, files, func(t *testing.T, h *servedFiles) {
		h.start()
		digest := h.current.Load().Digest
		h.save("a_test.yaml", "# of searches\n"+tests)
		time.Sleep(bound)
		h.expect("reloaded")
		if h.current.Load().Digest == digest {
			t.Error("the digest is the same as before")
		}
		h.save("b_test.yaml", strings.Replace(tests, "always", "never", 1))
		time.Sleep(bound)
		h.expect("reloaded failed")
		if err := os.Remove(filepath.Join(h.dir, "a_test.yaml")); err != nil {
			t.Fatal(err)
		}
		h.save("b_test.yaml", tests)
		time.Sleep(bound)
		if h.current.Load().Files[len(h.current.Load().Files)-1] != filepath.Join(h.dir, "b_test.yaml") {
			t.Errorf("found the files %q", h.current.Load().Files)
		}
	})
}
