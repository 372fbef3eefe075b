package gateway_test

import (
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/ratelimit"
)

// TestProjectOfTheAgent: a request without a project acts in the one that is filled in, or else in the only one where its
// agent acts; of several none is guessed. A caller with credentials and several projects names one.
func TestProjectOfTheAgent(t *testing.T) {
	s := loose(t)
	s.Workspaces = policy.Workspaces{
		"home": {Projects: map[string]policy.Project{"attic": {Agents: []string{"Ann", "Bob"}}, "desk": {Agents: []string{"Ann"}}}},
		"shop": {Projects: map[string]policy.Project{"till": {Agents: []string{"Ann"}}}},
	}
	s.Agents = map[string]bool{"Ann": true, "Bob": true}
	two := knows{"two": &identity.Principal{Name: "two", Agents: []string{"Ann", "Bob"}, Workspace: "home", Projects: []string{"attic", "desk"}}}
	example := gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"} // as where a configuration states none
	for name, c := range map[string]struct {
		defaults, named gateway.Subject
		key             string
		want            gateway.Subject
		code            string
	}{
		"the default":            {gateway.Subject{"Ann", "home", "desk"}, gateway.Subject{}, "", gateway.Subject{"Ann", "home", "desk"}, ""},
		"none of the agent's":    {gateway.Subject{"Ann", "acme", "alpha"}, gateway.Subject{}, "", gateway.Subject{"Ann", "", ""}, "workspace project_required"},
		"no default":             {gateway.Subject{}, gateway.Subject{Agent: "Ann"}, "", gateway.Subject{"Ann", "", ""}, "workspace project_required"},
		"the only one":           {example, gateway.Subject{Agent: "Bob"}, "", gateway.Subject{"Bob", "home", "attic"}, ""},
		"beside another default": {gateway.Subject{"Ann", "home", "desk"}, gateway.Subject{Agent: "Bob"}, "", gateway.Subject{"Bob", "home", "attic"}, ""},
		"one of a workspace":     {example, gateway.Subject{Agent: "Ann", Workspace: "shop"}, "", gateway.Subject{"Ann", "shop", "till"}, ""},
		"several of a workspace": {example, gateway.Subject{Agent: "Ann", Workspace: "home"}, "", gateway.Subject{"Ann", "home", ""}, "workspace project_required"},
		"a named one":            {example, gateway.Subject{"Bob", "home", "desk"}, "", gateway.Subject{"Bob", "home", "desk"}, "project project_mismatch"},
		"one by its name alone":  {example, gateway.Subject{Agent: "Ann", Project: "till"}, "", gateway.Subject{"Ann", "shop", "till"}, ""},
		"one that is not there":  {example, gateway.Subject{"Bob", "home", "cellar"}, "", gateway.Subject{"Bob", "home", "cellar"}, "project project_mismatch"},
		"no agent":               {example, gateway.Subject{}, "", gateway.Subject{}, "identity agent_required"},
		"an unknown agent":       {example, gateway.Subject{Agent: "Eve"}, "", gateway.Subject{}, "identity agent_unknown"},
		"of a key, several":      {example, gateway.Subject{Agent: "Ann"}, "two", gateway.Subject{"Ann", "home", ""}, "workspace project_required"},
		"of a key, one of them":  {example, gateway.Subject{Agent: "Bob"}, "two", gateway.Subject{"Bob", "home", ""}, "workspace project_required"},
		"of a key, elsewhere":    {example, gateway.Subject{Agent: "Ann", Workspace: "shop"}, "two", gateway.Subject{"Ann", "shop", ""}, "workspace project_required"},
	} {
		now := *s
		now.Defaults = c.defaults
		if c.key != "" {
			now.Identity = two
		}
		k := kernelOf(t, &now, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(newClock().now), Journal: &journal{}}}).Kernel
		request := gateway.Request{Credential: c.key, Subject: c.named}
		a, err := k.Admit(t.Context(), request)
		if err != nil {
			if got := refusedAs(err); got != c.code {
				t.Errorf("%s: %s", name, got)
			}
			continue
		}
		if a.Subject() != c.want {
			t.Errorf("%s: %+v", name, a.Subject())
		}
		_, err = a.Tools()
		if got := refusedAs(err); (c.code == "workspace project_required" || got != "") && got != c.code {
			t.Errorf("%s: its tools: %s", name, got)
		}
		in := gateway.Input{Native: &gateway.NativeCall{Name: "web.search", Arguments: []byte("{}")}}
		if got := k.Judge(t.Context(), gateway.Request{Credential: c.key, Subject: c.named, Inputs: []gateway.Input{in}}).Refusal(); c.code == "workspace project_required" && refusedAs(got) != c.code {
			t.Errorf("%s: a call: %v", name, got)
		}
	}
}
