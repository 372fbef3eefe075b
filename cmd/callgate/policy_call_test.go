package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/refusal"
)

// askingConfig is a configuration that asks before refunds above 100.
func askingConfig(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	tools, err := os.ReadFile("../../configs/tools/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\nlimits: limits.yaml\n# end\n",
		"limits.yaml":     "replicas: 1\n# end\n",
		"tools.yaml":      string(tools),
		"approvals.yaml":  "rules: {refunds: {}, board: {}}\n# end\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n# end\n",
		"policy.csv": `p, Analyst, acme/alpha, payments.refund, , allow
p, Analyst, acme/alpha, payments.refund, args.amount > 100, ask:refunds
p, Analyst, acme/alpha, payments.refund, args.amount > 1000, ask:board
p, Analyst, acme/alpha, payments.refund, args.amount > 5000, deny
p, Analyst, acme/alpha, time.now, , ask:board
# end
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "callgate.yaml")
}

func TestPolicyExplainAsks(t *testing.T) {
	config := askingConfig(t)
	for arguments, want := range map[string]struct {
		code int
		says []string
	}{
		`{"payment_id":"pay_abc123","amount":50,"currency":"EUR"}`: {exitAccepted, []string{"allowed: Analyst may use payments.refund in acme/alpha\n"}},
		`{"payment_id":"pay_abc123","amount":101,"currency":"EUR"}`: {exitAccepted, []string{
			"asks refunds: Analyst may use payments.refund in acme/alpha once people have approved the call\n", "policy.csv:2: ask:refunds", "matches, but line 2 asks"}},
		`{"payment_id":"pay_abc123","amount":1001,"currency":"EUR"}`: {exitAccepted, []string{"asks board, refunds: ", "asks as well"}},
		`{"payment_id":"pay_abc123","amount":5001,"currency":"EUR"}`: {exitRefused, []string{"denied: ", "policy.csv:4"}},
	} {
		code, stdout, stderr := command(t, nil, "policy", "explain", "--config", config, "--agent", "Analyst", "--tool", "payments.refund", "--arguments", arguments)
		for _, says := range want.says {
			if code != want.code || !strings.Contains(stdout, says) {
				t.Errorf("%s: exit code %d, lacks %q: %s%s", arguments, code, says, stdout, stderr)
			}
		}
		code, stdout, _ = command(t, nil, "policy", "explain", "--json", "--config", config, "--agent", "Analyst", "--tool", "payments.refund", "--arguments", arguments)
		var x admin.Explained
		if err := json.Unmarshal([]byte(stdout), &x); err != nil || code != want.code || x.Allowed != (code == exitAccepted) || !x.WithArguments {
			t.Errorf("%s: exit code %d, %v: %s", arguments, code, err, stdout)
		}
		if asks := strings.Join(x.Asks, ", "); asks != "" && !strings.HasPrefix(want.says[0], "asks "+asks+": ") {
			t.Errorf("%s: JSON says that it asks %q", arguments, asks)
		}
	}
	code, stdout, _ := command(t, nil, "check", "--config", config, `../../testdata/none`)
	if code != exitUsage {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	code, stdout, stderr := command(t, strings.NewReader(`{"tool":{"name":"time.now","arguments":{}}}`), "check", "--config", config)
	if code != exitAccepted || !strings.Contains(stdout, `"approval":["board"]`) {
		t.Errorf("check: exit code %d: %s%s", code, stdout, stderr)
	}
	code, stdout, _ = command(t, nil, "policy", "explain", "--json", "--config", config, "--agent", "Analyst")
	if code != exitAccepted || !strings.Contains(stdout, `"tool":"time.now","reach":"asks","rows":[]}`) || !strings.Contains(stdout, `"tool":"web.search","reach":"never","rows":[]}`) {
		t.Errorf("all tools: exit code %d: %s", code, stdout)
	}
}

// TestPolicyExplainCall: a call of the log is judged by the configuration of now.
func TestPolicyExplainCall(t *testing.T) {
	config, now := askingConfig(t), time.Now()
	kept := refusedCall("call_kept", now)
	kept.Agent, kept.Workspace, kept.Project = "Analyst", "acme", "alpha"
	kept.Arguments = json.RawMessage(`{"payment_id":"pay_abc123","amount":101,"currency":"EUR"}`)
	digest, redacted, text, denied, faulty := kept, kept, kept, kept, kept
	faulty.CallID, faulty.Stage, faulty.Code, faulty.Rows = "call_faulty", refusal.Schema, refusal.MissingArgument, nil
	faulty.Arguments = json.RawMessage(`{"amount":101}`)
	digest.CallID, digest.Arguments = "call_digest", nil
	redacted.CallID, redacted.Arguments = "call_redacted", json.RawMessage(`{"payment_id":"pay_abc123","amount":"[redacted]","currency":"EUR"}`)
	denied.CallID, denied.Arguments = "call_denied", json.RawMessage(`{"payment_id":"pay_abc123","amount":9000,"currency":"EUR"}`)
	text.CallID, text.Tool, text.ToolVersion, text.Arguments = "call_text", "", "", nil
	text.Stage, text.Code, text.Rows = refusal.Parse, refusal.MixedOutput, nil
	log := writeLog(t, kept, digest, redacted, denied, text, faulty)
	for call, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"call_kept":     {exitAccepted, "asks refunds: ", "judged by another configuration"},
		"call_digest":   {exitRefused, "denied: ", "audit.record is digest"}, // the condition of the deny row fails
		"call_redacted": {exitRefused, "denied: ", "as they are recorded, without secrets"},
		"call_denied":   {exitRefused, "policy.csv:4", "judged by another configuration"},
		"call_faulty":   {exitAccepted, "asks refunds: ", "the policy was not asked: the call was refused at schema, as missing_argument"},
		"call_text":     {exitUsage, "", "its record has no tool"},
		"call_none":     {exitUsage, "", "no record is of the call call_none"},
	} {
		code, stdout, stderr := command(t, nil, "policy", "explain", "--config", config, "--log", log, "--call", call)
		if code != want.code || !strings.Contains(stdout, want.stdout) || !strings.Contains(stderr, want.stderr) {
			t.Errorf("%s: exit code %d\n%s%s", call, code, stdout, stderr)
		}
	}
	code, stdout, _ := command(t, nil, "policy", "explain", "--config", config, "--log", log, "--call", "call_digest", "--json")
	if code != exitRefused || !strings.Contains(stdout, `"with_arguments":false`) {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// TestPolicyExplainPast: what was done before is given, or is that of the log, and each value comes with what made it.
func TestPolicyExplainPast(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\nthreads: {labels: [customer, untrusted]}\nlimits: limits.yaml\n# end\n",
		"limits.yaml":   "replicas: 1\n# end\n",
		"tools.yaml": `tools:
  - {name: crm.read, labels: [customer], run: {type: demo}, input_schema: {type: object, required: [id], properties: {id: {type: integer}}}}
  - {name: mail.send, labels: [], run: {type: demo}, input_schema: {type: object, required: [to], properties: {to: {type: string}}}}
# end
`,
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n# end\n",
		"policy.csv": `p, Analyst, acme/alpha, mail.send, "thread.calls('mail.send', {'to': args.to}) <= 2 && thread.results('crm.read') > 0", allow
p, Analyst, acme/alpha, mail.send, "'untrusted' in thread.labels", deny
# end
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "callgate.yaml")
	now := time.Now()
	labelled, sent, other := refusedCall("call_read", now), refusedCall("call_sent", now), refusedCall("call_other", now)
	labelled.Tool, labelled.Ledger, labelled.Turn, labelled.Adds = "crm.read", "aa", 1, []string{"at:2026-01-01T00:00:00Z", "label:customer"}
	other.Tool, other.Ledger, other.Turn, other.Adds = "crm.read", "bb", 1, []string{"at:2026-01-01T00:00:00Z", "label:untrusted"}
	sent.Agent, sent.Workspace, sent.Project, sent.Tool, sent.Ledger = "Analyst", "acme", "alpha", "mail.send", "aa"
	sent.Saw = []string{"thread.labels=customer,untrusted", "thread.results('crm.read')=1"}
	log := writeLog(t, other, labelled, sent)
	for name, c := range map[string]struct {
		code           int
		args           []string
		stdout, stderr string
	}{
		"allowed": {exitAccepted, []string{"--after", `crm.read {"id":7}`, "--after", `mail.send {"to":"b"}`, "--after", `mail.send {"to":"c"}`}, `What was read of the past:
  thread.calls('mail.send',{'to'})#DIGEST=2: step 2 (mail.send), this call
  thread.labels=customer: customer by step 1 (crm.read)
  thread.results('crm.read')=1: step 1 (crm.read)
`, ""},
		"a label":             {exitRefused, []string{"--label", "untrusted"}, "thread.labels=untrusted: untrusted by --label\n", ""},
		"nothing given":       {exitRefused, nil, "not decided without the past of a thread", ""},
		"an unknown label":    {exitUsage, []string{"--label", "untrustd"}, "", `--label is "untrustd"; expected one of threads.labels in the main file: customer, untrusted`},
		"as JSON":             {exitAccepted, []string{"--json", "--after", `crm.read {"id":7}`}, `"saw":["`, ""},
		"an unknown tool":     {exitUsage, []string{"--after", "crm.rad {}"}, "", `--after names the tool "crm.rad", which is not registered`},
		"no object":           {exitUsage, []string{"--after", "crm.read 7"}, "", `--after "crm.read": expected a JSON object`},
		"refused by a schema": {exitUsage, []string{"--after", "crm.read"}, "", `--after "crm.read": Argument "id" is missing.`},
		"of the log": {exitRefused, []string{"--log", log, "--call", "call_sent"}, `What was read of the past:
  thread.labels=customer,untrusted: customer since call_read (crm.read)
  thread.results('crm.read')=1
`, ""},
	} {
		args := []string{"policy", "explain", "--config", config}
		if len(c.args) == 0 || c.args[0] != "--log" {
			args = append(args, "--agent", "Analyst", "--tool", "mail.send", "--project", "acme/alpha", "--arguments", `{"to":"b"}`)
		}
		code, stdout, stderr := command(t, nil, append(args, c.args...)...)
		stdout = regexp.MustCompile(`#[0-9a-f]{16}`).ReplaceAllString(stdout, "#DIGEST")
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: exit code %d\n%s%s", name, code, stdout, stderr)
		}
	}
	if code, _, stderr := command(t, nil, "policy", "explain", "--config", config, "--agent", "Analyst", "--label", "untrusted"); code != exitUsage || !strings.Contains(stderr, "--tool is needed too") {
		t.Errorf("without a tool: exit code %d: %s", code, stderr)
	}
}
