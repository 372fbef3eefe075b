package approvals

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/search"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/refusal"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// patient is a bound that only a hang reaches.
const patient = 5 * time.Minute

// at returns a record of a call at so many minutes.
func at(minutes int, call string) audit.Record {
	return audit.Record{
		Time: noon.Add(time.Duration(minutes) * time.Minute), Mode: audit.Call, CallID: call, Principal: "team-a", Agent: "Analyst", Workspace: "acme", Project: "alpha",
		Thread: "t1", Tool: "payments.refund", ToolVersion: "2.1.0", ConfigDigest: "c1",
	}
}

// asked is the request of an approval: it needs two people, and half an hour is left.
func asked(minutes int, call string) audit.Record {
	r := at(minutes, call)
	r.Event, r.Code, r.Approvals, r.Rules, r.Until = audit.Approval, audit.Requested, []string{"digest-" + call}, []string{"refunds=2"}, r.Time.Add(30*time.Minute)
	return r
}

// event is an act on an approval.
func event(minutes int, call, who string, code refusal.Code) audit.Record {
	r := at(minutes, call)
	r.Event, r.Code, r.Principal, r.Approvals, r.Rules = audit.Approval, code, who, []string{"digest-" + call}, []string{"refunds"}
	return r
}

// used is a decision that uses approvals.
func used(minutes int, call string, approvals ...string) audit.Record {
	r := at(minutes, call)
	r.Event, r.Verdict, r.Approvals, r.Rules = audit.Decision, audit.ToolCall, approvals, []string{"refunds=2"}
	return r
}

// ended is the outcome of a call.
func ended(minutes int, call string, outcome audit.Outcome, code refusal.Code) audit.Record {
	r := at(minutes, call)
	r.Event, r.Verdict, r.Outcome, r.Code = audit.Ending, audit.ToolCall, outcome, code
	return r
}

// granted is a grant that votes made, until an hour later.
func granted(minutes int, call, grant, scope string) audit.Record {
	r := event(minutes, call, "bob", audit.Granted)
	r.Approvals = append(r.Approvals, grant, scope)
	r.Until = r.Time.Add(time.Hour)
	return r
}

func with(r audit.Record, change func(*audit.Record)) audit.Record {
	change(&r)
	return r
}

// approved is the story of an approval with both of its votes.
func approved(more ...audit.Record) []audit.Record {
	return append([]audit.Record{asked(0, "A"), event(1, "A", "ada", audit.Yes), event(2, "A", "bob", audit.Yes)}, more...)
}

// check writes each log, and checks them together.
func check(t *testing.T, logs ...[]audit.Record) Report {
	t.Helper()
	var dirs []string
	for i, records := range logs {
		dir := filepath.Join(t.TempDir(), string(rune('0'+i)))
		log, err := audit.Open(dir, audit.Options{Wait: patient})
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
		dirs = append(dirs, dir)
	}
	opened, err := search.Open(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	r, err := Check(t.Context(), opened)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Stories that are as they must be.
func TestTrueStories(t *testing.T) {
	refused := with(ended(4, "B", audit.Failed, refusal.StoreUnavailable), func(*audit.Record) {})
	for name, logs := range map[string][][]audit.Record{
		"nothing":                    {{}},
		"used once":                  {approved(used(3, "B", "A"), ended(4, "B", audit.Result, ""))},
		"used by the call itself":    {approved(used(3, "A", "A"))},
		"waiting":                    {{asked(0, "A"), event(1, "A", "ada", audit.Yes)}},
		"denied, and not used":       {approved(event(3, "A", "eve", audit.No))},
		"used, then expired":         {approved(used(3, "B", "A"), event(40, "A", "", audit.Lapsed))},
		"not dispatched, used again": {approved(used(3, "B", "A"), refused, used(5, "C", "A"))},
		"denied before its dispatch": {approved(event(3, "A", "eve", audit.No), used(4, "B", "A"), ended(5, "B", audit.Failed, refusal.ApprovalDenied))},
		"called off before it":       {approved(event(3, "A", "team-a", audit.Withdrawn), used(4, "B", "A"), ended(5, "B", audit.Failed, refusal.ApprovalRequired))},
		"its grant revoked before it": {approved(granted(2, "A", "grant_1", "tool"), with(event(3, "A", "op", audit.Revoked), func(r *audit.Record) { r.Approvals = append(r.Approvals, "grant_1") }),
			used(4, "B", "grant_1"), ended(5, "B", audit.Failed, refusal.ApprovalDenied))},
		"its gateway died before that":  {approved(used(3, "B", "A"), ended(4, "B", audit.Unknown, refusal.OutcomeUnknown), used(5, "C", "A"))},
		"refused behind, used again":    {approved(used(3, "B", "A"), with(ended(4, "B", audit.Failed, refusal.AuditUnavailable), func(r *audit.Record) { r.Verdict = audit.Refused }), used(5, "C", "A"))},
		"ten minutes from the last yes": {{asked(0, "A"), event(1, "A", "ada", audit.Yes), event(29, "A", "bob", audit.Yes), used(38, "B", "A")}},
		"the caller confirms": {{
			with(asked(0, "A"), func(r *audit.Record) { r.Rules = []string{audit.RuleVotes("refunds", 1, true)} }), event(1, "A", "team-a", audit.Yes),
			with(used(2, "B", "A"), func(r *audit.Record) { r.Rules = []string{"refunds=caller"} }),
		}},
		"without authentication": {{
			with(asked(0, "A"), func(r *audit.Record) { r.Principal, r.Rules = "", []string{"refunds=1"} }), event(1, "A", "", audit.Yes),
			with(used(2, "B", "A"), func(r *audit.Record) { r.Principal, r.Rules = "", []string{"refunds=1"} }),
		}},
		"the rule asks for fewer by now":       {{asked(0, "A"), event(1, "A", "ada", audit.Yes), with(used(2, "B", "A"), func(r *audit.Record) { r.Rules, r.ConfigDigest = []string{"refunds=1"}, "c2" })}},
		"a grant, twice":                       {approved(granted(2, "A", "grant_1", "same"), used(3, "A", "A"), used(4, "B", "grant_1"), used(5, "C", "grant_1"))},
		"a grant of a tool, in another thread": {approved(granted(2, "A", "grant_1", "tool"), with(used(4, "B", "grant_1"), func(r *audit.Record) { r.Thread = "t2" }))},
		"two rules, an approval and a grant": {approved(granted(2, "A", "grant_1", "tool"),
			with(asked(3, "B"), func(r *audit.Record) { r.Rules = []string{"refunds=2", "deploys=1"} }),
			with(event(4, "B", "eve", audit.Yes), func(r *audit.Record) { r.Rules = []string{"deploys"} }),
			with(used(5, "C", "grant_1", "B"), func(r *audit.Record) { r.Rules = []string{"refunds=2", "deploys=1"} }))},
		"votes at another gateway, whose clock differs": {
			{asked(0, "A"), used(3, "B", "A")},
			{event(1, "A", "ada", audit.Yes), with(event(3, "A", "bob", audit.Yes), func(r *audit.Record) { r.Time = r.Time.Add(50 * time.Second) })},
		},
		"revoked at another gateway, perhaps later": {
			approved(granted(2, "A", "grant_1", "tool"), used(4, "B", "grant_1")),
			{with(event(4, "A", "op", audit.Revoked), func(r *audit.Record) { r.Approvals = append(r.Approvals, "grant_1") })},
		},
	} {
		if r := check(t, logs...); len(r.Findings) > 0 {
			t.Errorf("%s: %v", name, r.Findings)
		}
	}
}

// Stories that somebody made up, and what is found in each.
func TestForgedStories(t *testing.T) {
	for name, c := range map[string]struct {
		logs [][]audit.Record
		want string
	}{
		"nobody asked":                {[][]audit.Record{{used(3, "B", "A")}}, "which nobody had asked for before"},
		"nobody voted":                {[][]audit.Record{{asked(0, "A"), used(3, "B", "A")}}, "0 of 2 people had said yes for the rule refunds"},
		"one of two":                  {[][]audit.Record{{asked(0, "A"), event(1, "A", "ada", audit.Yes), used(3, "B", "A")}}, "1 of 2 people"},
		"one voted twice":             {[][]audit.Record{{asked(0, "A"), event(1, "A", "ada", audit.Yes), event(2, "A", "ada", audit.Yes), used(3, "B", "A")}}, "1 of 2 people"},
		"voted afterwards":            {[][]audit.Record{{asked(0, "A"), event(1, "A", "ada", audit.Yes), used(3, "B", "A"), event(4, "A", "bob", audit.Yes)}}, "1 of 2 people"},
		"the requester voted":         {[][]audit.Record{{asked(0, "A"), event(1, "A", "ada", audit.Yes), event(2, "A", "team-a", audit.Yes), used(3, "B", "A")}}, "1 of 2 people"},
		"a vote for another rule":     {[][]audit.Record{{asked(0, "A"), event(1, "A", "ada", audit.Yes), with(event(2, "A", "bob", audit.Yes), func(r *audit.Record) { r.Rules = []string{"deploys"} }), used(3, "B", "A")}}, "1 of 2 people"},
		"a vote to another call":      {[][]audit.Record{{asked(0, "A"), event(1, "A", "ada", audit.Yes), with(event(2, "A", "bob", audit.Yes), func(r *audit.Record) { r.Approvals = []string{"digest-other"} }), used(3, "B", "A")}}, "1 of 2 people"},
		"after a no":                  {[][]audit.Record{approved(event(3, "A", "eve", audit.No), used(4, "B", "A"))}, "which was denied before"},
		"after a no, and it ran":      {[][]audit.Record{approved(event(3, "A", "eve", audit.No), used(4, "B", "A"), ended(5, "B", audit.Failed, refusal.ApprovalDenied), ended(6, "B", audit.Result, ""))}, "which was denied before"},
		"after its time":              {[][]audit.Record{approved(used(31, "B", "A"))}, "which could be used until 2026-11-20T12:30:00Z"},
		"after it expired":            {[][]audit.Record{approved(event(29, "A", "", audit.Lapsed), used(29, "B", "A"))}, "which had expired before"},
		"after it was withdrawn":      {[][]audit.Record{approved(event(3, "A", "team-a", audit.Withdrawn), used(4, "B", "A"))}, "which was withdrawn or revoked before"},
		"after it was revoked":        {[][]audit.Record{approved(event(3, "A", "op", audit.Revoked), used(4, "B", "A"))}, "which was withdrawn or revoked before"},
		"twice":                       {[][]audit.Record{approved(used(3, "B", "A"), used(4, "C", "A"))}, "which the call B had used before"},
		"twice, the first one lost":   {[][]audit.Record{approved(used(3, "B", "A"), with(ended(4, "B", audit.Unknown, refusal.OutcomeUnknown), func(r *audit.Record) { r.Attempt = 1 }), used(5, "C", "A"))}, "which the call B had used before"},
		"twice, at two gateways":      {[][]audit.Record{approved(used(3, "B", "A")), {used(4, "C", "A")}}, "which the call B had used before"},
		"by another principal":        {[][]audit.Record{approved(with(used(3, "B", "A"), func(r *audit.Record) { r.Principal = "team-b" }))}, `with the principal "team-a", and not "team-b"`},
		"for another tool":            {[][]audit.Record{approved(with(used(3, "B", "A"), func(r *audit.Record) { r.Tool = "payments.pay" }))}, `with the tool "payments.refund"`},
		"in another thread":           {[][]audit.Record{approved(with(used(3, "B", "A"), func(r *audit.Record) { r.Thread = "t2" }))}, "in the thread"},
		"the number was lowered":      {[][]audit.Record{{asked(0, "A"), event(1, "A", "ada", audit.Yes), with(used(3, "B", "A"), func(r *audit.Record) { r.Rules = []string{"refunds=1"} })}}, "asked for with refunds=2, and not refunds=1"},
		"a rule was left out":         {[][]audit.Record{{with(asked(0, "A"), func(r *audit.Record) { r.Rules = []string{"refunds=2", "deploys=1"} }), event(1, "A", "ada", audit.Yes), event(2, "A", "bob", audit.Yes), used(3, "B", "A")}}, "asked for with deploys=1, and not refunds=2"},
		"a rule that was not asked":   {[][]audit.Record{approved(with(used(3, "B", "A"), func(r *audit.Record) { r.Rules = append(r.Rules, "deploys=1") }))}, "which was not asked for the rule deploys"},
		"no number":                   {[][]audit.Record{approved(with(used(3, "B", "A"), func(r *audit.Record) { r.Rules = append(r.Rules, "refunds=0") }))}, "without the number"},
		"no rules":                    {[][]audit.Record{approved(with(used(3, "B", "A"), func(r *audit.Record) { r.Rules, r.ConfigDigest = nil, "c2" }))}, "does not say for which rules"},
		"a grant of nobody":           {[][]audit.Record{approved(used(3, "B", "grant_1"))}, "which nobody had granted before"},
		"a grant without its votes":   {[][]audit.Record{{asked(0, "A"), event(1, "A", "ada", audit.Yes), granted(2, "A", "grant_1", "tool"), used(3, "B", "grant_1")}}, "1 of 2 people"},
		"a grant after its time":      {[][]audit.Record{approved(granted(2, "A", "grant_1", "tool"), used(63, "B", "grant_1"))}, "which held until"},
		"a grant that was revoked":    {[][]audit.Record{approved(granted(2, "A", "grant_1", "tool"), with(event(3, "A", "op", audit.Revoked), func(r *audit.Record) { r.Approvals = append(r.Approvals, "grant_1") }), used(4, "B", "grant_1"))}, "which was revoked before"},
		"a grant of another agent":    {[][]audit.Record{approved(granted(2, "A", "grant_1", "tool"), with(used(3, "B", "grant_1"), func(r *audit.Record) { r.Agent = "Intern" }))}, `with the agent "Analyst"`},
		"a grant of another thread":   {[][]audit.Record{approved(granted(2, "A", "grant_1", "thread"), with(used(3, "B", "grant_1"), func(r *audit.Record) { r.Thread = "t2" }))}, "in the thread"},
		"denied at another gateway":   {[][]audit.Record{approved(used(20, "B", "A")), {event(3, "A", "eve", audit.No)}}, "which was denied before"},
		"a vote of another day":       {[][]audit.Record{{asked(0, "A"), event(1, "A", "ada", audit.Yes), used(3, "B", "A")}, {event(10, "A", "bob", audit.Yes)}}, "1 of 2 people"},
		"one approval of two is none": {[][]audit.Record{approved(used(3, "B", "A", "C"))}, "which nobody had asked for before"},
	} {
		r := check(t, c.logs...)
		if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].String(), c.want) {
			t.Errorf("%s: found %v, want %q", name, r.Findings, c.want)
		}
	}
}
