package admin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/internal/testkit/facetest"
)

// readTest reads the one test of a file.
func readTest(t *testing.T, text string) map[string]any {
	t.Helper()
	var file struct{ Tests []map[string]any }
	if err := yaml.Unmarshal([]byte(text), &file); err != nil || len(file.Tests) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return file.Tests[0]
}

// A decision is a test of the policy that expects what was decided, with the arguments as the log
// keeps them. A decision that no policy made is none.
func TestTestCase(t *testing.T) {
	f := newFixture(t, audit.Arguments, nil)
	refund := func(arguments string) string {
		return `{"tool":{"name":"payments.refund","arguments":` + arguments + `}}`
	}
	for _, c := range []struct {
		agent, completion, expect string
		arguments                 string
	}{
		{"Analyst", goodCall, "allow", `{"query":"x"}`},
		{"Analyst", extraCall, "unexpected_argument", `{"query":"x","extra":1}`},
		{"Intern", goodCall, "deny", `{"query":"x"}`},
		{"Intern", refund(`{"amount":6}`), "deny", `{"amount":6}`},
		{"Analyst", refund(`{"amount":6,"token":"canary-5e3a"}`), "allow", `{"amount":6,"token":"[redacted]"}`},
		{"Analyst", "text", "", ""},
		{"Analyst", `{"tool":`, "", ""},
	} {
		id := f.judge(t, c.agent, c.completion)
		got := get[admin.Case](t, f, "/v1/decisions/"+id).TestCase
		if c.expect == "" {
			if got != "" {
				t.Errorf("%s: found %s", c.completion, got)
			}
			continue
		}
		test := readTest(t, got)
		var want any
		if err := json.Unmarshal([]byte(c.arguments), &want); err != nil {
			t.Fatal(err)
		}
		arguments, err := json.Marshal(test["arguments"])
		var found any
		if err == nil {
			err = json.Unmarshal(arguments, &found)
		}
		if err != nil || !reflect.DeepEqual(found, want) || test["agent"] != c.agent || test["project"] != "acme/alpha" || test["expect"] != c.expect || !strings.HasPrefix(test["name"].(string), id) {
			t.Errorf("%s: found %v of\n%s", c.completion, err, got)
		}
		if strings.Contains(got, canary) || strings.Contains(got, "[redacted]") != strings.Contains(got, "Secret arguments") {
			t.Errorf("found %s", got)
		}
	}
}

// Where the log keeps no arguments, a test is about every call of the tool.
func TestTestCaseWithoutArguments(t *testing.T) {
	f := newFixture(t, audit.Digest, nil)
	for _, c := range [][3]string{
		{"Analyst", goodCall, "always"}, {"Intern", goodCall, "never"}, {"Intern", `{"tool":{"name":"payments.refund","arguments":{"amount":6}}}`, "conditions"},
	} {
		text := get[admin.Case](t, f, "/v1/decisions/"+f.judge(t, c[0], c[1])).TestCase
		test := readTest(t, text)
		if _, has := test["arguments"]; has || test["expect"] != c[2] || !strings.Contains(text, "keeps no arguments") {
			t.Errorf("%v: found %s", c, text)
		}
	}
}

// Whatever a model writes, the test reads back as it, and nothing hides in it.
func TestTestCaseOfHostileText(t *testing.T) {
	f := newFixture(t, audit.Arguments, nil)
	for _, text := range []string{
		"plain", "two\nlines", `"quoted" \\ back`, "</pre><script>", "bidi \u202e\u2066", "tag \U000e0041", "\U0001f600", "# no: comment", "- a\n- b", "'", "{{.}} ${x} %zz", "\u0085\u2028", "a: b", "&a *a !!str x", strings.Repeat("long ", 5000),
	} {
		arguments, err := json.Marshal(map[string]string{"query": text})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range []string{string(arguments), fmt.Sprintf("{\"query\":%s}", strings.ReplaceAll(fmt.Sprintf("%+q", text), `\U000`, `\U000`))} {
			if strings.Contains(raw, `\U`) || !json.Valid([]byte(raw)) {
				continue // Go's escapes are not all JSON's
			}
			got := get[admin.Case](t, f, "/v1/decisions/"+f.judge(t, "Analyst", `{"tool":{"name":"web.search","arguments":`+raw+`}}`)).TestCase
			found, ok := readTest(t, got)["arguments"].(map[string]any)
			if !ok || found["query"] != text {
				t.Errorf("%q: found %q of\n%.300s", text, found["query"], got)
			}
			for _, c := range got {
				if c == 0x202e || c == 0x2066 || c == 0xe0041 || c == 0x85 || c == 0x2028 {
					t.Errorf("%q: %#x is in the test", text, c)
				}
			}
		}
	}
	got := get[admin.Case](t, f, "/v1/decisions/"+f.judge(t, "Analyst", `{"tool":{"name":"web.search","arguments":{"query":"\ud83d\ude00 \\ud83d"}}}`)).TestCase
	if found := readTest(t, got)["arguments"].(map[string]any); found["query"] != "\U0001f600 \\ud83d" {
		t.Errorf("found %q of %s", found["query"], got)
	}
}

// Tests that were copied are read by the configuration that judged the calls, and hold.
func TestTestCasesHold(t *testing.T) {
	texts := maps.Clone(files)
	texts["callgate.yaml"] = "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n"
	texts["approvals.yaml"] = "rules: {refunds: {}, more: {}}\n"
	texts["policy.csv"] += "p, Analyst, acme/alpha, payments.refund, args.amount > 10, ask:refunds\np, Analyst, acme/alpha, payments.refund, args.amount > 20, ask:more\n"
	loaded := facetest.Config(t, texts)
	for _, record := range []audit.Content{audit.Digest, audit.Arguments, audit.Completion} {
		f := newFixture(t, record, nil)
		config := configOf(loaded, nil)
		config.Approvals = loaded.Approvals.Rules
		if err := f.kernel.Swap(config); err != nil {
			t.Fatal(err)
		}
		var file []string
		for _, c := range [][2]string{
			{"Analyst", goodCall}, {"Analyst", extraCall}, {"Intern", goodCall}, {"Intern", `{"tool":{"name":"payments.capture","arguments":{}}}`}, {"Intern", `{"tool":{"name":"payments.refund","arguments":{"amount":6,"token":"canary-5e3a"}}}`},
			{"Analyst", `{"tool":{"name":"payments.refund","arguments":{"amount":15}}}`}, {"Analyst", `{"tool":{"name":"payments.refund","arguments":{"amount":25}}}`}, {"Analyst", `{"tool":{"name":"payments.refund","arguments":{"amount":"x"}}}`},
			{"Nobody", goodCall}, {"Analyst", `{"tool":{"name":"web.serch","arguments":{}}}`},
		} {
			text := get[admin.Case](t, f, "/v1/decisions/"+f.judge(t, c[0], c[1])).TestCase
			if found := text != ""; found != (len(file) < 8) {
				t.Errorf("%s of %s: found %q", c[1], c[0], text)
			}
			if text != "" {
				file = append(file, strings.TrimSuffix(strings.TrimPrefix(text, "tests:\n"), "# end\n"))
			}
		}
		all := strings.Join(file, "")
		if strings.Contains(all, "ask:more,refunds") == (record == audit.Digest) {
			t.Errorf("found %s", all)
		}
		with := maps.Clone(texts)
		with["callgate.yaml"] += "tests: [policy_test.yaml]\n"
		with["policy_test.yaml"] = "tests:\n" + all
		facetest.Config(t, with) // fails where a test does not hold
	}
}
