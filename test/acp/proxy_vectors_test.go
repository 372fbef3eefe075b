package acp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/parser"
)

// natively is the verdict of the native face about a call, which it does not run.
func natively(t *testing.T, f *facetest.Fixture, subject gateway.Subject, name string, arguments []byte) string {
	t.Helper()
	body := `{"tool":{"name":` + quoted(name) + `,"arguments":` + string(arguments) + `}}`
	r := httptest.NewRequest(http.MethodPost, "/v1/check", strings.NewReader(body))
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Callgate-Agent", subject.Agent)
	r.Header.Set("Callgate-Workspace", subject.Workspace)
	r.Header.Set("Callgate-Project", subject.Project)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	var answer struct {
		Verdict string
		Error   *refused
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK || answer.Verdict == "text" {
		t.Fatalf("%s: %d %s", body, w.Code, w.Body)
	}
	return answer.Error.verdict()
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// TestPermissionVectors: a call of the vectors that an agent asks a permission for has the
// verdict of the native face, and the agent runs it if and only if it passes.
func TestPermissionVectors(t *testing.T) {
	f := newFixture(t, facetest.Options{Config: facetest.Vectors(t)})
	bridges := map[gateway.Subject]*bridge{}
	calls, refusals := 0, 0
	for _, v := range corpora.Vectors(t) {
		r := parser.Parse(v.Bytes(t), false, parser.Options{})
		if r.Kind != parser.Call || r.Claimed || v.FinishReason != "" || v.Expect.Stage == "parse" {
			continue // it is no call that a message of ACP can hold
		}
		subject := gateway.Subject{Agent: v.Agent, Workspace: v.Workspace, Project: v.Project}
		b := bridges[subject]
		if b == nil {
			b = openBridge(t, f, acptest.Script{}, subject, "/srv/acme/"+v.Project, nil)
			bridges[subject] = b
		}
		calls++
		want := natively(t, f, subject, r.Name, r.Arguments)
		if (want != "") != (v.Expect.Verdict == "refused") {
			t.Errorf("%s: the native face says %q", v.ID, want)
		}
		if want != "" {
			refusals++
		}
		if got := b.permit(t, fmt.Sprint("call-", calls), r.Name, r.Arguments); got != want {
			t.Errorf("%s: the proxy says %q, and the native face %q", v.ID, got, want)
		}
	}
	if calls < 45 || refusals < 30 || calls == refusals {
		t.Errorf("%d calls, %d refusals", calls, refusals)
	}
}

// permit has the agent ask a permission for a tool call by name, and returns its verdict.
func (b *bridge) permit(t *testing.T, id, name string, arguments []byte) string {
	t.Helper()
	call := `"toolCallId":` + quoted(id) + `,"title":"A call","name":` + quoted(name) + `,"rawInput":` + string(arguments) + `}`
	_, reported := b.dictate(t,
		acptest.Step{Update: json.RawMessage(`{"sessionUpdate":"tool_call",` + call)},
		acptest.Step{
			Ask: "session/request_permission",
			Params: json.RawMessage(`{"sessionId":"$session","toolCall":{` + call + `,"options":[{"optionId":"all","name":"Always","kind":"allow_always"},` +
				`{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}`),
			Allowed: []acptest.Step{{Update: json.RawMessage(`{"sessionUpdate":"tool_call_update","toolCallId":` + quoted(id) + `,"status":"completed"}`)}},
			Denied:  []acptest.Step{{Update: json.RawMessage(`{"sessionUpdate":"tool_call_update","toolCallId":` + quoted(id) + `,"status":"failed"}`)}},
		})
	var answer struct {
		Outcome struct{ OptionID string }
		Meta    struct{ Callgate *refused } `json:"_meta"`
	}
	_, said, _ := strings.Cut(reported, " ")
	if err := json.Unmarshal([]byte(said), &answer); err != nil {
		t.Fatalf("the agent was told %q: %v", reported, err)
	}
	verdict := answer.Meta.Callgate.verdict()
	if want := map[bool]string{true: "yes", false: "no"}[verdict == ""]; answer.Outcome.OptionID != want {
		t.Errorf("%s: the agent was told %s", name, said)
	}
	calls := b.Calls(b.session)
	if last := calls[len(calls)-1]; last.Name != name || (last.Status() == "completed") != (verdict == "") {
		t.Errorf("%s: the editor shows %+v", name, last)
	}
	return verdict
}

// TestDeniedByName: an agent that names a registered tool is judged by the rules of that tool,
// also where those of the kind would let the call pass.
func TestDeniedByName(t *testing.T) {
	const schema = "input_schema: {type: object}, run: {type: client}}\n"
	f := newFixture(t, facetest.Options{Config: facetest.Config(t, map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\ndefaults: {agent: Analyst, workspace: acme, project: alpha}\npolicy: policy.csv\nworkspaces: workspaces.yaml\n",
		"policy.csv":      "p, Analyst, *, acp.permission.other, , allow\np, Analyst, *, allowed, , allow\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [/w]}}}}\n",
		"tools.yaml":      "tools:\n  - {name: wipe, effect: once, " + schema + "  - {name: allowed, effect: once, " + schema + "  - {name: acp.permission.other, effect: once, input_schema: {type: object, properties: {title: {type: string}, paths: {type: array, items: {type: string}}, input: {}}}, run: {type: client}}\n",
	})})
	subject := gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}
	b := openBridge(t, f, acptest.Script{}, subject, "/w", nil)
	for name, want := range map[string]string{"wipe": "permission permission_denied", "allowed": "", "unregistered": ""} {
		if got := b.permit(t, name, name, []byte(`{}`)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
