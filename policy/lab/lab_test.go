package lab_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/refusal"
)

func builtIn(t testing.TB) *lab.Judge {
	c, err := configs.Default("")
	if err != nil {
		t.Fatal(err)
	}
	j, err := c.DryRun()
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestJudge(t *testing.T) {
	j := builtIn(t)
	const refund = `{"payment_id":"pay_abc123","amount":50,"currency":"EUR"}`
	for name, c := range map[string]struct {
		call lab.Call
		code refusal.Code
		rows []string
	}{
		"allowed":           {lab.Call{Agent: "Analyst", Tool: "payments.refund", Arguments: json.RawMessage(refund)}, "", []string{"built-in:policy.csv:10"}},
		"denied by a row":   {lab.Call{Agent: "Intern", Tool: "payments.refund", Arguments: json.RawMessage(refund)}, refusal.PermissionDenied, []string{"built-in:policy.csv:12"}},
		"denied by no row":  {lab.Call{Agent: "Analyst", Tool: "files.delete", Arguments: json.RawMessage(`{"path":"a"}`)}, refusal.PermissionDenied, nil},
		"by the schema":     {lab.Call{Agent: "Analyst", Tool: "payments.refund", Arguments: json.RawMessage(`{}`)}, refusal.MissingArgument, nil},
		"unknown tool":      {lab.Call{Agent: "Analyst", Tool: "payments.refunds", Arguments: json.RawMessage(`{}`)}, refusal.UnknownTool, nil},
		"unknown version":   {lab.Call{Agent: "Analyst", Tool: "payments.refund", Version: "0.0.1", Arguments: json.RawMessage(`{}`)}, refusal.UnknownTool, nil},
		"unknown agent":     {lab.Call{Agent: "Nobody", Tool: "payments.refund", Arguments: json.RawMessage(refund)}, refusal.AgentUnknown, nil},
		"no agent":          {lab.Call{Tool: "payments.refund", Arguments: json.RawMessage(refund)}, refusal.AgentRequired, nil},
		"not JSON":          {lab.Call{Agent: "Analyst", Tool: "payments.refund", Arguments: json.RawMessage(`{`)}, refusal.MalformedJSON, nil},
		"outside the roots": {lab.Call{Agent: "Analyst", Tool: "files.read", Arguments: json.RawMessage(`{"path":"/etc/passwd"}`)}, refusal.BoundaryViolation, []string{"built-in:policy.csv:8"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.call.Workspace, c.call.Project = "acme", "alpha"
			got := j.Judge(t.Context(), c.call)
			var code refusal.Code
			if got.Refusal != nil {
				code = got.Refusal.Code
			}
			if code != c.code || !slices.Equal(got.Rows, c.rows) || got.Rules != nil {
				t.Errorf("found %q by %q asking %q; expected %q by %q", code, got.Rows, got.Rules, c.code, c.rows)
			}
		})
	}
}

func TestReach(t *testing.T) {
	j := builtIn(t)
	for _, c := range []struct {
		agent, project, tool string
		want                 policy.Reach
	}{
		{"Analyst", "alpha", "web.search", policy.Always},
		{"Analyst", "alpha", "payments.refund", policy.OnConditions},
		{"Intern", "alpha", "payments.refund", policy.Never},
		{"Intern", "beta", "web.search", policy.Never},    // no such project, though a row says acme/*
		{"Intern", "alpha", "web.searches", policy.Never}, // no such tool, though a row says *
	} {
		if got, err := j.Reach(c.agent, "acme", c.project, c.tool); err != nil || got != c.want {
			t.Errorf("%v: found %v, %v", c, got, err)
		}
	}
}

type authenticator struct{}

func (authenticator) Authenticate(string) *identity.Principal { return nil }

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]*gateway.Config{"nothing": nil, "incomplete": {}, "credentials": {Identity: authenticator{}}} {
		if _, err := lab.NewJudge(c); err == nil {
			t.Errorf("%s: there is a judge", name)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	j := builtIn(b)
	c := lab.Call{Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "payments.refund",
		Arguments: json.RawMessage(`{"payment_id":"pay_abc123","amount":50,"currency":"EUR"}`)}
	b.ReportAllocs()
	for b.Loop() {
		if j.Judge(context.Background(), c).Refusal != nil {
			b.Fatal("refused")
		}
	}
}
