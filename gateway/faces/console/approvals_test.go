package console_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/store/approval"
)

// staff knows everybody by a credential that is the name.
type staff struct{}

func (staff) Authenticate(credential string) *identity.Principal {
	return map[string]*identity.Principal{
		"bot":     {Name: "bot", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}, Approves: []string{"refunds"}},
		"ada":     {Name: "ada", Approves: []string{"refunds"}},
		"eve":     {Name: "eve", Approves: []string{"refunds"}},
		"other":   {Name: "other", Approves: []string{"deploys"}},
		"ops":     {Name: "ops", Operator: true},
		"nothing": {Name: "nothing"},
	}[credential]
}

// asking are the files of a configuration that asks for payments.
func asking(description, hint string) map[string]string {
	return map[string]string{
		"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
		"approvals.yaml": fmt.Sprintf("rules: {refunds: {hint: %q, remember: {same: 2h}}, deploys: {}}\n", hint),
		"policy.csv":     "p, Analyst, *, pay, , ask:refunds\n",
		"tools.yaml": fmt.Sprintf("tools:\n  - {name: pay, version: 1.0.0, description: %q, kind: execute, effect: once, run: {type: demo},\n"+
			"     input_schema: {type: object, properties: {amount: {type: number}, note: {type: string}, pin: {type: string, x-secret: true}}}}\n", description),
	}
}

// ask makes a call that people are asked about, and returns the id of the approval.
func (f *fixture) ask(t testing.TB, r gateway.Request, arguments string) string {
	t.Helper()
	r.Inputs = []gateway.Input{{Completion: []byte(`{"tool":{"name":"pay","arguments":` + arguments + `}}`)}}
	o := f.executor.Handle(t.Context(), r, "")
	if o.ApprovalRequest == nil {
		t.Fatalf("nobody was asked: %+v", o)
	}
	return o.ApprovalRequest.ID
}

// see returns what the API shows of an approval.
func (f *fixture) see(t testing.TB, who, id string) (v admin.ApprovalView) {
	t.Helper()
	_, body := f.do(t, f.Client(), sent{path: "/v1/approvals/" + id, header: bearer(who)})
	if err := json.Unmarshal([]byte(body), &v); err != nil || v.ID != id {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

func bearer(who string) map[string]string {
	if who == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + who}
}

// TestApprovalPages: a page shows what the API answers, to those whom the API answers, and its
// forms do what the API does.
func TestApprovalPages(t *testing.T) {
	f := newFixtureOf(t, staff{}, asking("Pays somebody.", "look it up"))
	id := f.ask(t, gateway.Request{Credential: "bot"}, `{"amount":1.50,"pin":"canary"}`)
	path := "/console/approvals/" + id
	shown := f.see(t, "ada", id)
	if len(shown.Needs) != 1 || shown.Needs[0] != (admin.NeedView{Rule: "refunds", People: 1}) || !slices.Equal(shown.MayRemember, []admin.RememberBody{{Scope: "same", For: "2h"}}) {
		t.Errorf("the API shows %+v", shown)
	}
	const approve = `value="yes"`
	for who, c := range map[string]struct {
		list, page        int
		sees, votes, ends bool
	}{
		"ada": {200, 200, true, true, false}, "bot": {200, 200, true, false, false}, "ops": {200, 200, true, false, true},
		"other": {200, 404, false, false, false}, "nothing": {403, 403, false, false, false}, "nobody": {303, 303, false, false, false}, "": {303, 303, false, false, false},
	} {
		client := f.browser(t)
		list, body := f.do(t, client, sent{path: "/console/approvals", header: bearer(who)})
		if strings.Contains(body, "canary") || strings.Contains(body, "[redacted]") != c.sees {
			t.Errorf("%s: the arguments in the list: %s", who, body)
		}
		if list.StatusCode != c.list || strings.Contains(body, id) != c.sees || strings.Contains(body, "Active grants") != c.ends {
			t.Errorf("%s: the list: %d %s", who, list.StatusCode, body)
		}
		one, body := f.do(t, client, sent{path: path, header: bearer(who)})
		if one.StatusCode != c.page || strings.Contains(body, approve) != c.votes || strings.Contains(body, "/revoke") != c.ends {
			t.Errorf("%s: the page: %d %s", who, one.StatusCode, body)
		}
		if !c.sees {
			continue
		}
		api := f.see(t, who, id)
		for _, want := range []string{
			shown.Digest, "1.50", "[redacted]", "Pays somebody.", "look it up", "policy.csv:1", "waiting", "Analyst", "acme/alpha", "bot", "once", "one approval is enough",
			api.Opened.Format("2006-01-02 15:04:05.000"), api.Until.Format("2006-01-02 15:04:05.000"), html.EscapeString(api.WhyNot),
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: the page does not show %q: %s", who, want, body)
			}
		}
		if strings.Contains(body, "canary") {
			t.Errorf("%s: the page shows a secret", who)
		}
	}
	if answer, _ := f.do(t, f.browser(t), sent{path: "/console", header: bearer("ada")}); answer.StatusCode != 303 || answer.Header.Get("Location") != "/console/approvals" {
		t.Errorf("the first page of an approver: %d", answer.StatusCode)
	}
	yes := url.Values{"vote": {"yes"}, "digest": {shown.Digest}, "reason": {"fine\r\nby me"}, "scope": {"same"}, "for": {"1h"}}
	with := func(name string, values ...string) url.Values {
		changed := url.Values{}
		for n, v := range yes {
			changed[n] = v
		}
		changed[name] = values
		return changed
	}
	for name, c := range map[string]struct {
		sent sent
		want int
	}{
		"GET":               {sent{path: path + "?" + yes.Encode(), header: bearer("ada")}, 200},
		"GET of revoke":     {sent{path: path + "/revoke", header: bearer("ops")}, 404},
		"in the query":      {sent{method: "POST", path: path + "?" + yes.Encode(), form: url.Values{}, header: bearer("ada")}, 400},
		"PUT":               {sent{method: "PUT", path: path, form: yes, header: bearer("ada")}, 404},
		"the requester":     {sent{method: "POST", path: path, form: yes, header: bearer("bot")}, 403},
		"an operator":       {sent{method: "POST", path: path, form: yes, header: bearer("ops")}, 403},
		"of another rule":   {sent{method: "POST", path: path, form: yes, header: bearer("other")}, 404},
		"no approver":       {sent{method: "POST", path: path, form: yes, header: bearer("nothing")}, 403},
		"unknown":           {sent{method: "POST", path: path, form: yes, header: bearer("nobody")}, 401},
		"no credential":     {sent{method: "POST", path: path, form: yes}, 401},
		"revoked by none":   {sent{method: "POST", path: path + "/revoke", form: url.Values{}, header: bearer("ada")}, 403},
		"no such approval":  {sent{method: "POST", path: "/console/approvals/call_X", form: yes, header: bearer("ada")}, 404},
		"another digest":    {sent{method: "POST", path: path, form: with("digest", strings.Repeat("0", 64)), header: bearer("ada")}, 409},
		"no digest":         {sent{method: "POST", path: path, form: with("digest"), header: bearer("ada")}, 400},
		"no vote":           {sent{method: "POST", path: path, form: with("vote"), header: bearer("ada")}, 400},
		"two votes":         {sent{method: "POST", path: path, form: with("vote", "no", "yes"), header: bearer("ada")}, 400},
		"another scope":     {sent{method: "POST", path: path, form: with("scope", "tool"), header: bearer("ada")}, 400},
		"for too long":      {sent{method: "POST", path: path, form: with("for", "3h"), header: bearer("ada")}, 400},
		"for no scope":      {sent{method: "POST", path: path, form: with("scope", ""), header: bearer("ada")}, 400},
		"a scope alone":     {sent{method: "POST", path: path, form: with("for", ""), header: bearer("ada")}, 400},
		"a no that stands":  {sent{method: "POST", path: path, form: with("vote", "no"), header: bearer("ada")}, 400},
		"a long reason":     {sent{method: "POST", path: path, form: with("reason", strings.Repeat("x", 501)), header: bearer("ada")}, 400},
		"a longer form":     {sent{method: "POST", path: path, form: with("reason", strings.Repeat("x", 16<<10)), header: bearer("ada")}, 400},
		"a foreign origin":  {sent{method: "POST", path: path, form: yes, header: map[string]string{"Authorization": "Bearer ada", "Origin": "https://evil.example"}}, 400},
		"null":              {sent{method: "POST", path: path, form: yes, header: map[string]string{"Authorization": "Bearer ada", "Origin": "null"}}, 400},
		"cross-site":        {sent{method: "POST", path: path, form: yes, header: map[string]string{"Authorization": "Bearer ada", "Sec-Fetch-Site": "cross-site"}}, 400},
		"a rebound name":    {sent{method: "POST", path: path, form: yes, header: bearer("ada"), host: "evil.example"}, 400},
		"another's session": {sent{method: "POST", path: path, form: yes, header: map[string]string{"Cookie": "callgate_console=ABCDEFGHIJKLMNOPQRSTUVWXYZ"}}, 401},
	} {
		answer, body := f.do(t, f.browser(t), c.sent)
		if answer.StatusCode != c.want {
			t.Errorf("%s: %d, expected %d: %s", name, answer.StatusCode, c.want, body)
		}
		if v := f.see(t, "ada", id); v.State != "waiting" || len(v.Votes) != 0 {
			t.Fatalf("%s: it changed: %+v", name, v)
		}
	}
	if _, body := f.do(t, f.browser(t), sent{method: "POST", path: path, form: with("for", "3h"), header: bearer("ada")}); !strings.Contains(body, "not for so long") || !strings.Contains(body, "by me</textarea>") || !strings.Contains(body, `value="3h"`) {
		t.Errorf("a refused vote is not shown with its form: %s", body)
	}
	// A session votes, until its person may not.
	ada := f.browser(t)
	if answer, _ := f.do(t, ada, sent{method: "POST", path: "/console/session", form: url.Values{"key": {"ada"}}}); answer.StatusCode != 303 {
		t.Fatalf("an approver cannot sign in: %d", answer.StatusCode)
	}
	if answer, _ := f.do(t, f.browser(t), sent{method: "POST", path: "/console/session", form: url.Values{"key": {"nothing"}}}); answer.StatusCode != 401 {
		t.Errorf("one without rules signs in: %d", answer.StatusCode)
	}
	answer, body := f.do(t, ada, sent{method: "POST", path: path, form: yes})
	if answer.StatusCode != 303 || answer.Header.Get("Location") != path {
		t.Fatalf("the vote: %d %s", answer.StatusCode, body)
	}
	if v := f.see(t, "ada", id); v.State != "approved" || len(v.Votes) != 1 || v.Votes[0].By != "ada" || v.Votes[0].Reason != "fine\nby me" || !v.Needs[0].Met {
		t.Errorf("after the vote: %+v", v)
	}
	if _, body := f.do(t, ada, sent{path: path}); !strings.Contains(body, "approved") || !strings.Contains(body, "by me") || !strings.Contains(body, "1 of 1 approvals") || !strings.Contains(body, "Approved by ada") || !strings.Contains(body, "not used yet") || strings.Contains(body, approve) {
		t.Errorf("after the vote: %s", body)
	}
	// Operators see and revoke what stands; the page of the call leads there.
	if _, body := f.do(t, f.browser(t), sent{path: "/console/calls/" + id, header: bearer("ops")}); !strings.Contains(body, `href="/console/approvals/`+id) {
		t.Errorf("the page of the call: %s", body)
	}
	_, body = f.do(t, f.browser(t), sent{path: "/console/approvals", header: bearer("ops")})
	_, rest, found := strings.Cut(body, `action="/console/grants/`)
	grant, _, _ := strings.Cut(rest, "/revoke")
	if !found {
		t.Fatalf("no grant is shown: %s", body)
	}
	for who, want := range map[string]int{"ada": 403, "ops": 303} {
		if answer, _ := f.do(t, f.browser(t), sent{method: "POST", path: "/console/grants/" + grant + "/revoke", form: url.Values{}, header: bearer(who)}); answer.StatusCode != want {
			t.Errorf("%s revokes a grant: %d", who, answer.StatusCode)
		}
	}
	if _, body := f.do(t, f.browser(t), sent{path: "/console/approvals", header: bearer("ops")}); strings.Contains(body, grant) {
		t.Error("the grant is still there")
	}
	third := "/console/approvals/" + f.ask(t, gateway.Request{Credential: "bot"}, `{"amount":3}`)
	for of, want := range map[string]int{path: 409, third: 303} { // with the grant its approval ended
		if answer, _ := f.do(t, f.browser(t), sent{method: "POST", path: of + "/revoke", form: url.Values{}, header: bearer("ops")}); answer.StatusCode != want {
			t.Errorf("an operator revokes %s: %d", of, answer.StatusCode)
		}
	}
	answer, body = f.do(t, ada, sent{method: "POST", path: path, form: yes})
	if answer.StatusCode != 409 || !strings.Contains(body, "has ended") || !strings.Contains(body, "revoked by ops") || strings.Contains(body, `name="vote"`) || !strings.Contains(body, "were deleted") {
		t.Errorf("a vote on what has ended: %d %s", answer.StatusCode, body)
	}
	again := f.ask(t, gateway.Request{Credential: "bot"}, `{"amount":2}`)
	if _, body := f.do(t, f.browser(t), sent{path: "/console", header: bearer("ops")}); !strings.Contains(body, "1 waiting") || !strings.Contains(body, "0 of them for you") {
		t.Errorf("the overview does not count what waits: %s", body)
	}
	digest := f.see(t, "ada", again).Digest
	if answer, _ := f.do(t, ada, sent{method: "POST", path: "/console/approvals/" + again, form: url.Values{"vote": {"no"}, "digest": {digest}, "scope": {""}, "for": {""}}}); answer.StatusCode != 303 {
		t.Errorf("a no: %d", answer.StatusCode)
	}
	if v := f.see(t, "ada", again); v.State != "denied" || v.Ended == nil || v.Ended.By != "ada" || v.Ended.At.IsZero() {
		t.Errorf("denied: %+v", v)
	}
	for query, want := range map[string][2]bool{"": {}, "?state=": {true, true}, "?state=&rule=deploys": {}, "?state=waiting": {}} {
		_, body := f.do(t, ada, sent{path: "/console/approvals" + query})
		if got := [2]bool{strings.Contains(body, id), strings.Contains(body, again)}; got != want {
			t.Errorf("%s: found %v: %s", query, got, body)
		}
	}
}

// TestApprovalShowsAllThatIsApproved: arguments are never cut, so that nobody approves what was
// not shown.
func TestApprovalShowsAllThatIsApproved(t *testing.T) {
	f := newFixtureOf(t, nil, asking("Pays.", "look"))
	// As long as the arguments of an approval may be.
	note := strings.Repeat("x", approval.MaxArguments-len(`{"amount":1,"note":"the end"}`)) + "the end"
	id := f.ask(t, gateway.Request{}, `{"amount":1,"note":"`+note+`"}`)
	if _, body := f.do(t, f.Client(), sent{path: "/console/approvals/" + id}); !strings.Contains(body, note) {
		t.Error("the arguments were cut")
	}
}

// TestHostileApprovals: the pages of an approval have the elements of their templates, whatever
// its texts are.
func TestHostileApprovals(t *testing.T) {
	shape := func(t *testing.T, text string) map[string][]string {
		short := strings.Map(func(r rune) rune {
			if r < 0x20 || r == '\u202e' || r == '\u2066' || r == '\u200b' || r == '\u200d' || r > 0xffff {
				return -1 // configurations and credentials have none
			}
			return r
		}, text[:min(len(text), 200)])
		f := newFixtureOf(t, nil, asking("Pays. "+short, short))
		arguments, err := json.Marshal(map[string]any{"amount": 1, "note": text[:min(len(text), 8<<10)], "pin": "x"})
		if err != nil {
			t.Fatal(err)
		}
		id := f.ask(t, gateway.Request{Thread: short[:min(len(short), 60)]}, string(arguments))
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
			for _, tag := range tags.FindAllString(body, -1) {
				found[name] = append(found[name], value.ReplaceAllString(tag, ""))
			}
		}
		q := url.QueryEscape(text[:min(len(text), 300)])
		see("list", sent{path: "/console/approvals"})
		see("filtered", sent{path: "/console/approvals?rule=" + q})
		see("page", sent{path: "/console/approvals/" + id})
		reason := text[:min(len(text), 400)]
		digest := f.see(t, "", id).Digest
		see("refused", sent{method: "POST", path: "/console/approvals/" + id, form: url.Values{"vote": {"yes"}, "digest": {digest}, "reason": {reason}, "scope": {text[:8]}, "for": {text[:8]}}})
		see("voted", sent{method: "POST", path: "/console/approvals/" + id, form: url.Values{"vote": {"yes"}, "digest": {digest}, "reason": {reason}, "scope": {"same"}, "for": {"1h"}}})
		see("granted", sent{path: "/console/approvals"})
		if v := f.see(t, "", id); len(v.Votes) != 1 {
			t.Errorf("%.40q: the vote was not taken: %+v", text, v)
		}
		return found
	}
	want := shape(t, "harmless")
	for _, text := range hostile {
		for name, list := range shape(t, text) {
			if !slices.Equal(list, want[name]) {
				t.Errorf("%s of %.40q has other elements:\n%v\n%v", name, text, list, want[name])
			}
		}
	}
}

// TestApprovalLinks: every link of the pages of approvals leads to a page.
func TestApprovalLinks(t *testing.T) {
	f := newFixtureOf(t, nil, asking("Pays.", "look"))
	var id string
	for i := range 60 {
		id = f.ask(t, gateway.Request{}, fmt.Sprintf(`{"amount":%d}`, i))
	}
	f.do(t, f.Client(), sent{method: "POST", path: "/console/approvals/" + id, form: url.Values{"vote": {"yes"}, "digest": {f.see(t, "", id).Digest}}})
	f.executor.Handle(t.Context(), gateway.Request{Inputs: []gateway.Input{{Completion: []byte(`{"tool":{"name":"pay","arguments":{"amount":59}}}`)}}}, "")
	if v := f.see(t, "", id); v.Ran == "" {
		t.Fatalf("it did not run: %+v", v)
	}
	seen, queue := map[string]bool{}, []string{"/console/approvals", "/console/approvals?state=", "/console/approvals/" + id, "/console/calls/" + f.see(t, "", id).Ran}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		answer, body := f.do(t, f.Client(), sent{path: path})
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
		for _, m := range hrefs.FindAllStringSubmatch(body, -1) {
			if link := html.UnescapeString(m[1]); strings.HasPrefix(link, "/console") && strings.Contains(link, "approvals") && !strings.HasSuffix(link, "/revoke") {
				queue = append(queue, link)
			}
		}
	}
	if len(seen) < 62 {
		t.Errorf("only %d pages were found", len(seen))
	}
}
