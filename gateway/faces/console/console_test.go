package console_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/gateway/faces/console"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/stops"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/tool"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// fixture is a console over a kernel with an audit log on disk.
type fixture struct {
	*httptest.Server
	kernel   *gateway.Kernel
	executor *calls.Executor
	store    backend
	log      *audit.Log
	health   admin.Health
	threads  *store.Engine

	differences []toolservers.Difference // of every tool
	names       []string                 // of callers
	breakers    []admin.Breaker
	candidate   lab.CandidateReport
	recent      *admin.Recent
	changes     *admin.Changes
}

func newFixture(t testing.TB, authn gateway.Authenticator, tools string) *fixture {
	t.Helper()
	return newFixtureOf(t, authn, map[string]string{"tools.yaml": tools})
}

// newFixtureOf has some more files of a configuration.
func newFixtureOf(t testing.TB, authn gateway.Authenticator, more map[string]string) *fixture {
	t.Helper()
	return newFixtureOn(t, authn, more, store.NewMemory(time.Now))
}

// backend is a store of calls and approvals.
type backend interface {
	calls.Store
	store.Approvals
	Unfinished(ctx context.Context, after string, limit int) ([]store.Call, error)
	Running(ctx context.Context, do func(*store.Call) (more bool)) error
}

// newFixtureOn keeps calls and approvals in a store.
func newFixtureOn(t testing.TB, authn gateway.Authenticator, more map[string]string, kept backend) *fixture {
	t.Helper()
	texts := map[string]string{"policy.csv": "p, Analyst, *, *, , allow\n", "workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst, Intern]}}}}\n"}
	maps.Copy(texts, more)
	loaded := facetest.Config(t, texts)
	log, err := audit.Open(t.TempDir(), audit.Options{Record: audit.Completion, Wait: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now() // what is counted is in one interval
	recent, limiter := admin.NewRecent(func() time.Time { return began }), ratelimit.NewLocal(time.Now)
	people := func(v approval.Vote) approval.Voter { return approval.Voter{Principal: v.By, Approves: v.Rules} }
	threads := store.NewThreads(time.Now, store.ThreadBounds{})
	k, err := calls.New(&gateway.Config{
		Output: loaded.Output, Tools: loaded.Tools, Policy: loaded.Policy, Workspaces: loaded.Workspaces, Agents: loaded.Agents, Limits: loaded.Limits,
		Defaults: gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}, Digest: loaded.Digest, Identity: authn,
		Approvals: loaded.Approvals.Rules, People: people, ApprovalWait: loaded.Approvals.Wait,
	}, calls.Deps{
		Deps:  gateway.Deps{Limiter: limiter, Journal: log, RecordContent: audit.Completion, Recent: recent, Ledger: threads},
		Store: kept, Approvals: kept, Engine: facetest.ToolFunc(func(c tool.Call) (tool.Result, error) { return tool.Result{Body: c.Arguments, JSON: true}, nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{recent: recent, changes: &admin.Changes{}, kernel: k.Kernel, executor: k, store: kept, log: log, health: admin.Health{Ready: true, Digest: loaded.Digest}}
	logger := slog.New(slog.NewTextHandler(failing{t}, &slog.HandlerOptions{Level: slog.LevelError}))
	api := admin.New(admin.Options{Kernel: k.Kernel, Loopback: true, Log: logger})
	desk, err := stops.Open(t.Context(), stops.Options{Kernel: k.Kernel, Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	api.Mount((&admin.Sources{
		Kernel: k.Kernel, Log: log, Recent: recent, Runs: runs.New(runs.Options{}), Version: "v1.2.3", Replica: "here", Started: time.Now(), SearchTime: time.Hour,
		Changes: f.changes, StopsKept: desk.Kept, StopsInForce: func() int { return len(desk.Active()) }, Health: func() admin.Health { return f.health }, OpenBreakers: func() int { return 0 },
		ApprovalsWaiting: k.Desk().Waiting,
		Candidate:        func() lab.CandidateReport { return f.candidate },
		Differences:      func(name string) []toolservers.Difference { return f.differences },
		Configuration: func() admin.Configuration {
			return admin.Configuration{Digest: k.Kernel.Digest(), Agents: []string{"Analyst", "Intern"}, Projects: []string{"acme/alpha"}, ToolNames: []string{"web.fetch", "web.search"}, Files: []string{"callgate.yaml"}, Warnings: []string{}, Faults: f.health.Faults}
		},
	}).Endpoints()...)
	api.Mount((&admin.Usage{
		Kernel: k.Kernel, Meter: limiter, Names: func() (agents, callers []string) { return []string{"Analyst", "Intern"}, f.names }, Unfinished: kept.Unfinished,
		Budgets:     &budget.Ledger{Limiter: ratelimit.NewLocal(time.Now), Current: func() *budget.Set { return loaded.Budgets }},
		BudgetNames: func() budget.Names { return budget.Names{Agents: []string{"Analyst", "Intern"}} },
		Breakers: func() []admin.Breaker {
			return append(f.breakers, admin.Breaker{Tool: "web.search", Version: "1.0.0", State: "open"})
		},
		Pools: func() []server.PoolUse { return []server.PoolUse{{Pool: "calls", Limit: 256, Taken: 3}} },
	}).Endpoints()...)
	f.threads = threads
	api.Mount((&admin.Threads{Kernel: k.Kernel, Ledger: f.threads}).Endpoints()...)
	api.Mount((&admin.Stops{Desk: desk, Kernel: k.Kernel, Running: kept.Running}).Endpoints()...)
	api.Mount((&admin.Approvals{Desk: k.Desk(), Kernel: k.Kernel, Log: log, EarlierTime: time.Hour}).Endpoints()...)
	agentTime := time.Hour
	if os.Getenv(timesPages) != "" {
		agentTime = 0 // as in use
	}
	pages, err := console.New(console.Options{API: api, Loopback: true, AgentTime: agentTime, Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pages.Serves(r.URL.Path) {
			pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		f.Close()
		desk.Close()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// failing fails the test for each error that is logged, such as a page that cannot be rendered.
type failing struct{ t testing.TB }

func (f failing) Write(line []byte) (int, error) {
	f.t.Errorf("logged: %s", line)
	return len(line), nil
}

const oneTool = "tools:\n  - {name: web.search, description: Searches, effect: read, run: {type: client}, input_schema: {type: object, properties: {query: {type: string}}}}\n"

func (f *fixture) judge(agent, completion string) string {
	d := f.kernel.Judge(context.Background(), gateway.Request{
		Subject: gateway.Subject{Agent: agent, Workspace: "acme", Project: "alpha"}, Inputs: []gateway.Input{{Completion: []byte(completion)}},
	})
	d.Release()
	return d.Reports[0].CallID
}

type sent struct {
	method, path string
	form         url.Values
	host         string
	header       map[string]string
}

func (f *fixture) do(t testing.TB, client *http.Client, s sent) (*http.Response, string) {
	t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if s.method != "" {
		method = s.method
	}
	if s.form != nil {
		body = strings.NewReader(s.form.Encode())
	}
	r, err := http.NewRequest(method, f.URL+s.path, body)
	if err != nil {
		t.Fatal(err)
	}
	if s.form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if s.host != "" {
		r.Host = s.host
	}
	for name, value := range s.header {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// browser is a client with cookies that follows no redirect.
func (f *fixture) browser(t testing.TB) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := *f.Client()
	c.Jar = jar
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

var (
	hrefs = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	tags  = regexp.MustCompile(`</?[a-zA-Z][^>]*>`)
	value = regexp.MustCompile(`="[^"]*"`)
)

// TestLinks: every link of every page leads to a page, and no page asks another site for
// anything.
func TestLinks(t *testing.T) {
	f := newFixture(t, nil, oneTool)
	for range 60 {
		f.judge("Analyst", `{"tool":{"name":"web.search","arguments":{"query":"x","extra":1}}}`)
	}
	f.judge("Intern", `{"tool":{"name":"web.serch","arguments":{}}}`)
	f.judge("Analyst", `text`)
	seen, queue := map[string]bool{}, []string{"/console"}
	for len(queue) > 0 && len(seen) < 200 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		answer, body := f.do(t, f.Client(), sent{path: path})
		if answer.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
		for _, m := range hrefs.FindAllStringSubmatch(body, -1) {
			switch link := strings.ReplaceAll(m[1], "&amp;", "&"); {
			case strings.HasPrefix(link, "/console"):
				if link != "/console/session" && !strings.HasSuffix(link, "/revoke") && link != "/console/session/end" {
					queue = append(queue, link)
				}
			case link == "#main" || link == "data:,":
			default:
				t.Errorf("%s has a link to %q", path, link)
			}
		}
	}
	if len(seen) < 70 {
		t.Errorf("only %d pages were found", len(seen))
	}
}

// TestHeaders: the policy of a page, and that nothing of it is kept by a cache or shown within
// another site.
func TestHeaders(t *testing.T) {
	f := newFixture(t, nil, oneTool)
	for _, path := range []string{"/console", "/console/calls", "/console/calls/call_x", "/console/login", "/console/static/live.js", "/console/nothing"} {
		answer, body := f.do(t, f.Client(), sent{path: path})
		policy := answer.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy has no %s: %q", path, part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || answer.Header.Get("X-Content-Type-Options") != "nosniff" || answer.Header.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: found %v", path, answer.Header)
		}
		if static := strings.Contains(path, "/static/"); !static && (answer.Header.Get("Cache-Control") != "no-store" || strings.Count(body, "integrity=\"sha384-") != 2) {
			t.Errorf("%s: found %v", path, answer.Header)
		}
	}
}

// TestNothingInline: the policy forbids scripts and styles within a page, so no template has one.
// Templates are ASCII, so that every other character of a page is of a value.
func TestNothingInline(t *testing.T) {
	pages, err := filepath.Glob("pages/*.html")
	if err != nil || len(pages) < 10 {
		t.Fatal(pages, err)
	}
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script(?:\s[^>]*)?>[^<]`)
	for _, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := inline.Find(text); found != nil {
			t.Errorf("%s has %q", name, found)
		}
		for i, c := range text {
			if c >= 0x80 {
				t.Errorf("%s has the byte %#x at %d", name, c, i)
			}
		}
	}
}

// TestSamePageAsAPI: what a page shows is what the API answers.
func TestSamePageAsAPI(t *testing.T) {
	f := newFixture(t, nil, oneTool)
	ids := []string{f.judge("Analyst", `{"tool":{"name":"web.search","arguments":{"query":"x","extra":1}}}`), f.judge("Intern", `{"tool":{"name":"web.search","arguments":{}}}`)}
	_, hash := f.log.Last()
	for path, want := range map[string][]string{
		"/console":                                     {"v1.2.3", f.kernel.Digest(), ids[0], ids[1], "unexpected_argument"},
		"/console/calls?agent=Intern":                  {ids[1], "permission_denied"},
		"/console/calls/" + ids[0]:                     {"unexpected_argument", `<mark>&#34;</mark>`, "byte 54", "expect: unexpected_argument", "passed", "not run", "policy.csv:1", "Argument &#34;extra&#34; is not part of web.search"},
		"/console/tools":                               {"web.search", "always", "never"},
		"/console/tools/web.search":                    {"additionalProperties", "Searches"},
		"/console/policy?agent=Intern&tool=web.search": {"denied", "no allow row matches", "wrong subject"},
		"/console/audit":                               {hash, ">2<", "callgate.yaml"},
	} {
		answer, body := f.do(t, f.Client(), sent{path: path})
		for _, w := range want {
			if answer.StatusCode != 200 || !strings.Contains(body, w) {
				t.Errorf("%s: %d, without %q:\n%s", path, answer.StatusCode, w, body)
			}
		}
	}
	if _, body := f.do(t, f.Client(), sent{path: "/console/calls?agent=Intern"}); strings.Contains(body, ids[0]) {
		t.Error("a filter lets another agent's call pass")
	}
	_, body := f.do(t, f.Client(), sent{method: "POST", path: "/console/check", form: url.Values{"completion": {"see {\"a\": 1}"}, "agent": {"Intern"}, "project": {"acme/alpha"}}})
	for _, w := range []string{"mixed_output", "see <mark>{</mark>", "byte 4"} {
		if !strings.Contains(body, w) {
			t.Errorf("the playground does not show %q:\n%s", w, body)
		}
	}
	if seq, _ := f.log.Last(); seq != 2 {
		t.Errorf("the log has %d records", seq)
	}
}

// hostile are texts that a model, a caller or a tool may write.
var hostile = []string{
	`</pre></td><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`, `{{.}} ${x} <!-- -->`,
	"bidi \u202e\u2066 zero\u200b\u200d tag \U000e0041", "<svg/onload=alert(1)>\x00\x1b[2J", strings.Repeat("<b>", 400_000), `--></title><style>*{display:none}`, `" autofocus onfocus="alert(1)`,
}

// TestHostileTextIsInert: a page has the elements of its template, whatever its values are, and
// no character that nobody sees.
func TestHostileTextIsInert(t *testing.T) {
	// shape of the pages for one call whose texts are all the same.
	shape := func(t *testing.T, text string) map[string][]string {
		f := newFixture(t, nil, oneTool)
		completion := text
		text = text[:min(len(text), 999)] // as the faces bound what they record
		f.health.Faults, f.health.Limits = []string{text}, text
		r := audit.Record{
			Time: time.Now(), Event: audit.Decision, Mode: audit.Call, Verdict: audit.Refused, CallID: "call_1", RequestID: text, TraceID: text, Principal: text, Agent: text,
			Workspace: text, Project: text, Thread: text, Tool: text, ToolVersion: text, Code: "unknown_tool", Stage: "schema", Completion: completion, Replica: text,
		}
		if err := f.log.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		found := map[string][]string{}
		see := func(name string, s sent) {
			answer, body := f.do(t, f.Client(), s)
			if answer.StatusCode >= 500 {
				t.Errorf("%s: %d %s", name, answer.StatusCode, body)
			}
			for _, c := range body {
				if c == 0 || c == 0x1b || c == 0x200b || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 || c >= 0xe0000 && c <= 0xe007f {
					t.Errorf("%s: %#x is in the page of %.40q", name, c, text)
				}
			}
			if len(body) > 1<<20 {
				t.Errorf("%s: %d bytes", name, len(body))
			}
			for _, tag := range tags.FindAllString(body, -1) {
				found[name] = append(found[name], value.ReplaceAllString(tag, ""))
			}
		}
		q := url.QueryEscape(text)
		if len(q) > 1000 {
			q = q[:999]
		}
		see("overview", sent{path: "/console"})
		see("calls", sent{path: "/console/calls"})
		see("filtered", sent{path: "/console/calls?agent=" + q})
		see("call", sent{path: "/console/calls/call_1"})
		see("no call", sent{path: "/console/calls/" + url.PathEscape(text[:min(len(text), 500)])})
		see("no tool", sent{path: "/console/tools/" + url.PathEscape(text[:min(len(text), 500)])})
		see("policy", sent{path: "/console/policy?agent=" + q + "&tool=" + q})
		see("audit", sent{path: "/console/audit"})
		see("check", sent{method: "POST", path: "/console/check", form: url.Values{"completion": {completion[:min(len(completion), 64<<10)] + ` {"a":1}`}, "agent": {"Analyst"}, "project": {"acme/alpha"}}})
		return found
	}
	// The policy has more to say of a name that a tool could have.
	want, impossible := shape(t, "harmless"), shape(t, "harm * less")
	for _, text := range hostile {
		got := shape(t, text)
		for name, list := range want {
			// The verdict of the playground depends on the text, and with it the parts of its page.
			if name == "check" || name == "policy" {
				for _, tag := range got[name] {
					if strings.HasPrefix(tag, "<script") && tag != "<script src integrity defer>" || strings.HasPrefix(tag, "<img") || strings.HasPrefix(tag, "<svg") || strings.Contains(tag, " on") {
						t.Errorf("%s of %.40q has %s", name, text, tag)
					}
				}
				continue
			}
			if !slices.Equal(got[name], list) && !slices.Equal(got[name], impossible[name]) {
				t.Errorf("%s of %.40q has other elements:\n%v\n%v", name, text, got[name], list)
			}
		}
	}
}

// TestSessionsOfOneEndNoOthers: whoever signs in again and again ends sessions of its own.
func TestSessionsOfOneEndNoOthers(t *testing.T) {
	adaKey, ada := identity.NewAPIKey()
	malKey, mal := identity.NewAPIKey()
	authn, err := identity.NewAPIKeys(map[string]*identity.Principal{ada: {Name: "ada", Operator: true}, mal: {Name: "mal", Approves: []string{"deploys"}}})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, authn, oneTool)
	signIn := func(key string) *http.Client {
		b := f.browser(t)
		if answer, _ := f.do(t, b, sent{method: "POST", path: "/console/session", form: url.Values{"key": {key}}}); answer.StatusCode != 303 {
			t.Fatalf("found %d", answer.StatusCode)
		}
		return b
	}
	operator, first := signIn(adaKey), signIn(malKey)
	last := first
	for range 300 {
		last = signIn(malKey)
	}
	for name, c := range map[string]struct {
		browser *http.Client
		want    int
	}{"the operator": {operator, 200}, "the first of mal": {first, 303}, "the last of mal": {last, 200}} {
		if answer, _ := f.do(t, c.browser, sent{path: "/console/approvals"}); answer.StatusCode != c.want {
			t.Errorf("%s: %d, expected %d", name, answer.StatusCode, c.want)
		}
	}
}

// TestSessions: a key opens a session, which is good for pages alone and dies with its key.
func TestSessions(t *testing.T) {
	key, sha := identity.NewAPIKey()
	plain, plainSHA := identity.NewAPIKey()
	operator := &identity.Principal{Name: "ada", Operator: true}
	authn, err := identity.NewAPIKeys(map[string]*identity.Principal{sha: operator, plainSHA: {Name: "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	swapped := &swap{authn}
	f := newFixture(t, swapped, oneTool)
	b := f.browser(t)
	status := func(c *http.Client, s sent) int {
		answer, _ := f.do(t, c, s)
		return answer.StatusCode
	}
	if got := status(b, sent{path: "/console"}); got != 303 {
		t.Errorf("without a session: %d", got)
	}
	for name, wrong := range map[string]string{"none": "", "another": key + "x", "no operator": plain, "two": key + "," + key} {
		answer, _ := f.do(t, b, sent{method: "POST", path: "/console/session", form: url.Values{"key": {wrong}}})
		if answer.StatusCode != 401 || len(answer.Cookies()) != 0 {
			t.Errorf("%s: %d %v", name, answer.StatusCode, answer.Cookies())
		}
	}
	for name, header := range map[string]map[string]string{"cross-site": {"Sec-Fetch-Site": "cross-site"}, "foreign": {"Origin": "https://evil.example"}} {
		answer, _ := f.do(t, b, sent{method: "POST", path: "/console/session", form: url.Values{"key": {key}}, header: header})
		if answer.StatusCode != 400 || len(answer.Cookies()) != 0 {
			t.Errorf("%s: %d %v", name, answer.StatusCode, answer.Cookies())
		}
	}
	if got := status(b, sent{method: "POST", path: "/console/session", form: url.Values{"key": {key}, "x": {strings.Repeat("x", 16<<10)}}}); got != 400 {
		t.Errorf("a form out of bounds: %d", got)
	}
	answer, _ := f.do(t, b, sent{method: "POST", path: "/console/session", form: url.Values{"key": {" " + key + "\n"}}})
	cookies := answer.Cookies()
	if answer.StatusCode != 303 || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Path != "/console" || cookies[0].MaxAge != 28800 || strings.Contains(cookies[0].Value, key) {
		t.Fatalf("found %d %v", answer.StatusCode, cookies)
	}
	if answer, body := f.do(t, b, sent{path: "/console"}); answer.StatusCode != 200 || !strings.Contains(body, "ada") || strings.Contains(body, key) {
		t.Errorf("with a session: %d", answer.StatusCode)
	}
	cookie := cookies[0].Name + "=" + cookies[0].Value
	for name, c := range map[string]struct {
		sent sent
		want int
	}{
		"the API":         {sent{path: "/v1/status", header: map[string]string{"Cookie": cookie}}, 401},
		"a forged cookie": {sent{path: "/console", header: map[string]string{"Cookie": cookie + "x"}}, 303},
		"two cookies":     {sent{path: "/console", header: map[string]string{"Cookie": cookie + "; " + cookie}}, 303},
		"a rebound name":  {sent{path: "/console", host: "evil.example", header: map[string]string{"Cookie": cookie}}, 400},
		"a key in a form": {sent{method: "POST", path: "/console/check", form: url.Values{"completion": {"x"}}}, 401},
		"a bearer":        {sent{path: "/console", header: map[string]string{"Authorization": "Bearer " + key}}, 200},
		"no operator":     {sent{path: "/console", header: map[string]string{"Authorization": "Bearer " + plain}}, 403},
		"another method":  {sent{method: "PUT", path: "/console/calls", header: map[string]string{"Cookie": cookie}}, 404},
	} {
		if got := status(f.browser(t), c.sent); got != c.want {
			t.Errorf("%s: %d, expected %d", name, got, c.want)
		}
	}
	gone, err := identity.NewAPIKeys(map[string]*identity.Principal{plainSHA: {Name: "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	swapped.now = gone
	if got := status(b, sent{path: "/console"}); got != 303 {
		t.Errorf("after its key was taken away: %d", got)
	}
	swapped.now = authn
	if got := status(b, sent{path: "/console"}); got != 200 {
		t.Errorf("with its key again: %d", got)
	}
	if got := status(b, sent{method: "POST", path: "/console/session/end", form: url.Values{}}); got != 303 {
		t.Errorf("sign out: %d", got)
	}
	if got := status(f.browser(t), sent{path: "/console", header: map[string]string{"Cookie": cookie}}); got != 303 {
		t.Errorf("after signing out: %d", got)
	}
}

// swap is an authenticator that is exchanged between requests.
type swap struct{ now *identity.APIKeys }

func (s *swap) Authenticate(credential string) *identity.Principal {
	return s.now.Authenticate(credential)
}

// manyDecisions is a console over a log of 50,000 decisions, and the paths of its pages.
func manyDecisions(t testing.TB) (f *fixture, paths []string) {
	f = newFixture(t, nil, oneTool)
	waits := make(chan string, 256)
	for range 200 {
		for range 250 {
			go func() {
				waits <- f.judge("Analyst", `{"tool":{"name":"web.search","arguments":{"query":"x","extra":1}}}`)
			}()
		}
		for range 250 {
			<-waits
		}
	}
	id := f.judge("Analyst", `{"tool":{"name":"web.search","arguments":{"query":"x","extra":1}}}`)
	return f, []string{
		"/console", "/console?span=24h", "/console/calls", "/console/calls?agent=nobody", "/console/calls?since=1h&verdict=refused", "/console/calls?verdict=asked", "/console/calls/" + id, "/console/agents/Analyst", "/console/agents/Intern",
		"/console/approvals", "/console/check", "/console/tools", "/console/policy?agent=Intern&tool=web.search", "/console/limits", "/console/running", "/console/threads", "/console/stops", "/console/candidate", "/console/audit",
	}
}

// BenchmarkPages renders each page over a log of 50,000 decisions.
func BenchmarkPages(b *testing.B) {
	f, paths := manyDecisions(b)
	for _, path := range paths {
		name, _, _ := strings.Cut(path, "/call_")
		b.Run(name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				answer, body := f.do(b, f.Client(), sent{path: path})
				if size = len(body); answer.StatusCode != 200 || size > 200_000 {
					b.Fatal(answer.StatusCode, size)
				}
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// timesPages is the variable by which make console-times has pages timed.
const timesPages = "CALLGATE_CONSOLE_TIMES"

// TestPagesInTime: none takes more than a tenth of a second of a processor over a log of 50,000 decisions, in the middle
// of nine times. What others do on the machine does not count.
func TestPagesInTime(t *testing.T) {
	if os.Getenv(timesPages) == "" {
		t.Skip("skipped: make console-times times the pages")
	}
	f, paths := manyDecisions(t)
	for _, path := range paths {
		var took []time.Duration
		size := 0
		for range 9 {
			began := processorTime(t)
			answer, body := f.do(t, f.Client(), sent{path: path})
			took = append(took, processorTime(t)-began)
			if size = len(body); answer.StatusCode != 200 {
				t.Fatal(path, answer.StatusCode)
			}
		}
		slices.Sort(took)
		t.Logf("%-50.50s %8s %7d bytes", path, took[4].Round(100*time.Microsecond), size)
		if took[4] > 100*time.Millisecond {
			t.Errorf("%s takes %s", path, took[4])
		}
	}
}

// processorTime is what this process has used.
func processorTime(t testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
