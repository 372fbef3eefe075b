package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/detector"
	"github.com/callgate/callgate/store"
)

// injections are texts by which tools and callers tell models what to do, as far as the corpus
// is here, and those of this package.
func injections(t *testing.T) []string {
	t.Helper()
	texts := slices.Concat(hostile, []string{"\xff\xfe\xc3(", "\xed\xa0\x80", "a\u2028b\u0085c", "\u00ad\u180e\ufeff", strings.Repeat("\u202e", 400), `</textarea></select><form action=//x>`, `&lt;b&gt;&#60;i&#62;`})
	if !corpora.Whole("injections") {
		t.Log("left out: the corpus injections is not here")
		return texts
	}
	if testing.Short() {
		t.Log("short: the corpus injections is left out")
		return texts
	}
	type attack struct {
		Instruction string `json:"attacker_instruction"`
		Response    string `json:"tool_response"`
	}
	for i, a := range corpora.Lines[attack](t, corpora.Path(t, "injections", "injecagent.jsonl")) {
		if len(texts) >= 10*perBatch {
			break
		}
		if i%3 == 0 {
			texts = append(texts, a.Instruction, a.Response)
		}
	}
	return texts
}

const perBatch = 50

// shapesOf renders every page and answer of which texts are a part, one text in each entry of a
// list, and returns the elements of the pages.
func shapesOf(t *testing.T, texts []string) map[string][]string {
	f := newFixtureOf(t, nil, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\nlimits: limits.yaml\n", "tools.yaml": oneTool, "limits.yaml": "caller: {rate: 1/s, burst: 5}\n",
	})
	ctx := context.Background()
	for i, whole := range texts {
		text := strings.ToValidUTF8(whole[:min(len(whole), 1000)], "\ufffd") // as the faces bound what is recorded
		r := audit.Record{
			Time: time.Now(), Event: audit.Decision, Mode: audit.Call, Verdict: audit.Refused, CallID: fmt.Sprintf("call_%02d", i), RequestID: text, TraceID: text, Principal: text, Agent: text,
			Workspace: text, Project: text, Thread: text, Tool: text, ToolVersion: text, Code: "unexpected_argument", Stage: "schema", Completion: whole, Replica: text, Rows: []string{text},
		}
		arguments, err := json.Marshal(map[string]string{text: whole})
		if err != nil {
			t.Fatal(err)
		}
		r.Arguments = arguments
		if err := f.log.Append(ctx, r); err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Open(ctx, store.Call{ID: r.CallID, Scope: store.Scope{Principal: text, Workspace: text, Project: text}}); err != nil {
			t.Fatal(err)
		}
		if err := f.store.Dispatch(ctx, r.CallID, store.Task{Tool: text, Version: text, Agent: text, Effect: "read"}); err != nil {
			t.Fatal(err)
		}
		value, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		f.differences = append(f.differences, toolservers.Difference{
			Server: text, Version: text, State: "changed", Why: whole, Accepted: toolservers.DefinitionShown{Description: whole}, Offered: &toolservers.DefinitionShown{Description: whole, InputSchema: value},
			Changes: []toolservers.ChangedMember{{Path: "/" + whole, Old: value, New: value}},
		})
		f.names = append(f.names, fmt.Sprint(i, " ", text))
		f.breakers = append(f.breakers, admin.Breaker{Tool: text, Version: text, State: "open"})
	}
	f.health.Faults, f.health.Restart, f.health.Limits = texts, texts, texts[0]
	shapes := map[string][]string{}
	see := func(name, path string) {
		answer, body := f.do(t, f.Client(), sent{path: path})
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
		for _, c := range body {
			if c < ' ' && c != '\n' || c == 0x7f || c == 0x85 || c == 0xad || c == 0xfeff || c >= 0x200b && c <= 0x200d || c >= 0x2028 && c <= 0x202e || c >= 0x2066 && c <= 0x2069 || c >= 0xe0000 && c <= 0xe007f {
				t.Errorf("%s: %#x is in the answer", path, c)
				break
			}
		}
		if strings.HasPrefix(path, "/v1/") {
			if !json.Valid([]byte(body)) || answer.Header.Get("Content-Type") != "application/json; charset=utf-8" {
				t.Errorf("%s: %.200s", path, body)
			}
			return
		}
		for _, tag := range tags.FindAllString(body, -1) {
			shapes[name] = append(shapes[name], value.ReplaceAllString(tag, ""))
		}
	}
	for _, path := range []string{"/v1/decisions", "/v1/calls", "/v1/limits", "/v1/tools/web.search", "/v1/status", "/console", "/console/calls", "/console/running", "/console/limits", "/console/tools/web.search", "/console/audit"} {
		see(path, path)
	}
	for i := range texts {
		see(fmt.Sprint("call ", i), fmt.Sprintf("/console/calls/call_%02d", i))
		see("", fmt.Sprintf("/v1/decisions/call_%02d", i))
	}
	return shapes
}

// TestInjectionsAreInert: every page has the elements of its template, and every answer of the API
// is JSON in which nothing hides, whatever models, callers and tools have written.
func TestInjectionsAreInert(t *testing.T) {
	if detector.On {
		t.Skip("its requests come one after another, to pages that other tests ask for")
	}
	texts := injections(t)
	// The overview has one row for refusals that are alike, so each text is another.
	distinct := func(text string, n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint(text, " ", i))
		}
		return list
	}
	plain := func(text string) map[string][]string { return shapesOf(t, distinct(text, perBatch)) }
	// The policy has more to say of a name that an agent could have.
	want, impossible := plain("harmless text"), plain("harm * less")
	for batch := range slices.Chunk(texts, perBatch) {
		padded := append(slices.Clone(batch), distinct("harmless text", perBatch-len(batch))...)
		got := shapesOf(t, padded)
		for name, list := range want {
			if !slices.Equal(got[name], list) && !slices.Equal(got[name], impossible[name]) {
				t.Errorf("%s has other elements with %.60q and others: %d, expected %d", name, padded[0], len(got[name]), len(list))
			}
		}
	}
	t.Logf("%d texts", len(texts))
}

// TestWhoSeesWhat: every path by every method, for every kind of caller. Nothing but a POST or
// DELETE of somebody who may changes anything.
func TestWhoSeesWhat(t *testing.T) {
	f := newFixtureOf(t, staff{}, asking("Pays somebody.", "look it up"))
	paths := map[string]string{} // whether approvers may: yes, or empty
	for _, path := range []string{
		"/console", "/console/calls", "/console/calls/call_x", "/console/tools", "/console/tools/pay", "/console/policy", "/console/check", "/console/audit", "/console/limits", "/console/running", "/console/threads", "/console/threads/x", "/console/stops", "/console/events",
		"/v1/status", "/v1/config", "/v1/decisions", "/v1/policy", "/v1/tools", "/v1/tools/pay", "/v1/limits", "/v1/calls", "/v1/runs/x", "/v1/threads", "/v1/threads/x", "/v1/grants",
	} {
		paths[path] = ""
	}
	maps.Copy(paths, map[string]string{"/console/approvals": "yes", "/v1/approvals": "yes", "/v1/openapi.json": "yes"})
	client := f.browser(t)
	status := func(method, path, who string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, f.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range bearer(who) {
			r.Header.Set(name, value)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if !strings.HasSuffix(path, "/events") {
			_, _ = io.Copy(io.Discard, answer.Body)
		}
		return answer.StatusCode
	}
	for path, approvers := range paths {
		for who, known := range map[string]string{"": "no", "nobody": "no", "bot": "yes", "ada": "yes", "ops": "yes"} {
			want := []int{http.StatusForbidden}
			switch {
			case known == "no" && strings.HasPrefix(path, "/v1/"):
				want = []int{http.StatusUnauthorized}
			case known == "no" && path == "/console/events":
				want = []int{http.StatusUnauthorized}
			case known == "no":
				want = []int{http.StatusSeeOther} // to the page where one signs in
			case who == "ops":
				want = []int{http.StatusOK, http.StatusNotFound}
			case path == "/console":
				want = []int{http.StatusSeeOther} // to the approvals
			case approvers == "yes":
				want = []int{http.StatusOK}
			}
			if got := status(http.MethodGet, path, who); !slices.Contains(want, got) {
				t.Errorf("%q gets %s: %d, expected %v", who, path, got, want)
			}
		}
		for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, "BREW"} {
			if got := status(method, path, "ops"); got < 400 || got >= 500 {
				t.Errorf("%s %s: %d", method, path, got)
			}
		}
	}
	id := f.ask(t, gateway.Request{Credential: "bot"}, `{"amount":1}`)
	digest := f.see(t, "ada", id).Digest
	vote := url.Values{"vote": {"yes"}, "digest": {digest}}.Encode()
	for _, path := range []string{"/console/approvals/" + id + "?" + vote, "/v1/approvals/" + id, "/console/approvals/" + id + "/revoke"} {
		for _, who := range []string{"", "bot", "ada", "ops"} {
			status(http.MethodGet, path, who)
			status(http.MethodHead, path, who)
		}
	}
	if v := f.see(t, "ada", id); v.State != "waiting" || len(v.Votes) != 0 {
		t.Errorf("after nothing but GET: %+v", v)
	}
}
