package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/store/approval"
)

const (
	asking = `p, Analyst, acme/alpha, notes.add, , allow
p, Analyst, acme/alpha, web.search, , ask:refunds
p, Intern, acme/alpha, web.search, , ask:deploys
# end
`
	approvers = `principals:
  - {name: app, key_sha256: ` + hashC + `, agents: [Analyst, Intern], workspace: acme, projects: [alpha]}
  - {name: ada, key_sha256: ` + hashA + `, approves: [refunds, deploys]}
  - {name: op, key_sha256: ` + hashB + `, operator: true}
# end
`
	hashA = "aaaabbbbccccddddaaaabbbbccccddddaaaabbbbccccddddaaaabbbbccccdddd"
	hashB = "bbbbccccddddeeeebbbbccccddddeeeebbbbccccddddeeeebbbbccccddddeeee"
	hashC = "ccccddddeeeeffffccccddddeeeeffffccccddddeeeeffffccccddddeeeeffff"
	main  = "auth: {mode: keys}\nregistry: {files: [tools/*.yaml, tools/*.json]}\nprincipals: principals.yaml\napprovals: approvals.yaml\n# end\n"
)

// approving is a configuration that asks, with other files in place of some.
func approving(t *testing.T, changed map[string]string) *Config {
	t.Helper()
	files := map[string]string{
		"callgate.yaml": main, "policy.csv": asking, "principals.yaml": approvers,
		"approvals.yaml": "rules: {refunds: {}, deploys: {}}\n# end\n",
	}
	for name, data := range changed {
		files[name] = data
	}
	return loads(t, configtest.With(t, files))
}

func TestApprovals(t *testing.T) {
	c := approving(t, map[string]string{"approvals.yaml": `rules:
  refunds: {}
  deploys: {approve: 1, within: 7d, by: caller, hint: Look twice., remember: {same: 8h, thread: 15m, tool: 30d}}
wait: 0s
url: https://ops.example/callgate
# end
`})
	want := Approvals{Rules: approval.Rules{
		"refunds": {Name: "refunds", Approve: 1, Within: 30 * time.Minute, By: approval.ByApprovers},
		"deploys": {
			Name: "deploys", Approve: 1, Within: 168 * time.Hour, By: approval.ByCaller, Hint: "Look twice.",
			Remember: map[approval.Scope]time.Duration{approval.Same: 8 * time.Hour, approval.InThread: 15 * time.Minute, approval.AnyCall: 720 * time.Hour},
		},
	}, URL: "https://ops.example/callgate"}
	if !reflect.DeepEqual(c.Approvals, want) || len(c.Warnings) > 0 {
		t.Errorf("found %+v, warnings %v", c.Approvals, c.Warnings)
	}
	for _, r := range c.Approvals.Rules {
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
	}
	if d := approving(t, nil); d.Approvals.Wait != time.Minute || d.Digest == c.Digest {
		t.Errorf("found the wait %v; the digests are %s and %s", d.Approvals.Wait, d.Digest, c.Digest)
	}
	ada, op := c.Principals[1], c.Principals[2]
	if !reflect.DeepEqual(ada.Approves, []string{"refunds", "deploys"}) || ada.Agents != nil || !op.Operator {
		t.Errorf("found %+v and %+v", ada, op)
	}
	if none := loads(t, configtest.Base(t)); none.Approvals.Rules != nil {
		t.Errorf("without the key approvals there are %+v", none.Approvals)
	}
}

// TestApprovalWarnings are of what is allowed and surely not meant.
func TestApprovalWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		changed map[string]string
		want    []string
	}{
		"an unused rule": {
			map[string]string{"approvals.yaml": "rules:\n  refunds: {}\n  deploys: {}\n  spare: {}\n# end\n"},
			[]string{`approvals.yaml:4:3: no row of the policy asks by the rule "spare"`},
		},
		"an unknown rule of a principal": {
			map[string]string{"principals.yaml": strings.Replace(approvers, "[refunds, deploys]", "[refund, refunds, deploys]", 1)},
			[]string{`principals.yaml:3:106: "ada" may approve by the rule "refund", which is not there (did you mean "refunds"?)`},
		},
		"too few people": {
			map[string]string{"approvals.yaml": "rules:\n  refunds: {approve: 2}\n  deploys: {}\n# end\n"},
			[]string{`approvals.yaml:2:3: the rule "refunds" needs 2 approvers but only 1 may approve`},
		},
		"links without TLS": {
			map[string]string{"approvals.yaml": "rules: {refunds: {}, deploys: {}}\nurl: http://ops.example\n# end\n"},
			[]string{"approvals.yaml:2:6: links to approvals are without TLS: anyone who can read what people send there can vote in their place"},
		},
		"notices without TLS": {
			map[string]string{"approvals.yaml": "rules: {refunds: {}, deploys: {}}\nnotify: {url: \"http://hooks.example\", key: \"file:key\"}\n# end\n", "key": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="},
			[]string{"approvals.yaml:2:10: notices of approvals are sent without TLS: anyone on the way can read whose calls wait"},
		},
		"a variable that is not set": {
			map[string]string{"approvals.yaml": "rules: {refunds: {}, deploys: {}}\nnotify: {url: \"https://hooks.example\", key: \"env:NO_SUCH_KEY\"}\n# end\n"},
			[]string{"approvals.yaml:2:45: the environment variable NO_SUCH_KEY is not set, or is empty; set it before callgate starts: without it, what needs the secret fails"},
		},
		"a rule without approvals": {
			map[string]string{"callgate.yaml": strings.Replace(main, "approvals: approvals.yaml\n", "", 1), "policy.csv": "p, Analyst, acme/alpha, notes.add, , allow\n# end\n"},
			[]string{
				`principals.yaml:3:106: "ada" may approve by the rule "refunds", which is not there`,
				`principals.yaml:3:115: "ada" may approve by the rule "deploys", which is not there`,
			},
		},
	} {
		var got []string
		loaded := approving(t, c.changed)
		for _, w := range loaded.Warnings {
			text := w.Error()
			got = append(got, text[strings.LastIndexByte(text[:strings.IndexByte(text, ':')], '/')+1:])
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: found %q", name, got)
		}
	}
}

// TestPrincipalsWithoutAgents: an operator or an approver has all of agents, workspace and
// projects, or none.
func TestPrincipalsWithoutAgents(t *testing.T) {
	for members, ok := range map[string]bool{
		"approves: [refunds]":                 true,
		"operator: true":                      true,
		"operator: true, approves: [refunds]": true,
		"approves: [refunds], agents: [Analyst], workspace: acme, projects: [alpha]": true,
		"approves: [refunds], agents: [Analyst]":                                     false,
		"approves: [refunds], workspace: acme, projects: [alpha]":                    false,
		"approves: []":                       false,
		"operator: false":                    false,
		"agents: [Analyst], workspace: acme": false,
		"operator: false, approves: [], agents: [Analyst], workspace: acme, projects: []": true,
	} {
		files := configtest.With(t, map[string]string{"principals.yaml": "principals:\n  - {name: ada, key_sha256: " + hashA + ", " + members + "}\n# end\n"})
		_, err := Load(configtest.Write(t, t.TempDir(), files))
		if (err == nil) != ok {
			t.Errorf("%s: %v", members, err)
		}
		if err != nil && !strings.Contains(err.Error(), "found a principal without") {
			t.Errorf("%s: %v", members, err)
		}
	}
}

// TestNotify: the keys are places, and are read when they are needed.
func TestNotify(t *testing.T) {
	const old, current = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_plJ3nmyCDGBKInavdOK15jsl/plJ3nmyCDGBKInavdOK"
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(old+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loading := func(notify string) *Notify {
		t.Helper()
		c := approving(t, map[string]string{"approvals.yaml": "rules: {refunds: {}, deploys: {}}\nnotify: " + notify + "\n# end\n"})
		unset := func(f *document.Fault) bool { return strings.Contains(f.Message, "APPROVALS_TEST_KEY is not set") }
		if len(slices.DeleteFunc(c.Warnings, unset)) > 0 || strings.Contains(c.String(), "token") {
			t.Errorf("found %v, printed %s", c.Warnings, c)
		}
		return c.Approvals.Notify
	}
	full := loading(`{url: "https://hooks.example/x?token=1", key: "env:APPROVALS_TEST_KEY", previous_key: "file:` + key + `", addresses: [10.0.0.0/8, "::1"]}`)
	if full.URL.String() != "https://hooks.example/x?token=1" || !reflect.DeepEqual(full.Addresses, []string{"10.0.0.0/8", "::1"}) {
		t.Errorf("found %+v", full)
	}
	if keys, err := full.Keys(); err == nil || !strings.Contains(err.Error(), "APPROVALS_TEST_KEY") {
		t.Errorf("found %d keys, %v", len(keys), err)
	}
	t.Setenv("APPROVALS_TEST_KEY", current)
	if keys, err := full.Keys(); err != nil || len(keys) != 2 {
		t.Errorf("found %d keys, %v", len(keys), err)
	}
	t.Setenv("APPROVALS_TEST_KEY", "canary")
	if _, err := full.Keys(); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "expected a key of Standard Webhooks") {
		t.Error(err)
	}
	one := loading(`{url: "http://127.0.0.1:9/x", key: "file:` + key + `", addresses: [127.0.0.1]}`)
	if keys, err := one.Keys(); err != nil || len(keys) != 1 {
		t.Errorf("found %d keys, %v", len(keys), err)
	}
	var none *Notify
	again := loading(`{url: "http://127.0.0.1:9/x", key: "file:` + key + `", addresses: [127.0.0.1]}`)
	if !one.Equal(again) || one.Equal(full) || one.Equal(none) || none.Equal(one) || !none.Equal(nil) {
		t.Error("not the same, or the same")
	}
}
