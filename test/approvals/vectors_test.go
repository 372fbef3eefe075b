package approvals_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// vector is one story: a call, what people say of it, and a call after that.
type vector struct {
	ID string
	// Rows are the policy. The rules are those of rulesFile.
	Rows []string
	// Call is the first call, and Again the second; where it is absent, it is the first again.
	Call  call
	Again *call
	// Pad lengthens a member of the first call's arguments by so many bytes.
	Pad   int
	Votes []vote
	// End ends the approval before the second call: used, expired, revoked, withdrawn.
	End string
	// First and Expect are the codes of the two calls, empty where they pass. Resume is that of
	// the first call taken up by its id instead of a second call; absent: it is not taken up.
	First, Expect string
	Resume        *string
	// Said is what the caller's own user decides about the first call: an option of a form, or
	// cancel, which decides nothing. Of the second call it decides nothing. Such a story is told
	// where a face can ask its caller (TestCallerDecides).
	Said string
}

// vote is what a person says. Refused is the code with which the vote is refused.
type vote struct {
	By       string
	Yes      bool
	Remember approval.Scope
	Refused  string
}

func stories(t *testing.T) []vector {
	t.Helper()
	all := corpora.Lines[vector](t, corpora.Testdata("own", "approvals.jsonl"))
	seen := map[string]bool{}
	for i, v := range all {
		if v.ID == "" || seen[v.ID] || len(v.Rows) == 0 || v.Call.Arguments == "" {
			t.Fatalf("%q has no id of its own, no rows or no call", v.ID)
		}
		seen[v.ID] = true
		if v.Pad > 0 {
			all[i].Call.Arguments = `{"note":"` + strings.Repeat("a", v.Pad) + `"}`
		}
	}
	if len(all) < 25 {
		t.Fatalf("found %d stories", len(all))
	}
	return all
}

// vote casts a vote on an approval that was opened.
func (o *office) vote(t *testing.T, id string, v vote) {
	t.Helper()
	desk := o.Executor.Desk()
	a, err := desk.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	b := approvals.Ballot{Yes: v.Yes, Digest: a.Digest}
	if v.Remember != "" {
		b.Remember = approval.Remember{Scope: v.Remember, For: time.Hour}
	}
	_, err = desk.Vote(t.Context(), o.people(approval.Vote{By: v.By}), id, b)
	var refused *refusal.Error
	code := ""
	if errors.As(err, &refused) {
		code = string(refused.Code)
	}
	if code != v.Refused || err != nil && refused == nil {
		t.Fatalf("the vote of %s: %v, want %q", v.By, err, v.Refused)
	}
}

// tell tells a story up to its second call, and returns the id of the first.
func (o *office) tell(t *testing.T, f face, v vector) string {
	t.Helper()
	first := o.bring(t, f, v.Call)
	if first.code != v.First {
		t.Fatalf("first: %q, want %q", first.code, v.First)
	}
	o.decide(t, f, v, first.id)
	return first.id
}

// decide has people say of a call what they say in a story, up to the end of its approval.
func (o *office) decide(t *testing.T, f face, v vector, id string) {
	t.Helper()
	for _, vote := range v.Votes {
		o.vote(t, id, vote)
	}
	var err error
	switch v.End {
	case "":
	case "used":
		if again := o.bring(t, f, v.Call); again.code != "" {
			t.Fatalf("the call that uses it: %q", again.code)
		}
	case "expired":
		o.later.Store(int64(31 * time.Minute))
	case "revoked":
		_, err = o.Executor.Desk().End(t.Context(), id, approval.EndRevoked, "op", "")
	case "withdrawn":
		_, err = o.Executor.Desk().End(t.Context(), id, approval.EndWithdrawn, "app", "")
	default:
		t.Fatalf("no end is %q", v.End)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// codeOf is the code of an answer of the native face; approval_required where the call waits.
func codeOf(t *testing.T, _ *office, w *httptest.ResponseRecorder) string {
	t.Helper()
	var got struct {
		State  string
		Result struct {
			Output struct{ Error struct{ Code string } }
		} `json:"tool_result"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if got.State == "approval" {
		return string(refusal.ApprovalRequired)
	}
	return got.Result.Output.Error.Code
}

// TestVectors: each story ends in the same way on every face.
func TestVectors(t *testing.T) {
	all, reported, byForm := stories(t), map[string]int{}, 0
	for _, v := range all {
		if v.Said != "" {
			byForm++ // TestCallerDecides
			continue
		}
		loaded := v.config(t)
		for _, f := range append(faces(), byACP()) {
			reported[f.name]++
			t.Run(v.ID+"/"+f.name, func(t *testing.T) {
				o := openOffice(t, loaded)
				o.tell(t, f, v)
				again := v.Call
				if v.Again != nil {
					again = *v.Again
				}
				if got := o.bring(t, f, again); got.code != v.Expect {
					t.Errorf("again: %q, want %q", got.code, v.Expect)
				}
			})
		}
	}
	for _, f := range append(faces(), byACP()) {
		if reported[f.name] != len(all)-byForm {
			t.Errorf("%s: told %d of %d stories, and %d need a form", f.name, reported[f.name], len(all), byForm)
		}
		t.Logf("%s: %d stories; %d need a form", f.name, reported[f.name], byForm)
	}
}

// config is the configuration of a story.
func (v vector) config(t *testing.T) *configs.Config {
	t.Helper()
	return facetest.Config(t, config(t, map[string]string{"policy.csv": "p, " + strings.Join(v.Rows, "\np, ") + "\n"}))
}
