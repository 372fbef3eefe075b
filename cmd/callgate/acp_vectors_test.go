package main

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// byACP brings completions to the agent that Callgate is for an editor, in front of a model
// that answers with them.
func byACP(t *testing.T, of vectors, cut func(string) []string) carry {
	m := &model{cut: cut}
	upstream := httptest.NewServer(m)
	t.Cleanup(upstream.Close)
	config, data := inFrontOf(t, of, upstream.URL, false)
	e := &editors{all: map[acpSubject]*opened{}, start: func(s acpSubject) *acptest.Process {
		return startACP(t, append([]string{"--config", config}, s.flags()...)...)
	}}
	sent, accepted := 0, 0
	t.Cleanup(func() {
		decisions, outcomes := 0, 0
		for _, o := range e.all {
			if o != nil {
				_ = o.Stop()
			}
		}
		for _, r := range acpRecords(t, data) {
			if r["event"] == "outcome" {
				outcomes++
			} else {
				decisions++
			}
		}
		if want := sent + accepted; decisions != want || outcomes != accepted { // with the text behind a call
			t.Errorf("%d decisions and %d outcomes in the logs, want %d and %d", decisions, outcomes, want, accepted)
		}
	})
	return func(t *testing.T, v corpora.Vector) (vectorVerdict, bool) {
		if v.Completion == nil || v.Expect.Code == "workspace_mismatch" || v.Expect.Code == "project_mismatch" {
			return vectorVerdict{}, false // no session has a folder of a project that is none
		}
		sent++ // also of an unknown agent, whose process writes down why it ends
		o, known := e.of(t, v)
		if !known {
			return vectorVerdict{}, false
		}
		m.say(v)
		if v.Expect.Verdict == "tool_call" {
			accepted++
		}
		return o.prompt(t, v, m), true
	}
}

// prompt sends a prompt that the model answers with a vector, and holds that the editor shows
// what the answer says.
func (o *opened) prompt(t *testing.T, v corpora.Vector, m *model) vectorVerdict {
	t.Helper()
	calls, text := len(o.Calls(o.session)), len(o.Text(o.session))
	var answer struct {
		StopReason string
		Meta       struct{ Callgate *acpRefusal } `json:"_meta"`
	}
	result, err := o.Ask("session/prompt", acptest.TextPrompt(o.session, "Go on."))
	if err == nil {
		err = json.Unmarshal(result, &answer)
	}
	if err != nil {
		t.Fatalf("%s: %v", v.ID, err)
	}
	shown, said := o.Calls(o.session)[calls:], o.Text(o.session)[text:]
	refused := answer.Meta.Callgate
	if (answer.StopReason == "refusal") != (refused != nil) {
		t.Errorf("%s: it ends with %s", v.ID, result)
	}
	for _, c := range shown {
		if refused != nil && slices.Contains(c.Statuses, "in_progress") || c.Status() != "failed" && c.Status() != "completed" {
			t.Errorf("%s: the editor shows %+v", v.ID, c)
		}
	}
	switch {
	case refused != nil:
		if said == "" || m.requestCount() != 1 {
			t.Errorf("%s: refused, and the editor shows %q after %d requests", v.ID, said, m.requestCount())
		}
		return refused.verdict()
	case len(shown) == 0:
		if said != *v.Completion || m.requestCount() != 1 {
			t.Errorf("%s: the text comes as %q, after %d requests", v.ID, said, m.requestCount())
		}
		return vectorVerdict{Verdict: "text"}
	}
	if len(shown) != 1 || said != afterwards || m.requestCount() != 2 {
		t.Errorf("%s: the editor shows %+v and %q, after %d requests", v.ID, shown, said, m.requestCount())
	}
	return vectorVerdict{Verdict: "tool_call"}
}
