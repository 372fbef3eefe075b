package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
)

// sampleTool builds the sample tool, once for all tests.
var sampleTool = sync.OnceValues(func() (program string, err error) {
	program = filepath.Join(buildFolder, "sampletool")
	output, err := exec.Command("go", "build", "-C", "../../tools", "-ldflags", "-s -w", "-o", program, "./sampletool").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, output)
	}
	return program, err
})

// laterProcess starts the sample tool in a process of its own. It ends with the
// test.
func laterProcess(t testing.TB, args ...string) (url string) {
	t.Helper()
	program, err := sampleTool()
	if err != nil {
		t.Fatalf("the sample tool cannot be built: %v", err)
	}
	line := announced(t, exec.Command(program, append([]string{"--listen", "127.0.0.1:0"}, args...)...))
	address, ok := strings.CutPrefix(line, "sampletool listening on ")
	if !ok {
		t.Fatalf("the sample tool said %q", line)
	}
	return "http://" + address
}

// frontage is what tools call back at: it passes on to gateways in turn, which may
// come and go.
type frontage struct {
	*httptest.Server
	gates atomic.Pointer[[]string] // host:port
	turn  atomic.Int64
	mu    sync.Mutex
	paths []string // that were asked for
}

func newFrontage(t testing.TB) *frontage {
	t.Helper()
	f := &frontage{}
	f.gates.Store(&[]string{})
	client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.paths = append(f.paths, r.URL.Path)
		f.mu.Unlock()
		gates := *f.gates.Load()
		if len(gates) == 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		request, err := http.NewRequest(r.Method, "http://"+gates[int(f.turn.Add(1))%len(gates)]+r.URL.RequestURI(), r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		request.Header, request.ContentLength = r.Header, r.ContentLength
		response, err := client.Do(request)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		w.WriteHeader(response.StatusCode)
		io.Copy(w, response.Body)
	}))
	t.Cleanup(func() {
		f.Close()
		client.CloseIdleConnections()
	})
	return f
}

func (f *frontage) lead(gates ...*gate) {
	addresses := []string{}
	for _, g := range gates {
		addresses = append(addresses, g.listen)
	}
	f.gates.Store(&addresses)
}

// tokens are those that were asked with.
func (f *frontage) tokens() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.paths {
		all = append(all, p[strings.LastIndexByte(p, '/')+1:])
	}
	return all
}

// laterConfig is a configuration of two principals and three tools that call back:
// later and pending, which may take an hour, and brief, which may take a second. A caller waits a
// minute for the answer of later, and a few seconds for those of the others.
func laterConfig(t testing.TB, tool string, f *frontage, more string, callers ...caller) (config, data string) {
	t.Helper()
	var tools strings.Builder
	tools.WriteString("tools:\n")
	for name, how := range map[string]string{"later": "timeout: 60s, max_age: 1h", "pending": "timeout: 5s, max_age: 1h", "brief": "timeout: 5s, max_age: 1s"} {
		fmt.Fprintf(&tools, "  - {name: %s, effect: once, input_schema: {type: object, properties: {n: {type: integer}, as: {type: string}}}, run: {type: callback, url: %q, tool: answer, addresses: [127.0.0.1/32], %s}}\n", name, tool+"/later", how)
	}
	return layout(t, map[string]string{
		"callgate.yaml":    "server: {" + anyPort + "}\nauth: {mode: keys}\nprincipals: principals.yaml\ncallbacks: {url: " + f.URL + "}\n" + more,
		"principals.yaml":  principalsFile(callers...),
		"policy.csv":       "p, Analyst, *, *, , allow\np, Spy, *, *, , allow\n",
		"workspaces.yaml":  "workspaces:\n  acme: {projects: {alpha: {agents: [Analyst, Intern]}, beta: {agents: [Analyst, Intern]}}}\n  globex: {projects: {gamma: {agents: [Spy]}}}\n",
		"limits.yaml":      "replicas: 2\n",
		"tools/later.yaml": tools.String(),
	})
}

// lateReport is what the sample tool tells.
type lateReport struct {
	Taken, Underway, Held, Retries int
	Posts                          map[string]map[string]int
}

func reportOf(t testing.TB, tool string) (r lateReport) {
	t.Helper()
	response, err := http.Get(tool + "/later/report")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// answerModes is how call n of a run is answered: 40 % several times, 20 % after
// forgeries, 10 % too late, 10 % with those of another tenant, 5 % otherwise
// afterwards, all of them in time.
func answerModes(n int) (tool, as string, late, conflict bool) {
	d := n % 100
	as, tool = "plain", "later"
	add := func(m string, holds bool) {
		if holds {
			as += "+" + m
		}
	}
	late, conflict = d/10 == 4, d%20 == 15
	add("duplicate", d%10 < 4)
	add("forge", d%5 == 0)
	add("foreign", d%10 == 7)
	add("conflict", conflict)
	if add("late", late); late {
		tool = "brief"
	}
	return tool, as, late, conflict
}

// laterCall is a call of a tool that calls back.
func laterCall(tool string, n int, as string) string {
	return fmt.Sprintf(`{"tool":{"name":%q,"arguments":{"n":%d,"as":%q}}}`, tool, n, as)
}

// patiently asks until the gateway takes the call: one whose disk, or Redis, is busy
// says so, and has executed nothing.
func patiently(t testing.TB, g *gate, completion string, headers ...string) (r reply) {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", completion, append([]string{"Content-Type", "text/plain"}, headers...)...)
		if err != nil || r.status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			return r
		}
	}
}

// isNumber tells whether an answer is the tool's to a call.
func isNumber(body string, n int) bool {
	var b struct {
		Result struct {
			Output struct {
				N  *int
				OK bool
			}
		} `json:"tool_result"`
	}
	return json.Unmarshal([]byte(body), &b) == nil && b.Result.Output.N != nil && *b.Result.Output.N == n && b.Result.Output.OK
}

// endings are the outcomes of calls, and the codes of what was refused, by call.
func endings(t testing.TB, folders ...string) (outcomes map[string][]audit.Outcome, refused map[string]map[string]int) {
	t.Helper()
	outcomes, refused = map[string][]audit.Outcome{}, map[string]map[string]int{}
	for _, data := range folders {
		files, err := filepath.Glob(filepath.Join(data, "audit*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", files, err)
		}
		if _, err := audit.Read(func(r audit.Record) error {
			switch {
			case r.Event == audit.Ending:
				outcomes[r.CallID] = append(outcomes[r.CallID], r.Outcome)
			case r.Verdict == audit.Refused:
				if refused[string(r.Code)] == nil {
					refused[string(r.Code)] = map[string]int{}
				}
				refused[string(r.Code)][r.CallID]++
			}
			return nil
		}, files...); err != nil {
			t.Errorf("the log does not verify: %v", err)
		}
	}
	return outcomes, refused
}

// TestCallbacks lets a tool answer many calls in every mode. Every valid answer is
// accepted once; nothing forged, nothing of another tenant, nothing that is too late, and
// no second answer. CALLGATE_CALLBACKS says how many calls.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	calls := rounds(t, "CALLGATE_CALLBACKS", 300)
	clients := 48
	if calls > 1000 {
		clients = 160 // the disk takes in many at once
	}
	tool := laterProcess(t, "--later-late", "4s")
	front := newFrontage(t)
	one, spy := newCaller("one", "acme", []string{"Analyst"}, []string{"alpha"}), newCaller("spy", "globex", []string{"Spy"}, []string{"gamma"})
	config, data := laterConfig(t, tool, front, "", one, spy)
	g := serveGate(t, config)
	front.lead(g)
	headers := func(n int) []string {
		who := one
		if n%2 > 0 {
			who = spy
		}
		h := []string{"Content-Type", "text/plain", "Authorization", "Bearer " + who.key}
		if n%3 > 0 {
			h = append(h, "Callgate-Thread", fmt.Sprint("thread-", n%7))
		}
		return h
	}
	ids := make([]string, calls)
	results := make([]bool, calls)
	var next atomic.Int64
	next.Store(-1)
	var working sync.WaitGroup
	for range clients {
		working.Go(func() {
			for n := int(next.Add(1)); n < calls; n = int(next.Add(1)) {
				name, as, late, _ := answerModes(n)
				for deadline := time.Now().Add(patience); ; {
					r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", laterCall(name, n, as), headers(n)...)
					if err == nil && r.status == http.StatusServiceUnavailable && time.Now().Before(deadline) {
						time.Sleep(50 * time.Millisecond) // nothing was executed
						continue
					}
					if err != nil {
						t.Errorf("%d: %v", n, err)
						break
					}
					ids[n], results[n] = r.header.Get("Callgate-Call-Id"), isNumber(r.body, n)
					if !results[n] && r.status != http.StatusAccepted && (!late || r.code() != "outcome_unknown") || results[n] && late {
						t.Errorf("%d, %s: %d %s", n, as, r.status, r.body)
					}
					break
				}
			}
		})
	}
	working.Wait()
	eventually(t, "the tool has answered everything", func() bool { return reportOf(t, tool).Underway == 0 })
	want := map[string]map[string]int{"answer": {}, "duplicate": {}, "late": {}, "conflict": {}}
	valid, lates, conflicts, forged, printed := 0, 0, 0, 0, 0
	written := map[string]bool{} // calls that were answered too late, or by another name
	for n := range calls {
		_, as, late, conflict := answerModes(n)
		status := "200"
		if late {
			status, lates = "404", lates+1
			want["late"][status]++
		} else {
			valid++
			want["answer"][status]++
		}
		if strings.Contains(as, "duplicate") {
			want["duplicate"][status] += 2
		}
		if conflict {
			want["conflict"]["404"]++
			conflicts++
		}
		if late || strings.Contains(as, "forge") {
			written[ids[n]] = true
		}
		var r reply
		eventually(t, "the call has ended", func() bool {
			r = g.ask(t, http.MethodGet, "/v1/calls/"+ids[n], "", headers(n)...)
			return r.status == http.StatusOK && !strings.Contains(r.body, `"state":"pending"`)
		})
		if strings.Contains(r.body, "forged") {
			forged++
		}
		if entered := isNumber(r.body, n); entered == late {
			t.Errorf("%d, %s: %s", n, as, r.body)
		} else if entered && strings.Contains(r.body, fmt.Sprintf(`"display_as":[{"content":"number %d","type":"text"}]`, n)) {
			printed++
		}
		if other := g.ask(t, http.MethodGet, "/v1/calls/"+ids[n], "", headers(n+1)...); other.status != http.StatusNotFound {
			t.Errorf("another tenant looks at %d: %d", n, other.status)
		}
	}
	report := reportOf(t, tool)
	if report.Taken != calls {
		t.Errorf("the tool took %d calls of %d", report.Taken, calls)
	}
	for kind, counts := range want {
		for status, n := range counts {
			if report.Posts[kind][status] != n || len(report.Posts[kind]) > 2 {
				t.Errorf("%s: answered %v, expected %v", kind, report.Posts[kind], counts)
			}
		}
	}
	for _, kind := range []string{"forged", "foreign"} {
		if len(report.Posts[kind]) != 1 || report.Posts[kind]["404"] == 0 {
			t.Errorf("%s: answered %v, expected 404 alone", kind, report.Posts[kind])
		}
		forged += report.Posts[kind]["200"]
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	outcomes, refused := endings(t, data)
	entered, expired, lost := 0, 0, 0
	for n, id := range ids {
		_, _, late, _ := answerModes(n)
		switch o := outcomes[id]; {
		case len(o) != 1:
			lost++
			t.Errorf("%d has the outcomes %v", n, o)
		case late && o[0] == audit.Expired:
			expired++
		case !late && o[0] == audit.Result:
			entered++
		default:
			t.Errorf("%d, late %v, has the outcome %s", n, late, o[0])
		}
	}
	all := 0 // also of calls that nobody was told of
	for _, o := range outcomes {
		if o[0] == audit.Result {
			all++
		}
	}
	if entered != valid || all != valid || expired != lates || forged != 0 || printed != valid {
		t.Errorf("entered %d (%d) of %d, shown %d, expired %d of %d, forged %d", entered, all, valid, printed, expired, lates, forged)
	}
	if len(refused["idempotency_conflict"]) != conflicts {
		t.Errorf("in the log: %d conflicts of %d", len(refused["idempotency_conflict"]), conflicts)
	}
	// A message to the address of one call that names another belongs to either.
	unmatched, most := 0, 0
	for id := range written {
		if refused["not_found"][id] > 0 {
			unmatched++
		}
	}
	for _, n := range refused["not_found"] {
		most = max(most, n)
	}
	if unmatched != len(written) || most > 8 {
		t.Errorf("in the log: %d of %d calls that were answered too late, or by another name; up to %d for one", unmatched, len(written), most)
	}
	secrets := front.tokens()
	for _, where := range []string{g.stderr.String(), g.stdout.String(), auditText(t, data)} {
		for i := 0; i < len(secrets); i += 1 + len(secrets)/200 {
			if len(secrets[i]) > 40 && strings.Contains(where, secrets[i][:40]) {
				t.Fatalf("a token was written down: %.200q", where[strings.Index(where, secrets[i][:40]):])
			}
		}
	}
	t.Logf("%d calls: %d entered of %d distinct valid, lost %d; %d forged and %d foreign posts, accepted %d; %d duplicates, %d conflicting, %d calls too late; %d posts were tried again",
		calls, entered, valid, lost, report.Posts["forged"]["404"], report.Posts["foreign"]["404"], forged,
		report.Posts["duplicate"]["200"]+report.Posts["duplicate"]["404"], conflicts, lates, report.Retries)
}

func auditText(t testing.TB, data string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "audit*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
