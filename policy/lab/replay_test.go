package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/callgate/callgate/internal/testkit/detector"
	"github.com/callgate/callgate/policy/lab"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/testkit/corpora"

	"github.com/callgate/callgate/refusal"
)

// rows are those that random policies are drawn from.
var rows = []string{
	`p, Analyst, acme/alpha, *, , allow`,
	`p, Analyst, acme/*, web.*, , allow`,
	`p, Analyst, acme/alpha, payments.refund, "args.amount <= 100", allow`,
	`p, Analyst, acme/alpha, payments.refund, "args.amount > 100", ask:refunds`,
	`p, Analyst, *, payments.*, "has(args.currency) && args.currency == 'USD'", deny`,
	`p, Analyst, acme/alpha, files.*, , ask:refunds`,
	`p, Analyst, acme/alpha, files.read, , deny`,
	`p, Analyst, acme/alpha, notes.label, "args.note.startsWith('x') || agent == 'Analyst'", allow`,
	`p, Analyst, acme/alpha, time.now, "agent == 'Intern'", deny`,
	`p, Intern, *, *, , allow`,
	`p, Intern, *, payments.*, , deny`,
	`p, Intern, *, web.search, "args.query != 'secret' && agent == 'Intern'", ask:refunds`,
	`p, Intern, acme/alpha, files.read, "args.path.startsWith('docs')", deny`,
	`p, Analyst, acme/alpha, time.now, , ask:refunds`,
	`p, Analyst, acme/alpha, data.*, , ask:refunds`,
	`g, Analyst, role:researcher, acme/alpha`,
	`p, role:researcher, acme/alpha, data.*, , allow`,
}

// configuration is that of the vectors with another policy.
func configuration(t testing.TB, policy []string) *configs.Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(corpora.Testdata("vectors", "config"))); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "callgate.yaml")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		main:                                 strings.Replace(string(text), "# end", "approvals: approvals.yaml\n# end", 1),
		filepath.Join(dir, "policy.csv"):     strings.Join(policy, "\n") + "\n# end\n",
		filepath.Join(dir, "approvals.yaml"): "rules: {refunds: {approve: 1, within: 1h}}\n# end\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := configs.Load(main)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func randomPolicy(r *rand.Rand) []string {
	var out []string
	for _, row := range rows {
		if strings.HasPrefix(row, "g,") || r.IntN(3) > 0 {
			out = append(out, row)
		}
	}
	return out
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// randomCall draws a call, of which most are valid.
func randomCall(r *rand.Rand) lab.Call {
	c := lab.Call{Agent: pick(r, "Analyst", "Analyst", "Intern", "Nobody"), Workspace: pick(r, "acme", "acme", "acme", "other"), Project: pick(r, "alpha", "alpha", "beta")}
	c.Tool = pick(r, "web.search", "payments.refund", "payments.refund", "files.read", "notes.label", "time.now", "data.vector_search", "web.searches")
	c.Arguments = json.RawMessage(map[string]string{
		"web.search":         pick(r, `{"query":"x"}`, `{"query":"secret"}`, `{"query":"x","site":"evil.example"}`, `{}`),
		"payments.refund":    pick(r, `{"payment_id":"pay_abc123","amount":50}`, `{"payment_id":"pay_abc123","amount":500}`, `{"payment_id":"pay_abc123","amount":50,"currency":"USD"}`, `{"amount":"x"}`, `{"payment_id":"pay_abc123","amount":12345678901234567890123}`),
		"files.read":         pick(r, `{"path":"docs/a"}`, `{"path":"a"}`, `{"path":"/etc/passwd"}`),
		"notes.label":        pick(r, `{"note":"x","labels":{}}`, `{"note":"y","labels":{"a":"b"}}`, `{"note":1}`),
		"time.now":           pick(r, `{}`, `{"a":1}`),
		"data.vector_search": `{"embedding":[1],"top_k":1}`,
		"web.searches":       `{}`,
	}[c.Tool])
	return c
}

// truth judges a call as the gateway does.
func truth(t testing.TB, c *configs.Config, call lab.Call) (lab.Judgement, *refusal.Error) {
	t.Helper()
	judge, err := c.DryRun()
	if err != nil {
		t.Fatal(err)
	}
	out := judge.Judge(context.Background(), call)
	refused := out.Refusal
	out.Refusal = nil // which a record does not show
	return out, refused
}

// record writes the decision on a call as the gateway does, with or without the arguments.
func record(r *rand.Rand, c *configs.Config, call lab.Call, j lab.Judgement, refused *refusal.Error, arguments bool) *audit.Record {
	rec := &audit.Record{
		Seq: 1, Time: time.Unix(1_700_000_000, 0), Event: audit.Decision, Mode: audit.Call, CallID: "call_1", Agent: call.Agent, Workspace: call.Workspace, Project: call.Project,
		Tool: call.Tool, Verdict: audit.ToolCall, ConfigDigest: c.Digest, Rows: j.Rows,
	}
	if entry, known := c.Tools.Lookup(call.Tool); known {
		rec.ToolVersion = entry.Version()
	}
	if arguments {
		rec.Arguments = call.Arguments
	}
	if j.Verdict == lab.Asks {
		rec.Rules = j.Rules
	}
	switch {
	case refused != nil:
		rec.Verdict, rec.Stage, rec.Code = audit.Refused, refused.Stage, refused.Code
	case j.Verdict == lab.Asks && r.IntN(2) == 0:
		rec.Verdict, rec.Stage, rec.Code = audit.Refused, refusal.Approval, refusal.ApprovalRequired
	case r.IntN(10) == 0:
		rec.Verdict, rec.Stage, rec.Code = audit.Refused, refusal.Log, refusal.AuditUnavailable
	}
	return rec
}

// A replay judges as the gateway would, with and without arguments, against the log and against a
// baseline; a judgement that cannot be made is undecided, and never wrong.
func TestReplayIsJudging(t *testing.T) {
	detector.OneGoroutine(t)
	r := rand.New(rand.NewPCG(5, 6))
	counts := map[string]int{}
	for range 60 {
		old, now := configuration(t, randomPolicy(r)), configuration(t, randomPolicy(r))
		against, alone := startReplay(t, now, old), startReplay(t, now, nil)
		for range 100 {
			call := randomCall(r)
			was, refused := truth(t, old, call)
			is, _ := truth(t, now, call)
			for _, arguments := range []bool{true, false} {
				rec := record(r, old, call, was, refused, arguments)
				for name, replay := range map[string]*lab.Replay{"baseline": against, "log": alone} {
					before, after, undecided, outside, err := replay.JudgeRecord(t.Context(), rec)
					if err != nil {
						t.Fatal(err)
					}
					if outside != "" {
						counts["outside"]++
						continue
					}
					if undecided != "" {
						counts[name+" undecided"]++
						if arguments {
							t.Fatalf("undecided with arguments: %s", undecided)
						}
						continue
					}
					counts[fmt.Sprint(name, " ", arguments, " ", before.Verdict, " ", after.Verdict)]++
					if before.Verdict != was.Verdict || after.Verdict != is.Verdict {
						t.Fatalf("%s, %+v with arguments %v: found %s, then %s; expected %s, then %s\n%+v", name, call, arguments, before.Verdict, after.Verdict, was.Verdict, is.Verdict, rec)
					}
					if arguments && (before.Code != was.Code || after.Code != is.Code || !slices.Equal(after.Rows, is.Rows)) {
						t.Fatalf("%s, %+v: found %v, then %v; expected %v, then %v", name, call, before, after, was, is)
					}
				}
			}
		}
	}
	t.Log(counts)
	for _, want := range []string{"log undecided", "baseline undecided", "outside"} {
		if counts[want] == 0 {
			t.Errorf("nothing came out as %q", want)
		}
	}
	for _, from := range []lab.Verdict{lab.Allowed, lab.Asks, lab.Refused} {
		for _, to := range []lab.Verdict{lab.Allowed, lab.Asks, lab.Refused} {
			for _, how := range []string{"baseline true", "log true", "baseline false", "log false"} {
				// Without arguments a refused call is not known to be valid.
				known := from != lab.Refused || to == lab.Refused || !strings.HasSuffix(how, "false")
				if known && counts[fmt.Sprint(how, " ", from, " ", to)] == 0 {
					t.Errorf("%s: nothing went from %s to %s", how, from, to)
				}
			}
		}
	}
}

func startReplay(t testing.TB, now, baseline *configs.Config) *lab.Replay {
	t.Helper()
	r, err := lab.NewReplay(now.Rules(), baseline.Rules(), nil, lab.Log{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A log that is judged again by the configuration that wrote it has no change.
func TestNothingChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	c := configuration(t, rows)
	for _, arguments := range []bool{true, false} {
		r := startReplay(t, c, nil)
		for range 5000 {
			call := randomCall(random)
			j, refused := truth(t, c, call)
			if err := r.Add(t.Context(), record(random, c, call, j, refused, arguments)); err != nil {
				t.Fatal(err)
			}
		}
		s := r.Summary()
		if len(r.Groups()) > 0 || s.Decided < 2000 || arguments && s.Decided != s.Decisions {
			t.Errorf("arguments %v: %+v, %v", arguments, s, r.Groups())
		}
	}
}

func TestGroupsAndSummary(t *testing.T) {
	old, now := configuration(t, rows[:1]), configuration(t, []string{rows[0], rows[6]})
	r := startReplay(t, now, nil)
	add := func(change func(*audit.Record)) {
		rec := record(rand.New(rand.NewPCG(1, 1)), old, lab.Call{Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "files.read", Arguments: json.RawMessage(`{"path":"a"}`)}, lab.Judgement{Verdict: lab.Allowed}, nil, true)
		rec.Verdict, rec.Stage, rec.Code = audit.ToolCall, "", ""
		change(rec)
		if err := r.Add(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	add(func(rec *audit.Record) { rec.CallID, rec.Replica = "call_first", "b" })
	add(func(rec *audit.Record) { rec.Arguments = nil })
	add(func(rec *audit.Record) { rec.Event = audit.Ending })
	add(func(rec *audit.Record) { rec.Verdict = audit.Text })
	add(func(rec *audit.Record) {
		rec.Verdict, rec.Stage, rec.Code, rec.Tool = audit.Refused, refusal.Parse, refusal.MixedOutput, ""
	})
	add(func(rec *audit.Record) {
		rec.Tool, rec.Arguments = "web.search", json.RawMessage(`{"query":"[redacted]"}`)
	})
	add(func(rec *audit.Record) { rec.Tool, rec.Arguments = "web.search", nil; rec.ToolVersion = "9.0.0" })
	groups, s := r.Groups(), r.Summary()
	want := lab.ReplayGroup{Change: lab.NewlyRefused, Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "files.read", After: refusal.PermissionDenied, Rows: groups[0].Rows, Calls: 2, First: "call_first"}
	if len(groups) != 1 || groups[0] != want || !strings.HasSuffix(want.Rows, "policy.csv:2") {
		t.Errorf("found %+v; expected %+v", groups, want)
	}
	if s.Decisions != 4 || s.Decided != 3 || s.Texts != 1 || s.Gateways != 2 || s.Changes[lab.NewlyRefused] != 2 || s.Assumed != 1 ||
		s.Undecided["the tool has another version now"] != 1 || len(s.Outside) != 1 {
		t.Errorf("found %+v", s)
	}
}

// Where the configuration that made a decision is kept, its schemas and boundaries must be
// those of now: nothing is taken as it was.
func TestKeptJudge(t *testing.T) {
	old := configuration(t, rows[:1])
	same := configuration(t, []string{rows[0], rows[9]})
	narrower := changed(t, old, "workspaces.yaml", "*.example.org", "*.example.net")
	stricter := changed(t, old, "tools/core.yaml", "maxLength: 400", "maxLength: 40")
	for name, c := range map[string]struct {
		now  *configs.Config
		tool string
		want string
	}{
		"same":                   {same, "web.search", ""},
		"another boundary":       {narrower, "web.search", "the boundaries of the project differ"},
		"a tool without any":     {narrower, "time.now", ""},
		"another schema":         {stricter, "web.search", "the schema of the tool differs"},
		"another schema of none": {stricter, "time.now", ""},
	} {
		r, err := lab.NewReplay(c.now.Rules(), nil, func(digest string) *gateway.Config {
			if digest != old.Digest {
				t.Errorf("asked for %s", digest)
			}
			return old.Rules()
		}, lab.Log{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			rec := &audit.Record{Event: audit.Decision, Verdict: audit.ToolCall, Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: c.tool, ConfigDigest: old.Digest}
			if err := r.Add(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
		}
		s := r.Summary()
		if s.Assumed != 0 || (c.want == "") != (s.Decided == 2) || c.want != "" && s.Undecided[c.want] != 2 {
			t.Errorf("%s: found %+v", name, s)
		}
	}
}

// changed is a configuration in which a file has another text.
func changed(t *testing.T, c *configs.Config, file, from, to string) *configs.Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(c.Files[0]))); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, file)
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("%s does not have %q: %v", file, from, err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// The memory of a replay does not grow with the kinds of changes.
func TestGroupsAreBounded(t *testing.T) {
	c := configuration(t, nil)
	r := startReplay(t, c, nil)
	for i := range lab.MaxGroups + 10 {
		rec := &audit.Record{Event: audit.Decision, Verdict: audit.ToolCall, Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: fmt.Sprint("tool.", i), ConfigDigest: fmt.Sprint(i)}
		if err := r.Add(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.Summary(); len(r.Groups()) != lab.MaxGroups || s.MoreGroups != 10 || s.Changes[lab.NewlyRefused] != lab.MaxGroups+10 || len(s.Configs) != lab.MaxGroups {
		t.Errorf("%d groups, %+v", len(r.Groups()), s.MoreGroups)
	}
}

func BenchmarkAdd(b *testing.B) {
	c := configuration(b, rows)
	random := rand.New(rand.NewPCG(9, 9))
	for _, arguments := range []bool{true, false} {
		b.Run(fmt.Sprint("arguments ", arguments), func(b *testing.B) {
			var records []*audit.Record
			for range 1000 {
				call := randomCall(random)
				j, refused := truth(b, c, call)
				records = append(records, record(random, c, call, j, refused, arguments))
			}
			r := startReplay(b, c, nil)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := r.Add(b.Context(), records[i%len(records)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A configuration that was kept and has gone is counted, once for all its decisions.
func TestKeptJudgeHasGone(t *testing.T) {
	r, err := lab.NewReplay(configuration(t, rows[:1]).Rules(), nil, func(string) *gateway.Config { return nil }, lab.Log{})
	if err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{"a", "a", "b"} {
		rec := &audit.Record{Event: audit.Decision, Verdict: audit.ToolCall, Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "web.search", ConfigDigest: digest}
		if err := r.Add(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.Summary(); s.NotKept != 2 || s.Assumed != 3 {
		t.Errorf("found %+v; expected 2 that are not kept, and 3 decisions", s)
	}
}
