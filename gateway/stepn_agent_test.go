package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// TestSN35Completions: with output.agent: required, a completion that is a call has the
// member "agent", whole or in pieces. Without the setting it may have it.
func TestSN35Completions(t *testing.T) {
	config, vectors := corpora.AgentVectors(t)
	s := state(t, config)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	k := kernelWith(t, s, ratelimit.NewLocal(newClock().now))
	required := 0
	for _, v := range vectors {
		request := gateway.Request{Subject: subjectOf(v), Inputs: []gateway.Input{{Completion: v.Bytes(t)}}}
		matches(t, v, k.Kernel.Check(context.Background(), request))
		stream, err := k.Kernel.Stream(context.Background(), gateway.Request{Subject: subjectOf(v)})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range v.Bytes(t) {
			stream.Write([]byte{b})
		}
		d := stream.Close(context.Background(), false)
		if d.Refusal() != nil || v.Expect.Verdict != "text" { // what was released of a text is not in the report
			matches(t, v, d.Reports[0])
		}
		d.Release()
		if v.Expect.Code != string(refusal.AgentRequired) {
			continue
		}
		required++
		if r := unlimited(t).Kernel.Check(context.Background(), request); r.Refusal != nil && r.Refusal.Code == refusal.AgentRequired {
			t.Errorf("%s: refused where the agent is optional", v.ID)
		}
	}
	if required < 5 {
		t.Errorf("only %d vectors lack an agent", required)
	}
}

// TestSN35NativeCalls: a native call has no place for the member "agent", so where it
// is required the request names the agent. Neither defaults nor what the principal has
// only one of stand in for it.
func TestSN35NativeCalls(t *testing.T) {
	ctx := context.Background()
	native := gateway.Input{Native: &gateway.NativeCall{Name: "time.now", Arguments: []byte("{}")}}
	principal := *analyst
	for _, c := range []struct {
		name     string
		authn    gateway.Authenticator
		required bool
		agent    string
		want     string
	}{
		{"defaults", nil, true, "", "identity agent_required"},
		{"named", nil, true, "Analyst", ""},
		{"a principal of one agent", knows{"k": &principal}, true, "", "identity agent_required"},
		{"a principal of one agent, named", knows{"k": &principal}, true, "Analyst", ""},
		{"another's agent", knows{"k": &principal}, true, "Intern", "identity agent_mismatch"},
		{"optional", nil, false, "", ""},
		{"optional, a principal of one agent", knows{"k": &principal}, false, "", ""},
	} {
		s := state(t, vectorConfig)
		s.Limits, s.Identity, s.AgentRequired = &ratelimit.Limits{Replicas: 1}, c.authn, c.required
		k := kernelWith(t, s, ratelimit.NewLocal(newClock().now))
		request := gateway.Request{Credential: "k", Subject: gateway.Subject{Agent: c.agent, Workspace: "acme", Project: "alpha"}, Inputs: []gateway.Input{native}}
		d := k.Kernel.Judge(ctx, request)
		d.Release()
		if got := refusedBy(d); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if r := d.Refusal(); r != nil && r.Code == refusal.AgentRequired && !strings.Contains(r.Message, "Nothing was executed; the application must name its agent: in the header Callgate-Agent, ") {
			t.Errorf("%s: %s", c.name, r.Message)
		}
		if c.agent == "Intern" && c.authn != nil {
			continue // it is not let in at all
		}
		a := admit(t, k, request)
		for _, mode := range bothModes {
			d := a.Judge(ctx, mode, native)
			d.Release()
			if got := refusedBy(d); got != c.want {
				t.Errorf("%s, let in, %s: %q, want %q", c.name, mode, got, c.want)
			}
		}
		// Text is for any agent, and for none that is stated.
		if d := a.Judge(ctx, gateway.ModeCall, gateway.Input{Completion: []byte("hi")}); d.Refusal() != nil {
			t.Errorf("%s: text is %v", c.name, d.Refusal())
		}
		if a.AgentRequired() != c.required {
			t.Errorf("%s: the admission says %t", c.name, a.AgentRequired())
		}
	}
}

// TestSN35Stated: the parser tells an agent of another type from none.
func TestSN35Stated(t *testing.T) {
	for completion, want := range map[string][2]bool{
		`{"agent":"A","tool":{}}`:  {true, true},
		`{"agent":null,"tool":{}}`: {true, false},
		`{"agent":{},"tool":{}}`:   {true, false},
		`{"tool":{"agent":"A"}}`:   {false, false},
		`{"Agent":"A","tool":{}}`:  {false, false},
	} {
		if r := parser.Parse([]byte(completion), false, parser.Options{}); r.AgentStated != want[0] || r.Claimed != want[1] {
			t.Errorf("%s: stated %t, claimed %t", completion, r.AgentStated, r.Claimed)
		}
	}
}

// TestSN30FormWithAgent: with an agent that is the bound one, a call is as strict as
// without.
func TestSN30FormWithAgent(t *testing.T) {
	const form = `{"agent":"Analyst","tool":{"name":"time.now","arguments":{}}}`
	says(t, map[string]string{
		form: passes, `{"tool":{"name":"time.now","arguments":{}},"agent":"Analyst"}`: passes, `{"agent":"Analyst","agent":"Analyst",` + form[1:]: "parse duplicate_key",
		`{"agent":"Analyst"}`: "parse not_a_tool_call", `{"agent":1,"tool":{"name":"time.now","arguments":{}}}`: "parse wrong_type /agent", form + ".": mixed,
		`{"agent":"Analyst","role":"x","tool":{"name":"time.now","arguments":{}}}`: "parse unexpected_field /role",
	})
}

// TestSN31PermissionsOfAgents: of two agents each may use what the policy lets it.
func TestSN31PermissionsOfAgents(t *testing.T) {
	const denied = "permission permission_denied"
	k := unlimited(t)
	for _, c := range []struct{ agent, tool, arguments, want string }{
		{"Analyst", "files.read", `{"path":"a"}`, passes},
		{"Analyst", "files.delete", `{"path":"a"}`, denied},
		{"Intern", "files.delete", `{"path":"a"}`, denied},
		{"Intern", "time.now", `{}`, passes},
		{"Analyst", "payments.refund", `{"payment_id":"pay_abc123","amount":100}`, passes},
		{"Analyst", "payments.refund", `{"payment_id":"pay_abc123","amount":101}`, denied},
		{"Intern", "payments.refund", `{"payment_id":"pay_abc123","amount":1}`, denied},
	} {
		r := completion(`{"tool":{"name":"` + c.tool + `","arguments":` + c.arguments + `}}`)
		r.Agent = c.agent
		if got := messageText(k.Kernel.Check(context.Background(), r)); got != c.want {
			t.Errorf("%s calls %s with %s: %s, want %s", c.agent, c.tool, c.arguments, got, c.want)
		}
	}
}

// TestSN32LimitsOfAgents: one agent's calls spend its own limits, and no other's.
func TestSN32LimitsOfAgents(t *testing.T) {
	s, l := state(t, vectorConfig), newLimits(t)
	s.Limits = l.of
	k := kernelWith(t, s, l)
	request := completion(`{"tool":{"name":"time.now","arguments":{}}}`)
	for _, agent := range []string{"Analyst", "Intern"} {
		request.Agent = agent
		for i := range burst + 1 {
			d := k.Kernel.Judge(context.Background(), request)
			d.Release()
			want := ""
			if i == burst {
				want = "rate rate_limited"
			}
			if got := refusedBy(d); got != want {
				t.Errorf("call %d of %s: %q, want %q", i+1, agent, got, want)
			}
		}
	}
}

// TestSN33ProjectOfAgents: a project has its agents, and is in its workspace.
func TestSN33ProjectOfAgents(t *testing.T) {
	k := unlimited(t)
	for _, c := range []struct{ agent, workspace, project, want string }{
		{"Intern", "acme", "alpha", passes},
		{"Intern", "acme", "beta", "project project_mismatch"},
		{"Intern", "acme", "gamma", "project project_mismatch"},
		{"Intern", "globex", "gamma", passes},
		{"Intern", "globex", "alpha", "project project_mismatch"},
		{"Intern", "nowhere", "alpha", "workspace workspace_mismatch"},
	} {
		r := completion(`{"tool":{"name":"time.now","arguments":{}}}`)
		r.Subject = gateway.Subject{Agent: c.agent, Workspace: c.workspace, Project: c.project}
		if got := messageText(k.Kernel.Check(context.Background(), r)); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestSN34ClaimsGrantNothing: an agent that the model writes is the bound one, or the
// call is refused, whatever the other agent may.
func TestSN34ClaimsGrantNothing(t *testing.T) {
	const mismatch = "identity agent_mismatch"
	claims := func(agent string) string {
		return `{"agent":"` + agent + `","tool":{"name":"time.now","arguments":{}}}`
	}
	says(t, map[string]string{
		claims("Analyst"): passes, claims("Intern"): mismatch, claims("analyst"): mismatch, claims("Analyst "): mismatch, claims(""): mismatch, claims("role:researcher"): mismatch, claims("Nobody"): mismatch,
	})
	// A claim does not choose among the agents of a principal.
	s := state(t, vectorConfig)
	s.Identity, s.Limits = knows{"k": both}, &ratelimit.Limits{Replicas: 1}
	request := completion(claims("Intern"))
	request.Credential = "k"
	if got := refusedBy(kernelWith(t, s, ratelimit.NewLocal(newClock().now)).Kernel.Judge(context.Background(), request)); got != "identity agent_required" {
		t.Errorf("the claim chose: %q", got)
	}
}

func TestSN36NoReasoningBesideACall(t *testing.T) {
	says(t, map[string]string{
		"<think>I need to search.</think>" + search: mixed, "I will search now.\n\n" + search: mixed, search + "\nThis finds x.": mixed,
		`{"reasoning":"I need to search.",` + search[1:]: "parse unexpected_field /reasoning", strings.Replace(search, `"query"`, `"thought":"hm","query"`, 1): "schema unexpected_argument /tool/arguments/thought",
	})
}

// TestSN39TextHoldsNoCall: neither a call nor the beginning of one.
func TestSN39TextHoldsNoCall(t *testing.T) {
	says(t, map[string]string{
		"It is noon.": "text", "Use " + search + " for that.": mixed, "```\n" + search + "\n```": mixed, "Say \"" + search + "\".": mixed, `Then {"tool": `: mixed,
	})
}

// TestSN40BracesInText pass; JSON of another kind does not, by default.
func TestSN40BracesInText(t *testing.T) {
	says(t, map[string]string{
		"The set {x | x > 0} and {} and f() { return 1 }.": "text", "See [1], [2, 3].": "text", `The pair {"a", "b"}.`: "text",
		`No name is {"\v": 1} and none {"\x41": 1}.`: "text", `But {"\f": 1} is one.`: mixed,
		`Send {"query": "x"}.`: mixed, `{"answer": 42}`: "parse not_a_tool_call", `<tool_call>`: "parse foreign_call_syntax",
	})
	s := state(t, vectorConfig)
	s.Output.JSONInText = parser.AllowForeign
	k := kernelWith(t, s, ratelimit.NewLocal(newClock().now))
	for in, want := range map[string]string{`Send {"query": "x"}.`: "text", "Send " + search + ".": mixed} {
		if got := messageText(k.Kernel.Check(context.Background(), completion(in))); got != want {
			t.Errorf("with allow_foreign, %q: %s, want %s", in, got, want)
		}
	}
}

// TestApproversActForNoAgent: a principal that may only approve calls, or only operate the
// gateway, is let in for no text and no call, whatever agent it names.
func TestApproversActForNoAgent(t *testing.T) {
	s := state(t, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	s.Identity = knows{"k": {Name: "ada", Approves: []string{"refunds"}, Operator: true}}
	k := kernelWith(t, s, ratelimit.NewLocal(newClock().now))
	for _, agent := range []string{"", "Analyst", "Nobody"} {
		for _, text := range []string{"hi", `{"tool":{"name":"time.now","arguments":{}}}`} {
			request := gateway.Request{Credential: "k", Subject: gateway.Subject{Agent: agent}, Inputs: []gateway.Input{{Completion: []byte(text)}}}
			if got := refusedBy(k.Kernel.Judge(context.Background(), request)); got != "identity agent_mismatch" {
				t.Errorf("agent %q, %s: %q", agent, text, got)
			}
			if _, err := k.Kernel.Admit(context.Background(), request); err == nil {
				t.Errorf("agent %q is admitted", agent)
			}
		}
	}
}
