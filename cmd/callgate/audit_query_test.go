package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
)

// writeLog writes records into the log of a new folder.
func writeLog(t *testing.T, records ...audit.Record) string {
	t.Helper()
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{Wait: inTests, Record: audit.Completion})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// refusedCall is the decision of a call that was refused.
func refusedCall(id string, at time.Time) audit.Record {
	return audit.Record{
		Time: at, Event: audit.Decision, Mode: audit.Call, CallID: id, Principal: "team-a", Agent: "Intern", Workspace: "acme", Project: "alpha",
		Tool: "payments.refund", ToolVersion: "2.1.0", Verdict: audit.Refused, Stage: refusal.Permission, Code: refusal.PermissionDenied, Replica: "gate-0",
		Rows: []string{"policy.csv:12"},
	}
}

func TestAuditQuery(t *testing.T) {
	now := time.Now()
	var records []audit.Record
	for i := range 150 {
		r := refusedCall(fmt.Sprintf("call_%03d", i), now.Add(time.Duration(i-150)*time.Hour))
		if i%50 == 0 {
			r.Agent, r.Workspace, r.Project = "Analyst", "other", "beta"
		}
		records = append(records, r)
	}
	dir := writeLog(t, records...)
	for _, c := range []struct {
		args        string
		first, last string // calls that are printed
		count       int
		says        string // on standard error
	}{
		{"--principal team-a --limit 2", "call_148", "call_149", 2, "these are the newest 2"},
		{"--principal nobody", "", "", 0, "no record matches"},
		{"", "call_050", "call_149", 100, "these are the newest 100; there are more: --limit 0 prints all"},
		{"--limit 0", "call_000", "call_149", 150, ""},
		{"--limit 150", "call_000", "call_149", 150, ""},
		{"--json", "call_000", "call_149", 150, ""},
		{"--json --limit 2", "call_148", "call_149", 2, "these are the newest 2"},
		{"--agent Analyst", "call_000", "call_100", 3, ""},
		{"--agent Ana*", "call_000", "call_100", 3, ""},
		{"--project other/beta", "call_000", "call_100", 3, ""},
		{"--project beta", "call_000", "call_100", 3, ""},
		{"--project acme/beta", "", "", 0, "no record matches"},
		{"--since 60h --verdict refused", "call_091", "call_149", 59, ""},
		{"--until 90h --since 5d --code permission_denied --tool payments.*", "call_031", "call_060", 30, ""},
		{"--call call_007", "call_007", "call_007", 1, ""},
		{"--tool web.*", "", "", 0, "no record matches"},
	} {
		code, stdout, stderr := command(t, nil, append([]string{"audit", "query", "--log", dir}, strings.Fields(c.args)...)...)
		ids := regexp.MustCompile(`call_\d{3}`).FindAllString(stdout, -1)
		if code != exitAccepted || len(ids) != c.count || !strings.Contains(stdout+stderr, c.says) || c.says == "" && stderr != "" {
			t.Errorf("%s: exit code %d, %d records, standard error %q", c.args, code, len(ids), stderr)
		} else if len(ids) > 0 && (ids[0] != c.first || ids[len(ids)-1] != c.last) {
			t.Errorf("%s: %s to %s, want %s to %s", c.args, ids[0], ids[len(ids)-1], c.first, c.last)
		}
	}
	code, summary, _ := command(t, nil, "audit", "query", "--log", dir, "--summary")
	if want := "    147  Intern                payments.refund               permission_denied\n      3  Analyst "; code != exitAccepted || !strings.Contains(summary, want) {
		t.Errorf("exit code %d, lacks %q:\n%s", code, want, summary)
	}
	// JSON is the line of the log.
	_, stdout, _ := command(t, nil, "audit", "query", "--log", filepath.Join(dir, "audit.jsonl"), "--json")
	if content, err := os.ReadFile(filepath.Join(dir, "audit.jsonl")); err != nil || stdout != string(content) {
		t.Errorf("--json prints other lines than the log has (%v)", err)
	}
}

// TestAuditQueryOfADataDir: without --log, the log of the server and those of the processes for one client
// each are searched, which are below data_dir.
func TestAuditQueryOfADataDir(t *testing.T) {
	for name, folders := range map[string][]string{"all": {"", "acp/1", "acp/16", "mcp/2"}, "an editor alone": {"acp/1"}} {
		config, data := layout(t, map[string]string{
			"callgate.yaml": "registry: {files: [tools.yaml]}\n",
			"tools.yaml":    "tools: [{name: one, input_schema: {type: object}, run: {type: demo}}]\n",
		})
		var want []string
		for _, folder := range folders {
			id := "call_" + strings.ReplaceAll(folder, "/", "")
			want = append(want, id)
			dir := filepath.Join(data, folder)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(writeLog(t, refusedCall(id, time.Now())), "audit.jsonl"), filepath.Join(dir, "audit.jsonl")); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(data, "acp/3"), 0o700); err != nil { // which has no log
			t.Fatal(err)
		}
		code, stdout, stderr := command(t, nil, "audit", "query", "--config", config)
		found := regexp.MustCompile(`call_\w*`).FindAllString(stdout, -1)
		slices.Sort(found)
		if slices.Sort(want); code != exitAccepted || !slices.Equal(found, want) {
			t.Errorf("%s: exit code %d, %q, want %q; %s", name, code, found, want, stderr)
		}
	}
}

func TestAuditQueryRefusesWhatItDoesNotKnow(t *testing.T) {
	dir := writeLog(t, refusedCall("a", time.Now()))
	for args, want := range map[string]string{
		"--verdict denied":                 `--verdict is "denied"; expected tool_call, text or refused`,
		"--since yesterday":                `--since: "yesterday" is no time`,
		"--until 2026-13-01T00:00:00Z":     "--until: ",
		"--since 1h --until 2h":            "--since is not before --until",
		"--limit -1":                       "--limit is -1",
		"--log " + dir + "/none":           "no such file",
		"--agent A B":                      "unknown command",
		"--log " + filepath.Dir(dir) + "/": "no audit log",
	} {
		code, stdout, stderr := command(t, nil, append([]string{"audit", "query", "--log", dir}, strings.Fields(args)...)...)
		if code != exitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%s: exit code %d: %q", args, code, stderr)
		}
	}
}

// A line that was altered is named, and no line from outside reaches the terminal as it is.
func TestAuditQueryOfHostileLogs(t *testing.T) {
	hostile := refusedCall("call_\x1b[2J", time.Now())
	hostile.Agent, hostile.Tool, hostile.Project = "a\nb\u202e", strings.Repeat("\u200bx", 500), "p\r"
	hostile.Completion, hostile.Arguments = "\x1b]0;x\a", json.RawMessage(`{"a":"\u0007\u202e"}`)
	dir := writeLog(t, refusedCall("call_1", time.Now()), hostile)
	for _, args := range [][]string{{"query", "--log", dir}, {"query", "--log", dir, "--json"}, {"show", "--log", dir, hostile.CallID}, {"show", "--log", dir, "--config", "../../configs/callgate.yaml", hostile.CallID}} {
		code, stdout, stderr := command(t, nil, append([]string{"audit"}, args...)...)
		if strings.ContainsFunc(stdout+stderr, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f || r == '\u202e' || r == '\u200b' }) {
			t.Errorf("%v prints %q %q", args, stdout, stderr)
		}
		if code != exitAccepted {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
	}
	name := filepath.Join(dir, "audit.jsonl")
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(content), `"call_1"`, `"call_2"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"query", "--log", dir}, {"show", "--log", dir, "call_2"}} {
		code, _, stderr := command(t, nil, append([]string{"audit"}, args...)...)
		if code != exitRefused || !strings.Contains(stderr, name+":1: the line was altered") {
			t.Errorf("%v: exit code %d: %q", args, code, stderr)
		}
	}
}

// The report of audit show about calls of all kinds.
func TestAuditShow(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	schema := refusedCall("call_schema", at)
	schema.Agent, schema.Tool, schema.Stage, schema.Code, schema.Rows = "Analyst", "time.now", refusal.Schema, refusal.UnexpectedArgument, nil
	schema.Completion, schema.Arguments = `{"tool":{"name":"time.now","arguments":{"zone":"UTC"}}}`, json.RawMessage(`{"zone":"UTC"}`)
	corrected := schema
	corrected.CallID, corrected.Completion, corrected.Arguments = "call_mended", "", json.RawMessage(`{}`)
	asked := refusedCall("call_asked", at)
	asked.Stage, asked.Code, asked.Rules, asked.Rows = refusal.Approval, refusal.ApprovalRequired, []string{"refunds=1"}, []string{"policy.csv:5"}
	event := audit.Record{
		Time: at.Add(time.Second), Event: audit.Approval, Mode: audit.Call, CallID: "call_asked", Principal: "team-a", Code: audit.Requested,
		Approvals: []string{"d1"}, Rules: []string{"refunds=1"}, Until: at.Add(time.Hour), Rows: []string{"policy.csv:5"},
	}
	yes := event
	yes.Code, yes.Principal, yes.Rules, yes.Rows, yes.Reason, yes.Time = audit.Yes, "ada", []string{"refunds"}, nil, "looked it up", at.Add(time.Minute)
	ran := refusedCall("call_ran", at.Add(2*time.Minute))
	ran.Verdict, ran.Stage, ran.Code, ran.Approvals, ran.Rules = audit.ToolCall, "", "", []string{"call_asked"}, []string{"refunds=1"}
	ended := ran
	ended.Event, ended.Outcome, ended.Stage, ended.Code, ended.Attempt, ended.Approvals = audit.Ending, audit.Failed, refusal.Execute, refusal.ToolFailed, 1, nil
	// Two more calls were judged while the approval stood: one lost the race, one runs still.
	lost, runs := ran, ran
	lost.CallID, runs.CallID = "call_lost", "call_runs"
	lostEnd := lost
	lostEnd.Event, lostEnd.Verdict, lostEnd.Outcome, lostEnd.Stage, lostEnd.Code, lostEnd.Approvals = audit.Ending, audit.Refused, audit.Failed, refusal.Approval, refusal.ApprovalRequired, nil
	unmet := refusedCall("call_unmet", at)
	unmet.Agent, unmet.Rows, unmet.Arguments = "Analyst", nil, json.RawMessage(`{"payment_id":"pay_abc123","amount":250,"currency":"EUR"}`)
	unknown := unmet
	unknown.CallID, unknown.Arguments = "call_unknown", nil
	unregistered := unknown
	unregistered.CallID, unregistered.Tool, unregistered.Stage, unregistered.Code = "call_unregistered", "web.serch", refusal.Schema, refusal.UnknownTool
	limited := refusedCall("call_limited", at)
	limited.Stage, limited.Code, limited.Rows, limited.Limit = refusal.Rate, refusal.RateLimited, nil, "agents.Intern (5/s, burst 10)"
	open := ran
	open.CallID, open.Approvals = "call_open", nil
	handed := open
	handed.CallID, handed.Mode = "call_handed", audit.Enforce
	stop := audit.Record{
		Time: at, Event: audit.Stop, Mode: audit.Call, CallID: "stop_A", Principal: "ops", OfPrincipal: "team-a", Tool: "github.*", Stage: refusal.Permission, Code: audit.Stopped,
		Until: at.Add(time.Hour), Reason: "incident 12",
	}
	resumed := stop
	resumed.Principal, resumed.Code, resumed.Time = "ada", audit.Resumed, at.Add(time.Minute)
	all := audit.Record{Time: at, Event: audit.Stop, Mode: audit.Call, CallID: "stop_B", Stage: refusal.Permission, Code: audit.Stopped, Reason: "r"}
	closed := audit.Record{Time: at, Event: audit.Thread, Mode: audit.Call, CallID: "00ff", Ledger: "00ff", Turn: 7, Principal: "ops", OfPrincipal: "team-a", Code: audit.Closed}
	dir := writeLog(t, refusedCall("call_refused", at), schema, corrected, asked, event, yes, ran, lost, runs, lostEnd, ended, open, handed, unmet, unknown, unregistered, limited, stop, resumed, all, closed)
	for call, want := range map[string][]string{
		"call_refused": {"refused at the stage permission: permission_denied  (seq 1 of gate-0)", "agent Intern, in acme/alpha, for the principal team-a",
			"payments.refund 2.1.0", "identity ok, parse ok, permission REFUSED", "row        policy.csv:12", "no row of the policy allows the call",
			"policy     today's configuration, which has changed since, says: Denied by ", "policy.csv:12: deny Intern in *, tool payments.*.\n", "with audit.record: arguments"},
		"call_unmet":        {"Denied: no allow row matches.\n", "policy.csv:10: allow Analyst in acme/alpha, tool payments.refund: condition false: ", "<= 100, where args.amount is 250"},
		"call_unknown":      {"condition not decided without the arguments: ", "audit.record is digest; with arguments the log has them"},
		"call_unregistered": {"message    not known: arguments are not kept for a tool without a schema"},
		"call_limited":      {"limit      agents.Intern (5/s, burst 10)\n"},
		"call_schema": {"schema REFUSED", `Argument "zone" is not part of time.now. Send the call again without it. (judged again under today's configuration, which has changed since)`,
			"unexpected_argument at /tool/arguments/zone, byte"},
		"call_mended": {"it is no longer refused: tool_call"},
		"call_asked": {"refused at the stage approval: approval_required", "project ok, approval REFUSED", "approval requested by team-a", "ada said yes", "reason     looked it up",
			"until      2026-11-22T13:00:00.000Z", "the approved call ran, and ended: error  (seq 7 of gate-0)\n  call       call_ran\n",
			"another call was to use its approval, and was not run: approval_required  (seq 8 of gate-0)\n  call       call_lost\n",
			"another call uses its approval; it has not ended  (seq 9 of gate-0)\n  call       call_runs\n", "nothing was executed under this id"},
		"call_ran":    {"accepted", "by call_asked, for refunds=1", "ended: error, tool_failed at the stage execute", "attempts: 1", "the tool ran and reported a failure"},
		"stop_A":      {"stopped by ops", "covers     principal team-a, tool github.*\n  until      2026-11-22T13:00:00.000Z\n  reason     incident 12\n", "resumed by ada"},
		"stop_B":      {"stopped by -", "covers     everything\n"},
		"00ff":        {"thread closed by ops", "of         team-a\n"},
		"call_open":   {"no outcome yet"},
		"call_handed": {"handed over to the application"},
	} {
		code, stdout, stderr := command(t, nil, "audit", "show", "--log", dir, "--config", "../../configs/callgate.yaml", call)
		if code != exitAccepted || stderr != "" {
			t.Errorf("%s: exit code %d: %s", call, code, stderr)
		}
		for _, w := range want {
			if !strings.Contains(stdout, w) {
				t.Errorf("%s lacks %q:\n%s", call, w, stdout)
			}
		}
	}
	t.Chdir(t.TempDir())
	if code, _, stderr := command(t, nil, "audit", "query"); code != exitUsage || !strings.Contains(stderr, "nothing was recorded yet: the folder callgate-data") {
		t.Errorf("before a first call: exit code %d: %s", code, stderr)
	}
	code, stdout, stderr := command(t, nil, "audit", "show", "--log", dir, "call_none")
	if code != exitRefused || stdout != "" || !strings.Contains(stderr, "no record is of the call call_none") {
		t.Errorf("a call that is not there: exit code %d: %q %q", code, stdout, stderr)
	}
}

// All tools of an agent, and the row that says of each.
func TestPolicyExplainAllTools(t *testing.T) {
	code, stdout, stderr := command(t, nil, "policy", "explain", "--agent", "Analyst")
	for _, want := range []string{
		`files.delete     no             no row matches`, `time.now         yes            built-in:policy.csv:6`,
		`payments.refund  conditionally  it depends on the arguments: add --tool payments.refund`,
	} {
		if code != exitAccepted || stderr != "" || !strings.Contains(stdout, want+"\n") {
			t.Errorf("exit code %d, %q; lacks %q:\n%s", code, stderr, want, stdout)
		}
	}
	for args, want := range map[string]string{
		"--agent Nobody":                "project_mismatch",
		"--agent Analyst --project x/y": "workspace_mismatch",
		"--agent Analyst --arguments x": "--tool is needed too",
		"--agent Analyst --project x":   "expected workspace/project",
		"--tool web.search":             `at least one of the flags in the group [agent call] is required`,
		"--call x --agent Analyst":      "none of the others can be",
		"--agent Analyst --log x":       "none of the others can be",
	} {
		if code, stdout, stderr := command(t, nil, append([]string{"policy", "explain"}, strings.Fields(args)...)...); code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %q %q", args, code, stdout, stderr)
		}
	}
}

// The command verifies approvals where the chains hold, and says which use is wrong.
func TestAuditVerifyApprovals(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	asked := refusedCall("call_A", at)
	asked.Event, asked.Verdict, asked.Code, asked.Approvals, asked.Rules, asked.Until = audit.Approval, "", audit.Requested, []string{"d"}, []string{"refunds=1"}, at.Add(time.Hour)
	yes := asked
	yes.Code, yes.Principal, yes.Rules = audit.Yes, "ada", []string{"refunds"}
	used := refusedCall("call_B", at)
	used.Verdict, used.Stage, used.Code, used.Approvals, used.Rules = audit.ToolCall, "", "", []string{"call_A"}, []string{"refunds=1"}
	good := filepath.Join(writeLog(t, asked, yes, used), "audit.jsonl")
	forged := filepath.Join(writeLog(t, asked, used), "audit.jsonl")
	for _, c := range []struct {
		file, flag string
		code       int
		want       string
	}{
		{good, "--approvals", exitAccepted, "approvals hold; decisions that use one: 1\n"},
		{forged, "--approvals", exitRefused, forged + ": seq 2: the call call_B uses call_A, for which 0 of 1 people had said yes for the rule refunds\n"},
		{forged, "--partial=false", exitAccepted, "the chain holds"},
	} {
		code, stdout, stderr := command(t, nil, "audit", "verify", c.flag, c.file)
		if code != c.code || !strings.Contains(stdout, c.want) || stderr != "" {
			t.Errorf("%s %s: exit code %d: %q %q", c.file, c.flag, code, stdout, stderr)
		}
	}
}
