package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/store"
)

// Operators see what threads have done, page by page, the newest first, and close them by a form of the gateway's own pages.
func TestThreadPages(t *testing.T) {
	f := newFixtureOf(t, staff{}, map[string]string{
		"tools.yaml": strings.Replace(oneTool, "{type: object, ", "{type: object, required: [query], ", 1),
		"policy.csv": "p, Analyst, *, web.search, \"thread.calls('web.search', {'query': args.query}) <= 3 && thread.calls('web.search') <= 9\", allow\n",
	})
	get := func(path, who string) (*http.Response, string) {
		t.Helper()
		return f.do(t, f.browser(t), sent{path: path, header: bearer(who)})
	}
	if _, body := get("/console/threads", "ops"); !strings.Contains(body, "No thread has been counted yet") {
		t.Errorf("at first: %s", body)
	}
	terms, used, err := f.kernel.Config().Terms()
	if err != nil || !used {
		t.Fatal(used, err)
	}
	if _, err := f.threads.KeepTerms(t.Context(), terms, nil); err != nil {
		t.Fatal(err)
	}
	secret, err := history.NewSecret(make([]byte, history.MinSecret))
	if err != nil {
		t.Fatal(err)
	}
	const many = 7
	ids := map[string]bool{}
	for i := range many {
		of := store.KeysOf(store.Scope{Principal: "<b>bot"}, fmt.Sprint("thread ", i))
		ids[of.Thread] = true
		if _, err := f.threads.Reserve(t.Context(), of, func(past history.Past) ([]history.Adds, error) {
			adds, err := terms.Adds("web.search", map[string]any{"query": "x"}, secret, past.Now)
			adds.Labels, adds.Call = []string{"untrusted"}, "call_a"
			return []history.Adds{adds}, err
		}); err != nil {
			t.Fatal(err)
		}
	}
	seen, path := map[string]bool{}, "/v1/threads?limit=3"
	var one admin.Thread
	for range many {
		_, body := get(path, "ops")
		var list admin.ThreadList
		if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Threads) == 0 || len(list.Threads) > 3 {
			t.Fatalf("%s: %v %s", path, err, body)
		}
		for _, one = range list.Threads {
			if seen[one.ID] || !ids[one.ID] {
				t.Errorf("%s is there twice, or nobody's", one.ID)
			}
			seen[one.ID] = true
		}
		if list.Next == "" {
			break
		}
		path = "/v1/threads?" + url.Values{"limit": {"3"}, "after": {list.Next}}.Encode()
	}
	if len(seen) != many {
		t.Errorf("%d of %d threads", len(seen), many)
	}
	if len(one.Values) != 2 || one.Values[1] != "thread.calls('web.search')=1" && one.Values[0] != "thread.calls('web.search')=1" || len(one.Labels) != 1 || one.Labels[0] != (admin.ThreadLabel{Label: "untrusted", CallID: "call_a"}) {
		t.Errorf("one thread: %+v", one)
	}
	shown := "/console/threads/" + one.ID
	for path, wants := range map[string][]string{
		"/console/threads": {"&lt;b&gt;bot", one.ID, "untrusted", "=1"},
		shown:              {"&lt;b&gt;bot", `href="/console/calls/call_a"`, "calls?ledger=" + one.ID, `action="` + shown + `/close"`, ">open<"},
	} {
		if answer, body := get(path, "ops"); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, answer.StatusCode)
		} else {
			for _, want := range wants {
				if !strings.Contains(body, want) {
					t.Errorf("%s lacks %q: %s", path, want, body)
				}
			}
		}
	}
	form := url.Values{}
	for name, s := range map[string]struct {
		sent
		status int
	}{
		"a voter":           {sent{method: "POST", path: shown + "/close", form: form, header: bearer("ada")}, http.StatusForbidden},
		"an agent":          {sent{method: "POST", path: shown + "/close", form: form, header: bearer("bot")}, http.StatusForbidden},
		"another site":      {sent{method: "POST", path: shown + "/close", form: form, header: map[string]string{"Authorization": "Bearer ops", "Origin": "https://evil.example"}}, http.StatusBadRequest},
		"no such thread":    {sent{method: "POST", path: "/console/threads/none/close", form: form, header: bearer("ops")}, http.StatusNotFound},
		"no position":       {sent{path: "/v1/threads?after=x", header: bearer("ops")}, http.StatusBadRequest},
		"an operator":       {sent{method: "POST", path: shown + "/close", form: form, header: bearer("ops")}, http.StatusOK},
		"an operator again": {sent{method: "POST", path: "/v1/threads/" + one.ID + "/close", header: bearer("ops")}, http.StatusOK},
	} {
		if answer, body := f.do(t, f.browser(t), s.sent); answer.StatusCode != s.status {
			t.Errorf("%s: %d %s", name, answer.StatusCode, body)
		}
	}
	if _, body := get(shown, "ops"); !strings.Contains(body, "closed") || strings.Contains(body, "/close\"") {
		t.Errorf("closed: %s", body)
	}
}
