package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/callgate/callgate/store/approval"
)

// plainly is a text as configurations may have it.
func plainly(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r > 0xffff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), 200)], ""))
}

// approvalShapes returns the elements of the pages of approvals of which each has one of the texts
// wherever callers, approvers, tools or rules can have one. Some wait, some have been approved, and
// some denied.
func approvalShapes(t *testing.T, texts []string) map[string][]string {
	var rules, tools strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&rules, "  r%d: {hint: %q}\n", i, "x"+plainly(text))
		fmt.Fprintf(&tools, "  - {name: pay%d, version: 1.0.0, description: %q, kind: execute, effect: once, run: {type: demo}, input_schema: {type: object}}\n", i, "Pays. "+plainly(text))
	}
	f := newFixtureOf(t, anyCredential{}, map[string]string{
		"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
		"approvals.yaml": "rules:\n" + rules.String(), "tools.yaml": "tools:\n" + tools.String(),
	})
	kept, _ := f.kernel.Approvals()
	for i, whole := range texts {
		text := strings.ToValidUTF8(whole[:min(len(whole), 1000)], "\ufffd")
		arguments, err := json.Marshal(map[string]string{text: whole[:min(len(whole), 8<<10)]})
		if err != nil {
			t.Fatal(err)
		}
		rule := fmt.Sprintf("r%d", i)
		a, err := approval.Open(approval.Approval{ID: fmt.Sprintf("call_%02d", i), Rules: []string{rule}, Rows: []string{text}, Config: "c", Call: approval.Call{
			Principal: text, Workspace: text, Project: text, Agent: text, User: text, Thread: text, Tool: fmt.Sprintf("pay%d", i), Version: "1.0.0", Definition: "d", Arguments: arguments,
		}}, kept, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.store.Ask(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		reason := string([]rune(text)[:min(len([]rune(text)), approval.MaxReason)])
		if i%3 > 0 {
			v := approval.Vote{By: text, Yes: i%3 == 1, At: time.Now(), Reason: reason, Rules: []string{rule}, Digest: a.Digest}
			if _, err := f.store.Vote(t.Context(), a.ID, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	shapes := map[string][]string{}
	see := func(name string, s sent) {
		s.header = bearer("ops")
		answer, body := f.do(t, f.Client(), s)
		if answer.StatusCode >= http.StatusInternalServerError {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
		for _, c := range body {
			if c < ' ' && c != '\n' || c == 0x7f || c == 0x85 || c == 0xad || c == 0xfeff || c >= 0x200b && c <= 0x200d || c >= 0x2028 && c <= 0x202e || c >= 0x2066 && c <= 0x2069 || c >= 0xe0000 && c <= 0xe007f {
				t.Errorf("%s: %#x is in the answer", name, c)
				break
			}
		}
		if strings.HasPrefix(s.path, "/v1/") {
			if !json.Valid([]byte(body)) {
				t.Errorf("%s: %.200s", name, body)
			}
			return
		}
		for _, tag := range tags.FindAllString(body, -1) {
			shapes[name] = append(shapes[name], value.ReplaceAllString(tag, ""))
		}
	}
	see("list", sent{path: "/console/approvals?state="})
	see("overview", sent{path: "/console"})
	see("API", sent{path: "/v1/approvals"})
	for i, text := range texts {
		page := fmt.Sprintf("/console/approvals/call_%02d", i)
		see(fmt.Sprint("page ", i), sent{path: page})
		see("API", sent{path: fmt.Sprintf("/v1/approvals/call_%02d", i)})
		short := text[:min(len(text), 300)]
		see(fmt.Sprint("refused ", i), sent{method: http.MethodPost, path: page, form: url.Values{"vote": {"yes"}, "digest": {short}, "reason": {short}, "scope": {short}, "for": {short}}})
	}
	return shapes
}

// TestInjectionsInApprovals: the pages of approvals have the elements of their templates, whatever
// the texts of the corpus are a part of.
func TestInjectionsInApprovals(t *testing.T) {
	texts := injections(t)
	want := approvalShapes(t, slices.Repeat([]string{"harmless text"}, perBatch))
	for batch := range slices.Chunk(texts, perBatch) {
		padded := append(slices.Clone(batch), slices.Repeat([]string{"harmless text"}, perBatch-len(batch))...)
		for name, list := range approvalShapes(t, padded) {
			if !slices.Equal(list, want[name]) {
				t.Errorf("%s has other elements with %.60q and others: %d, expected %d", name, padded[0], len(list), len(want[name]))
			}
		}
	}
	t.Logf("%d texts", len(texts))
}
