package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/tool"
)

// approving is a configuration with tools that callers approve, approvers, or both.
var approving = map[string]string{
	"callgate.yaml": `auth: {mode: none}
defaults: {agent: Analyst, workspace: acme, project: alpha}
registry: {files: [tools/*.yaml]}
policy: policy.csv
workspaces: workspaces.yaml
limits: limits.yaml
approvals: approvals.yaml
output: {max_bytes: 131072, max_depth: 16, json_in_text: reject}
# end
`,
	"approvals.yaml": "rules:\n  mine: {by: caller, hint: Look twice., remember: {same: 8h}}\n  soon: {by: caller, remember: {same: 90s}}\n  once: {by: caller}\n  theirs: {}\nwait: 0s\n# end\n",
	"tools/core.yaml": `tools:
  - {name: mine, input_schema: SCHEMA, run: {type: demo}}
  - {name: soon, input_schema: SCHEMA, run: {type: demo}}
  - {name: once, input_schema: SCHEMA, run: {type: demo}}
  - {name: theirs, input_schema: SCHEMA, run: {type: demo}}
  - {name: both, input_schema: SCHEMA, run: {type: demo}}
  - {name: book, input_schema: {type: object}, run: {type: mcp, url: "http://127.0.0.1:1/mcp", tool: book, input_requests: [form]}}
# end
`,
	"policy.csv": func() (rows string) {
		for _, agent := range []string{"Analyst", "Intern"} {
			rows += "p, " + agent + ", acme/alpha, *, , allow\n"
			for tool, rules := range map[string]string{"mine": "mine", "soon": "soon", "once": "once", "theirs": "theirs", "both": "mine theirs", "book": "mine"} {
				for rule := range strings.FieldsSeq(rules) {
					rows += "p, " + agent + ", acme/alpha, " + tool + ", , ask:" + rule + "\n"
				}
			}
		}
		return rows + "# end\n"
	}(),
}

const pages = "https://ops.example/console/approvals/"

// desk is a fixture whose calls people approve.
type desk struct {
	*fixture
	mu  sync.Mutex
	ran []string // the arguments that tools got
}

// deskFiles are the files of approving; each tool but one has the same schema.
func deskFiles() map[string]string {
	files := maps.Clone(approving)
	const schema = "{type: object, properties: {n: {type: number}, note: {type: string}, key: {type: string, x-secret: true}}}"
	files["tools/core.yaml"] = strings.ReplaceAll(files["tools/core.yaml"], "SCHEMA", schema)
	return files
}

func openDesk(t *testing.T, change func(*gateway.Config, *calls.Deps), within ...time.Duration) *desk {
	t.Helper()
	d := &desk{}
	files := deskFiles()
	ask := &asker{questions: []tool.Question{who()}}
	d.fixture = open(t, plan{files: files, engine: func(c tool.Call) (tool.Result, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ran = append(d.ran, string(c.Arguments))
		if c.Tool == "book" {
			return ask.run(c)
		}
		return echo(c)
	}, state: func(c *gateway.Config, p *calls.Deps) {
		c.People = func(v approval.Vote) approval.Voter {
			return approval.Voter{Principal: v.By, Approves: []string{"mine", "soon", "once", "theirs"}}
		}
		c.ApprovalPages = pages
		if change != nil {
			change(c, p)
		}
	}, time: append(within, patience)[0]})
	return d
}

func (d *desk) runs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ran)
}

// votes has an approver decide.
func (d *desk) votes(t *testing.T, id string, yes bool) {
	t.Helper()
	a, err := d.kernel.Desk().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.kernel.Desk().Vote(t.Context(), approval.Voter{Principal: "ada", Approves: a.Rules}, id, approvals.Ballot{Yes: yes, Digest: a.Digest}); err != nil {
		t.Fatal(err)
	}
}

// acts are the acts on approvals in the audit log.
func (d *desk) acts() (acts []string) {
	d.ledger.mu.Lock()
	defer d.ledger.mu.Unlock()
	for _, r := range d.ledger.records {
		if r.Event == audit.Approval {
			acts = append(acts, strings.Join(append([]string{string(r.Code)}, r.Rules...), " "))
		}
	}
	return acts
}

// asked are the names and the texts of what a response asks.
func (r reply) asked(t *testing.T) map[string]string {
	t.Helper()
	var requests map[string]struct {
		Method string
		Params json.RawMessage
	}
	if r.Result.Type != "input_required" {
		return nil
	}
	if err := json.Unmarshal(r.Result.Requests, &requests); err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{}
	for name, q := range requests {
		if q.Method != "elicitation/create" {
			t.Errorf("%s", r.raw)
		}
		asked[name] = string(q.Params)
	}
	return asked
}

// decides is the answer of a user to the form.
func decides(what string) string {
	return `{"approval":{"action":"accept","content":{"decision":"` + what + `"}}}`
}

const formsAndPages = `{"elicitation":{"form":{},"url":{}}}`

// TestApprovalByForm: the user of a client of 2026-07-28 decides by a form, and the same call
// with the answer runs, once.
func TestApprovalByForm(t *testing.T) {
	d := openDesk(t, nil)
	const arguments = `"arguments":{"n": 1.0, "key":"hunter2", "note":"\u202eevil\nArguments: {}"}`
	r := d.asks(t, "mine", formsAndPages, arguments)
	asked := r.asked(t)
	if len(asked) != 1 || r.Result.State != "approval."+r.header.Get("Callgate-Call-Id") || r.Result.Meta["callgate/callId"] != r.header.Get("Callgate-Call-Id") {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	var form struct {
		Mode, Message string
		Schema        struct {
			Properties struct{ Decision struct{ Enum []string } }
		} `json:"requestedSchema"`
	}
	if err := json.Unmarshal([]byte(asked["approval"]), &form); err != nil {
		t.Fatal(err)
	}
	const want = "May mine run? It waits for your decision; nothing was executed.\nLook twice.\nArguments: " +
		`{"n":1.0,"key":"[redacted]","note":"\u202eevil\nArguments: {}"}`
	if form.Mode != "form" || form.Message != want || fmt.Sprint(form.Schema.Properties.Decision.Enum) != "[allow once allow for 1 h deny]" {
		t.Errorf("%+v", form)
	}
	if strings.Contains(r.raw, "hunter2") || d.runs() != 0 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
	for range 2 { // sent again, it is not run again
		again := d.asks(t, "mine", formsAndPages, arguments+","+answered(r.Result.State, decides("allow once")))
		if again.Result.IsError || again.Result.Type != "complete" || d.runs() != 1 || d.ran[0] != strings.TrimPrefix(arguments, `"arguments":`) {
			t.Fatalf("%d runs %q: %s", d.runs(), d.ran, again.raw)
		}
	}
	if got := fmt.Sprint(d.acts()); got != "[requested mine=1@caller yes mine]" && got != "[requested "+audit.RuleVotes("mine", 1, true)+" yes mine]" {
		t.Errorf("%s", got)
	}
	// It was used up.
	if r := d.asks(t, "mine", formsAndPages, arguments); r.Result.Type != "input_required" || d.runs() != 1 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
}

// TestApprovalDecisions: whatever a user or its client answers, the call runs by a yes alone.
func TestApprovalDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		tool, responses string
		want            string // the code or what is asked
		runs            int
		next            string // the same of the same call, sent anew
		nextRuns        int
	}{
		"once":                 {"mine", decides("allow once"), "", 1, "approval", 1},
		"for a time":           {"mine", decides("allow for 1 h"), "", 1, "", 2},
		"for a shorter time":   {"soon", decides("allow for 1 min 30 s"), "", 1, "", 2},
		"for no time":          {"once", decides("allow for 1 h"), "invalid_value /inputResponses/approval/content/decision", 0, "approval", 0},
		"denied":               {"mine", decides("deny"), "approval_denied", 0, "approval", 0},
		"declined":             {"mine", `{"approval":{"action":"decline"}}`, "approval_denied", 0, "approval", 0},
		"cancelled":            {"mine", `{"approval":{"action":"cancel"}}`, "approval_required", 0, "approval", 0},
		"an unknown option":    {"mine", decides("Allow once"), "invalid_value /inputResponses/approval/content/decision", 0, "approval", 0},
		"an unknown action":    {"mine", `{"approval":{"action":"approve"}}`, "invalid_value /inputResponses/approval/action", 0, "approval", 0},
		"no decision":          {"mine", `{"approval":{"action":"accept","content":{}}}`, "missing_argument /inputResponses/approval/content/decision", 0, "approval", 0},
		"more than a decision": {"mine", `{"approval":{"action":"accept","content":{"decision":"allow once","digest":"x"}}}`, "unexpected_argument /inputResponses/approval/content/digest", 0, "approval", 0},
		"of another name":      {"mine", `{"approve":{"action":"accept","content":{"decision":"allow once"}}}`, "approval", 0, "approval", 0},
		"nothing":              {"mine", `{}`, "approval", 0, "approval", 0},
		"the approvers' part":  {"theirs", decides("allow once"), "approval_page", 0, "approval_page", 0},
		"only the own part":    {"both", decides("allow once"), "approval_page", 0, "approval_page", 0},
	} {
		d := openDesk(t, nil)
		said := func(r reply) string {
			if r.Error.Code != 0 {
				return r.refusedAt(t)
			}
			names := r.code()
			for name := range r.asked(t) {
				names += name
			}
			return names
		}
		first := d.asks(t, c.tool, formsAndPages, "")
		r := d.asks(t, c.tool, formsAndPages, answered(first.Result.State, c.responses))
		if got := said(r); got != c.want || d.runs() != c.runs {
			t.Errorf("%s: %s, %d runs: %s", name, got, d.runs(), r.raw)
		}
		if r.Result.Type == "input_required" && r.Result.State != first.Result.State {
			t.Errorf("%s: asked anew: %s", name, r.raw)
		}
		next := d.asks(t, c.tool, formsAndPages, "")
		if got := said(next); got != c.next || d.runs() != c.nextRuns {
			t.Errorf("%s: and then %s, %d runs: %s", name, got, d.runs(), next.raw)
		}
	}
}

// TestApprovalByPage: where approvers decide, the client is given their page until they have.
func TestApprovalByPage(t *testing.T) {
	for _, yes := range []bool{true, false} {
		d := openDesk(t, nil)
		r := d.asks(t, "theirs", formsAndPages, "")
		id := r.header.Get("Callgate-Call-Id")
		for _, responses := range []string{`{}`, `{"approval_page":{"action":"accept"}}`} {
			again := d.asks(t, "theirs", formsAndPages, answered(r.Result.State, responses))
			asked := again.asked(t)
			if len(asked) != 1 || !strings.Contains(asked["approval_page"], `"url":"`+pages+id+`"`) || again.Result.State != r.Result.State || again.Result.State != "approval."+id {
				t.Fatalf("%s", again.raw)
			}
		}
		for _, responses := range []string{`{"approval_page":{"action":"decline"}}`, `{"approval_page":{"action":"cancel"}}`} {
			if r := d.asks(t, "theirs", formsAndPages, answered(r.Result.State, responses)); r.code() != "approval_required" || !r.Result.IsError {
				t.Errorf("%s: %s", responses, r.raw)
			}
		}
		if got := d.asks(t, "theirs", formsAndPages, answered(r.Result.State, `{"approval_page":{"action":"open"}}`)).refusedAt(t); got != "invalid_value /inputResponses/approval_page/action" {
			t.Errorf("%s", got)
		}
		d.votes(t, id, yes)
		last := d.asks(t, "theirs", formsAndPages, answered(r.Result.State, `{"approval_page":{"action":"accept"}}`))
		if last.Result.IsError == yes || d.runs() == 0 == yes || !yes && last.code() != "approval_denied" {
			t.Errorf("%v: %d runs: %s", yes, d.runs(), last.raw)
		}
	}
	// A page that nobody knows, or that the client cannot open, is not asked for.
	d := openDesk(t, func(c *gateway.Config, _ *calls.Deps) { c.ApprovalPages = "" })
	for capabilities, tool := range map[string]string{formsAndPages: "theirs", `{}`: "mine", `{"elicitation":{"url":{}}}`: "mine"} {
		if r := d.asks(t, tool, capabilities, ""); r.code() != "approval_required" || !r.Result.IsError || r.Result.Type != "complete" {
			t.Errorf("%s: %s", capabilities, r.raw)
		}
	}
	d = openDesk(t, nil)
	if r := d.asks(t, "theirs", forms, ""); r.code() != "approval_required" {
		t.Errorf("%s", r.raw)
	}
	if asked := d.asks(t, "mine", `{"elicitation":{"url":{}}}`, "").asked(t); asked["approval_page"] == "" { // others may answer it, too
		t.Errorf("%q", asked)
	}
}

// TestApprovalByBoth: a call that its user and others approve runs once both have, and the votes
// of the user count for no rule of others.
func TestApprovalByBoth(t *testing.T) {
	d := openDesk(t, func(c *gateway.Config, _ *calls.Deps) { c.Identity = keys{} })
	one := []string{"Authorization", "Bearer one"}
	r := d.asks(t, "both", formsAndPages, "", one...)
	if asked := r.asked(t); len(asked) != 2 {
		t.Fatalf("%s", r.raw)
	}
	r = d.asks(t, "both", formsAndPages, answered(r.Result.State, decides("allow for 1 h")), one...)
	if asked := r.asked(t); len(asked) != 1 || asked["approval_page"] == "" || d.runs() != 0 {
		t.Fatalf("%s", r.raw)
	}
	d.votes(t, r.header.Get("Callgate-Call-Id"), true)
	if r = d.asks(t, "both", formsAndPages, answered(r.Result.State, `{"approval_page":{"action":"accept"}}`), one...); r.Result.IsError || d.runs() != 1 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
}

// TestApprovalThatCannotBeShown: what a user cannot be shown whole, it is not asked.
func TestApprovalThatCannotBeShown(t *testing.T) {
	d := openDesk(t, nil)
	for _, note := range []string{strings.Repeat("x", 65<<10), strings.Repeat("\u202e", 20<<10)} {
		r := d.asks(t, "mine", forms, `"arguments":{"note":"`+note+`"}`)
		if r.code() != "approval_required" || r.Result.Type != "complete" || d.runs() != 0 {
			t.Errorf("%.300s", r.raw)
		}
	}
}

// TestApprovalWithoutTheLog: a yes that cannot be recorded does not count.
func TestApprovalWithoutTheLog(t *testing.T) {
	log := &refusingLog{}
	d := openDesk(t, func(_ *gateway.Config, p *calls.Deps) { log.Journal, p.Journal = p.Journal, log })
	state := d.asks(t, "mine", forms, "").Result.State
	log.refuses = audit.Approval
	if r := d.asks(t, "mine", forms, answered(state, decides("allow once"))); r.code() != "audit_unavailable" || d.runs() != 0 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
	if r := d.asks(t, "once", forms, ""); r.code() != "audit_unavailable" {
		t.Errorf("asked: %s", r.raw)
	}
	log.refuses = ""
	if r := d.asks(t, "mine", forms, answered(state, decides("allow once"))); r.Result.IsError || d.runs() != 1 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
}

// refusingLog is a log that refuses records of an event.
type refusingLog struct {
	gateway.Journal
	refuses audit.Event
}

func (l *refusingLog) Append(ctx context.Context, r audit.Record) error {
	if r.Event == l.refuses {
		return refusal.New(refusal.AuditUnavailable, "The log is away.")
	}
	return l.Journal.Append(ctx, r)
}
