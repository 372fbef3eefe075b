package configs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/policy"
)

// Principal is an authenticated caller, with the agents and projects that it may act for.
type Principal struct {
	Name      string   `key:"name" of:"a name"`
	KeySHA256 string   `key:"key_sha256"` // lower-case hex
	Agents    []string `key:"agents" of:"agents"`
	Workspace string   `key:"workspace" of:"a workspace"`
	Projects  []string `key:"projects" of:"projects"` // of the workspace
	// may use the admin listener
	Operator bool `key:"operator" of:"whether it is an operator"`
	// whatever its requests say
	OneThread bool `key:"one_thread" of:"whether all its calls are one thread"`
	// and call nothing itself
	HooksOnly bool `key:"hooks_only" of:"whether it may only ask for verdicts, as the hook of a coding agent"`
	// the rules by which it may approve calls of others
	Approves []string `key:"approves" of:"rules of approval"`
}

// readPrincipals reads the principals file.
func readPrincipals(root document.Node) []Principal {
	var all []Principal
	names, keys := map[string]int{}, map[string]int{}
	root.Object(document.Field("principals", func(n document.Node) {
		n.List("principals", func(_ int, item document.Node) {
			var p Principal
			ok := item.Object(document.Fields(&p, document.Field("key_sha256", func(n document.Node) { readSHA256(n, &p.KeySHA256) }))...)
			item.Describes(func(s *document.Schema) {
				s.Required = []string{"name", "key_sha256"}
				s.AllOf = []*document.Schema{{AnyOf: []*document.Schema{{Required: []string{"agents", "workspace", "projects"}},
					{Required: []string{"operator"}}, {Required: []string{"approves"}}}}}
			})
			if !ok {
				return
			}
			for _, key := range requiredOf(item, p) {
				if !item.Has(key) {
					item.Fail("found a principal without %s; expected name, key_sha256, agents, workspace and projects", key)
				}
			}
			if strings.HasPrefix(p.Name, "jwt:") {
				item.At("/name").Fail(
					"found %q, which is named like the principal of a token; expected a name that does not begin with jwt:", p.Name)
			}
			if p.HooksOnly && (p.Operator || len(p.Approves) > 0) {
				item.At("/hooks_only").Fail("found hooks_only for a principal that is an operator or approves calls; expected one or the other: the agent has its key")
			}
			checkUnique(item, "name", "name", p.Name, names)
			checkUnique(item, "key_sha256", "key", p.KeySHA256, keys)
			for i, agent := range p.Agents {
				if strings.HasPrefix(agent, "role:") {
					item.At(fmt.Sprintf("/agents/%d", i)).Fail("found %q, which is named like a role; expected an agent", agent)
				}
			}
			all = append(all, p)
		})
	}))
	return all
}

// requiredOf lists the keys that a principal must have. An operator, or someone who approves
// calls, may act for no agent: then agents, workspace and projects are all absent.
func requiredOf(item document.Node, p Principal) []string {
	own, reach := []string{"name", "key_sha256"}, []string{"agents", "workspace", "projects"}
	if (p.Operator || len(p.Approves) > 0) && !slices.ContainsFunc(reach, item.Has) {
		return own
	}
	return append(own, reach...)
}

// checkUnique reports a value under a key that an earlier element has too. The value
// itself is not shown.
func checkUnique(n document.Node, key, what, value string, seen map[string]int) {
	_, at, ok := n.Child(key)
	if !ok {
		return
	}
	if line, twice := seen[value]; twice {
		at.Fail("found the %s of another principal (at line %d); expected each to have its own", what, line)
		return
	}
	seen[value] = at.Line
}

// readSHA256 reads a SHA-256 in lower-case hex. Messages never show the value found: it may
// be the key itself.
func readSHA256(n document.Node, into *string) {
	const expected = "expected the SHA-256 of a key: a string of 64 lower-case hexadecimal digits"
	n.Matching("the SHA-256 of a key, in lower-case hexadecimal digits", "^[0-9a-f]{64}$")
	switch {
	case !n.IsString():
		n.Fail("found %s; %s, in quotes if it looks like a number", n.TypeName(), expected)
		return
	case len(n.Value) != 64:
		n.Fail("found no SHA-256 but %d characters; %s", len(n.Value), expected)
		return
	case strings.Trim(n.Value, "0123456789abcdef") != "":
		n.Fail("found no SHA-256; %s", expected)
		return
	}
	*into = n.Value
}

// knownAgents are all agents that a project or a principal names.
func knownAgents(workspaces policy.Workspaces, principals []Principal) map[string]bool {
	known := map[string]bool{}
	for _, a := range workspaces.Agents() {
		known[a] = true
	}
	for _, p := range principals {
		for _, a := range p.Agents {
			known[a] = true
		}
	}
	return known
}
