package main

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/refusal"
)

// asJSON is the body of a request; bytes that are no UTF-8 do not fit into one.
func asJSON(_ testing.TB, v corpora.Vector) (string, []string, bool) {
	if v.Completion == nil {
		return "", nil, false
	}
	body := map[string]string{"completion": *v.Completion, "agent": v.Agent, "workspace": v.Workspace, "project": v.Project, "id": v.ID}
	if v.FinishReason != "" {
		body["finish_reason"] = v.FinishReason
	}
	text, err := json.Marshal(body)
	return string(text), []string{"Content-Type", "application/json"}, err == nil
}

// asText is the completion as it is, with headers beside it.
func asText(t testing.TB, v corpora.Vector) (string, []string, bool) {
	headers := []string{"Content-Type", "text/plain", "Callgate-Agent", v.Agent, "Callgate-Workspace", v.Workspace, "Callgate-Project", v.Project, "Callgate-Id", v.ID}
	if v.FinishReason != "" {
		headers = append(headers, "Callgate-Finish-Reason", v.FinishReason)
	}
	return string(v.Bytes(t)), headers, true
}

// judged is what a verdict says beside how long it took.
type judged struct {
	Verdict string
	Call    any
	Error   any
	Stages  []struct {
		Stage string
		OK    bool
	}
}

// natively is the native face, asked by one form of a request: both of its ways to
// judge say the same, and what they were asked is in the audit log.
func natively(t *testing.T, of vectors, form func(testing.TB, corpora.Vector) (body string, headers []string, ok bool)) carry {
	config, data := unlimited(t, of.config)
	g := serveGate(t, config)
	sent, accepted := 0, 0
	t.Cleanup(func() {
		decisions, outcomes := g.countRecords(t, data)
		if decisions != sent || outcomes != accepted {
			t.Errorf("%d decisions and %d outcomes in the log, want %d and %d", decisions, outcomes, sent, accepted)
		}
	})
	return func(t *testing.T, v corpora.Vector) (vectorVerdict, bool) {
		body, headers, ok := form(t, v)
		if !ok {
			return vectorVerdict{}, false
		}
		sent++
		if v.Expect.Verdict == "tool_call" {
			accepted++
		}
		executed(t, v, g.ask(t, http.MethodPost, "/v1/calls", body, headers...))
		return of.served(t, v, g.ask(t, http.MethodPost, "/v1/check", body, headers...)), true
	}
}

// served is what /v1/check says, held against all that the command line says.
func (of vectors) served(t *testing.T, v corpora.Vector, r reply) vectorVerdict {
	t.Helper()
	var line verdictLine
	var got, want judged
	if r.status != http.StatusOK || json.Unmarshal([]byte(r.body), &line) != nil || json.Unmarshal([]byte(r.body), &got) != nil {
		t.Errorf("%s: %d %s", v.ID, r.status, r.body)
		return vectorVerdict{}
	}
	if string(line.ID) != `"`+v.ID+`"` || r.header.Get("Callgate-Call-Id") == "" {
		t.Errorf("%s: answered with the id %s and the headers %v", v.ID, line.ID, r.header)
	}
	if err := json.Unmarshal([]byte(of.check(t, v).stdout), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: served\n%+v, but the command line says\n%+v", v.ID, got, want)
	}
	return line.vectorVerdict(t)
}

// executed holds the answer of /v1/calls against the vector.
func executed(t *testing.T, v corpora.Vector, r reply) {
	t.Helper()
	var got struct {
		ID     string
		Text   *string
		Result *struct {
			Tool   *string
			Output map[string]json.RawMessage
		} `json:"tool_result"`
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || got.ID != v.ID || (got.Text == nil) == (got.Result == nil) {
		t.Errorf("%s: %d %s", v.ID, r.status, r.body)
		return
	}
	if got.Text != nil {
		if v.Expect.Verdict != "text" || r.status != http.StatusOK || *got.Text != string(v.Bytes(t)) {
			t.Errorf("%s: text %d %q", v.ID, r.status, *got.Text)
		}
		return
	}
	if name, want := got.Result.Tool, toolOf(t, v); (name == nil) != (want == nil) || name != nil && *name != *want {
		t.Errorf("%s: the tool of %s", v.ID, r.body)
	}
	var refused *struct{ Code, Stage, Message string }
	if raw, there := got.Result.Output["error"]; there {
		if err := json.Unmarshal(raw, &refused); err != nil || refused.Message == "" || len(got.Result.Output) != 1 {
			t.Errorf("%s: %s", v.ID, r.body)
			return
		}
	}
	switch {
	case v.Expect.Verdict == "tool_call":
		// A tool of the demonstration may not find what the vector points at.
		want := http.StatusOK
		if refused != nil {
			want = refusal.Code(refused.Code).Status()
		}
		if r.status != want || refused != nil && refused.Stage != "execute" {
			t.Errorf("%s: %d %s", v.ID, r.status, r.body)
		}
	case refused == nil || refused.Code != v.Expect.Code || refused.Stage != v.Expect.Stage || r.status != refusal.Code(v.Expect.Code).Status():
		t.Errorf("%s: %d %s, want %+v", v.ID, r.status, r.body, v.Expect)
	}
}

// toolOf is the name that an answer shows: none where the completion as a whole
// was not read, which a refusal says by having no place in the envelope.
func toolOf(t *testing.T, v corpora.Vector) *string {
	t.Helper()
	switch v.Expect.Code {
	case string(refusal.AgentUnknown): // is asked before anything is read
		return nil
	case string(refusal.UnexpectedField), string(refusal.MissingField), string(refusal.WrongType):
	default:
		if v.Expect.Stage == "parse" {
			return nil
		}
	}
	var c struct{ Tool map[string]any }
	if json.Unmarshal(v.Bytes(t), &c) != nil {
		return nil // a member of the envelope is of another type
	}
	name, ok := c.Tool["name"].(string)
	if !ok {
		return nil
	}
	return &name
}
