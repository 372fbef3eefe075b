package console_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/callgate/callgate/policy/lab"

	"github.com/callgate/callgate/store"
)

// The pages of what is in use show what the API answers, and lead to the tool and the call.
func TestLimitsAndRunning(t *testing.T) {
	f := newFixtureOf(t, nil, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\nlimits: limits.yaml\n", "tools.yaml": oneTool, "limits.yaml": "default: {rate: 60/m, burst: 10, concurrency: 4}\ntools: {web.search: {rate: 1/h, burst: 1}}\n",
	})
	f.judge("Analyst", `{"tool":{"name":"web.search","arguments":{}}}`)
	ctx := context.Background()
	if _, err := f.store.Open(ctx, store.Call{ID: "call_x", Scope: store.Scope{Principal: "ada", Workspace: "acme", Project: "alpha"}}); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Dispatch(ctx, "call_x", store.Task{Tool: "web.search", Version: "1.0.0", Agent: "Analyst", Effect: "read"}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"/console/limits":            {"0 of 1 left", "tools.web.search", "1/h", "default.concurrency", "9 of 10 left", ">256<", `href="/console/tools/web.search"`},
		"/console/limits?kind=slots": {"calls of an agent at the same time", "default.concurrency"},
		"/console/running":           {"running", "ada", "acme/alpha", `href="/console/calls/call_x"`, `href="/console/tools/web.search"`},
	} {
		answer, body := f.do(t, f.Client(), sent{path: path})
		for _, w := range want {
			if answer.StatusCode != 200 || !strings.Contains(body, w) {
				t.Errorf("%s: %d, without %q:\n%s", path, answer.StatusCode, w, body)
			}
		}
	}
	if _, body := f.do(t, f.Client(), sent{path: "/console/limits?kind=slots"}); strings.Contains(body, "1/h") {
		t.Errorf("a filter lets other kinds pass: %s", body)
	}
}

// labels are what cells are called on narrow screens.
var labels = regexp.MustCompile(` data-label="[^"]*"`)

// The page of limits shows budgets of tokens and of money, each with its currency and what is left.
func TestBudgetsOnThePage(t *testing.T) {
	f := newFixtureOf(t, nil, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\nlimits: limits.yaml\nprices: prices.yaml\n", "tools.yaml": oneTool, "prices.yaml": "currency: CHF\nprices: []\n",
		"limits.yaml": "budgets:\n  - {name: both, window: month, tokens: 71000, money: \"12.50\"}\n  - {name: team, per: agent, agents: [Ana*], window: day, tokens: 5}\n",
	})
	answer, body := f.do(t, f.Client(), sent{path: "/console/limits?kind=budget"})
	body = labels.ReplaceAllString(body, "")
	for _, want := range []string{
		"<td>both</td><td>everything</td><td>tokens</td><td class=\"num\">0</td><td class=\"num\">0</td><td class=\"num\">71000</td><td class=\"num\">71000</td>",
		"<td>both</td><td>everything</td><td>CHF</td><td class=\"num\">0.00</td><td class=\"num\">0.00</td><td class=\"num\">12.50</td><td class=\"num\">12.50</td>",
		"<td>team</td><td>Analyst</td><td>tokens</td>", "<td>team</td><td>no agent named</td>", "budget of tokens and money",
	} {
		if answer.StatusCode != 200 || !strings.Contains(body, want) {
			t.Errorf("%d, without %q:\n%s", answer.StatusCode, want, body)
		}
	}
	if strings.Contains(body, "<td>Intern</td>") || strings.Contains(body, "None is configured") {
		t.Errorf("a name that the budget does not cover, or nothing: %s", body)
	}
}

// The page of the candidate shows where it differs, and names inert.
func TestCandidatePage(t *testing.T) {
	f := newFixture(t, nil, oneTool)
	page := func() string {
		t.Helper()
		answer, body := f.do(t, f.Client(), sent{path: "/console/candidate"})
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%d: %s", answer.StatusCode, body)
		}
		return body
	}
	if body := page(); !strings.Contains(body, "There is no candidate.") || strings.Contains(body, "Differences") {
		t.Errorf("without a candidate: %s", body)
	}
	f.candidate = lab.CandidateReport{Fault: "policy.next.csv:3: <b>wrong</b>"}
	if body := page(); !strings.Contains(body, "does not load</span> policy.next.csv:3: &lt;b&gt;wrong&lt;/b&gt;") {
		t.Errorf("with a candidate that does not load: %s", body)
	}
	f.candidate = lab.CandidateReport{Active: true, Candidate: strings.Repeat("c", 64), Served: strings.Repeat("5", 64), Counts: map[string]int64{"same": 7, "newly_refused": 3, "skipped": 1}, MoreGroups: 2}
	for i := range 120 {
		f.candidate.Groups = append(f.candidate.Groups, lab.CandidateGroup{
			Change: lab.NewlyRefused, Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: fmt.Sprintf("<img src=x>%d", i), Candidate: "permission_denied", Rows: "policy.next.csv:2", Calls: int64(200 - i), Last: "call_x",
		})
	}
	body := page()
	for _, want := range []string{"<code>cccccccccccc</code>", ">7<", "skipped, for want of room", "newly refused", "&lt;img src=x&gt;99<", "permission_denied", "policy.next.csv:2", `href="/console/calls/call_x"`, "and 20 groups more", "2 calls are of further groups"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%.3000s", want, body)
		}
	}
	if strings.Contains(body, "<img") || strings.Contains(body, "x&gt;100<") {
		t.Error("the page has a name as markup, or more than 100 groups")
	}
	if _, policy := f.do(t, f.Client(), sent{path: "/console/policy"}); !strings.Contains(policy, `href="/console/candidate"`) {
		t.Error("no page leads to the candidate")
	}
}
