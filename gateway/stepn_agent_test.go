package gateway_test

import (
	"context"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/corpora"
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
		matches(t, v, k.Check(context.Background(), request))
		stream, err := k.Stream(context.Background(), gateway.Request{Subject: subjectOf(v)})
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
		if r := unlimited(t).Check(context.Background(), request); r.Refusal != nil && r.Refusal.Code == refusal.AgentRequired {
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
	native := gateway.Input{Native: &gateway.Native{Name: "time.now", Arguments: []byte("{}")}}
	principal := *analyst
	for _, c := range []struct {
		name     string
		who      gateway.Authenticator
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
		s.Limits, s.Identity, s.AgentRequired = &ratelimit.Limits{Replicas: 1}, c.who, c.required
		k := kernelWith(t, s, ratelimit.NewLocal(newClock().now))
		request := gateway.Request{Credential: "k", Subject: gateway.Subject{Agent: c.agent, Workspace: "acme", Project: "alpha"}, Inputs: []gateway.Input{native}}
		d := k.Judge(ctx, request)
		d.Release()
		if got := refusedBy(d); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if c.agent == "Intern" && c.who != nil {
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
