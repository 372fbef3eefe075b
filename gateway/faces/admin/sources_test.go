package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// canary is in every secret of a fixture.
const canary = "canary-5e3a"

// files are two agents, of which one may use little, and a tool with a secret argument.
var files = map[string]string{
	"callgate.yaml":   "registry: {files: [tools.yaml]}\n",
	"policy.csv":      "p, Analyst, *, *, , allow\np, Intern, acme/*, payments.*, args.amount <= 5, allow\np, Intern, *, payments.capture, , deny\n",
	"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst, Intern]}, beta: {agents: [Analyst]}}}}\n",
	"tools.yaml": `tools:
  - {name: payments.refund, version: 1.0.0, description: Refunds, effect: once, run: {type: client}, input_schema: {type: object, required: [amount], properties: {amount: {type: integer}, token: {type: string, maxLength: 12, x-secret: true}}}}
  - {name: payments.refund, version: 2.0.0, description: Refunds, effect: once, run: {type: client}, input_schema: {type: object, required: [amount], properties: {amount: {type: integer}, token: {type: string, maxLength: 12, x-secret: true}}}}
  - {name: payments.capture, version: 1.0.0, description: Captures, effect: once, run: {type: client}, input_schema: {type: object, properties: {amount: {type: integer}}}}
  - {name: web.search, version: 1.0.0, description: Searches, effect: read, run: {type: client}, input_schema: {type: object, properties: {query: {type: string}}}}
`,
}

// fixture is the API over a kernel with an audit log on disk.
type fixture struct {
	*httptest.Server
	kernel *gateway.Kernel
	log    *audit.Log
	source *admin.Sources

	mu     sync.Mutex
	health admin.Health
}

func newFixture(t testing.TB, record audit.Content, authn gateway.Authenticator) *fixture {
	t.Helper()
	loaded := facetest.Config(t, files)
	log, err := audit.Open(t.TempDir(), audit.Options{Record: record, Wait: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	recent := admin.NewRecent(nil)
	k, err := gateway.New(configOf(loaded, authn), gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: log, RecordContent: record, Recent: recent})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{kernel: k, log: log}
	f.source = &admin.Sources{
		Kernel: k, Log: log, Recent: recent, Runs: runs.New(runs.Options{}), Version: "test", Replica: "here", Started: time.Now(), SearchTime: time.Hour,
		Health: func() admin.Health {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.health
		},
		Configuration: func() admin.Configuration { return admin.Configuration{Digest: k.Digest(), Warnings: []string{}} },
		OpenBreakers:  func() int { return 0 },
		Differences:   differences,
		Candidate:     func() lab.CandidateReport { return lab.CandidateReport{} },
	}
	api := admin.New(admin.Options{Kernel: k, Loopback: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	api.Mount(f.source.Endpoints()...)
	f.Server = httptest.NewServer(api)
	t.Cleanup(func() {
		f.Close()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func configOf(c *configs.Config, authn gateway.Authenticator) *gateway.Config {
	return &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: c.Limits,
		Defaults: gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}, Identity: authn, Digest: c.Digest,
	}
}

// judge has a completion judged for an agent, and returns the id of the call.
func (f *fixture) judge(t testing.TB, agent, completion string) string {
	t.Helper()
	d := f.kernel.Judge(context.Background(), gateway.Request{
		Subject: gateway.Subject{Agent: agent, Workspace: "acme", Project: "alpha"}, Inputs: []gateway.Input{{Completion: []byte(completion)}},
	})
	d.Release()
	return d.Reports[0].CallID
}

// get decodes the answer of a path.
func get[T any](t *testing.T, f *fixture, path string) T {
	t.Helper()
	answer, body := send(t, f.Server, sent{method: "GET", path: path})
	if answer.StatusCode != 200 {
		t.Fatalf("%s: %d %s", path, answer.StatusCode, body)
	}
	return decoded[T](t, body)
}

func post[T any](t *testing.T, f *fixture, path, body string) T {
	t.Helper()
	answer, text := send(t, f.Server, sent{method: "POST", path: path, body: body})
	if answer.StatusCode != 200 {
		t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
	}
	return decoded[T](t, text)
}

func decoded[T any](t *testing.T, body string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

const (
	goodCall  = `{"tool":{"name":"web.search","arguments":{"query":"x"}}}`
	extraCall = `{"tool":{"name":"web.search","arguments":{"query":"x","extra":1}}}`
)

func TestDecisions(t *testing.T) {
	f := newFixture(t, audit.Completion, nil)
	ids := []string{f.judge(t, "Analyst", goodCall), f.judge(t, "Intern", goodCall), f.judge(t, "Analyst", extraCall), f.judge(t, "Analyst", "text")}
	end := audit.Record{Time: time.Now(), Event: audit.Ending, Mode: audit.Call, CallID: ids[0], Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "web.search", Outcome: audit.Timeout, Code: refusal.ToolTimeout, Attempt: 1}
	if err := f.log.Append(context.Background(), end); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		query string
		want  []int // of ids
	}{
		"all":                    {"", []int{3, 2, 1, 0}},
		"of an agent":            {"agent=Intern", []int{1}},
		"of another":             {"agent=inter", nil},
		"of a tool":              {"tool=web.search", []int{2, 1, 0}},
		"refused":                {"verdict=refused", []int{2, 1}},
		"texts":                  {"verdict=text", []int{3}},
		"of a code":              {"code=permission_denied", []int{1}},
		"of the code of its end": {"code=tool_timeout", []int{0}},
		"of a project":           {"project=acme/alpha&verdict=tool_call", []int{0}},
		"of another project":     {"project=acme/beta", nil},
		"refusals of one":        {"agent=Analyst&verdict=refused", []int{2}},
		"as many as were wanted": {"limit=2", []int{3, 2}},
	} {
		page := get[admin.Decisions](t, f, "/v1/decisions?"+c.query)
		var got []string
		for _, d := range page.Decisions {
			got = append(got, d.CallID)
			if d.Completion != "" || d.Arguments != nil {
				t.Errorf("%s: a list has content", name)
			}
			if ended := d.Ended != nil; ended != (d.CallID == ids[0]) || ended && (d.Ended.Code != refusal.ToolTimeout || d.Ended.Outcome != audit.Timeout) {
				t.Errorf("%s: %s ended as %+v", name, d.CallID, d.Ended)
			}
		}
		var want []string
		for _, i := range c.want {
			want = append(want, ids[i])
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || page.Next != 0 != (name == "as many as were wanted") {
			t.Errorf("%s: found %v next %d, expected %v", name, got, page.Next, want)
		}
	}
	first := get[admin.Decisions](t, f, "/v1/decisions?limit=3")
	second := get[admin.Decisions](t, f, fmt.Sprintf("/v1/decisions?limit=3&before=%d", first.Next))
	if len(first.Decisions) != 3 || len(second.Decisions) != 1 || second.Decisions[0].CallID != ids[0] || second.Next != 0 {
		t.Errorf("found %d, then %+v", len(first.Decisions), second)
	}
	for _, query := range []string{"before=0", "before=x", "verdict=allowed", "project=acme", "limit=-1", "before=-1"} {
		if answer, body := send(t, f.Server, sent{method: "GET", path: "/v1/decisions?" + query}); answer.StatusCode != 400 {
			t.Errorf("%s: %d %s", query, answer.StatusCode, body)
		}
	}
	counts := get[admin.Status](t, f, "/v1/status").Recent
	if counts.Verdicts["refused"] != 2 || counts.Verdicts["tool_call"] != 1 || counts.Verdicts["text"] != 1 || counts.Codes[refusal.UnexpectedArgument] != 1 || len(counts.Codes) != 2 {
		t.Errorf("counted %+v", counts)
	}
}

func TestCase(t *testing.T) {
	f := newFixture(t, audit.Completion, nil)
	refused := f.judge(t, "Analyst", extraCall)
	c := get[admin.Case](t, f, "/v1/decisions/"+refused)
	if len(c.Records) != 1 || c.Records[0].Completion != extraCall || c.Refusal == nil || c.Refusal.Code != refusal.UnexpectedArgument || c.Next != 0 {
		t.Fatalf("found %+v", c)
	}
	if c.Fault == nil || !strings.HasPrefix(extraCall[*c.Fault:], `"extra"`) {
		t.Errorf("the fault is at %v", c.Fault)
	}
	if n := len(c.Stages); n < 3 || c.Stages[n-1].Stage != refusal.Schema || c.Stages[n-1].OK {
		t.Errorf("the stages are %+v", c.Stages)
	}
	denied := get[admin.Case](t, f, "/v1/decisions/"+f.judge(t, "Intern", `{"tool":{"name":"payments.capture","arguments":{"amount":1}}}`))
	if x := denied.Explained; x == nil || x.Allowed || x.Row == nil || x.Row.Line != 3 || x.Reach != "never" || !x.SameConfiguration || !x.WithArguments {
		t.Errorf("explained as %+v", denied.Explained)
	}
	if answer, body := send(t, f.Server, sent{method: "GET", path: "/v1/decisions/call_NOTHING"}); answer.StatusCode != 404 {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	// An end follows its decision, and is read first.
	passed := f.judge(t, "Analyst", goodCall)
	if err := f.log.Append(context.Background(), audit.Record{Time: time.Now(), Event: audit.Ending, Mode: audit.Call, CallID: passed, Outcome: audit.Result}); err != nil {
		t.Fatal(err)
	}
	if c := get[admin.Case](t, f, "/v1/decisions/"+passed); len(c.Records) != 2 || c.Records[0].Event != audit.Decision || c.Records[1].Outcome != audit.Result || c.Refusal != nil || len(c.Stages) == 0 {
		t.Errorf("found %+v", c)
	}
}

// TestNoSecrets: an argument that is secret is in no answer, whatever the completion is.
func TestNoSecrets(t *testing.T) {
	for _, record := range []audit.Content{audit.Digest, audit.Arguments, audit.Completion} {
		f := newFixture(t, record, nil)
		var ids []string
		for _, completion := range []string{
			`{"tool":{"name":"payments.refund","arguments":{"amount":1,"token":"` + canary + `"}}}`,
			`{"tool":{"name":"payments.refund","arguments":{"amount":1,"token":"` + canary + canary + `"}}}`,
			`{"tool":{"name":"payments.refund","arguments":{"token":"` + canary + `","amount":"x"}}}`,
			`{"tool":{"name":"payments.refnd","arguments":{"token":"` + canary + `"}}}`,
			`{"tool":{"name":"payments.refund","arguments":{"token":{"` + canary + `":1}}}}`,
			`{"tool":{"name":"payments.refund","arguments":{"token":"` + canary + `"`,
		} {
			ids = append(ids, f.judge(t, "Analyst", completion), f.judge(t, "Intern", completion))
		}
		paths := []string{"/v1/decisions?limit=500", "/v1/status", "/v1/tools", "/v1/policy", "/v1/config"}
		for _, id := range ids {
			paths = append(paths, "/v1/decisions/"+id)
		}
		for _, path := range paths {
			if _, body := send(t, f.Server, sent{method: "GET", path: path}); strings.Contains(body, canary) {
				t.Errorf("%s: %s has a secret: %s", record, path, body)
			}
		}
	}
}

func TestToolsAndPolicy(t *testing.T) {
	f := newFixture(t, audit.Digest, nil)
	tools := get[admin.Tools](t, f, "/v1/tools?limit=3")
	rest := get[admin.Tools](t, f, fmt.Sprintf("/v1/tools?limit=3&after=%d", tools.Next))
	if tools.Total != 4 || len(tools.Tools) != 3 || len(rest.Tools) != 1 || rest.Next != 0 || rest.Tools[0].Name != "web.search" {
		t.Errorf("found %+v, then %+v", tools, rest)
	}
	places := []admin.Place{{"Analyst", "acme", "alpha"}, {"Analyst", "acme", "beta"}, {"Intern", "acme", "alpha"}}
	if fmt.Sprint(tools.Places) != fmt.Sprint(places) || fmt.Sprint(tools.Tools[1].Reach) != "[always always on conditions]" || fmt.Sprint(rest.Tools[0].Reach) != "[always always never]" {
		t.Errorf("found %+v", tools)
	}
	f.kernel.Quarantine(map[string]bool{"payments.refund@2.0.0": true})
	refund := get[admin.ToolVersions](t, f, "/v1/tools/payments.refund")
	if len(refund.Versions) != 2 || refund.Versions[0].Quarantined || !refund.Versions[1].Quarantined || !refund.Versions[0].Secrets || !strings.Contains(string(refund.Versions[0].ClosedSchema), "additionalProperties") {
		t.Errorf("found %+v", refund)
	}
	if answer, _ := send(t, f.Server, sent{method: "GET", path: "/v1/tools/payments"}); answer.StatusCode != 404 {
		t.Errorf("no such tool: %d", answer.StatusCode)
	}
	rows := get[admin.Policy](t, f, "/v1/policy?limit=2")
	last := get[admin.Policy](t, f, fmt.Sprintf("/v1/policy?limit=2&after=%d", rows.Next))
	if rows.Total != 3 || len(rows.Rows) != 2 || rows.Rows[1].When == "" || len(last.Rows) != 1 || last.Rows[0].Effect != "deny" || last.Next != 0 {
		t.Errorf("found %+v, then %+v", rows, last)
	}
	for body, want := range map[string]struct {
		allowed bool
		line    int
	}{
		`{"agent":"Intern","tool":"payments.refund","project":"acme/alpha","arguments":{"amount":5}}`: {true, 2},
		`{"agent":"Intern","tool":"payments.refund","arguments":{"amount":6}}`:                        {false, 0},
		`{"agent":"Intern","tool":"payments.refund"}`:                                                 {false, 0},
		`{"agent":"Intern","tool":"payments.capture"}`:                                                {false, 3},
	} {
		x := post[admin.Explained](t, f, "/v1/policy/explain", body)
		line := 0
		if x.Row != nil {
			line = x.Row.Line
		}
		if x.Allowed != want.allowed || line != want.line || x.Why == "" || x.WithArguments != strings.Contains(body, "arguments") {
			t.Errorf("%s: found %+v", body, x)
		}
	}
	for _, body := range []string{`{}`, `{"agent":"Intern"}`, `{"agent":"Intern","tool":"x","project":"acme"}`, `{"agent":"Intern","tool":"payments.refund","arguments":{"amount":"x"}}`, `{"agent":"Intern","tool":"x","arguments":[]}`} {
		if answer, text := send(t, f.Server, sent{method: "POST", path: "/v1/policy/explain", body: body}); answer.StatusCode != 400 {
			t.Errorf("%s: %d %s", body, answer.StatusCode, text)
		}
	}
}

// TestCheckWritesNothing: an operator may ask for any agent, without its credential; nothing
// is taken, counted or written down.
func TestCheckWritesNothing(t *testing.T) {
	key, sha := identity.NewAPIKey()
	authn, err := identity.NewAPIKeys(map[string]*identity.Principal{sha: {Name: "ada", Operator: true}})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, audit.Digest, authn)
	ask := func(body string) gateway.Report {
		answer, text := send(t, f.Server, sent{method: "POST", path: "/v1/check", body: body, header: map[string]string{"Authorization": "Bearer " + key}})
		if answer.StatusCode != 200 {
			t.Fatalf("%s: %d %s", body, answer.StatusCode, text)
		}
		return decoded[gateway.Report](t, text)
	}
	quoted, _ := json.Marshal(goodCall)
	if r := ask(`{"completion":` + string(quoted) + `,"agent":"Analyst"}`); r.Verdict != gateway.VerdictCall || r.Call.Agent != "Analyst" || r.Call.Project != "alpha" {
		t.Errorf("found %+v", r)
	}
	if r := ask(`{"completion":` + string(quoted) + `,"agent":"Intern"}`); r.Refusal == nil || r.Refusal.Code != refusal.PermissionDenied {
		t.Errorf("found %+v", r)
	}
	if r := ask(`{"completion":"","agent":"nobody"}`); r.Refusal == nil || r.Refusal.Code != refusal.AgentUnknown {
		t.Errorf("found %+v", r)
	}
	if r := ask(`{"completion":"{\"tool\":","agent":"Analyst","finish_reason":"length"}`); r.Refusal == nil || r.Refusal.Code != refusal.TruncatedOutput {
		t.Errorf("found %+v", r)
	}
	if seq, _ := f.log.Last(); seq != 0 {
		t.Errorf("%d records were written", seq)
	}
	if answer, _ := send(t, f.Server, sent{method: "POST", path: "/v1/check", body: `{"completion":"x"}`}); answer.StatusCode != 401 {
		t.Errorf("without a credential: %d", answer.StatusCode)
	}
}

// TestEvents: a stream says what kind of thing changed, and nothing of it.
func TestEvents(t *testing.T) {
	f := newFixture(t, audit.Digest, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := f.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		t.Fatal(lines.Err())
		return ""
	}
	if answer.Header.Get("Content-Type") != "text/event-stream" || !lines.Scan() {
		t.Fatalf("found %v", answer.Header)
	}
	for range 100 {
		f.judge(t, "Analyst", goodCall)
	}
	if got := next(); got != "decisions" {
		t.Errorf("found %q", got)
	}
	f.mu.Lock()
	f.health.Faults = []string{"policy.csv:3"}
	f.mu.Unlock()
	for got := next(); got != "config"; got = next() {
		if got != "decisions" {
			t.Fatalf("found %q", got)
		}
	}
}

// TestRecentIsBounded: the oldest judgements go, and so do counts that are older than five minutes.
func TestRecentIsBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	recent := admin.NewRecent(func() time.Time { return now })
	source := &admin.Sources{Recent: recent}
	for i := range 1025 {
		recent.Keep(gateway.Judgement{CallID: fmt.Sprint(i), Verdict: gateway.VerdictRefused, Refusal: refusal.New(refusal.UnknownTool, "")})
	}
	if _, ok := recent.Find("0"); ok {
		t.Error("the oldest is still there")
	}
	if _, ok := recent.Find("1"); !ok {
		t.Error("one of the last 1,024 is gone")
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 1025}, {4*time.Minute + 40*time.Second, 1025}, {30 * time.Second, 0}} {
		now = now.Add(c.after)
		if got := source.Recent.Counts().Codes[refusal.UnknownTool]; got != c.want {
			t.Errorf("after %s: %d, expected %d", c.after, got, c.want)
		}
	}
}

// TestRecentIsSmall: what is kept of a refusal does not grow with what the model wrote.
func TestRecentIsSmall(t *testing.T) {
	f := newFixture(t, audit.Digest, nil)
	var names strings.Builder
	for i := range 100 {
		fmt.Fprintf(&names, `,"%s%d":0`, strings.Repeat("é", 4000), i)
	}
	id := f.judge(t, "Analyst", `{"tool":{"name":"web.search","arguments":{"query":7`+names.String()+`}}}`)
	kept := get[admin.Case](t, f, "/v1/decisions/"+id).Refusal
	size := len(kept.Message)
	for _, v := range kept.Violations {
		size += len(v.Path) + len(v.Message)
	}
	if kept.Code != refusal.WrongType || kept.Violations[0].Path != "/tool/arguments/query" || size > 64<<10 {
		t.Errorf("%d bytes are kept: %.200v", size, kept)
	}
}

func BenchmarkRecent(b *testing.B) {
	recent := admin.NewRecent(nil)
	j := gateway.Judgement{CallID: "call_x", Verdict: gateway.VerdictRefused, Refusal: refusal.New(refusal.UnknownTool, "")}
	b.ReportAllocs()
	for b.Loop() {
		recent.Keep(j)
	}
}

// differences are those of a server that defines payments.capture anew.
func differences(name string) []toolservers.Difference {
	if name != "payments.capture" {
		return nil
	}
	return []toolservers.Difference{{Server: "hub", State: "changed", Changes: []toolservers.ChangedMember{{Path: "/description", Old: json.RawMessage(`"a"`), New: json.RawMessage(`"b"`)}}}}
}

// A tool whose server defines it otherwise is shown with what differs, and others with nothing.
func TestDifferencesOfATool(t *testing.T) {
	f := newFixture(t, audit.Digest, nil)
	if d := get[admin.ToolVersions](t, f, "/v1/tools/payments.capture").Differences; len(d) != 1 || d[0].Changes[0].Path != "/description" || string(d[0].Changes[0].New) != `"b"` {
		t.Errorf("found %+v", d)
	}
	if d := get[admin.ToolVersions](t, f, "/v1/tools/web.search").Differences; d == nil || len(d) != 0 {
		t.Errorf("found %+v", d)
	}
}

// Rows say how many calls they matched and decided. A call that is only checked or explained counts
// nothing.
func TestCountsOfRows(t *testing.T) {
	f := newFixture(t, audit.Digest, nil)
	for range 3 {
		f.judge(t, "Analyst", goodCall)
	}
	for _, amount := range []string{"4", "5", "6"} {
		f.judge(t, "Intern", `{"tool":{"name":"payments.refund","arguments":{"amount":`+amount+`}}}`)
	}
	for range 7 {
		f.judge(t, "Intern", `{"tool":{"name":"payments.capture","arguments":{}}}`)
		f.judge(t, "Analyst", extraCall) // is refused before the policy is asked of its arguments
	}
	post[gateway.Report](t, f, "/v1/check", `{"completion":"{\"tool\":{\"name\":\"web.search\",\"arguments\":{\"query\":\"x\"}}}","agent":"Analyst"}`)
	post[admin.Explained](t, f, "/v1/policy/explain", `{"agent":"Analyst","tool":"web.search"}`)
	want := [][2]uint64{{3, 3}, {2, 2}, {7, 7}}
	for i, row := range get[admin.Policy](t, f, "/v1/policy").Rows {
		if got := [2]uint64{row.Matched, row.Decided}; got != want[i] {
			t.Errorf("%s:%d matched and decided %v, expected %v", row.File, row.Line, got, want[i])
		}
	}
}

// Decisions from a time on: no older one, none beyond it is searched for, and a clock that was
// set back for a moment hides none.
func TestDecisionsSince(t *testing.T) {
	f := newFixture(t, audit.Digest, nil)
	now := time.Now()
	for i, age := range []time.Duration{3 * time.Hour, 2 * time.Hour, 50 * time.Minute, 61 * time.Minute, 40 * time.Minute, time.Minute} {
		r := audit.Record{Time: now.Add(-age), Event: audit.Decision, Mode: audit.Call, Verdict: audit.Refused, Code: refusal.UnknownTool, Stage: refusal.Schema, CallID: fmt.Sprint("call_", i), Agent: "Analyst"}
		if err := f.log.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{
		"since=1h": "call_5 call_4 call_2 ", "since=90m&agent=Analyst": "call_5 call_4 call_3 call_2 ", "since=1s": "", "since=48h": "call_5 call_4 call_3 call_2 call_1 call_0 ",
		"since=" + now.Add(-45*time.Minute).UTC().Format(time.RFC3339): "call_5 call_4 ", "since=1h&limit=2": "call_5 call_4 ",
	} {
		page, found := get[admin.Decisions](t, f, "/v1/decisions?"+query), ""
		for _, d := range page.Decisions {
			found += d.CallID + " "
		}
		if found != want || (page.Next != 0) != strings.Contains(query, "limit") {
			t.Errorf("%s: found %q and next %d, expected %q", query, found, page.Next, want)
		}
	}
	for _, since := range []string{"yesterday", "-1h", "1", "0s"} {
		if answer, body := send(t, f.Server, sent{method: "GET", path: "/v1/decisions?since=" + since}); answer.StatusCode != 400 {
			t.Errorf("%s: %d %s", since, answer.StatusCode, body)
		}
	}
}
