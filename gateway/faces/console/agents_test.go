package console_test

import (
	"cmp"
	"context"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
)

// TestAgentPage: it has what the agent may do and did, its limits and what is stopped of it, and
// nothing of another; an agent that is named nowhere has none.
func TestAgentPage(t *testing.T) {
	f := newFixtureOf(t, nil, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\nlimits: limits.yaml\n", "tools.yaml": oneTool, "limits.yaml": "agents: {Analyst: {rate: 7/m, burst: 9}, Intern: {rate: 3/m, burst: 5}}\n",
	})
	analysts := f.judge("Analyst", `{"tool":{"name":"web.search","arguments":{}}}`)
	interns := f.judge("Intern", `{"tool":{"name":"web.search","arguments":{}}}`)
	gone := audit.Record{Time: time.Now(), Event: audit.Decision, Mode: audit.Call, Verdict: audit.Text, CallID: "call_gone", Agent: "Gone/<b>", Workspace: "acme", Project: "alpha"}
	if err := f.log.Append(context.Background(), gone); err != nil {
		t.Fatal(err)
	}
	if answer, body := f.do(t, f.Client(), sent{method: "POST", path: "/console/stops", form: url.Values{"agent": {"Intern"}, "reason": {"too eager"}}}); answer.StatusCode != http.StatusOK {
		t.Fatal(body)
	}
	for field, c := range map[string][2]string{
		"tool": {"web_search", `no tool web_search (did you mean "web.search"?): the stop is recorded, and matches nothing now.`}, "agent": {"analist", `(did you mean "Analyst"?)`},
	} {
		answer, body := f.do(t, f.Client(), sent{method: "POST", path: "/console/stops", form: url.Values{field: {c[0]}, "reason": {"r"}}})
		if answer.StatusCode != http.StatusOK || !strings.Contains(html.UnescapeString(body), c[1]) || strings.Contains(body, "<h2>Stopped</h2>") {
			t.Errorf("a stop of %s: %s", c[0], body)
		}
	}
	for agent, c := range map[string]struct {
		status    int
		has, lack []string
	}{
		"Analyst":  {200, []string{analysts, ">always<", "web.search", "8 of 9 left", "7/m", "acme/alpha", "agent=Analyst"}, []string{interns, "3/m", "too eager"}},
		"Intern":   {200, []string{interns, "the policy allows it none", "1 other tool is denied here: web.search", "5 of 5 left", "too eager"}, []string{analysts, "7/m"}},
		"Gone/<b>": {200, []string{"call_gone", "Gone/&lt;b&gt;", "No project and no principal"}, []string{"<b>", "What it may do", "too eager"}},
		"nobody":   {404, []string{"has such an agent", `href="/console/tools"`}, nil},
	} {
		answer, body := f.do(t, f.Client(), sent{path: "/console/agents/" + url.PathEscape(agent)})
		if answer.StatusCode != c.status {
			t.Errorf("%s: %d", agent, answer.StatusCode)
		}
		for _, want := range c.has {
			if !strings.Contains(body, want) {
				t.Errorf("%s: the page lacks %q: %s", agent, want, body)
			}
		}
		for _, other := range c.lack {
			if strings.Contains(body, other) {
				t.Errorf("%s: the page has %q: %s", agent, other, body)
			}
		}
	}
	if _, body := f.do(t, f.Client(), sent{path: "/console/calls"}); !strings.Contains(body, `href="/console/agents/Gone%2f%3cb%3e"`) && !strings.Contains(body, `href="/console/agents/Gone%2F%3Cb%3E"`) {
		t.Errorf("the calls do not lead to the agent: %s", body)
	}
}

// TestFind: an id leads to its page, a name to that of its tool or agent, and nothing to a page that is not there.
func TestFind(t *testing.T) {
	f := newFixtureOf(t, staff{}, asking("Pays.", "look"))
	judged := f.kernel.Judge(t.Context(), gateway.Request{Credential: "bot", Inputs: []gateway.Input{{Completion: []byte("text")}}})
	judged.Release()
	call := judged.Reports[0].CallID
	asks := f.ask(t, gateway.Request{Credential: "bot"}, `{"amount":1}`)
	record := audit.Record{Time: time.Now(), Event: audit.Decision, Mode: audit.Call, Verdict: audit.Text, CallID: "toolu_1", TraceID: strings.Repeat("ab", 16), Agent: "Analyst"}
	if err := f.log.Append(context.Background(), record); err != nil {
		t.Fatal(err)
	}
	find := func(who, id string) (int, string) {
		answer, _ := f.do(t, f.browser(t), sent{path: "/console/find?" + url.Values{"id": {id}}.Encode(), header: bearer(who)})
		return answer.StatusCode, answer.Header.Get("Location")
	}
	for id, want := range map[string]string{
		call: "/console/calls/" + call, " " + asks + "\n": "/console/approvals/" + asks, "toolu_1": "/console/calls/toolu_1",
		strings.ToLower(call): "/console/calls/" + call, call[:14] + "\u2026": "/console/calls/" + call, strings.ToLower(asks[:14]): "/console/approvals/" + asks,
		"CALL": "/console/calls?id=CALL", "Toolu": "/console/calls/toolu_1", strings.Repeat("AB", 16): "/console/calls/toolu_1",
		"Analyst": "/console/agents/Analyst", "web.search": "/console/tools/web.search", "WEB.s": "/console/tools/web.search", "web": "/console/find?names=web", "int": "/console/agents/Intern", call[5:]: "/console/calls/" + call, call[5:18]: "/console/calls/" + call, "stop_x": "/console/stops", "grant_x": "/console/approvals", "": "/console/calls", "..": "/console/calls",
	} {
		if status, path := find("ops", id); status != http.StatusSeeOther || path != want {
			t.Errorf("%q: %d %s, expected %s", id, status, path, want)
		}
	}
	if _, body := f.do(t, f.Client(), sent{path: "/console/find?names=web", header: bearer("ops")}); strings.Count(body, `href="/console/tools/web.`) != 2 || strings.Contains(body, "Analyst") {
		t.Errorf("the names that begin so: %s", body)
	}
	answer, body := f.do(t, f.Client(), sent{path: "/console/find?id=nothing", header: bearer("ops")})
	if answer.StatusCode != http.StatusNotFound || !strings.Contains(body, "No match for nothing") {
		t.Errorf("what is not there: %d %s", answer.StatusCode, body)
	}
	if _, body := f.do(t, f.Client(), sent{path: "/console/calls?id=CALL", header: bearer("ops")}); !strings.Contains(body, call) || !strings.Contains(body, asks) || strings.Contains(body, "toolu_1") {
		t.Errorf("the calls whose id begins so: %s", body)
	}
	// Those who are no operators learn of approvals that are theirs, and of nothing else.
	for who, want := range map[string]map[string]int{"ada": {asks: 303, call: 404, "Analyst": 404}, "other": {asks: 404}, "nothing": {asks: 403}} {
		for id, status := range want {
			if got, path := find(who, id); got != status || status == 303 && path != "/console/approvals/"+id {
				t.Errorf("%s finds %q: %d %s", who, id, got, path)
			}
		}
	}
}

// TestVerdictsAreFoundByTheirWords: what a row says is what the filter selects.
func TestVerdictsAreFoundByTheirWords(t *testing.T) {
	f := newFixtureOf(t, nil, asking("Pays.", "look"))
	ids := map[string]string{
		"asked": f.ask(t, gateway.Request{}, `{"amount":1}`), "text": f.judge("Analyst", "text"), "refused": f.judge("Analyst", `{"tool":{"name":"nothing","arguments":{}}}`),
	}
	allowed := audit.Record{Time: time.Now(), Event: audit.Decision, Mode: audit.Call, Verdict: audit.ToolCall, CallID: "call_passed", Agent: "Analyst"}
	if err := f.log.Append(context.Background(), allowed); err != nil {
		t.Fatal(err)
	}
	ids["allowed"] = "call_passed"
	for word := range ids {
		_, body := f.do(t, f.Client(), sent{path: "/console/calls?verdict=" + word})
		_, list, _ := strings.Cut(body, `id="list"`)
		for other, id := range ids {
			if strings.Contains(list, id) != (other == word) {
				t.Errorf("%s: %s is there, or lacks: %s", word, other, list)
			}
		}
		shown := cmp.Or(map[string]string{"asked": "sent for approval", "text": "answered without a tool"}[word], word)
		if !strings.Contains(list, ">"+shown+"</span>") || !strings.Contains(body, " selected>"+shown+"<") {
			t.Errorf("%s is called otherwise: %s", word, body)
		}
	}
	for _, word := range []string{"bogus", "tool_call"} { // which the API knows, and the page does not
		answer, body := f.do(t, f.Client(), sent{path: "/console/calls?verdict=" + word})
		if answer.StatusCode != 400 || !strings.Contains(body, "one of allowed, asked, refused, text.") || strings.Contains(body, `id="list"`) {
			t.Errorf("%s: %d %s", word, answer.StatusCode, body)
		}
	}
}

// TestApprovalsInOrder: the one that waits longest is first, on all pages together.
func TestApprovalsInOrder(t *testing.T) {
	f := newFixtureOf(t, nil, asking("Pays.", "look"))
	var asked []string
	for range 60 {
		asked = append(asked, f.ask(t, gateway.Request{}, `{"amount":`+strings.Repeat("1", 1+len(asked)%3)+`,"note":"`+strings.Repeat("x", len(asked))+`"}`))
		time.Sleep(time.Millisecond) // the order of approvals that were opened in the same instant is open
	}
	if err := f.executor.Desk().Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, path := range []string{"/console/approvals", "/console/approvals?from=50&state=waiting"} {
		_, body := f.do(t, f.Client(), sent{path: path})
		if !strings.Contains(body, ">60<") {
			t.Errorf("the navigation does not say how many wait: %s", body)
		}
		for _, part := range strings.Split(body, `class="row" href="/console/approvals/`)[1:] {
			id, _, _ := strings.Cut(part, `"`)
			got = append(got, id)
		}
	}
	if strings.Join(got, " ") != strings.Join(asked, " ") {
		t.Errorf("found\n%v, expected\n%v", got, asked)
	}
}

// TestNothingHereHasTheNavigation: a page that is not there leads on.
func TestNothingHereHasTheNavigation(t *testing.T) {
	f := newFixture(t, nil, oneTool)
	if answer, body := f.do(t, f.Client(), sent{path: "/console/nothing"}); answer.StatusCode != http.StatusNotFound || !strings.Contains(body, `href="/console/calls"`) {
		t.Errorf("%d: %s", answer.StatusCode, body)
	}
}

// TestCallsOfAThread: its page leads to the calls that used it, and to no others.
func TestCallsOfAThread(t *testing.T) {
	f := newFixture(t, nil, oneTool)
	for id, ledger := range map[string]string{"call_WITHIN": strings.Repeat("a", 64), "call_WITHOUT": strings.Repeat("b", 64)} {
		r := audit.Record{Time: time.Now(), Event: audit.Decision, Mode: audit.Call, Verdict: audit.Text, CallID: id, Agent: "Analyst", Ledger: ledger}
		if err := f.log.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	if _, body := f.do(t, f.Client(), sent{path: "/console/calls?ledger=" + strings.Repeat("a", 64)}); !strings.Contains(body, "call_WITHIN") || strings.Contains(body, "call_WITHOUT") {
		t.Error(body)
	}
}
