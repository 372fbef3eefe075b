package policy_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/boundary"
)

// A policy permits a call that an allow row matches and no deny row does.
func Example() {
	rows := `g, Analyst, role:researcher, acme/*
p, role:researcher, acme/*, web.*, , allow
p, Analyst, acme/alpha, payments.refund, "args.currency == 'EUR' && args.amount <= 100", allow
# end
`
	p, _, err := policy.Load(policy.Source{File: "policy.csv", Data: []byte(rows)}, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []struct{ tool, amount string }{{"web.search", "0"}, {"payments.refund", "99.5"}, {"payments.refund", "100.01"}} {
		decision, err := p.Permit(context.Background(), policy.Request{
			Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: call.tool,
			Arguments: map[string]any{"currency": "EUR", "amount": json.Number(call.amount)},
		})
		fmt.Println(call.tool, call.amount, decision.Allowed, err)
	}
	// Output:
	// web.search 0 true <nil>
	// payments.refund 99.5 true <nil>
	// payments.refund 100.01 false <nil>
}

// Arguments that are marked x-boundary must stay within the lists of their project.
func ExampleWorkspaces_Project() {
	spaces := policy.Workspaces{"acme": {Projects: map[string]policy.Project{
		"alpha": {Agents: []string{"Analyst"}, Roots: []string{"/srv/acme/alpha"}, Hosts: []string{"*.example.com"}},
	}}}
	project, err := spaces.Project("Analyst", "acme", "alpha")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(project.Bounds().Within(boundary.KindHost, "api.example.com"))
	fmt.Println(project.Bounds().Within(boundary.KindPath, "../beta/notes.md"))
	// Output:
	// <nil>
	// The path must stay within the project's directories. A relative path starts at the first of them.
}
